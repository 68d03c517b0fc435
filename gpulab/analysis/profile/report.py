"""The numbers of one or several launches.

A report holds numbers only; `report_card` says how they are shown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any, overload

from gpulab.foundation.display import Shown
from gpulab.simulator.observe import PipelineCounts
from gpulab.simulator.observe.recorder import Recording

from .metrics import METRICS, Value, combine, find_metric, value
from .modelled import Modelled
from .tally import Place, Tally, total

FORMAT = 1  # of `to_dict`
MIX = {  # the kinds of `Counts` that `Report.instruction_mix` takes together
    "loads and stores": (
        *("load", "store", "atomic"),
        *("bulk_load", "bulk_store", "bulk_reduction", "bulk_prefetch", "bulk_exchange"),
    ),
    "arithmetic": ("arithmetic", "other"),
    "special functions": ("special",),
    "branches, waiting, shuffles": (
        "branch",
        "jump",
        "barrier",
        "cluster_barrier",
        "mbarrier",
        "shuffle",
        "warp_sync",
    ),
}


@dataclass(frozen=True)
class Occupancy:
    """Resident warps per SM: `warps` of `limit`. `limited_by` says what stops more (warps, registers, …), and
    `clusters` how many clusters the GPU holds at once, empty without clusters."""

    warps: int
    limit: int
    limited_by: str
    clusters: str = ""

    @property
    def percent(self) -> float:
        return 100.0 * self.warps / self.limit


@dataclass(frozen=True)
class Roofline:
    """Where the run lies under the roofline of a GPU for a dtype.

    `intensity` and `ridge` are in FLOP/B of requested global memory, `ceiling` in FLOP/s: the most that the
    data sheet allows at this intensity. `bound` is ``memory`` or ``compute``; `tensor` says that the rate is
    that of the tensor cores.
    """

    intensity: float
    dtype: str
    ridge: float
    ceiling: float
    bound: str
    tensor: bool = False


@dataclass(frozen=True)
class Launch:
    """One launch: what ran, what the compiler gave it, what was counted.

    `shared_bytes` is static and dynamic shared memory per block; `registers` and `spill_bytes` (per thread)
    and `occupancy` are None where ptxas was not to be had. `most_loaded` is the bytes that the block that
    has most loads or copies in, `most_asked` those of atomics besides. `most_handed` is the hand-overs of
    the block that has most. `pipeline` is what `Pipelines` found. `seconds` is the time of the simulation,
    not of a GPU.
    `recording` holds the first requests of each memory instruction, for figures.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    tally: Tally
    seconds: float = 0.0
    shared_bytes: int = 0
    registers: int | None = None
    spill_bytes: int | None = None
    occupancy: Occupancy | None = None
    most_loaded: int = 0
    most_asked: int = 0
    most_handed: int = 0
    pipeline: PipelineCounts = field(default_factory=PipelineCounts)
    recording: Recording = field(default_factory=Recording)

    @property
    def facts(self) -> dict[str, Value]:
        """What the metrics call facts of a launch."""
        blocks = math.prod(self.grid)
        threads = math.prod(self.block)
        return {
            "launches": 1,
            "blocks": blocks,
            "threads": blocks * threads,
            "warps": blocks * -(-threads // 32),
            "block_load_bytes": self.most_loaded,
            "block_hand_overs": self.most_handed,
            **vars(self.pipeline),
            "registers": self.registers,
            "shared_bytes": self.shared_bytes,
            "spill_bytes": self.spill_bytes,
            "occupancy": self.occupancy.percent if self.occupancy else None,
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "kernel": self.kernel,
            "grid": list(self.grid),
            "block": list(self.block),
            "seconds": self.seconds,
            "shared_bytes": self.shared_bytes,
            "registers": self.registers,
            "spill_bytes": self.spill_bytes,
            "occupancy": vars(self.occupancy) if self.occupancy else None,
            "most_loaded": self.most_loaded,
            "most_asked": self.most_asked,
            "most_handed": self.most_handed,
            "pipeline": vars(self.pipeline),
            "tally": self.tally.to_list(),
            "recording": self.recording.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Launch:
        """The inverse of `to_dict`."""
        read = {
            "grid": tuple(data["grid"]),
            "block": tuple(data["block"]),
            "occupancy": Occupancy(**data["occupancy"]) if data["occupancy"] else None,
            "tally": Tally.from_list(data["tally"]),
            "pipeline": PipelineCounts(**data["pipeline"]),
            "recording": Recording.from_dict(data["recording"]),
        }
        return cls(**(dict(data) | read))


class Metrics(Mapping[str, Value]):
    """All metrics of a tally by name, worked out when asked for. None where there is nothing to count."""

    def __init__(self, tally: Tally, facts: Mapping[str, Value]) -> None:
        self._tally, self._facts = tally, facts

    def __getitem__(self, name: str) -> Value:
        """Raises UnknownMetric, which names the closest."""
        return value(name, self._tally, self._facts)

    def __contains__(self, name: object) -> bool:
        return name in METRICS

    def __iter__(self) -> Iterator[str]:
        return iter(METRICS)

    def __len__(self) -> int:
        return len(METRICS)


@dataclass(frozen=True, repr=False)
class Line(Shown):
    """The share of one source line.

    `metrics` are those of this line alone; shares are of the whole report, 0 to 1.
    """

    file: str
    line: int
    text: str
    metrics: Metrics
    whole: Metrics

    def share(self, name: str) -> float:
        """The part of an additive metric that this line causes; 0 where there is none at all."""
        all_of_it = self.whole[name]
        return float(self.metrics[name] or 0) / all_of_it if all_of_it else 0.0

    @property
    def where(self) -> str:
        """``9``, or ``?`` where the compiler names no line."""
        return str(self.line) if self.line else "?"


class Lines(Shown, Sequence[Line]):
    """The source lines of a report, in the order of the source."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = tuple(lines)

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> Lines: ...
    def __getitem__(self, index: int | slice) -> Line | Lines:
        return Lines(self._lines[index]) if isinstance(index, slice) else self._lines[index]

    def __len__(self) -> int:
        return len(self._lines)

    def costliest(self, name: str) -> Line | None:
        """The line with the largest part of an additive metric; None where there is nothing to count."""
        line = max(self._lines, key=lambda line: line.metrics[name] or 0, default=None)
        return line if line is not None and line.metrics[name] else None

    def worst(self, name: str) -> Line | None:
        """The line with the largest value of a ratio; None where no line has one."""
        with_value = [line for line in self._lines if line.metrics[name] is not None]
        return max(with_value, key=lambda line: line.metrics[name] or 0, default=None)


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """What one or several launches did.

    `name` is the kernel, or the function that launched. `gpu` is the name of the data sheet; `device` says
    what ran: ``simulated`` or the name of a physical GPU. `compiler` names the compiler whose PTX was
    counted. `texts` holds the source text of each line. `roofline` is None where no GPU is known. `modelled`
    is the time on a GPU and what it is made of, where `gpulab.machine.report` was asked.

    ``report["global_store_sectors"]`` is a metric; `report.lines` the table per source line.
    """

    name: str
    launches: tuple[Launch, ...]
    gpu: str = ""
    compiler: str = ""
    device: str = "simulated"
    texts: Mapping[Place, str] = field(default_factory=dict)
    roofline: Roofline | None = None
    modelled: Modelled | None = None

    def __getitem__(self, metric: str) -> Value:
        """The value of a metric of `gpulab.profile.METRICS`. Raises UnknownMetric."""
        return self.metrics[metric]

    def __contains__(self, name: object) -> bool:
        return name in self.metrics

    def __iter__(self) -> Iterator[str]:
        """The names of the metrics."""
        return iter(self.metrics)

    def keys(self) -> KeysView[str]:
        """The names of the metrics, so that ``dict(report)`` has their values."""
        return self.metrics.keys()

    @cached_property
    def tally(self) -> Tally:
        """The counts of all launches together."""
        return total(launch.tally for launch in self.launches)

    @cached_property
    def facts(self) -> dict[str, Value]:
        """The facts of all launches together."""
        of_each = [launch.facts for launch in self.launches]
        return {
            metric.fact: combine(metric.name, [facts[metric.fact] for facts in of_each])
            for metric in METRICS.values()
            if metric.fact
        }

    @cached_property
    def metrics(self) -> Metrics:
        """All metrics by name."""
        return Metrics(self.tally, self.facts)

    @property
    def instruction_mix(self) -> dict[str, int]:
        """Warp instructions of each kind; together they are the metric ``instructions``."""
        return {name: sum(self.tally.total("warps", k) for k in kinds) for name, kinds in MIX.items()}

    @property
    def seconds(self) -> float:
        """Time that the simulation took."""
        return sum(launch.seconds for launch in self.launches)

    @cached_property
    def lines(self) -> Lines:
        """The table per source line. Facts of a launch, such as registers, belong to no line."""
        return Lines(
            [
                Line(file, line, self.texts.get((file, line), ""), Metrics(tally, {}), self.metrics)
                for (file, line), tally in self.tally.by_place().items()
            ]
        )

    def compare(self, other: Report) -> Comparison:
        """This report (left) beside another one."""
        return Comparison(self, other)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `from_dict` makes an equal report of it."""
        return {
            "format": FORMAT,
            "name": self.name,
            "gpu": self.gpu,
            "device": self.device,
            "compiler": self.compiler,
            "roofline": vars(self.roofline) if self.roofline else None,
            "modelled": self.modelled.to_dict() if self.modelled else None,
            "texts": [[file, line, text] for (file, line), text in sorted(self.texts.items())],
            "launches": [launch.to_dict() for launch in self.launches],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """The inverse of `to_dict`. Raises ValueError for another format."""
        if data.get("format") != FORMAT:
            raise ValueError(f"this is no report of format {FORMAT}: {data.get('format')!r}")
        return cls(
            name=data["name"],
            launches=tuple(Launch.from_dict(launch) for launch in data["launches"]),
            gpu=data["gpu"],
            device=data["device"],
            compiler=data["compiler"],
            texts={(file, line): text for file, line, text in data["texts"]},
            roofline=Roofline(**data["roofline"]) if data["roofline"] else None,
            modelled=Modelled.from_dict(data["modelled"]) if data.get("modelled") else None,
        )

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Two reports side by side, by the metrics in which they differ."""

    left: Report
    right: Report

    def ratio(self, metric: str) -> float | None:
        """Right over left; None where one of them has no value or left is 0."""
        find_metric(metric)
        a, b = self.left[metric], self.right[metric]
        return None if a is None or b is None or a == 0 else b / a


def short_file(file: str) -> str:
    """The name of a source file without its folder; a notebook cell is ``cell``."""
    name = PurePath(file).name
    return "cell" if "ipykernel" in file or name.startswith("<ipython") else name
