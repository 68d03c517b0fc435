"""Sets side by side what was modelled and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpulab.foundation.display import Card, Heading, Note, Piece, Shown, Span, Table

from . import goals
from .agreement import Agreement, Pairs, agreement, kendall
from .metrics import TABLE

Records = Mapping[str, Mapping[str, Mapping[str, Any]]]  # key → size → what was found
TIMES: dict[str, tuple[str, Callable[[Mapping[str, Any]], float | None]]] = {  # name → (ours, theirs)
    "seconds": ("with its launch, by events", lambda one: one["seconds"]["median"]),
    "kernel_seconds": ("by Nsight Compute", lambda one: one["counters"].get("kernel_seconds")),
}


@dataclass(frozen=True)
class Goal:
    """One goal: what was reached, of what; None where nothing of it was measured."""

    name: str
    reached: float | None
    wanted: float
    at_least: bool

    @property
    def met(self) -> bool | None:
        if self.reached is None:
            return None
        return self.reached >= self.wanted if self.at_least else self.reached <= self.wanted

    @property
    def words(self) -> str:
        bound = "at least" if self.at_least else "at most"
        got = "not measured" if self.reached is None else f"{self.reached:.3f}"
        return f"{got}, {bound} {self.wanted:g} wanted"


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """All pairs (modelled, measured) by metric, and the pairs of times with their names.

    `spreads` are the bounds of the middle four fifths of each measured time. `other_code` are launches that
    were measured with other machine code than the compiler makes now: they are left out. `start` is what a
    kernel that does nothing took, in seconds, None where that was not measured.
    """

    gpu: str
    counts: Mapping[str, Pairs]
    times: Mapping[str, Mapping[str, tuple[float, float]]]
    other_code: tuple[str, ...] = ()
    spreads: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    start: float | None = None

    def of(self, name: str) -> Agreement:
        """How well one metric agrees."""
        return agreement(self.counts[name])

    def of_group(self, *groups: str) -> Agreement:
        """How well the metrics of some groups agree, all pairs together."""
        return agreement([p for row in TABLE if row.group in groups for p in self.counts[row.name]])

    @property
    def goals(self) -> tuple[Goal, ...]:
        exact, sass, dram = (self.of_group(*g) for g in (("memory", "banks"), ("instructions",), ("dram",)))
        pairs = list(self.times["seconds"].values())
        time = agreement(pairs)
        return (
            Goal(
                "memory and banks exact",
                exact.exact / exact.pairs if exact.pairs else None,
                goals.EXACT,
                True,
            ),
            Goal("machine instructions, median error", sass.median_error, goals.SASS_ERROR, False),
            Goal("time, mean error", time.mean_error, goals.TIME_ERROR, False),
            Goal("time, rank correlation", kendall(pairs), goals.RANKS, True),
            Goal("DRAM bytes, median error", dram.median_error, goals.DRAM_ERROR, False),
        )

    @property
    def order(self) -> tuple[int, int]:
        """Of all two launches whose measured times lie apart, each one's spread beyond the other's: how many
        the model puts in the same order, and how many there are."""
        ours = [pair[0] for name, pair in self.times["seconds"].items() if name in self.spreads]
        spreads = [self.spreads[name] for name in self.times["seconds"] if name in self.spreads]
        apart = [(i, j) for i, a in enumerate(spreads) for j, b in enumerate(spreads) if a[1] < b[0]]
        return sum(ours[i] < ours[j] for i, j in apart), len(apart)

    def card(self) -> Card:
        pieces: list[Piece] = [Heading(Span(self.gpu, "strong"), "modelled beside measured")]
        rows = [(name, *_cells(self.of(name))) for name in self.counts if self.counts[name]]
        for name, pairs in self.times.items():
            if pairs:
                values = list(pairs.values())
                tau = kendall(values)
                ranks = "" if tau is None else f", τ {tau:.3f}"
                rows.append((f"{name} ({TIMES[name][0]}{ranks})", *_cells(agreement(values))))
        header = ("metric", "pairs", "exact", "ratio", "mean error", "median error")
        pieces.append(Table(header, tuple(rows), frozenset({0})))
        for goal in self.goals:
            mark = {True: "met", False: "missed", None: "open"}[goal.met]
            pieces.append(Note(Span(f"{mark}: {goal.name}: {goal.words}")))
        same, apart = self.order
        if apart:
            words = f"Of {apart:,} pairs of launches whose measured times lie apart, the model has {same:,} "
            pieces.append(Note(Span(f"{words}({100 * same / apart:.1f} %) in their order.")))
        if self.start is not None:
            words = (
                f"A kernel that does nothing took {1e6 * self.start:.2f} µs; modelled times begin with that."
            )
            pieces.append(Note(Span(words)))
        if self.other_code:
            words = f"{len(self.other_code)} launches were measured with other machine code: measure again."
            pieces.append(Note(Span(words)))
        return Card(tuple(pieces))


def _cells(found: Agreement) -> tuple[str, ...]:
    def percent(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.1f} %"

    ratio = "–" if found.ratio is None else f"{found.ratio:.3f}"
    return (
        f"{found.pairs:,}", f"{found.exact:,}", ratio, percent(found.mean_error), percent(found.median_error),
    )  # fmt: skip


def compare(gpu: str, modelled: Records, measured: Records, start: float | None = None) -> Comparison:
    """Pair what both have. `start` is the measured time of a kernel that does nothing, which takes the place
    of the one that is assumed: it is the driver's and the machine's.

    Launches whose machine code differs are left out and named; so are counts of which both sides have none,
    silently: that a copy has no atomics proves little.
    """
    counts: dict[str, list[tuple[float, float]]] = {row.name: [] for row in TABLE}
    times: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in TIMES}
    other, spreads = [], {}
    for name, ours, theirs in _pairs(modelled, measured):
        if ours["digest"] != theirs["digest"]:
            other.append(name)
            continue
        for row in TABLE:
            if row.name in ours["counts"] and row.name in theirs.get("counters", {}):
                pair = ours["counts"][row.name], theirs["counters"][row.name]
                if any(pair):
                    counts[row.name].append(pair)
        for time, (_, take) in TIMES.items():
            if "counters" in theirs or time == "seconds":
                value = take(theirs)
                if value is not None:
                    times[time][name] = _started(ours, time, start), value
        if "low" in theirs["seconds"]:
            spreads[name] = theirs["seconds"]["low"], theirs["seconds"]["high"]
    return Comparison(gpu, counts, times, tuple(other), spreads, start)


def _started(ours: Mapping[str, Any], time: str, start: float | None) -> float:
    """A modelled time with the start that was measured."""
    seconds = float(ours[time])
    return seconds if start is None or time != "seconds" else seconds - ours["start"] + start


def _pairs(modelled: Records, measured: Records) -> Iterator[tuple[str, Any, Any]]:
    for key, sizes in modelled.items():
        for size, ours in sizes.items():
            if theirs := measured.get(key, {}).get(size):
                yield f"{key} at {int(size):,}", ours, theirs
