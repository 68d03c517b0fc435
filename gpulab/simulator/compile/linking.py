"""Finds the PTX of what a kernel calls without bringing it along, and puts both together."""

from __future__ import annotations

import os
import re
from importlib import resources
from typing import Any

from .cuda_c import RELOCATABLE, cuda_c_ptx
from .driverless import numbas_includes
from .joining import EXTERN, join
from .kernel import Capability, CompileError

# CUDA C++ that kernels call without naming it: what they call → the file, numba's own or ours.
NUMBAS_SOURCES = {
    "numba_attempt_nocopy_reshape": "reshape_funcs.cu",
    "nocopy_empty_reshape": "reshape_funcs.cu",
}
OUR_SOURCES = {
    "cudaCGGetIntrinsicHandle": "grid_sync.cuh",
    "cudaCGSynchronize": "grid_sync.cuh",
    "NRT_incref": "reference_counts.cuh",
    "NRT_decref": "reference_counts.cuh",
}


def link(kernel: str, ptx: str, codes: list[Any], cc: Capability) -> str:
    """The PTX of a kernel and what it calls: PTX texts, or numba's LinkableCode objects and file names.

    Raises CompileError for code that is neither CUDA C++ nor PTX.
    """
    parts = [as_ptx(kernel, code, cc) for code in codes]
    called = set(re.findall(EXTERN, ptx))
    for sources, read in ((NUMBAS_SOURCES, _numbas_source), (OUR_SOURCES, _our_source)):
        for name in sorted({sources[name] for name in called & sources.keys()}):
            parts.append(cuda_c_ptx(read(name), cc, name, RELOCATABLE))
    return join(ptx, parts)


def as_ptx(kernel: str, code: Any, cc: Capability) -> str:
    """Any code that can be linked, as PTX."""
    from numba.cuda.cudadrv.linkable_code import LinkableCode

    if isinstance(code, str) and ".address_size" in code:
        return code
    code = LinkableCode.from_path_or_obj(code)
    text = code.data.decode() if isinstance(code.data, bytes) else code.data
    if code.kind == "cu":
        return cuda_c_ptx(text, cc, code.name, (*RELOCATABLE, *numbas_includes()))
    if ".address_size" in text:
        return text
    raise CompileError(
        kernel, f"It links {code.name}, which is machine code: the simulator runs CUDA C++ and PTX only."
    )


def _numbas_source(name: str) -> str:
    from numba import cuda

    with open(os.path.join(os.path.dirname(cuda.__file__), name), encoding="utf-8") as file:
        return file.read()


def _our_source(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
