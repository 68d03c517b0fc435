"""Counts → metrics → `Report`, shown as text and HTML from one description.

The package itself can be called: ``gpulab.profile(kernel[grid, block], *args)`` is `profile.profile`.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .metrics import METRICS, Metric, UnknownMetric
from .report import Comparison, Launch, Line, Lines, Occupancy, Report, Roofline

if TYPE_CHECKING:
    from .watch import NothingLaunched, Watch, profile

# What needs a device is loaded when it is asked for: metrics and reports are data and work without one.
_LATER = ("NothingLaunched", "Watch", "profile")

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
    "UnknownMetric",
    "Watch",
    "profile",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from . import watch

        return getattr(watch, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Callable(ModuleType):
    def __call__(self, run: Any, *args: Any, **named: Any) -> Report:
        from .watch import profile

        return profile(run, *args, **named)


_Callable.__call__.__doc__ = (
    "Run ``run(*args)`` and report what its launches did; see `gpulab.profile.profile`."
)
sys.modules[__name__].__class__ = _Callable
