"""`timeline`: when the warps of a block work and wait, and what is on its way meanwhile, modelled."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpulab.analysis.profile.matrix import matrix_dtype
from gpulab.analysis.profile.onto_simulator import arrays_there, onto_simulator
from gpulab.analysis.profile.to_run import misuse
from gpulab.foundation.display import Card, Heading, Note, Shown, Table
from gpulab.foundation.errors import Message
from gpulab.simulator import device as devices
from gpulab.simulator import hardware
from gpulab.simulator.hardware import GPU, pipelines
from gpulab.simulator.observe import Action, WarpRoles
from gpulab.simulator.observe.warp_roles import MOST, Event, Warp
from gpulab.simulator.ptx import Instruction

if TYPE_CHECKING:
    from gpulab.plot.moving import Moving

HOW = (
    "A model of one block on an SM, not a measurement: an instruction of a warp takes {issue} cycles; a copy "
    "or load takes {latency}, and {rate:.1f} bytes come each cycle, an SM's share of the bandwidth."
)


class NoTimeline(Message):
    """What was given to `timeline` launches nothing, or does too much to be drawn."""


@dataclass(frozen=True)
class Interval:
    """From `start` to `stop`, in cycles, something is as `kind` says: a warp ``works``, ``loads`` or
    ``waits``; a copy is ``on its way``; a product is ``made``."""

    kind: str
    start: float
    stop: float
    line: int = 0


@dataclass(frozen=True)
class Rates:
    """What the model takes for a GPU: cycles an instruction, cycles until a byte of memory comes, bytes a
    cycle for one SM, multiplications a cycle of its tensor cores by dtype."""

    issue: float
    latency: float
    bytes_a_cycle: float
    products: Mapping[str, float]

    @classmethod
    def of(cls, gpu: GPU) -> Rates:
        """Of one SM, if all of them are busy. Where a data sheet gives no latency, the A100's is used."""
        clock = float(gpu.boost_clock)
        latency = float(gpu.dram_latency or hardware.find("A100").dram_latency or 0)
        share = float(gpu.dram_bandwidth) / clock / float(gpu.sms)
        rates = {dtype: float(rate) for dtype, rate in gpu.tensor_fma.items()}
        return cls(float(pipelines.LATENCY["fma"]), latency, share, rates)


class Timeline(Shown):
    """When each warp works and waits. `rows` are the intervals of each row by its name: warps that do the
    same in turn share one, then come the copies on their way and the tensor cores. `cycles` is how long all
    of it takes."""

    def __init__(self, kernel: str, rows: Mapping[str, Sequence[Interval]], how: str) -> None:
        self.kernel, self.rows, self.how = kernel, {k: tuple(v) for k, v in rows.items()}, how

    @property
    def cycles(self) -> float:
        return max((each.stop for row in self.rows.values() for each in row), default=0.0)

    def total(self, row: str, kind: str) -> float:
        """Cycles of a row in which something of this kind goes on, each counted once."""
        found, until = 0.0, 0.0
        for each in sorted(self.rows[row], key=lambda each: each.start):
            if each.kind == kind and each.stop > until:
                found += each.stop - max(each.start, until)
                until = each.stop
        return found

    def card(self) -> Card:
        kinds = list(dict.fromkeys(each.kind for row in self.rows.values() for each in row))
        table = tuple(
            (name, *(f"{self.total(name, kind):,.0f}" if self.total(name, kind) else "" for kind in kinds))
            for name in self.rows
        )
        return Card(
            (
                Heading(self.kernel, f"{self.cycles:,.0f} cycles, modelled"),
                Table(("cycles", *kinds), table, frozenset({0})),
                Note(self.how),
            )
        )

    def figure(self) -> Moving:
        """The rows as a figure to step through."""
        from gpulab.plot.moving import WarpTimeline

        return WarpTimeline(self.kernel, self.rows, self.how).figure()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.figure()._repr_mimebundle_() | {"text/plain": self.card().text()}


def timeline(run: Callable[..., Any], *args: Any, **named: Any) -> Timeline:
    """Run ``run(*args, **named)`` once and say when the warps of its first block work and wait.

    `run` is a kernel with its launch shape or host code; the last launch is looked at. With clusters all
    blocks of the first one are there. Raises NoTimeline where nothing is launched, and for a block that does
    too much.

    >>> @cuda.jit
    ... def double(a):
    ...     a[cuda.grid(1)] *= 2
    >>> timeline(double[1, 32], np.zeros(32, np.float32)).rows.keys()
    dict_keys(['warp 0'])
    """
    if problem := misuse("timeline", run, args, named):
        raise NoTimeline(problem)
    if devices.uses_gpu():
        run = onto_simulator(run)
    device = devices.current()
    seen: list[tuple[devices.Launch, WarpRoles]] = []

    def look(launch: devices.Launch) -> WarpRoles:
        seen.append((launch, WarpRoles()))
        return seen[-1][1]

    with arrays_there(args) as there, device.observed(look):
        run(*there, **named)
    if not seen:
        raise NoTimeline(f"timeline: `{getattr(run, '__name__', run)}` launched no kernel.")
    launch, roles = seen[-1]
    if roles.dropped:
        raise NoTimeline(
            f"timeline: {launch.kernel.name} does too much to be drawn: its first block alone takes more "
            f"than {MOST:,} steps. Give it fewer tiles."
        )
    instructions = device.program(launch.kernel).instructions
    rates = Rates.of(device.gpu)
    return Timeline(
        launch.kernel.name,
        _rows(Replay(roles.actions, instructions, rates)),
        HOW.format(issue=f"{rates.issue:g}", latency=f"{rates.latency:.0f}", rate=rates.bytes_a_cycle),
    )


