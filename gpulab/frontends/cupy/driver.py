"""`cupy.cuda.driver`: the errors of CUDA's driver, in words."""

from __future__ import annotations

from types import SimpleNamespace

from gpulab.foundation.errors import Message


class CUDADriverError(Message, RuntimeError):
    """What the driver would refuse: a kernel that is not there, a file that cannot be loaded."""


driver = SimpleNamespace(CUDADriverError=CUDADriverError)
