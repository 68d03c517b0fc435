"""`cupy.cuda.compiler`: CUDA C++ that does not compile, and the function behind all kernels."""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

from gpulab.simulator import device as devices
from gpulab.simulator.compile import CompileError, cuda_c_module

CompileException = CompileError
INCLUDE = os.path.join(os.path.dirname(__file__), "include")  # <cupy/complex.cuh>, <cupy/carray.cuh>

__all__ = ["CompileException", "compile_using_nvrtc", "is_valid_kernel_name"]


def compile_using_nvrtc(
    source: str,
    options: tuple[str, ...] = (),
    arch: Any = None,
    filename: str = "kern.cu",
    name_expressions: tuple[str, ...] | None = None,
    log_stream: Any = None,
    cache_in_memory: bool = False,
    jitify: bool | None = None,
) -> tuple[bytes, dict[str, str]]:
    """(PTX, C++ name → name in the PTX) of a text, for the simulated GPU. Raises CompileException."""
    warn_of_jitify(jitify)
    title = filename.removesuffix(".cu")
    made = cuda_c_module(
        source, devices.current().cc, title, tuple(options), tuple(name_expressions or ()), (INCLUDE,)
    )
    if log_stream is not None:
        log_stream.write(made.log)
    return made.ptx.encode(), dict(made.names)


def is_valid_kernel_name(name: str) -> bool:
    """Whether a kernel can be called this."""
    return re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None


def warn_of_jitify(jitify: bool | None) -> None:
    """Warn of an argument that CuPy no longer wants."""
    if jitify is not None:
        warnings.warn(
            "the jitify argument is deprecated in CuPy and changes nothing here. Avoid passing "
            f"{'jitify=True' if jitify else 'even jitify=False'}.",
            DeprecationWarning,
            stacklevel=4,
        )
