"""Pipelines of stages, simulated: when each device works on which micro-batch, and what it holds meanwhile.

A schedule is data: for each device the order of its operations. The simulator knows what waits for what,
and no schedule. Modelled, not measured: every operation takes the time that is said, messages take
`message`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpulab.foundation.errors import Message


@dataclass(frozen=True)
class Work:
    """One operation of a device.

    `kind`: ``F`` forward, ``B`` backward (of inputs and weights, or of inputs alone where there is a
    ``W`` for the weights). `batch` is the micro-batch, `chunk` which of its stages the device works on:
    stage chunk · devices + device.
    """

    kind: str
    batch: int
    chunk: int = 0


@dataclass(frozen=True)
class Slot:
    """When an operation ran."""

    device: int
    work: Work
    start: float
    stop: float


class CannotRun(Message, ValueError):
    """A schedule that waits forever, or that leaves something out; the message says where."""


@dataclass(frozen=True)
class Run:
    """A simulated schedule. `peak` is the most micro-batches (times chunks) whose activations a device
    held."""

    slots: tuple[Slot, ...]
    peak: tuple[int, ...]

    @property
    def makespan(self) -> float:
        """When the last operation ends."""
        return max((slot.stop for slot in self.slots), default=0.0)

    @property
    def bubble(self) -> float:
        """The share of all devices' time in which they wait, 0 to 1."""
        devices = len(self.peak)
        worked = sum(slot.stop - slot.start for slot in self.slots)
        return 1 - worked / (devices * self.makespan) if self.makespan else 0.0


def simulate(
    orders: Sequence[Sequence[Work]], times: Mapping[str, float] | None = None, message: float = 0.0
) -> Run:
    """Run a schedule: ``orders[d]`` lists the work of device d in its order.

    `times` gives the duration of each kind (1 by default), `message` what it takes from a device to
    another. Forward of a stage waits for that of the stage before it; backward for that of the stage
    behind it, and for its own forward; ``W`` for its own ``B``. Activations are held from the start of
    ``F`` to the end of ``B``, or of ``W`` where there is one. Raises CannotRun for orders that wait for
    each other, twice the same work, or work that is missing.
    """
    times = times or {}
    devices = len(orders)
    chunks = 1 + max((work.chunk for order in orders for work in order), default=0)
    last = devices * chunks - 1
    splits = any(work.kind == "W" for order in orders for work in order)
    _complete(orders, chunks, splits)
    done: dict[tuple[str, int, int], float] = {}  # (kind, stage, batch) → when
    place, free, slots = [0] * devices, [0.0] * devices, []

    def needs(device: int, work: Work) -> list[tuple[tuple[str, int, int], float]]:
        stage = work.chunk * devices + device
        across = message if devices > 1 else 0.0
        match work.kind:
            case "F":
                return [(("F", stage - 1, work.batch), across)] if stage else []
            case "B":
                behind = [(("B", stage + 1, work.batch), across)] if stage < last else []
                return [(("F", stage, work.batch), 0.0), *behind]
        return [(("B", stage, work.batch), 0.0)]

    moved = True
    while moved:
        moved = False
        for device, order in enumerate(orders):
            while place[device] < len(order):
                work = order[place[device]]
                waits = needs(device, work)
                if any(key not in done for key, _ in waits):
                    break
                start = max([free[device], *(done[key] + extra for key, extra in waits)])
                stop = start + times.get(work.kind, 1.0)
                done[work.kind, work.chunk * devices + device, work.batch] = free[device] = stop
                slots.append(Slot(device, work, start, stop))
                place[device] += 1
                moved = True
    stuck = [d for d in range(devices) if place[d] < len(orders[d])]
    if stuck:
        work = orders[stuck[0]][place[stuck[0]]]
        raise CannotRun(
            f"device {stuck[0]} waits forever at operation {place[stuck[0]]}, {work.kind} of micro-batch "
            f"{work.batch}: what it needs comes later in an order that waits for this operation"
        )
    return Run(tuple(sorted(slots, key=lambda s: (s.start, s.device))), _peaks(slots, devices, splits))


def _complete(orders: Sequence[Sequence[Work]], chunks: int, splits: bool) -> None:
    """Every device does each kind of work once for each micro-batch and chunk."""
    batches = {work.batch for order in orders for work in order}
    kinds = "FBW" if splits else "FB"
    wanted = {Work(kind, batch, chunk) for kind in kinds for batch in batches for chunk in range(chunks)}
    for device, order in enumerate(orders):
        twice = next((work for n, work in enumerate(order) if work in order[:n]), None)
        if twice:
            raise CannotRun(f"device {device} does {twice.kind} of micro-batch {twice.batch} twice")
        strange = next((work for work in order if work not in wanted), None)
        if strange:
            raise CannotRun(
                f"device {device} has work of kind {strange.kind!r}, but the kinds are F, B and W"
            )
        missing = min(wanted - set(order), key=lambda w: (w.batch, w.chunk, w.kind), default=None)
        if missing:
            raise CannotRun(f"device {device} never does {missing.kind} of micro-batch {missing.batch}")


def _peaks(slots: Sequence[Slot], devices: int, splits: bool) -> tuple[int, ...]:
    """The most activations that each device held at once."""
    peaks = []
    for device in range(devices):
        mine = [slot for slot in slots if slot.device == device]
        changes = [(slot.start, 1) for slot in mine if slot.work.kind == "F"]
        changes += [(slot.stop, -1) for slot in mine if slot.work.kind == ("W" if splits else "B")]
        held = peak = 0
        for _, change in sorted(changes):  # at the same moment what is freed goes first
            held += change
            peak = max(peak, held)
        peaks.append(peak)
    return tuple(peaks)
