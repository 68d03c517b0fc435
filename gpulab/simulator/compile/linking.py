"""Puts PTX texts together."""

from __future__ import annotations

import os
import re
from importlib import resources
from typing import Any

from .cuda_c import RELOCATABLE, cuda_c_ptx
from .driverless import numbas_includes
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

NAME = r"(?P<name>[\w$]+)"
EXTERN = rf"\.extern\s+\.func\s+(?:\([^)]*\)\s*)?{NAME}\s*(?:\([^)]*\)\s*)?(?:\.noreturn\s*)?;"
DEFINED = rf"(?m)^(?:\.visible\s+|\.weak\s+)?\.func\s+(?:\([^)]*\)\s*)?{NAME}\s*\("
FILE = r"(?m)^\s*\.file\s+(\d+)"
FILE_NUMBER = r"(?m)(^\s*\.(?:file|loc)\s+|\binlined_at\s+)(\d+)"
DEFINITION = rf"{DEFINED}[^)]*\)\s*(?:\.noreturn\s*)?\{{(?s:.*?)^\}}"
VARIABLE = (
    r"(?m)^(?:\.(?:visible|weak|common)\s+)?\.(?:global|const)\b[^;=\[\n]*?\s"
    rf"{NAME}(?:\[\d*\])?\s*(?:=[^;]*)?;"
)
HEADER = r"(?ms)\A.*?^\.address_size\s+64\s*$"


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


def join(ptx: str, others: list[str]) -> str:
    """One module of all functions: those of `others` first, for PTX is read once from top to bottom.

    What is there already is left out: numba writes what a device function calls and uses beside it, too.
    """
    header = re.match(HEADER, ptx)
    assert header, "PTX without a header"
    joined, declared, defined = header[0], set[str](), set[str]()
    files = 0
    for text in _callees_first([*others, ptx]):
        text = _with_file_numbers_from(files, text)
        files = max((int(number) for number in re.findall(FILE, text)), default=files)
        text = _without(EXTERN, declared | defined, re.sub(HEADER, "", text, count=1))
        for pattern in (DEFINITION, VARIABLE):
            text = _without(pattern, defined, text)
        joined += "\n" + text
        declared |= set(re.findall(EXTERN, text))
        defined |= {*re.findall(DEFINED, text), *re.findall(VARIABLE, text)}
    return joined


def _callees_first(texts: list[str]) -> list[str]:
    """The texts, each behind those that define what it declares."""
    rest, ordered = list(texts), []
    while rest:
        defined = [set(re.findall(DEFINED, text)) for text in rest]
        free = next(
            (
                i
                for i, text in enumerate(rest)
                if not set(re.findall(EXTERN, text)) & set().union(*defined[:i], *defined[i + 1 :])
            ),
            0,  # texts that call each other
        )
        ordered.append(rest.pop(free))
    return ordered


def _with_file_numbers_from(start: int, ptx: str) -> str:
    """The PTX with other numbers of source files, larger by `start`: each text counts them from 1."""
    if not start:
        return ptx
    return re.sub(FILE_NUMBER, lambda match: f"{match[1]}{int(match[2]) + start}", ptx)


def _without(pattern: str, names: set[str], ptx: str) -> str:
    """PTX without what matches the pattern and has one of these names."""
    return re.sub(pattern, lambda match: "" if match["name"] in names else match[0], ptx)


def _numbas_source(name: str) -> str:
    from numba import cuda

    with open(os.path.join(os.path.dirname(cuda.__file__), name), encoding="utf-8") as file:
        return file.read()


def _our_source(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
