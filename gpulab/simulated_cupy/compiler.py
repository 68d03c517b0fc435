"""`cupy.cuda.compiler`: the error of CUDA C++ that does not compile."""

from __future__ import annotations

import re

from gpulab.compile import CompileError, CudaCompileError

CompileException = CompileError

__all__ = ["CompileError", "CompileException", "CudaCompileError", "is_valid_kernel_name"]


def is_valid_kernel_name(name: str) -> bool:
    """Whether a kernel can be called this."""
    return re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None
