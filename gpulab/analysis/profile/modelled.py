"""What a modelled time is made of, and how it is shown. `gpulab.machine` works it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gpulab.foundation.display import Card, Heading, Note, Piece, Shown, Span, Table, number
from gpulab.simulator.observe.patterns import SECTOR


@dataclass(frozen=True)
class Term:
    """One reason why a launch takes as long as it does: `cycles` of the busiest SM, and in words what for."""

    name: str
    cycles: float
    words: str


@dataclass(frozen=True)
class Traffic:
    """Sectors of 32 B that went between the levels of memory, and those that were found on the way.

    `l2_dirty` were written and are still in the L2 at the end. `hottest` is how many passes atomics take in
    the line of 128 B where they take most: one for each sector of a warp, one more for each further lane on
    the same word. `l2_lines` is how often the L2 is asked for a line or part of one, writes of part of a
    sector counted twice.
    """

    l1_reads: int
    l1_hits: int
    l2_reads: int
    l2_read_hits: int
    l2_writes: int
    l2_atomics: int
    dram_reads: int
    dram_writes: int
    l2_dirty: int
    hottest: int = 0
    l2_lines: int = 0

    @property
    def l1_hit_rate(self) -> float | None:
        """Share of the sectors read that the L1 had, 0 to 1; None where nothing was read."""
        return self.l1_hits / self.l1_reads if self.l1_reads else None

    @property
    def l2_hit_rate(self) -> float | None:
        """Share of the sectors that the L2 was asked to read and had, 0 to 1."""
        return self.l2_read_hits / self.l2_reads if self.l2_reads else None

    @property
    def l1_bytes(self) -> int:
        """Bytes that loads asked the L1 for."""
        return SECTOR * self.l1_reads

    @property
    def l2_bytes(self) -> int:
        """Bytes between the SMs and the L2."""
        return SECTOR * (self.l2_reads + self.l2_writes + self.l2_atomics)

    @property
    def dram_bytes(self) -> int:
        """Bytes between the L2 and DRAM while the kernel ran."""
        return SECTOR * (self.dram_reads + self.dram_writes)

    def __add__(self, other: Traffic) -> Traffic:
        """Both one after the other, each with caches of its own; the hottest line of either."""
        mine, theirs = asdict(self), asdict(other)
        both = {name: mine[name] + theirs[name] for name in mine}
        return Traffic(**both | {"hottest": max(self.hottest, other.hottest)})


@dataclass(frozen=True)
class Waves:
    """How the blocks of a launch fill a GPU: an SM holds `resident` of them at once."""

    blocks: int
    resident: int
    sms: int

    @property
    def waves(self) -> float:
        """Blocks over those that the GPU holds at once."""
        return self.blocks / (self.resident * self.sms)

    @property
    def busiest(self) -> int:
        """Blocks of the SM that has most of them."""
        return -(-self.blocks // self.sms)

    @property
    def tail(self) -> float:
        """Share of the busiest SM's time for which an average SM has nothing to do, 0 to 1."""
        return 1 - self.blocks / (self.busiest * self.sms)


