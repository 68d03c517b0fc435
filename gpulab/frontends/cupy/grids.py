"""Arrays from slices: ``mgrid``, ``ogrid``, ``r_`` and ``c_``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .functions import OnHost


class Grids:
    """One of NumPy's, whose arrays lie on the device."""

    def __init__(self, name: str):
        self._name = name

    def __getitem__(self, key: Any) -> Any:
        host = OnHost(f"cupy.{self._name}")
        return host.back(getattr(np, self._name)[host.one(key)])


mgrid, ogrid, r_, c_ = Grids("mgrid"), Grids("ogrid"), Grids("r_"), Grids("c_")
