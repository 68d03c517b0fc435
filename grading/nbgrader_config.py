"""nbgrader's configuration: run nbgrader and JupyterLab in this folder, or name this file with --config."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from grading.core.course import Course
from grading.lms.nbgrader import nbgrader_config

c = get_config()  # type: ignore[name-defined]  # noqa: F821
c.merge(nbgrader_config(Course()))
