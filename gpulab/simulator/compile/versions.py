"""Which compiler is installed, and for which GPUs it makes code."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import metadata
from pathlib import Path

from .kernel import Capability

# Capabilities with instructions that later ones do not have: Hopper's wgmma, Blackwell's tcgen05.
WITH_OWN_INSTRUCTIONS: frozenset[Capability] = frozenset({(9, 0), (10, 0), (10, 3), (12, 0)})

# The wheels that carry NVVM: CUDA 13 has one of its own, CUDA 12 ships it with nvcc.
NVVM_WHEELS = ("nvidia-nvvm", "nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12")


def version_in(ptx: str) -> str:
    """The compiler that wrote `ptx`, by its own header: ``NVVM 13.5``."""
    release = re.search(r"release (\d+\.\d+)", ptx[:1000])
    return f"NVVM {release[1]}" if release else "NVVM"


def target_of(ptx: str) -> Capability:
    """The compute capability that `ptx` is for, by its own ``.target``."""
    target = re.search(r"^\s*\.target\s+sm_(\d+)(\d)", ptx, re.MULTILINE)
    if target is None:
        raise ValueError("this PTX has no .target")
    return int(target[1]), int(target[2])


@cache
def compiler_version() -> str:
    """The installed compiler, ``NVVM 13.5``, of a wheel or a CUDA Toolkit; empty where there is none.

    >>> compiler_version().split()[0]
    'NVVM'
    """
    for wheel in NVVM_WHEELS:
        try:
            return "NVVM " + ".".join(metadata.version(wheel).split(".")[:2])
        except metadata.PackageNotFoundError:
            continue
    try:
        from cuda import pathfinder

        return of_a_toolkit(Path(pathfinder.load_nvidia_dynamic_lib("nvvm").abs_path or ""))
    except (ImportError, RuntimeError):  # pathfinder says it with a RuntimeError that there is none
        return ""


def of_a_toolkit(library: Path) -> str:
    """The version of NVVM whose `library` lies in a CUDA Toolkit, by the list of versions at its root."""
    for folder in library.parents:
        if (file := folder / "version.json").is_file():
            listed = json.loads(file.read_text(encoding="utf-8"))
            found = next((listed[name] for name in ("libnvvm", "cuda_nvcc", "cuda") if name in listed), None)
            return "NVVM " + ".".join(found["version"].split(".")[:2]) if found else ""
    return ""


def architecture(cc: Capability) -> str:
    """What compilers call a compute capability with all its instructions: ``80``, ``90a``."""
    return f"{cc[0]}{cc[1]}" + "a" * (cc in WITH_OWN_INSTRUCTIONS)


@cache
def supported_capabilities() -> tuple[Capability, ...]:
    """The compute capabilities that the installed compiler makes code for, in rising order.

    >>> (8, 0) in supported_capabilities()
    True
    """
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
