"""`profile` for tensor programs: the ledger of a PyTorch function, as a report that shows itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from gpulab.foundation.display import Card, Heading, Note, Piece, Row, Shown, Table, number
from gpulab.simulator import device as devices
from gpulab.simulator import hardware

from .ledger import Entry, ledger
from .metrics import UnknownMetric

# What can be counted of a tensor program, with units; `peak_bytes` are those beyond what it was given.
COUNTS = {
    "launches": "launches",
    "bytes": "B",
    "flops": "FLOP",
    "matrix_flops": "FLOP",
    "peak_bytes": "B",
    "syncs": "waits of the host",
}
CALLS_OF = "calls of "


@dataclass(frozen=True)
class Total:
    """What several operations cost together."""

    calls: int
    launches: int
    flops: int
    bytes: int
    syncs: int

    @property
    def intensity(self) -> float:
        """FLOPs per byte that the operations ask for; 0 where nothing is moved."""
        return self.flops / self.bytes if self.bytes else 0.0


def total(entries: list[Entry]) -> Total:
    """The sum of entries."""
    return Total(
        len(entries),
        sum(e.launches for e in entries),
        sum(e.flops for e in entries),
        sum(e.bytes for e in entries),
        sum(e.syncs for e in entries),
    )


@dataclass(frozen=True)
class TensorReport(Shown):
    """The operations of one run of a tensor program, in order; `peak` bytes beyond what it was given.

    `gpu` is the data sheet that modelled times refer to.
    """

    name: str
    entries: tuple[Entry, ...]
    peak: int
    gpu: str

    @cached_property
    def total(self) -> Total:
        """All operations together."""
        return total(list(self.entries))

    @cached_property
    def by_op(self) -> dict[str, Total]:
        """The sum of each operation, the one that moves most bytes first."""
        groups: dict[str, list[Entry]] = {}
        for entry in self.entries:
            groups.setdefault(entry.op, []).append(entry)
        totals = {op: total(entries) for op, entries in groups.items()}
        return dict(sorted(totals.items(), key=lambda item: -item[1].bytes))

    @property
    def launches(self) -> int:
        return self.total.launches

    @property
    def flops(self) -> int:
        return self.total.flops

    @property
    def bytes(self) -> int:
        return self.total.bytes

    def __getitem__(self, metric: str) -> int:
        """A count by the name that budgets have for it: one of `COUNTS`, or ``calls of OPERATOR``.

        An operator in place (``add_``) counts with the one that is not. Raises UnknownMetric.
        """
        if metric.startswith(CALLS_OF):
            wanted = metric.removeprefix(CALLS_OF)
            return sum(1 for e in self.entries if wanted in (e.op, e.op.removesuffix("_")))
        counts = {
            "launches": self.launches,
            "bytes": self.bytes,
            "flops": self.flops,
            "matrix_flops": sum(e.matrix_flops for e in self.entries),
            "peak_bytes": self.peak,
            "syncs": self.total.syncs,
        }
        if metric not in counts:
            raise UnknownMetric(f"a tensor program has no count {metric!r}; it has {', '.join(COUNTS)}")
        return counts[metric]

    def __contains__(self, name: object) -> bool:
        return name in COUNTS

    def __iter__(self) -> Iterator[str]:
        """The names of the counts."""
        return iter(COUNTS)

    def keys(self) -> KeysView[str]:
        """The names of the counts, so that ``dict(report)`` has their values."""
        return COUNTS.keys()

    @cached_property
    def least_seconds(self) -> float:
        """The time that the slower of bytes and FLOPs needs, operation by operation, at the GPU's peaks: a
        lower
        bound that leaves out launches, latency and everything that is not perfect. float32 outside tensor
        cores.
        """
        gpu = hardware.find(self.gpu)
        bandwidth, peak = float(gpu.dram_bandwidth), float(gpu.peak("float32"))
        return sum(max(e.bytes / bandwidth, e.flops / peak) for e in self.entries)

    def to_dict(self) -> dict[str, Any]:
        entries = [asdict(e) for e in self.entries]
        return {"name": self.name, "gpu": self.gpu, "peak": self.peak, "entries": entries}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TensorReport:
        """The report that `to_dict` wrote down."""
        entries = tuple(
            Entry(**{**e, "shapes": tuple(tuple(s) for s in e["shapes"])}) for e in data["entries"]
        )
        return cls(data["name"], entries, data["peak"], data["gpu"])

    def card(self) -> Card:
        t = self.total
        pieces: list[Piece] = [
            Heading(self.name, f"{t.launches:,} launches"),
            Row("what it asked", f"{number(t.bytes, 'B')} moved   {number(t.flops, 'FLOP')}", "counted"),
            Row("intensity", f"{t.intensity:.2f} FLOP/B", "counted"),
            Row("peak memory", f"{number(self.peak, 'B')} beyond its inputs", "counted"),
            Row(
                "at least",
                f"{self.least_seconds * 1e6:.1f} µs on an {self.gpu}, launches left out",
                "modelled",
            ),
        ]
        if t.syncs:
            times = "once" if t.syncs == 1 else f"{t.syncs:,} times"
            pieces.append(Row("waits", f"the host waits {times} for a value", "counted", mark="wait"))
        rows = tuple(
            (
                op,
                f"{x.calls:,}",
                f"{x.launches:,}",
                number(x.bytes, "B"),
                number(x.flops, ""),
                f"{x.intensity:.2f}",
            )
            for op, x in self.by_op.items()
        )
        pieces.append(Table(("operation", "calls", "launches", "bytes", "FLOPs", "FLOP/B"), rows))
        pieces.append(
            Note("counted as eager PyTorch asks: each operation reads its inputs and writes its outputs.")
        )
        return Card(tuple(pieces))


def tensor_report(run: Callable[..., Any], book: Any) -> TensorReport:
    """The report of a closed ledger."""
    name = getattr(run, "__name__", type(run).__name__)
    return TensorReport(name, tuple(book.entries), book.peak, devices.current().gpu.name)


def record(run: Callable[..., Any], *args: Any, **named: Any) -> TensorReport:
    """Run ``run(*args, **named)`` and report its tensor operations. Fake tensors work as real ones do."""
    with ledger() as book:
        run(*args, **named)
    return tensor_report(run, book)
