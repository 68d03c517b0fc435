"""`cupy.linalg`: NumPy's functions of the same names, on device arrays."""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError

from . import names

__all__ = ["LinAlgError"]


def __getattr__(name: str) -> Any:
    return names.find(name, "linalg")


def __dir__() -> list[str]:
    return sorted(names.SUBMODULES["linalg"])