@dataclass(frozen=True, repr=False)
class Modelled(Shown):
    """The modelled time of launches on a GPU.

    `terms` are the cycles that each part of the busiest SM needs, over all launches; ``latency`` is that of
    warps that wait, ``launch`` the start; `seconds` follows from them. `traffic` is what the caches of each
    launch let through, `waves` how its blocks fill the GPU. `pipes` are warp instructions by pipe: of PTX,
    and of the machine code of compute capability `cc`.

    Where only some blocks were simulated (`simulated` of `blocks`), all figures are estimates, and `errors`
    holds standard errors of sampling: of ``seconds``, ``instructions`` (of machine code), ``l2_bytes`` and
    ``dram_bytes``.
    """

    name: str
    gpu: str
    seconds: float
    launches: int
    clock: float
    terms: tuple[Term, ...]
    traffic: tuple[Traffic, ...]
    waves: tuple[Waves, ...] = ()
    pipes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    cc: tuple[int, int] = (0, 0)
    simulated: int = 0
    blocks: int = 0
    errors: Mapping[str, float] = field(default_factory=dict)

    @property
    def parts(self) -> dict[str, float]:
        """Seconds that each part would take alone, by name, as `gpulab.plot.time_breakdown` draws them."""
        return {term.name: term.cycles / self.clock for term in self.terms}

    @property
    def bound(self) -> Term:
        """The longest term."""
        return max(self.terms, key=lambda term: term.cycles)

    @property
    def all_traffic(self) -> Traffic:
        """The traffic of all launches together."""
        first, *others = self.traffic
        for other in others:
            first += other
        return first

    @property
    def instructions(self) -> tuple[int, int]:
        """Warp instructions: of PTX, and of machine code."""
        ptx, sass = zip(*self.pipes.values(), strict=True) if self.pipes else ((0,), (0,))
        return sum(ptx), sum(sass)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `from_dict` makes an equal record of it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Modelled:
        """The inverse of `to_dict`."""
        return cls(
            **dict(data)
            | {
                "terms": tuple(Term(**term) for term in data["terms"]),
                "traffic": tuple(Traffic(**traffic) for traffic in data["traffic"]),
                "waves": tuple(Waves(**waves) for waves in data["waves"]),
                "pipes": {pipe: (ptx, sass) for pipe, (ptx, sass) in data["pipes"].items()},
                "cc": tuple(data["cc"]),
            }
        )

    def card(self) -> Card:
        return Card(
            (
                Heading(Span(self.name, "strong"), f"{time(self.seconds)} modelled on {self.gpu}"),
                *self._terms(),
                *self._memory(),
                *self._pipes(),
                *self._notes(),
            )
        )

    def _terms(self) -> list[Piece]:
        longest = self.bound.cycles or 1
        rows = tuple(
            (
                term.name,
                term.words,
                f"{term.cycles:,.0f}",
                time(term.cycles / self.clock),
                f"{100 * term.cycles / longest:.0f} %",
            )
            for term in sorted(self.terms, key=lambda term: -term.cycles)
            if term.cycles
        )
        return [Table(("part", "what it does", "cycles", "alone", "of longest"), rows, frozenset({0, 1}))]

    def _memory(self) -> list[Piece]:
        of = self.all_traffic
        if not of.l2_bytes + of.l1_bytes:
            return []
        rows = (
            ("L1", number(of.l1_bytes, "B"), "", _share(of.l1_hit_rate)),
            (
                "L2",
                number(SECTOR * of.l2_reads, "B"),
                number(SECTOR * (of.l2_writes + of.l2_atomics), "B"),
                _share(of.l2_hit_rate),
            ),
            ("DRAM", number(SECTOR * of.dram_reads, "B"), number(SECTOR * of.dram_writes, "B"), ""),
        )
        return [Table(("memory", "read", "written", "reads found there"), rows)]

    def _pipes(self) -> list[Piece]:
        if not self.pipes:
            return []
        rows = [(pipe, f"{ptx:,}", f"{sass:,}") for pipe, (ptx, sass) in self.pipes.items()]
        ptx, sass = self.instructions
        rows.append(("all", f"{ptx:,}", f"{sass:,}"))
        machine = f"machine code {self.cc[0]}.{self.cc[1]}: what runs"
        return [Table(("warp instructions", "PTX: what you wrote", machine), tuple(rows))]

    def _notes(self) -> list[Piece]:
        times = f"{self.launches} launch{'es' * (self.launches > 1)}"
        notes = [f"{times}, {self.clock / 1e9:.2f} GHz; the busiest SM's cycles."]
        if len(self.waves) == 1:
            (of,) = self.waves
            notes.append(
                f"{of.blocks:,} blocks, {of.resident} at once on an SM: {number(of.waves)} waves. The "
                f"busiest of {of.sms} SMs has {of.busiest:,}; an average one idles "
                f"{100 * of.tail:.0f} % of its time."
            )
        if self.simulated < self.blocks:
            notes.append(self._sampled())
        notes.append("Modelled from counts and the data sheet, not measured on a GPU.")
        return [Note(Span(" ".join(notes), "dim"))]

    def _sampled(self) -> str:
        of = self.all_traffic
        known = {
            "time": (self.errors["seconds"], self.seconds),
            "machine instructions": (self.errors["instructions"], self.instructions[1]),
            "L2 bytes": (self.errors["l2_bytes"], of.l2_bytes),
            "DRAM bytes": (self.errors["dram_bytes"], of.dram_bytes),
        }
        shown = ", ".join(f"{name} {100 * e / v:.2g} %" for name, (e, v) in known.items() if v)
        return (
            f"Estimated from {self.simulated:,} of {self.blocks:,} blocks; standard error of the draw: "
            f"{shown}. What the kernel wrote is incomplete."
        )


def _share(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def time(seconds: float) -> str:
    """Seconds with a prefix that keeps them short: ``12.3 µs``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
