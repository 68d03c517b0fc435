"""A program's imports of numba.cuda, CuPy and Triton lead to the faces, wherever in the program they are.

Packages that compile for GPUs themselves keep the real ones: our front ends compile with these packages, so
a face inside them would end in a circle.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

from gpulab import habits

# Packages whose own modules get the real numba, CuPy and Triton. Compiled ones may import in the name of
# importlib, which loads them.
COMPILERS = frozenset(
    {
        "cuda", "cupy", "cupyx", "cupy_backends", "cutlass", "functorch", "gpulab", "importlib", "llvmlite",
        "numba", "numba_cuda", "nvidia", "torch", "triton",
    }
)  # fmt: skip


def is_a_program(names: Mapping[str, Any] | None) -> bool:
    """Whether code with these global names is the program's: its own modules and those of its libraries."""
    return names is not None and str(names.get("__name__", "")).partition(".")[0] not in COMPILERS


def install() -> None:
    """From now on imports in all of a program's modules lead to the faces."""
    habits.install(whose=is_a_program)
    importlib.import_module = _import_module


_import_module_of_python = importlib.import_module


def _import_module(name: str, package: str | None = None) -> Any:
    """`importlib.import_module`, which does not go through the import statement."""
    caller = sys._getframe(1).f_globals
    if package is None and habits.has_face(name) and is_a_program(caller):
        return habits.face_of(name)
    return _import_module_of_python(name, package)
