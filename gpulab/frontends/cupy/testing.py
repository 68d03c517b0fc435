"""`cupy.testing`: NumPy's functions of the same names, on device arrays."""

from __future__ import annotations

from typing import Any

from . import names


def __getattr__(name: str) -> Any:
    return names.find(name, "testing")


def __dir__() -> list[str]:
    return sorted(names.SUBMODULES["testing"])
