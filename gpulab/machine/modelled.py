"""The time of a launch on a GPU, modelled: counts × data sheet.

An SM is as slow as its slowest part (throughput), and as a warp that waits for each result in turn
(latency), whichever is longer; near the point where both are equal neither hides the other fully. See
docs/time_model.md for where each term comes from and what it leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpulab import device as devices
from gpulab import hardware
from gpulab.compile.versions import supported_capabilities
from gpulab.hardware.gpu import GPU
from gpulab.hardware.occupancy import Occupancy
from gpulab.observe import Counters, Counts
from gpulab.profile.display import Card, Heading, Note, Shown, Span, Table
from gpulab.profile.matrix import matrix_dtype

from .caches import Caches, Traffic
from .executed import Executed, of_kernel
from .warp import latency_of, one_warp
from .watching import watched

SCHEDULERS = 4  # of an SM: warp instructions issued per cycle
LSU_LANES = 32  # of an SM: addresses per cycle
XU_LANES = 16  # of an SM, from 7.0 on (CUDA Programming Guide, arithmetic throughput)
L1_BYTES = 128  # of an SM per cycle
L2_BYTES = 64  # between the L2 and an SM per cycle
SEEN = 0.9  # of the DRAM's peak, where no measurement says how much of it a kernel can get
LAUNCH = 2e-6  # seconds from one launch to the next when the queue is full
SHARPNESS = 4  # how fast the longer of throughput and latency takes over


@dataclass(frozen=True)
class Term:
    """One reason why a launch takes as long as it does: `cycles` of the busiest SM, and in words what for."""

    name: str
    cycles: float
    words: str


@dataclass(frozen=True, repr=False)
class Modelled(Shown):
    """The modelled time of launches on a GPU.

    `terms` are the cycles that each part of the busiest SM needs, over all launches; ``latency`` is that of
    warps that wait; `seconds` follows from them and from `launches`. `traffic` is what the caches of each
    launch let through.
    """

    name: str
    gpu: str
    seconds: float
    launches: int
    clock: float
    terms: tuple[Term, ...]
    traffic: tuple[Traffic, ...]

    @property
    def parts(self) -> dict[str, float]:
        """Seconds that each part would take alone, by name, as `gpulab.plot.time_breakdown` draws them."""
        return {term.name: term.cycles / self.clock for term in self.terms}

    @property
    def bound(self) -> Term:
        """The longest term."""
        return max(self.terms, key=lambda term: term.cycles)

    def card(self) -> Card:
        longest = self.bound.cycles or 1
        rows = tuple(
            (term.name, term.words, f"{term.cycles:,.0f}", f"{100 * term.cycles / longest:.0f} %")
            for term in sorted(self.terms, key=lambda term: -term.cycles)
            if term.cycles
        )
        times = f"{self.launches} launch{'es' * (self.launches > 1)}"
        return Card(
            (
                Heading(Span(self.name, "strong"), f"{_time(self.seconds)} modelled on {self.gpu}"),
                Table(("part", "for", "cycles", "of the longest"), rows, frozenset({0, 1})),
                Note(Span(f"{times}, {self.clock / 1e9:.2f} GHz; the busiest SM's cycles.", "dim")),
                Note(Span("Modelled from counts and the data sheet, not measured on a GPU.", "dim")),
            )
        )


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def modelled(run: Any, *args: Any, gpu: str | GPU | None = None, **named: Any) -> Modelled:
    """Run ``run(*args, **named)`` and model its time on `gpu` (the device's own by default).

    `run` is a kernel with its launch shape, ``kernel[grid, block]``, or host code that launches kernels.
    Raises NothingLaunched, LookupError for an unknown GPU, NoDisassembler without nvdisasm.
    """
    device = devices.current()
    sheet = hardware.find(gpu) if isinstance(gpu, str) else gpu or device.gpu
    seen: list[tuple[devices.Launch, Occupancy, Counters, Caches]] = []

    def count(launch: devices.Launch) -> Counters:
        used = device.resources(launch.kernel)
        held = hardware.occupancy(
            sheet, _threads(launch), used.registers, used.shared_bytes + launch.shared_bytes
        )
        seen.append((launch, held, Counters(), Caches(sheet, held.carveout)))
        return seen[-1][2]

    watched("modelled", run, args, named, count, lambda _: seen[-1][3])
    parts = [_launch(sheet, *one) for one in seen]
    names = dict.fromkeys(part.name for part in parts)
    return Modelled(
        ", ".join(names),
        sheet.name,
        sum(part.seconds for part in parts),
        len(parts),
        float(sheet.boost_clock),
        _added(parts),
        tuple(part.traffic[0] for part in parts),
    )


def _added(parts: list[Modelled]) -> tuple[Term, ...]:
    """The terms of all launches, summed by name."""
    found: dict[str, Term] = {}
    for term in (term for part in parts for term in part.terms):
        before = found[term.name].cycles if term.name in found else 0.0
        found[term.name] = Term(term.name, before + term.cycles, term.words)
    return tuple(found.values())


def _threads(launch: devices.Launch) -> int:
    x, y, z = launch.block
    return x * y * z


def _launch(
    gpu: GPU, launch: devices.Launch, held: Occupancy, counters: Counters, caches: Caches
) -> Modelled:
    counts, traffic = counters.counts, caches.traffic
    assert counts is not None
    cc = gpu.cc if gpu.cc > launch.kernel.cc and gpu.cc in supported_capabilities() else launch.kernel.cc
    code = of_kernel(launch.kernel, [counts], cc)
    blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
    warps_per_block = -(-_threads(launch) // 32)
    most_blocks = -(-blocks // int(gpu.sms))  # on the busiest SM
    on_busiest = most_blocks / blocks
    terms = _throughput(gpu, code, counts, traffic, on_busiest)
    alone = one_warp(
        code.instructions, code.warps, blocks * warps_per_block, latency_of(*_latencies(gpu, traffic))
    )
    turns = -(-most_blocks // max(held.active_blocks, 1))  # of blocks on the busiest SM
    terms.append(Term("latency", turns * alone, "a warp that waits for each result"))
    most = max(term.cycles for term in terms[:-1])
    cycles = (most**SHARPNESS + terms[-1].cycles ** SHARPNESS) ** (1 / SHARPNESS)
    clock = float(gpu.boost_clock)
    return Modelled(launch.kernel.name, gpu.name, LAUNCH + cycles / clock, 1, clock, tuple(terms), (traffic,))


def _throughput(gpu: GPU, code: Executed, counts: Counts, traffic: Traffic, share: float) -> list[Term]:
    """The cycles of each part of the busiest SM, if nothing waits."""
    pipes = code.pipes
    lanes = {
        "fma": int(gpu.fp32_lanes),
        "alu": int(gpu.int32_lanes),
        "fp64": int(gpu.fp64_lanes),
        "xu": XU_LANES,
        "lsu": LSU_LANES,
    }
    clock, sms = float(gpu.boost_clock), int(gpu.sms)
    shared = counts.total("wavefronts", space="shared")
    l1 = 32 * (traffic.l1_reads + traffic.l2_writes + traffic.l2_atomics)
    l2_rate = float(gpu.l2_seen) / clock if gpu.l2_seen else L2_BYTES * sms
    dram_rate = float(gpu.dram_seen or SEEN * float(gpu.dram_bandwidth)) / clock
    terms = [Term("issue", share * code.total / SCHEDULERS, "instructions, four a cycle")]
    terms += [
        Term(pipe, share * pipes.get(pipe, 0) * 32 / width, f"{width} lanes") for pipe, width in lanes.items()
    ]
    terms += [
        Term("shared memory", share * shared, "wavefronts, one a cycle"),
        Term("L1", share * l1 / L1_BYTES, f"{L1_BYTES} B a cycle"),
        Term("L2", traffic.l2_bytes / l2_rate, f"{l2_rate:,.0f} B a cycle for all SMs"),
        Term("DRAM", traffic.dram_bytes / dram_rate, f"{dram_rate:,.0f} B a cycle for all SMs"),
        Term("tensor cores", share * _tensor(gpu, counts), "matrix products"),
    ]
    return terms


def _tensor(gpu: GPU, counts: Counts) -> float:
    """Cycles of all matrix products on one SM."""
    total = 0.0
    for instruction, flops in zip(counts.instructions, counts.table["flops"], strict=True):
        dtype = matrix_dtype(instruction)
        if dtype is not None:
            total += float(flops) / 2 / float(gpu.tensor_fma.get(dtype, gpu.fp32_lanes))
    return total


def _latencies(gpu: GPU, traffic: Traffic) -> tuple[float, float]:
    """Cycles to shared memory, and to what a load finds, on average. Where a data sheet has no figure, the
    A100's stands in."""
    stand_in = hardware.find("A100")

    def cycles(name: str) -> float:
        return float(getattr(gpu, name) or getattr(stand_in, name))

    l1, l2 = traffic.l1_hit_rate or 0.0, traffic.l2_hit_rate or 0.0
    beyond = l2 * cycles("l2_latency") + (1 - l2) * cycles("dram_latency")
    return cycles("shared_latency"), l1 * cycles("l1_latency") + (1 - l1) * beyond
