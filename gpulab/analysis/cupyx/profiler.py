"""`cupyx.profiler`: a simulated device has no clock, so `benchmark` counts instead of timing.

Imported under two names (``gpulab.cupyx.profiler`` too), so it names others absolutely.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from gpulab.analysis.profile import Report, Watch
from gpulab.frontends.cuda.streams import NoClock
from gpulab.simulator import device as devices
from gpulab.simulator.hardware import amount

NOT_TIMED = "not timed, for the simulated device has no clock"


@dataclass(frozen=True)
class Counted:
    """What one call of a function asked of the GPU. `report` is None where it launched no kernel."""

    name: str
    report: Report | None

    @property
    def cpu_times(self) -> NoReturn:
        raise NoClock(f"benchmark of {self.name}: {NOT_TIMED}. Its .report holds what one call counted.")

    gpu_times = cpu_times

    def to_str(self, show_gpu: bool = False) -> str:
        """One line: launches, instructions and bytes of one call."""
        return f"{self.name:<20s}: {NOT_TIMED}. {self._counts()}"

    def _counts(self) -> str:
        if self.report is None:
            return "One call launches no kernel of its own."
        names = ("launches", "instructions", "global_load_bytes", "global_store_bytes")
        launches, instructions, read, written = (int(self.report[name] or 0) for name in names)
        return (
            f"One call makes {launches} launch{'' if launches == 1 else 'es'}: {instructions:,} warp "
            f"instructions, {amount(read, 'B')} read and {amount(written, 'B')} written in global memory."
        )

    def __str__(self) -> str:
        return self.to_str(show_gpu=True)

    __repr__ = __str__


def benchmark(
    func: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    n_repeat: int = 10000,
    *,
    name: str | None = None,
    n_warmup: int = 10,
    max_duration: float = math.inf,
    devices: Any = None,
) -> Counted:
    """Call ``func(*args, **kwargs)`` once and count. Repeating would count the same again."""
    if not callable(func):
        raise ValueError(f"func must be callable, not {type(func).__name__}: pass the function and args=(…).")
    if not isinstance(args, tuple):
        raise ValueError(f"args must be a tuple, not {type(args).__name__}: write args=(x,).")
    if kwargs is not None and not isinstance(kwargs, dict):
        raise ValueError(f"kwargs must be a dict, not {type(kwargs).__name__}.")
    name = str(name or getattr(func, "__name__", repr(func)))
    watch = Watch(_device())
    with watch.standing():
        func(*args, **(kwargs or {}))
    return Counted(name, watch.report(name) if watch.launches else None)


def _device() -> devices.SimulatedDevice:
    return devices.current()


@contextmanager
def profile() -> Iterator[None]:
    """Without effect on the simulated device; see gpulab.profile."""
    yield


class time_range:
    """A range with a name, for Nsight Systems: without effect on the simulated device."""

    def __init__(self, message: str = "", **kwargs: Any):
        self.message = message

    def __enter__(self) -> time_range:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function
