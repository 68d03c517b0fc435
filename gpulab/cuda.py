"""numba.cuda's API, as a learner imports it: ``from gpulab import cuda``.

On a machine with a GPU this name *is* numba.cuda. Elsewhere it is `gpulab.frontends.cuda`, where the same
code compiles with the same compiler and runs on a simulated GPU. `gpulab.simulator.device.choice` says which
of the two, and how to choose.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpulab.simulator.device import uses_gpu

if TYPE_CHECKING:
    from gpulab.frontends.cuda import *  # noqa: F403
elif uses_gpu():
    # numba recognises the names of kernels by the identity of their module, so nothing but itself will do.
    from numba import cuda as _chosen

    sys.modules[__name__] = _chosen
else:
    from gpulab.frontends import cuda as _chosen

    sys.modules[__name__] = _chosen
