"""What goes with CuPy, as a learner imports it: ``from gpulab import cupyx``.

On a machine with a GPU and CuPy this name *is* cupyx. Elsewhere it is `gpulab.analysis.cupyx`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gpulab.simulator.device import uses_gpu

if TYPE_CHECKING:
    from gpulab.analysis.cupyx import *  # noqa: F403
else:
    if uses_gpu() and find_spec("cupyx"):
        import cupyx as _chosen
    else:
        from gpulab.analysis import cupyx as _chosen
    sys.modules[__name__] = _chosen
