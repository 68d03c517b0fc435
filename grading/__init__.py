"""The instructor's package: release the labs, judge submissions by data alone, fill nbgrader's gradebook.

`gpulab` never imports it, and no learner's code ever runs in a process that has it loaded.
"""

import sys

# jsonschema, which checks notebooks, would check internationalised addresses, too, if it could. The grammar
# that it needs for that is built at import, for longer than all else together; no notebook has such a field.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
