"""Runs what a verb of this room is given, whole or by a sample of blocks, with counters looking on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpulab.analysis.profile.onto_simulator import arrays_there, onto_simulator
from gpulab.analysis.profile.watch import NothingLaunched
from gpulab.simulator import device as devices
from gpulab.simulator.observe import Counters, Counts
from gpulab.simulator.simt import Allocation

from .caches import Caches
from .sampling import Sample, draw, whole

Array = np.ndarray
NewCaches = Callable[[devices.Launch], Caches]


@dataclass
class Seen:
    """One launch: which blocks ran, and what was counted in each stretch of them. `steps` are the caches'
    counts of each stretch (`Caches.steps`), `waits` what its loads waited for (`Caches.waits`); none where
    nobody asked for caches."""

    launch: devices.Launch
    sample: Sample
    counters: list[Counters] = field(default_factory=list)
    steps: Sequence[Array] = ()
    waits: Mapping[int, Array] = field(default_factory=dict)

    def counts(self, weights: Array | None = None) -> Counts:
        """The counts of the whole launch, estimated where only a sample of its blocks ran."""
        parts = [c.counts for c in self.counters if c.counts is not None]
        if len(parts) == 1:
            return parts[0]
        times = self.sample.weights() if weights is None else weights
        table = {
            column: np.rint(sum(t * part.table[column] for t, part in zip(times, parts, strict=True)))
            for column in parts[0].table
        }
        return replace(parts[0], table={column: n.astype(np.int64) for column, n in table.items()})


class _Watch:
    """Carries out launches, by `most` blocks each if that is a number, and counts them."""

    def __init__(self, most: int | None, caches: NewCaches | None) -> None:
        self.seen: list[Seen] = []
        self._most, self._new_caches = most, caches
        self._caches: Caches | None = None

    def launch(self, device: devices.SimulatedDevice, launch: devices.Launch) -> None:
        behind = device.behind(self)
        self.seen.append(Seen(launch, self._sample(device, launch)))
        self._caches = self._new_caches(launch) if self._new_caches else None
        sample = self.seen[-1].sample
        for stretch in sample.stretches:
            with nullcontext() if sample.whole else device.using(blocks=stretch):
                behind.launch(device, launch)
        if self._caches is not None:
            self.seen[-1].steps, self.seen[-1].waits = self._caches.steps, self._caches.waits

    def host_access(self, device: devices.SimulatedDevice, allocation: Allocation, writes: bool) -> None:
        device.behind(self).host_access(device, allocation, writes)

    def _sample(self, device: devices.SimulatedDevice, launch: devices.Launch) -> Sample:
        x, y, z = launch.grid
        waits = launch.kernel.cooperative or device.program(launch.kernel).ordered
        return whole(x * y * z) if self._most is None or waits else draw(x * y * z, self._most)

    def counters(self, launch: devices.Launch) -> Counters:
        self.seen[-1].counters.append(Counters())
        return self.seen[-1].counters[-1]

    def caches(self, launch: devices.Launch) -> Caches | None:
        return self._caches


def watched(
    verb: str,
    run: Any,
    args: tuple[Any, ...],
    named: Mapping[str, Any],
    *,
    sample: int | None = None,
    caches: NewCaches | None = None,
    beside: AbstractContextManager[None] | None = None,
) -> list[Seen]:
    """Run ``run(*args, **named)`` on the simulator and return its launches.

    `sample` is how many blocks of a launch to run at most; launches whose blocks wait for each other run
    whole. `caches` makes the caches that each launch runs through. `beside` is entered while it runs. Raises
    NothingLaunched, in which `verb` is what the learner called, and ValueError for a sample of nothing.
    """
    if not callable(run):
        raise NothingLaunched(f"pass the kernel with its launch shape: `{verb}(kernel[blocks, threads], a)`.")
    if devices.uses_gpu():
        run = onto_simulator(run)
    watch = _Watch(sample, caches)
    device = devices.current()
    with arrays_there(args) as there, ExitStack() as stack:
        stack.enter_context(device.executed_by(watch))
        stack.enter_context(device.observed(watch.counters))
        stack.enter_context(device.observed(watch.caches))
        stack.enter_context(beside or nullcontext())
        run(*there, **named)
    if not watch.seen:
        raise NothingLaunched(f"`{getattr(run, '__name__', run)}` launched no kernel.")
    return watch.seen
