"""nbgrader's settings for every user of a JupyterHub: the exchange, through which labs go out and come back.

Install it as /etc/jupyter/nbgrader_config.py. `grading/nbgrader_config.py`, the teacher's, stands beside it.
"""

import os

c = get_config()  # type: ignore[name-defined]  # noqa: F821
c.CourseDirectory.course_id = os.environ.get("GPULAB_COURSE", "gpulab")
# A folder that all servers mount, writable for all: mkdir -m 777 /srv/nbgrader/exchange
c.Exchange.root = os.environ.get("GPULAB_EXCHANGE", "/srv/nbgrader/exchange")
# In containers every server runs as the same user, so that files do not tell whose they are. Then a student
# can also reach what others hand in: docs/environments.md says what to do about it.
c.ExchangeCollect.check_owner = False
