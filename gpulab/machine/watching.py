"""Runs what a verb of this room is given, with somebody who looks on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from gpulab import device as devices
from gpulab.profile.onto_simulator import arrays_there, onto_simulator
from gpulab.profile.watch import NothingLaunched
from gpulab.simt import Observer


def watched(
    verb: str,
    run: Any,
    args: tuple[Any, ...],
    named: Mapping[str, Any],
    *makers: Callable[[devices.Launch], Observer],
) -> None:
    """Run ``run(*args, **named)`` on the simulator; each maker gives an observer for each launch. Raises
    NothingLaunched, in which `verb` is what the learner called."""
    if not callable(run):
        raise NothingLaunched(f"pass the kernel with its launch shape: `{verb}(kernel[blocks, threads], a)`.")
    if devices.uses_gpu():
        run = onto_simulator(run)
    launches: list[devices.Launch] = []
    device = devices.current()
    with arrays_there(args) as there, ExitStack() as stack:
        stack.enter_context(device.observed(launches.append))
        for make in makers:
            stack.enter_context(device.observed(make))
        run(*there, **named)
    if not launches:
        raise NothingLaunched(f"`{getattr(run, '__name__', run)}` launched no kernel.")
