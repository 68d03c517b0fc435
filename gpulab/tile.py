"""cuTile, as a learner imports it: ``from gpulab import tile as ct``.

It is NVIDIA's own ``cuda.tile`` everywhere. On a machine without a GPU `gpulab.frontends.tile` has tied it to
the simulated device, so that ``ct.launch`` runs the same kernels there.
"""

from __future__ import annotations

import importlib
import sys

from gpulab.simulator.device import uses_gpu

if uses_gpu():
    _chosen = importlib.import_module("cuda.tile")
else:
    from gpulab.frontends.tile import package

    _chosen = package()
sys.modules[__name__] = _chosen
