"""CUDA C++ → PTX with NVRTC. Needs no driver, which cuda.core's compiler asks for its version."""

from __future__ import annotations

import os
from functools import cache, lru_cache

from .kernel import Capability, CompileError

# An option that keeps functions which nothing in the same text calls, for others to link.
RELOCATABLE = ("--relocatable-device-code=true",)


@lru_cache(maxsize=256)
def cuda_c_ptx(
    source: str, cc: Capability = (8, 0), name: str = "kernel.cu", options: tuple[str, ...] = ()
) -> str:
    """The PTX of CUDA C++ `source`. `options` are NVRTC's. Raises CompileError with NVRTC's log."""
    from cuda.bindings import nvrtc

    flags = [
        f"--gpu-architecture=compute_{cc[0]}{cc[1]}",
        *(f"-I{path}" for path in include_paths()),
        *options,
    ]
    program = _checked(nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], []))
    try:
        (result,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(
                name, _text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).strip()
            )
        return _text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


@cache
def include_paths() -> tuple[str, ...]:
    """Where the CUDA headers of the installed wheels are, and those of numba-cuda's own CUDA code."""
    from cuda import pathfinder
    from cuda.bindings import nvrtc
    from numba import cuda
    from numba.cuda.cuda_paths import get_cuda_paths

    major = _checked(nvrtc.nvrtcVersion())
    numbas = os.path.dirname(cuda.__file__)
    cccl = pathfinder.locate_nvidia_header_directory("cccl")
    return (
        os.path.join(numbas, "include", str(major)),
        str(get_cuda_paths()["include_dir"].info),
        *([cccl.abs_path] if cccl else []),
        os.path.join(numbas, "memory_management"),
    )


def _checked(answer: tuple) -> object:
    """The first value that NVRTC returns behind its error code."""
    if answer[0].value:
        raise RuntimeError(f"NVRTC: {answer[0].name}")
    return answer[1]


def _text(program: object, size_of: object, read: object) -> str:
    size = _checked(size_of(program))  # type: ignore[operator]
    buffer = bytearray(size)  # type: ignore[call-overload]
    read(program, buffer)  # type: ignore[operator]
    return buffer.decode(errors="replace").rstrip("\0")
