"""Triton's API, as a learner imports it: ``from gpulab import triton``.

On a machine with a GPU this name *is* Triton. Elsewhere it is `gpulab.frontends.triton`, where Triton itself
compiles the same kernels and the simulator runs them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpulab.simulator.device import uses_gpu

if TYPE_CHECKING:
    from gpulab.frontends.triton import *  # noqa: F403
else:
    if uses_gpu():
        import triton as _chosen
    else:
        from gpulab.frontends import triton as _chosen
    sys.modules[__name__] = _chosen
