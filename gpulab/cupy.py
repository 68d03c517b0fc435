"""CuPy's API, as a learner imports it: ``from gpulab import cupy as cp``.

On a machine with a GPU and CuPy this name *is* CuPy. Elsewhere it is `gpulab.frontends.cupy`, where the same
CUDA C++ is compiled by the same compiler and runs on a simulated GPU.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gpulab.simulator.device import uses_gpu

if TYPE_CHECKING:
    from gpulab.frontends.cupy import *  # noqa: F403
else:
    if uses_gpu() and find_spec("cupy"):
        import cupy as _chosen
    else:
        from gpulab.frontends import cupy as _chosen
    sys.modules[__name__] = _chosen
