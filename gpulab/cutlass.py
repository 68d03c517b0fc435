"""CuTe DSL, as a learner imports it: ``from gpulab import cutlass``, ``from gpulab.cutlass import cute``.

They are NVIDIA's own everywhere. On a machine without a GPU `gpulab.frontends.cutlass` has tied them to the
simulated device, so that the same host code launches the same kernels there.
"""

from __future__ import annotations

import importlib
import sys

from gpulab.simulator.device import uses_gpu

if uses_gpu():
    _chosen = importlib.import_module("cutlass")
else:
    from gpulab.frontends.cutlass import package

    _chosen = package()
sys.modules[__name__] = _chosen
