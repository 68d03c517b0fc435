"""The time of a launch on a GPU, modelled: counts × data sheet.

An SM is as slow as its slowest part (throughput), and as a warp that waits for each result in turn
(latency). The SM's own parts, the L2, DRAM, atomics and latency are busy at the same time and hide each other
in part. See docs/time_model.md for where each term comes from and what it leaves out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from gpulab.analysis.profile.matrix import matrix_dtype
from gpulab.analysis.profile.modelled import Modelled, Term, Traffic, Waves
from gpulab.analysis.profile.report import Report
from gpulab.analysis.profile.watch import Watch
from gpulab.simulator import device as devices
from gpulab.simulator import hardware
from gpulab.simulator.compile.versions import supported_capabilities
from gpulab.simulator.hardware import pipelines
from gpulab.simulator.hardware.gpu import GPU
from gpulab.simulator.hardware.occupancy import Occupancy
from gpulab.simulator.observe import Counts
from gpulab.simulator.observe.patterns import SECTOR
from gpulab.simulator.simt.warpgroup_matrices import ROW_BYTES, ROWS

from .caches import LEVELS, Caches
from .executed import Executed, added_up, machine_code, of_kernel
from .pipes import PIPES, ptx_pipes
from .warp import latency_of, one_warp
from .watching import Seen, watched

Array = np.ndarray

LAUNCH = float(pipelines.LAUNCH)  # seconds
INSTRUCTION = 16  # bytes of machine code, from compute capability 7.0 on
WAVEFRONT = 128  # bytes of shared memory
OUTSIDE = ("L2", "DRAM", "atomics", "latency")  # terms that are no part of an SM
PRODUCTS = ("IMAD", "IMUL", "IDP", "XMAD")  # what the fma pipe does on 64 lanes at most


def modelled(
    run: Any, *args: Any, gpu: str | GPU | None = None, sample: int | None = None, **named: Any
) -> Modelled:
    """Run ``run(*args, **named)`` and model its time on `gpu` (the device's own by default).

    `run` is a kernel with its launch shape, ``kernel[grid, block]``, or host code that launches kernels.
    `sample` is about how many blocks of each launch to simulate; then all figures are estimates, with their
    standard errors, and arrays hold what those blocks wrote. Launches whose blocks wait for each other run
    whole. Raises NothingLaunched, LookupError for an unknown GPU, ValueError for a sample of nothing,
    NoDisassembler without nvdisasm.

    >>> @cuda.jit
    ... def fill(out):
    ...     i = cuda.grid(1)
    ...     if i < out.size:
    ...         out[i] = 1
    >>> result = modelled(fill[4, 32], np.zeros(100, np.float32), gpu="H100")
    >>> result.seconds > 0
    True
    """
    sheet = _sheet(gpu)
    seen = watched(
        "gpulab.modelled", run, args, named, sample=sample, caches=lambda launch: caches_of(sheet, launch)
    )
    return of_launches(sheet, seen)


def report(run: Any, *args: Any, gpu: str | GPU | None = None, **named: Any) -> Report:
    """The report of `gpulab.profile`, with the result of `modelled` in its field `modelled`, from a single
    run.

    `run` is a kernel with its launch shape, ``kernel[grid, block]``, or host code that launches kernels;
    `gpu` is the GPU to model, the device's own by default. Raises what `modelled` raises.

    >>> @cuda.jit
    ... def fill(out):
    ...     i = cuda.grid(1)
    ...     if i < out.size:
    ...         out[i] = 1
    >>> report(fill[4, 32], np.zeros(100, np.float32)).modelled.seconds > 0
    True
    """
    sheet = _sheet(gpu)
    watch = Watch(devices.current())
    seen = watched(
        "gpulab.machine.report",
        run,
        args,
        named,
        caches=lambda launch: caches_of(sheet, launch),
        beside=watch.standing(),
    )
    name = getattr(run, "__name__", "") if len(seen) > 1 else ""
    return replace(watch.report(name), modelled=of_launches(sheet, seen))


def _sheet(gpu: str | GPU | None) -> GPU:
    return hardware.find(gpu) if gpu is not None else devices.current().gpu


def caches_of(gpu: GPU, launch: devices.Launch) -> Caches:
    """The caches that a launch meets on a GPU, empty."""
    code = machine_code(launch.kernel, _capability(gpu, launch))
    code_bytes = int(pipelines.LAUNCH_BYTES) + INSTRUCTION * len(code)
    return Caches(gpu, _held(gpu, launch).carveout, added_up(code), code_bytes)


def _capability(gpu: GPU, launch: devices.Launch) -> tuple[int, int]:
    """What ptxas compiles for: the GPU's own capability where it can run the kernel's PTX."""
    own = launch.kernel.cc
    return gpu.cc if gpu.cc > own and gpu.cc in supported_capabilities() else own


def _held(gpu: GPU, launch: devices.Launch) -> Occupancy:
    used = devices.current().resources(launch.kernel)
    return hardware.occupancy(
        gpu, launch.threads_per_block, used.registers, used.shared_bytes + launch.shared_bytes
    )


def of_launches(gpu: GPU, seen: Sequence[Seen]) -> Modelled:
    """What launches that `watched` has seen take on a GPU, one after the other."""
    parts = [_one(gpu, each) for each in seen]
    pipes = Counter[str](), Counter[str]()
    errors = Counter[str]()
    for part in parts:
        for pipe, both in part.pipes.items():
            for counter, n in zip(pipes, both, strict=True):
                counter[pipe] += n
        errors.update({name: error**2 for name, error in part.errors.items()})  # they are independent
    return Modelled(
        ", ".join(dict.fromkeys(part.name for part in parts)),
        gpu.name,
        sum(part.seconds for part in parts),
        len(parts),
        float(gpu.boost_clock),
        _added(parts),
        tuple(traffic for part in parts for traffic in part.traffic),
        tuple(waves for part in parts for waves in part.waves),
        {pipe: (pipes[0][pipe], pipes[1][pipe]) for pipe in PIPES if pipes[0][pipe] or pipes[1][pipe]},
        parts[0].cc,
        sum(part.simulated for part in parts),
        sum(part.blocks for part in parts),
        {name: squared**0.5 for name, squared in errors.items()},
    )


def _one(gpu: GPU, seen: Seen) -> Modelled:
    """One launch, with the standard errors of its sample."""

    def estimate(weights: Array | None = None) -> Modelled:
        times = seen.sample.weights() if weights is None else weights
        traffic = estimated(seen.steps, times, int(gpu.l2_bytes))
        return _launch(gpu, seen, held, seen.counts(times), traffic)

    held = _held(gpu, seen.launch)
    whole = replace(estimate(), simulated=seen.sample.simulated, blocks=seen.sample.blocks)
    if seen.sample.whole:
        return replace(whole, errors=dict.fromkeys(ERRORS, 0.0))
    without = cache(lambda weights: estimate(np.array(weights)))

    def error(of: Callable[[Modelled], float]) -> float:
        return seen.sample.error(lambda weights: of(without(tuple(weights))))

    return replace(whole, errors={name: error(of) for name, of in ERRORS.items()})


# What a sample's standard error is told of.
ERRORS: dict[str, Callable[[Modelled], float]] = {
    "seconds": lambda of: of.seconds,
    "instructions": lambda of: of.instructions[1],
    "l2_bytes": lambda of: of.all_traffic.l2_bytes,
    "dram_bytes": lambda of: of.all_traffic.dram_bytes,
}


def estimated(steps: Sequence[Array], weights: Array, l2_bytes: int) -> Traffic:
    """The traffic of a launch from that of its stretches.

    Stretches fill the L2 less than the whole grid does. So once more has come into it than it holds, what it
    keeps of what was written is in proportion to what has come, and the rest of it has gone to DRAM.
    """
    found = Traffic(*(round(n) for n in np.tensordot(weights, np.array(steps), axes=1)))
    written = found.dram_writes + found.l2_dirty
    came, fits = found.dram_reads + written, l2_bytes // SECTOR
    if len(steps) == 1 or came <= fits:
        return found
    stays = min(found.l2_dirty, fits * written // came)
    return replace(found, dram_writes=written - stays, l2_dirty=stays)


def _added(parts: list[Modelled]) -> tuple[Term, ...]:
    """The terms of all launches, summed by name."""
    found: dict[str, Term] = {}
    for term in (term for part in parts for term in part.terms):
        before = found[term.name].cycles if term.name in found else 0.0
        found[term.name] = Term(term.name, before + term.cycles, term.words)
    return tuple(found.values())


def _launch(gpu: GPU, seen: Seen, held: Occupancy, counts: Counts, traffic: Traffic) -> Modelled:
    launch = seen.launch
    cc = _capability(gpu, launch)
    code = of_kernel(launch.kernel, [counts], cc)
    blocks = launch.blocks
    warps_per_block = -(-launch.threads_per_block // 32)
    waves = Waves(blocks, max(held.active_blocks, 1), int(gpu.sms))
    terms = _throughput(gpu, code, counts, traffic, waves.busiest / blocks)
    alone = one_warp(
        code.instructions,
        code.warps,
        blocks * warps_per_block,
        latency_of(*_latencies(gpu, seen.waits), warps=warps_per_block, column=_column(gpu)),
    )
    turns = -(-waves.busiest // waves.resident)  # of blocks on the busiest SM
    terms.append(Term("latency", turns * alone, "a warp that waits for each result"))
    beside = [term.cycles for term in terms if term.name in OUTSIDE]
    beside.append(max(term.cycles for term in terms if term.name not in OUTSIDE))
    cycles = float(np.linalg.norm(beside, float(pipelines.OVERLAP)))
    clock = float(gpu.boost_clock)
    terms.append(Term("launch", LAUNCH * clock, "the start, before and beside all else"))
    ptx, sass = ptx_pipes(counts), code.pipes
    return Modelled(
        launch.kernel.name,
        gpu.name,
        LAUNCH + cycles / clock,
        1,
        clock,
        tuple(terms),
        (traffic,),
        (waves,),
        {pipe: (ptx[pipe], sass.get(pipe, 0)) for pipe in PIPES if ptx[pipe] or sass.get(pipe)},
        cc,
    )


def _throughput(gpu: GPU, code: Executed, counts: Counts, traffic: Traffic, share: float) -> list[Term]:
    """The cycles of each part of the busiest SM, if nothing waits."""
    pipes = code.pipes
    lanes = {
        "fma": int(gpu.fp32_lanes),
        "alu": int(gpu.int32_lanes),
        "fp64": int(gpu.fp64_lanes),
        "fp16": int(pipelines.pair_lanes(gpu.cc)),
        "xu": int(pipelines.XU_LANES),
        "lsu": int(pipelines.LSU_LANES),
    }
    products = sum(code.by_opcode.get(name, 0) for name in PRODUCTS)
    clock, sms = float(gpu.boost_clock), int(gpu.sms)
    shared = counts.total("wavefronts", space="shared") + _turns(counts, added_up(code.instructions))
    l1 = 32 * (traffic.l1_reads + traffic.l2_writes + traffic.l2_atomics)
    l2 = max(traffic.l2_bytes, float(pipelines.L2_REQUEST) * traffic.l2_lines)
    l2_rate = float(gpu.l2_seen) / clock if gpu.l2_seen else float(pipelines.L2_RATE) * sms
    l1_rate = float(pipelines.l1_rate(gpu.cc))
    dram_seen = gpu.dram_seen or float(pipelines.DRAM_SHARE) * float(gpu.dram_bandwidth)
    dram_rate = float(dram_seen) / clock
    terms = [Term("issue", share * code.total / int(pipelines.SCHEDULERS), "instructions, four a cycle")]
    terms += [
        Term(pipe, share * pipes.get(pipe, 0) * 32 / width, f"{width} lanes") for pipe, width in lanes.items()
    ]
    terms.append(
        Term(
            "integer products",
            share * products * 32 / float(pipelines.PRODUCT_LANES),
            f"{int(pipelines.PRODUCT_LANES)} of the fma pipe's lanes",
        )
    )
    terms += [
        Term(
            "shared memory",
            share * shared * WAVEFRONT / l1_rate,
            f"wavefronts of 128 B, {l1_rate:g} B a cycle",
        ),
        Term("L1", share * l1 / l1_rate, f"{l1_rate:g} B a cycle"),
        Term("L2", l2 / l2_rate, f"{l2_rate:,.0f} B a cycle for all SMs"),
        Term("DRAM", traffic.dram_bytes / dram_rate, f"{dram_rate:,.0f} B a cycle for all SMs"),
        Term(
            "atomics",
            traffic.hottest / float(pipelines.ATOMIC_RATE),
            f"in the line that most update, {float(pipelines.ATOMIC_RATE):g} passes a cycle",
        ),
        Term("tensor cores", share * _tensor(gpu, counts), "matrix products"),
    ]
    return terms


def _turns(counts: Counts, once: Set[int]) -> int:
    """Wavefronts that lanes of a warp take one after the other, because they update one word of shared
    memory; not in lines whose updates a warp adds up `once`."""
    rows = zip(counts.instructions, counts.kinds, counts.table["conflicts"], strict=True)
    return sum(int(n) for i, kind, n in rows if kind == ("atomic", "shared") and i.line not in once)


def _tensor(gpu: GPU, counts: Counts) -> float:
    """Cycles of all matrix products on one SM, at the clock of the lanes.

    The tensor cores' own clock may be lower, but for float64, and on Hopper mma does not reach their peak.
    """
    slower = min(1.0, float(gpu.tensor_clock) / float(gpu.boost_clock))
    total = 0.0
    for instruction, flops in zip(counts.instructions, counts.table["flops"], strict=True):
        dtype = matrix_dtype(instruction)
        if dtype is not None:
            rate = float(gpu.tensor_fma.get(dtype, gpu.fp32_lanes))
            old = gpu.cc == (9, 0) and instruction.parts[0] != "wgmma"
            share = float(pipelines.MMA_SHARE) if old else 1.0
            total += float(flops) / 2 / (share * rate * (1.0 if dtype == "float64" else slower))
    return total


def _column(gpu: GPU) -> float:
    """Cycles for each column of a warpgroup's product, whose rows of A have 32 bytes, whatever the type."""
    slower = min(1.0, float(gpu.tensor_clock) / float(gpu.boost_clock))
    rate = gpu.tensor_fma.get("float16")
    return ROWS * ROW_BYTES // 2 / (float(rate) * slower) if rate else 0.0


def _latencies(gpu: GPU, waits: Mapping[int, Array]) -> tuple[float, Callable[[int], float]]:
    """Cycles to shared memory, and to what the loads of a line of the PTX find, on average over its warps.
    Where a data sheet has no figure, the A100's stands in."""
    stand_in = hardware.find("A100")

    def cycles(name: str) -> float:
        return float(getattr(gpu, name) or getattr(stand_in, name))

    wait = [1.0, float(pipelines.WAIT), float(pipelines.WAIT)]
    levels = np.array([cycles(f"{level.lower()}_latency") for level in LEVELS]) * wait
    found = {line: float(levels @ waited / waited.sum()) for line, waited in waits.items()}
    return cycles("shared_latency"), lambda line: found.get(line, levels[0])
