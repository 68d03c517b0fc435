"""Counts → metrics → `Report`, shown as text and HTML from one description.

The package itself can be called: ``gpulab.profile(kernel[grid, block], *args)`` is `profile.profile`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import report_card  # noqa: F401  it registers how reports are shown
from .metrics import METRICS, Metric, UnknownMetric
from .report import Comparison, Launch, Line, Lines, Occupancy, Report, Roofline

if TYPE_CHECKING:
    from .tensors import TensorReport
    from .watch import NothingLaunched, Watch, profile

# What needs a device is loaded when it is asked for: metrics and reports are data and work without one.
_LATER = {
    "NothingLaunched": "watch",
    "TensorReport": "tensors",
    "Watch": "watch",
    "profile": "watch",
}

__all__ = [
    "METRICS",
    "Comparison",
    "Launch",
    "Line",
    "Lines",
    "Metric",
    "NothingLaunched",
    "Occupancy",
    "Report",
    "Roofline",
    "TensorReport",
    "UnknownMetric",
    "Watch",
    "profile",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Callable(ModuleType):
    def __call__(self, run: Any, *args: Any, **named: Any) -> Report | TensorReport:
        from .watch import profile

        return profile(run, *args, **named)


_Callable.__call__.__doc__ = (
    "Run ``run(*args)`` and report what its launches did; see `gpulab.profile.profile`."
)
sys.modules[__name__].__class__ = _Callable
