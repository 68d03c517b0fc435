"""Which compiler is installed, and for which GPUs it makes code."""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata

from .kernel import Capability

# The wheels that carry NVVM: CUDA 13 has one of its own, CUDA 12 ships it with nvcc.
NVVM_WHEELS = ("nvidia-nvvm", "nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12")


def version_in(ptx: str) -> str:
    """The compiler that wrote `ptx`, by its own header: ``NVVM 13.5``."""
    release = re.search(r"release (\d+\.\d+)", ptx[:1000])
    return f"NVVM {release[1]}" if release else "NVVM"


@cache
def compiler_version() -> str:
    """The installed compiler, ``NVVM 13.5``; empty where none is installed."""
    for wheel in NVVM_WHEELS:
        try:
            return "NVVM " + ".".join(metadata.version(wheel).split(".")[:2])
        except metadata.PackageNotFoundError:
            continue
    return ""


@cache
def supported_capabilities() -> tuple[Capability, ...]:
    """The compute capabilities that the installed compiler makes code for, in rising order."""
    from cuda.bindings import nvrtc

    error, architectures = nvrtc.nvrtcGetSupportedArchs()
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC does not say which architectures it supports: {error.name}")
    return tuple(sorted(divmod(int(number), 10) for number in architectures))


def no_code_for(cc: Capability) -> str:
    """What to say when the compiler is too old or too new for `cc`."""
    lowest, highest = (
        f"{major}.{minor}" for major, minor in (supported_capabilities()[0], supported_capabilities()[-1])
    )
    return (
        f"{compiler_version()} makes no code for compute capability {cc[0]}.{cc[1]}, "
        f"only for {lowest} … {highest}. Choose another GPU with GPULAB_GPU."
    )
