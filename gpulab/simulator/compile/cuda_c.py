"""CUDA C++ → PTX with NVRTC. Needs no driver, which cuda.core's compiler asks for its version."""

from __future__ import annotations

import hashlib
import linecache
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

from gpulab.foundation import underway

from .cuda_errors import in_words
from .headers import header_folders
from .kernel import Capability, CompileError
from .lines import with_learners_lines
from .standard_headers import missed
from .versions import architecture, no_code_for, supported_capabilities

# An option that keeps functions which nothing in the same text calls, for others to link.
RELOCATABLE = ("--relocatable-device-code=true",)

# The language unless the options name one, and what brings a learner's lines into the PTX.
STANDARD = "--std=c++17"
LINES = "--generate-line-info"
VARIABLES = "--device-debug"  # and where the named variables are, in code that is not optimised

# Cooperative groups bring the whole C++ library along unless told not to, which takes a second and a half to
# read. What needs it (memcpy_async, scans) does not compile this way and is tried again with all of it.
GROUPS = "cooperative_groups"
FEWER_HEADERS = "-D_CG_LIMIT_INCLUDED_DEPENDENCIES"


@dataclass(frozen=True)
class CudaModule:
    """What NVRTC made of one text. `names` are the entries of the kernels that were asked for by C++ name,
    `log` holds its warnings, `compiler` says which NVRTC it was."""

    ptx: str = field(repr=False)
    names: Mapping[str, str]
    log: str
    compiler: str


@lru_cache(maxsize=256)
def cuda_c_module(
    source: str,
    cc: Capability = (8, 0),
    title: str = "kernel",
    options: tuple[str, ...] = (),
    names: tuple[str, ...] = (),
    folders: tuple[str, ...] = (),
    variables: bool = False,
) -> CudaModule:
    """Compile the CUDA C++ in `source` for compute capability `cc`, so that reports and faults can name its
    lines.

    `title` is what messages call the source. `options` are NVRTC's. `names` are C++ names of kernels, such as
    ``scale<float>``, to be compiled and found again. `folders` are searched for headers first. With
    `variables` nothing is optimised, and the PTX says where each named variable is. Raises CudaCompileError.

    >>> module = cuda_c_module('extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }')
    >>> ".entry twice" in module.ptx
    True
    """
    if cc not in supported_capabilities():
        raise CompileError(title, no_code_for(cc))
    file = _remember(source, title)
    flags = (
        *(() if _has_standard(options) else (STANDARD,)),
        VARIABLES if variables else LINES,
        *(f"-I{path}" for path in (*folders, *header_folders())),
        *options,
    )
    slimmer = (FEWER_HEADERS, *flags) if GROUPS in source else flags
    with underway.work(f"compiling {title}"):
        result = _with_headers(source, file, cc, slimmer, names)
        if result.failed and slimmer is not flags:
            result = _with_headers(source, file, cc, flags, names)
    if result.failed:
        raise in_words(title, source, result.log, nvrtc_version())
    ptx = result.ptx.replace(f'"/{file}"', f'"{file}"')
    ptx = with_learners_lines(ptx, foreign=lambda path: path != file)
    log = result.log.replace(f"/{file}", title)
    return CudaModule(ptx, MappingProxyType(result.names), log, nvrtc_version())


@lru_cache(maxsize=256)
def cuda_c_ptx(
    source: str, cc: Capability = (8, 0), name: str = "kernel.cu", options: tuple[str, ...] = ()
) -> str:
    """The PTX of CUDA C++ `source` that numba kernels link. `options` are NVRTC's. Raises CompileError with
    NVRTC's log."""
    flags = (*(f"-I{path}" for path in include_paths()), *options)
    result = _with_headers(source, name, cc, flags, ())
    if result.failed:
        raise CompileError(name, result.log)
    return result.ptx


@dataclass(frozen=True)
class _Result:
    failed: bool
    ptx: str
    names: dict[str, str]
    log: str


def _with_headers(
    source: str, file: str, cc: Capability, flags: tuple[str, ...], names: tuple[str, ...]
) -> _Result:
    """Compile, and as long as a header is missed that nvcc would find, once more with that header."""
    headers: dict[str, str] = {}
    result = _nvrtc(source, file, cc, flags, names, headers)
    while result.failed and (more := missed(result.log)).keys() - headers.keys():
        headers |= more
        result = _nvrtc(source, file, cc, flags, names, headers)
    return result


def _nvrtc(
    source: str,
    file: str,
    cc: Capability,
    flags: tuple[str, ...],
    names: tuple[str, ...],
    headers: Mapping[str, str],
) -> _Result:
    from cuda.bindings import nvrtc

    flags = (f"--gpu-architecture=compute_{architecture(cc)}", *flags)
    # NVRTC writes paths with the working folder in front, unless they start at the root.
    path = f"/{file}" if file.startswith("<") else file
    texts, includes = [t.encode() for t in headers.values()], [name.encode() for name in headers]
    created = nvrtc.nvrtcCreateProgram(source.encode(), path.encode(), len(headers), texts, includes)
    program = _checked(created)
    try:
        for name in names:
            _checked(nvrtc.nvrtcAddNameExpression(program, name.encode()))
        (outcome,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
        log = _text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).strip()
        if outcome != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            return _Result(True, "", {}, log or outcome.name)
        entries = {name: _checked(nvrtc.nvrtcGetLoweredName(program, name.encode())) for name in names}
        return _Result(
            False,
            _text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX),
            {name: entry.decode() for name, entry in entries.items()},
            log,
        )
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _has_standard(options: tuple[str, ...]) -> bool:
    return any(re.match(r"--?std=", option) for option in options)


def _remember(source: str, title: str) -> str:
    """The file name of a text that is in no file, under which Python's `linecache` finds its lines."""
    file = f"<cuda {digest(source)}>/{re.sub(r'[^A-Za-z0-9_.-]+', '_', title)}.cu"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    return file


def digest(source: str) -> str:
    """What stands for a text in the name of its file."""
    return hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()[:8]


@cache
def nvrtc_version() -> str:
    """The installed NVRTC, ``NVRTC 13.5``."""
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"NVRTC {major}.{minor}"


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


def _checked(answer: tuple[Any, ...]) -> Any:
    """The first value that NVRTC returns behind its error code."""
    if answer[0].value:
        raise RuntimeError(f"NVRTC: {answer[0].name}")
    return answer[1] if len(answer) > 1 else None


def _text(program: Any, size_of: Any, read: Any) -> str:
    buffer = bytearray(_checked(size_of(program)))
    read(program, buffer)
    return buffer.decode(errors="replace").rstrip("\0")
