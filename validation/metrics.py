"""What is compared, as a table: our name, Nsight Compute's names, and where our number comes from.

Where several of Nsight Compute's counters are named together, their sum is meant: it has atomics with a
result and those without apart, for instance. Where GPUs differ in what they call a counter, the first one is
taken that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab.analysis.profile import METRICS

if TYPE_CHECKING:  # what measures on a GPU models nothing
    from gpulab.analysis.machine import Executed, Modelled, Traffic
    from gpulab.analysis.profile import Report

SECTOR = 32  # bytes


@dataclass(frozen=True)
class Ours:
    """What the simulator gives for one launch."""

    report: Report
    executed: Executed
    modelled: Modelled

    @property
    def traffic(self) -> Traffic:
        return self.modelled.traffic[0]


@dataclass(frozen=True)
class Measure:
    """One row. `group` says which goal it belongs to; `ours` takes our number from a launch. Each of `ncu` is
    a sum of counters; the first one is taken of which all are there."""

    name: str
    group: str
    ncu: tuple[tuple[str, ...], ...]
    ours: Callable[[Ours], float | None]


def _reported(group: str, names: str) -> tuple[Measure, ...]:
    """Rows of metrics that a report has under the same name and whose table names the counter."""

    def row(name: str) -> Measure:
        return Measure(name, group, ((METRICS[name].ncu,),), lambda ours: ours.report[name])

    return tuple(row(name) for name in names.split())


def _atomic(what: str) -> Measure:
    names = tuple(f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum" for op in ("atom", "red"))
    return Measure(f"global_atomic_{what}", "memory", (names,), lambda o: o.report[f"global_atomic_{what}"])


def _pipe(ours: str, theirs: str) -> Measure:
    counter = f"sm__inst_executed_pipe_{theirs}.sum"
    return Measure(f"pipe_{ours}", "pipes", ((counter,),), lambda o: o.executed.pipes.get(ours, 0))


def _traffic(name: str, value: Callable[[Traffic], float], *counters: str) -> Measure:
    return Measure(name, "caches", (counters,), lambda o: value(o.traffic))


L2 = "lts__t_sectors_srcunit_tex_op_"

TABLE: tuple[Measure, ...] = (
    *_reported(
        "memory", "global_load_requests global_load_sectors global_store_requests global_store_sectors"
    ),
    _atomic("requests"),
    _atomic("sectors"),
    *_reported("memory", "local_load_requests local_load_sectors local_store_requests local_store_sectors"),
    *_reported("banks", "shared_load_requests shared_load_wavefronts"),
    *_reported("banks", "shared_store_requests shared_store_wavefronts"),
    Measure("sass_instructions", "instructions", (("smsp__inst_executed.sum",),), lambda o: o.executed.total),
    *(_pipe(name, name) for name in ("fma", "alu", "fp64", "fp16", "xu", "lsu", "tensor", "uniform")),
    _pipe("adu", "adu"),
    _pipe("control", "cbu"),
    _traffic(
        "l1_load_hits", lambda t: t.l1_hits, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum"
    ),
    _traffic("l2_read_sectors", lambda t: t.l2_reads, f"{L2}read.sum"),
    _traffic("l2_read_hits", lambda t: t.l2_read_hits, f"{L2}read_lookup_hit.sum"),
    _traffic("l2_write_sectors", lambda t: t.l2_writes, f"{L2}write.sum"),
    _traffic("l2_atomic_sectors", lambda t: t.l2_atomics, f"{L2}atom.sum", f"{L2}red.sum"),
    Measure(
        "dram_bytes",
        "dram",
        tuple(
            (f"dram__bytes_{read}.sum", f"dram__bytes_{write}.sum")
            for read, write in (("read", "write"), ("op_read", "op_write"))
        ),
        lambda o: o.traffic.dram_bytes,
    ),
    *_reported("launch", "warps registers"),
)
# Measured beside them and not counted here: seconds of the kernel without its launch, and the clock.
DURATION, CLOCK = "gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second"
EXTRA = {"kernel_seconds": DURATION, "clock": CLOCK}
COUNTERS: tuple[str, ...] = tuple(
    dict.fromkeys([*(c for row in TABLE for names in row.ncu for c in names), *EXTRA.values()])
)


def named(values: Mapping[str, float]) -> dict[str, float]:
    """Counters of Nsight Compute under our names; a row of which a counter is absent is left out."""
    found = {}
    for row in TABLE:
        there = [names for names in row.ncu if all(counter in values for counter in names)]
        if there:
            found[row.name] = sum(values[counter] for counter in there[0])
    return found | {name: values[counter] for name, counter in EXTRA.items() if counter in values}