class Replay:
    """Schedules the actions of all warps, each as soon as everything that it waits for has happened. `warps`
    has the intervals of each warp; `copies` and `products` have those of what warps sent and asked for."""

    def __init__(
        self, actions: Mapping[Warp, Sequence[Action]], instructions: Sequence[Instruction], rates: Rates
    ) -> None:
        self.actions, self.rates = actions, rates
        self._instructions = instructions
        self.warps: dict[Warp, list[Interval]] = {warp: [] for warp in sorted(actions)}
        self.copies: list[Interval] = []
        self.products: list[Interval] = []
        self._memory = self._tensor = 0.0  # when the memory and the tensor cores are free again
        self._missing: dict[Event, int] = defaultdict(int)  # actions that still bring it about
        self._over: dict[Event, float] = defaultdict(float)  # when the last of them did
        for mine in actions.values():
            for action in mine:
                if action.kind != "wait":
                    for event in action.events:
                        self._missing[event] += 1
        self._run()

    def _run(self) -> None:
        """The warp that is behind all others goes first, so that memory and tensor cores serve in turn."""
        turns = [(0.0, warp, 0) for warp in self.warps]
        heapq.heapify(turns)
        asleep: dict[Event, list[tuple[float, Warp, int]]] = defaultdict(list)
        while turns:
            now, warp, place = heapq.heappop(turns)
            if place == len(self.actions[warp]):
                continue
            action = self.actions[warp][place]
            if action.kind == "wait":
                coming = next((event for event in action.events if self._missing[event]), None)
                if coming is not None:
                    asleep[coming].append((now, warp, place))
                    continue
                then = max((self._over[event] for event in action.events), default=now)
                self._spend(warp, "waits", now, then, action)
                heapq.heappush(turns, (max(now, then), warp, place + 1))
                continue
            heapq.heappush(turns, (self._do(warp, action, now), warp, place + 1))
            for event in action.events:
                if not self._missing[event]:
                    for turn in asleep.pop(event, ()):
                        heapq.heappush(turns, turn)

    def _do(self, warp: Warp, action: Action, now: float) -> float:
        """Do an action; returns when the warp goes on."""
        then = over = now
        if action.kind == "work":
            then = now + action.amount * self.rates.issue
            self._spend(warp, "works", now, then, action)
        elif action.kind in ("load", "copy", "store"):
            self._memory = max(self._memory, now) + action.amount / self.rates.bytes_a_cycle
            over = self._memory + self.rates.latency
            if action.kind == "load":
                then = over
                self._spend(warp, "loads", now, then, action)
            else:
                self.copies.append(Interval("on its way", now, over, self._line(action)))
        elif action.kind == "product":
            dtype = matrix_dtype(self._instructions[action.index]) or "float16"
            rate = self.rates.products.get(dtype) or max(self.rates.products.values())
            start = max(self._tensor, now)
            self._tensor = over = start + action.amount / rate
            self.products.append(Interval("made", start, over, self._line(action)))
        for event in action.events:
            self._missing[event] -= 1
            self._over[event] = max(self._over[event], over)
        return then

    def _spend(self, warp: Warp, kind: str, start: float, stop: float, action: Action) -> None:
        """An interval of a warp, joined to the one before it if they are alike."""
        if stop <= start:
            return
        mine = self.warps[warp]
        if mine and mine[-1].kind == kind and kind == "works" and mine[-1].stop == start:
            start = mine.pop().start
        mine.append(Interval(kind, start, stop, self._line(action)))

    def _line(self, action: Action) -> int:
        location = self._instructions[action.index].location if action.index >= 0 else None
        return location.line if location else 0


def _rows(replay: Replay) -> dict[str, Sequence[Interval]]:
    """The rows of a timeline. Warps of a block that do the same share the row of the first of them."""
    blocks = 1 + max((block for block, _ in replay.warps), default=0)
    alike: dict[object, list[Warp]] = {}
    for warp in replay.warps:
        alike.setdefault((warp[0], _role(replay.actions[warp])), []).append(warp)
    rows: dict[str, Sequence[Interval]] = {}
    for warps in alike.values():
        first, last = warps[0], warps[-1]
        several = len(warps) > 1
        together = several and last[1] - first[1] == len(warps) - 1
        numbers = f"{first[1]} to {last[1]}" if together else ", ".join(str(w) for _, w in warps)
        name = f"warp{'s' if several else ''} {numbers}"
        rows[f"block {first[0]}, {name}" if blocks > 1 else name] = replay.warps[first]
    if replay.copies:
        rows["copies"] = replay.copies
    if replay.products:
        rows["tensor cores"] = replay.products
    return rows


def _role(actions: Sequence[Action]) -> tuple[object, ...]:
    """What warps of one role have in common: not how much they work, which copies are theirs, and which of
    the warps of a warpgroup asks for its products."""
    found: list[object] = []
    for action in actions:
        if action.kind == "product" or (action.kind == "work" and found[-1:] == ["work"]):
            continue
        events = tuple(("copy", 0, 0, 0) if event[0] == "copy" else event for event in action.events)
        found.append("work" if action.kind == "work" else (action.kind, action.amount, action.index, events))
    return tuple(found)
