"""Which device a learner's code runs on.

``GPULAB_GPU`` names the GPU to simulate (A100 unless told otherwise). ``GPULAB_SIMULATE`` says whether to
simulate: ``1`` always, ``0`` only where there is no GPU. Unset it is 1 where GPULAB_GPU names a GPU and 0
otherwise, so that on a machine with a GPU nothing need be set to use it, and naming another GPU is enough
to see that one. ``GPULAB_LIMIT`` is how many instructions a chunk of blocks may take before its kernel counts
as endless; unset, kernels may take minutes.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

from gpulab.simulator import hardware

from .checks import LaunchError
from .simulated import SimulatedDevice

DEFAULT_GPU = "A100"
DRIVERS = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")

_current: SimulatedDevice | None = None


def current() -> SimulatedDevice:
    """The simulated device: where kernels run without a GPU, and where they are counted on any machine.

    Raises hardware.UnknownGPU when GPULAB_GPU names no GPU, and LaunchError when GPULAB_LIMIT is no number.

    >>> current().gpu.name
    'A100'
    """
    global _current
    if _current is None:
        try:
            gpu = hardware.find(_named_gpu() or DEFAULT_GPU)
        except hardware.UnknownGPU as error:
            raise hardware.UnknownGPU(f"GPULAB_GPU: {error}") from None
        device = SimulatedDevice(gpu)
        if limit := os.environ.get("GPULAB_LIMIT", "").strip():
            if not limit.isdecimal() or int(limit) == 0:
                raise LaunchError(
                    f"GPULAB_LIMIT is {limit!r}; set it to a number of instructions, at least 1."
                )
            device.options = {"limit": int(limit)}
        _current = device
    return _current


def simulate(name: str) -> SimulatedDevice:
    """Simulate another GPU from now on, for example ``"H100"``. Arrays stay where they are.

    Raises hardware.UnknownGPU, in one line that lists the known names.

    >>> simulate("H100").gpu.name
    'H100'
    >>> simulate("A100").gpu.name
    'A100'
    """
    gpu = hardware.find(name)
    device = current()
    device.gpu = gpu
    return device


@cache
def uses_gpu() -> bool:
    """Whether `gpulab.cuda` is numba.cuda on a GPU. Decided once per process.

    >>> isinstance(uses_gpu(), bool)
    True
    """
    wish = os.environ.get("GPULAB_SIMULATE", "").strip().lower()
    if wish not in ("", "0", "1"):
        raise LaunchError(
            f"GPULAB_SIMULATE is {wish!r}; set it to 1 (always simulate) or 0 (use a GPU if there is one)."
        )
    if wish == "1" or (wish == "" and _named_gpu()):
        return False
    return has_gpu()


@cache
def has_gpu() -> bool:
    """Whether there is an NVIDIA GPU with a working driver. Asks the driver itself: numba takes longer.

    >>> isinstance(has_gpu(), bool)
    True
    """
    for name in DRIVERS:
        try:
            driver = ctypes.CDLL(name)
        except OSError:
            continue
        count = ctypes.c_int(0)
        return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
    return False


def _named_gpu() -> str:
    name = os.environ.get("GPULAB_GPU", "").strip()
    return "" if name.lower() == "none" else name
