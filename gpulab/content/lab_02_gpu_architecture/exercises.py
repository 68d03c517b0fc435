"""Lab 02: what its ten exercises ask. The first seven are in part A, the others in part B.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| peak | peak(sheet, dtype, advertised) | units × 2 × clock; adverts | answers | – | – | 3 |
| bound | bound(product, gpu) | intensity against the ridge | answers | – | – | 4 |
| warps_needed | warps_needed(gpu, bytes_per_lane) | Little's law | answers | – | – | 4 |
| processors | processors(serial, target) | Amdahl, Gustafson | answers | – | – | 3 |
| break_even | break_even(job) | transfers against gain | answers | – | – | 3 |
| split | split(weights, machine) | two memories, one address space | answers | – | – | 3 |
| cheapest | cheapest(model, offers) | memory, time, money, energy | answers | – | – | 4 |
| active_blocks | active_blocks(sm, threads, registers, shared) | CUDA's rules | answers | – | – | 5 |
| issue | issue(programs), an order | latency hiding | cycles/bound, 4 warps | 1.2 … 3.7 | 1.01 | 4 |
| | | | cycles/bound, 16 warps | 4.5 … 11 | 1.04 | |
| jumps | kernel jumps(a, out) | room on an SM | loaded bytes/element | 8 | 4.03 | 4 |
| | | | shared bytes/block | 32,768 | 516 | |

Derivations:

**warps_needed**: an SM's share of the bandwidth times the latency must be under way. H100: 3,350 GB/s over
132 SMs and 1.98 GHz are 12.82 B per cycle; times 688 cycles 8,818 B. One load of 4 B in each of 32 lanes is
128 B: 68.9, so 69 warps, and an SM holds 64. With 8 B per lane 35, with 16 B 18.

**bound**: C = A · B with A m × k and B k × n, each moved once: 2mnk FLOP over (mk + kn + mn) elements.

**split**: W bytes are read once, x of them from the GPU's memory at B and the rest over the link at L, at the
same time: max(x/B, (W − x)/L). Both end together at x = W·B/(B + L), and any other x takes longer. x is at
most the GPU's memory and at least what the CPU's cannot hold. GH200 and 140 GB: 96 GB at 4 TB/s take 24 ms,
44 GB at 450 GB/s take 98 ms. With 50 GB x is 44.9 GB: 11.2 ms, against 12.5 ms from the GPU's memory alone.

**issue**: one instruction starts per cycle; a warp's next one waits for the latency of the one before. No
order is faster than the number of instructions, nor than the longest warp's sum of latencies: the larger is
the bound. Warp after warp costs the sum of all latencies: its figure hangs on the questions, and the budgets
name none. Taking any warp that is ready costs at most 1.01 and 1.04 (60 seeds, 3 questions each); which of
the ready ones hardly matters. The budget is 1.1.

**jumps**: out[row, t] is the largest |a[row, i + 1] − a[row, i]| over i = t, t + 128, … Each element is in
two differences: 8 B per element if every thread loads both. Through a tile of 129 columns each stretch of 128
is loaded with one element more: 4 · 129/128 = 4.03 B. A whole row of 8,192 in shared memory is 32 KiB, and
with 1 KiB of the driver's four blocks of 4 warps fit on an SM of an A100: 16 of 64 warps. With 516 B all 64
do.
"""

from __future__ import annotations

from functools import partial
from math import floor
from typing import Any

import numpy as np

from gpulab.checks.builders import answered, prediction
from gpulab.checks.evidence import AnsweredCases, LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Shape, Sizes
from gpulab.simulator import hardware

LAB = "02"

JUMPS_BLOCK = 128
KINDS = ("float64", "float32", "float16", "bfloat16", "float8", "int8")
BYTES = {"float64": 8, "float32": 4, "float16": 2, "float8": 1}


def _power_of_two(low: int, high: int, generator: np.random.Generator) -> int:
    """2 ** low … 2 ** high: arithmetic with these is exact, whatever its order."""
    return int(2 ** generator.integers(low, high + 1))


def clear_of_whole_numbers(value: float) -> bool:
    """Is rounding up safe from the last bit of floating-point arithmetic?"""
    return abs(value - round(value)) > 1e-6


# ---------------------------------------------------------------- questions


def sheet(gpu: hardware.GPU) -> dict[str, Any]:
    """A data sheet as plain data: SMs, and by dtype the FMA per SM and cycle of the fastest unit."""
    units: dict[str, dict[str, float]] = {
        dtype: {"fma_per_sm": int(gpu.lanes(dtype)), "clock": float(gpu.boost_clock)}
        for dtype in ("float64", "float32")
    }
    for dtype, rate in gpu.tensor_fma.items():
        if dtype != "float64":
            units[dtype] = {"fma_per_sm": int(rate), "clock": float(gpu.tensor_clock)}
    return {"sms": int(gpu.sms), "units": units}


def peak_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(sheet, dtype, advertised rate): the rate times what the advert hides, rounded to three digits."""
    asked = []
    for _ in range(8):
        if sizes["kind"] == "made up":
            units = {
                dtype: {
                    "fma_per_sm": int(64 * 2 ** generator.integers(0, 7)),
                    "clock": float(generator.integers(100, 260)) * 1e7,
                }
                for dtype in KINDS
            }
            data: dict[str, Any] = {"sms": int(generator.integers(10, 200)), "units": units}
        else:
            data = sheet(hardware.ALL[int(generator.integers(len(hardware.ALL)))])
        dtype = str(generator.choice(sorted(data["units"])))
        hidden = 1 if sizes["kind"] == "plain" else int(generator.choice((1, 2, 8, 16)))
        unit = data["units"][dtype]
        rate = hidden * data["sms"] * unit["fma_per_sm"] * 2 * unit["clock"]
        asked.append((data, dtype, float(f"{rate:.3g}")))
    if sizes["kind"] != "plain":
        missing = dict(asked[0][0])
        asked.append((missing, "float2", 1e15))
    return asked


def processor_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(serial share, target)."""
    if sizes["kind"] == "the ends":
        return [(0.0, 7.5), (0.25, 1.0), (0.25, 4.0), (0.5, 2.5), (1.0, 1.0), (1.0, 2.5), (0.0, 1.0)]
    asked: list[tuple[Any, ...]] = []
    while len(asked) < 8:
        serial = round(float(generator.uniform(0.001, 0.4)), 4)
        target = round(float(generator.uniform(1.2, 40)), 2)
        left = 1 / target - serial
        amdahl = (1 - serial) / left if left > 0 else 0.5
        gustafson = (target - serial) / (1 - serial)
        if abs(left) > 1e-4 and clear_of_whole_numbers(amdahl) and clear_of_whole_numbers(gustafson):
            asked.append((serial, target))
    return asked


def bound_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(product, GPU): m, n, k and dtype; bandwidth in B/s and peaks in FLOP/s."""
    asked = []
    for _ in range(6):
        if sizes["kind"] == "on the ridge":
            asked.append(_on_the_ridge(generator))
            continue
        gpu = hardware.find(str(generator.choice(("A100", "H100", "B200", "L40S"))))
        peaks = {d: float(hardware.roofline(gpu, d).peak) for d in ("float64", "float32", "float16")}
        data = {"dram_bandwidth": float(gpu.dram_bandwidth), "peak": peaks}
        dtype = str(generator.choice(sorted(peaks)))

        def large() -> int:
            return int(generator.integers(500, 20_000))

        match sizes["kind"]:
            case "square":
                m = n = k = int(generator.choice((32, 128, 256, 512, 1024, 8192)))
            case "matrix times vector":
                m, n, k = large(), 1, large()
            case _:  # thin
                m, n, k = large(), large(), int(generator.integers(1, 200))
        asked.append(({"m": m, "n": n, "k": k, "dtype": dtype, "bytes": BYTES[dtype]}, data))
    return asked


def _on_the_ridge(generator: np.random.Generator) -> tuple[Any, ...]:
    """A square product whose intensity, 2n / 3b, is the ridge of a made-up GPU, to the last bit."""
    n, dtype = _power_of_two(6, 12, generator), str(generator.choice(("float64", "float32", "float16")))
    scale = _power_of_two(38, 41, generator)
    product = {"m": n, "n": n, "k": n, "dtype": dtype, "bytes": BYTES[dtype]}
    return product, {"dram_bandwidth": 3.0 * scale, "peak": {dtype: 2.0 * n * scale / BYTES[dtype]}}


def warp_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(GPU, bytes per lane): SMs, clock in Hz, bandwidth in B/s, latency in cycles."""
    asked: list[tuple[Any, ...]] = []
    known = [gpu for gpu in hardware.ALL if gpu.dram_latency is not None]
    while len(asked) < 9:
        width = int(generator.choice((4, 8, 16)))
        if sizes["kind"] == "data sheets":
            gpu = known[len(asked) % len(known)]
            assert gpu.dram_latency is not None
            data = {
                "sms": int(gpu.sms),
                "clock": float(gpu.boost_clock),
                "dram_bandwidth": float(gpu.dram_bandwidth),
                "dram_latency": float(gpu.dram_latency),
            }
        elif sizes["kind"] == "exact fit":
            data = _exact_fit(width, generator)
            asked.append((data, width))
            continue
        else:
            data = {
                "sms": int(generator.integers(16, 200)),
                "clock": float(generator.integers(100, 260)) * 1e7,
                "dram_bandwidth": float(generator.integers(100, 9000)) * 1e9,
                "dram_latency": float(generator.integers(300, 900)),
            }
        if clear_of_whole_numbers(bytes_under_way(data) / (32 * width)):
            asked.append((data, width))
    return asked


def _exact_fit(width: int, generator: np.random.Generator) -> dict[str, Any]:
    """A made-up GPU whose memory a whole number of warps fills, to the last bit."""
    sms, clock = _power_of_two(5, 7, generator), float(_power_of_two(30, 31, generator))
    per_cycle = width // 2 * int(generator.integers(1, 4))
    return {
        "sms": sms,
        "clock": clock,
        "dram_bandwidth": per_cycle * sms * clock,
        "dram_latency": 64.0 * int(generator.integers(5, 14)),
    }


def bytes_under_way(gpu: dict[str, Any]) -> float:
    """Little's law for one SM: its share of the bandwidth times the latency."""
    return float(gpu["dram_bandwidth"] / gpu["sms"] * gpu["dram_latency"] / gpu["clock"])


def job_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(job,): times in seconds and bytes per item, the link in B/s one way, what starting costs."""
    asked: list[tuple[Any, ...]] = []
    links = [float(link.per_direction) for name, link in hardware.LINKS.items() if "PCIe" in name]
    while len(asked) < 7:
        if sizes["kind"] == "a tie":
            asked.append((_tie(generator),))
            continue
        cpu = float(generator.integers(2, 400)) * 1e-9
        job = {
            "cpu_s": cpu,
            "gpu_s": cpu / float(generator.integers(5, 60)),
            "bytes_in": int(generator.integers(1, 65)),
            "bytes_out": int(generator.integers(0, 33)),
            "link": links[int(generator.integers(len(links)))],
            "overhead_s": float(generator.integers(5, 60)) * 1e-6,
            "resident": sizes["kind"] == "resident" and bool(generator.integers(2)),
        }
        if sizes["kind"] == "never":
            job["bytes_in"] = int(cpu * job["link"]) + 1
        if sizes["kind"] == "free start":
            job["overhead_s"] = 0.0
        moved = 0 if job["resident"] else job["bytes_in"] + job["bytes_out"]
        gain = cpu - job["gpu_s"] - moved / job["link"]
        crossing = job["overhead_s"] / gain if gain > 0 else 0.5
        if abs(gain) > 1e-13 and (crossing == 0 or clear_of_whole_numbers(crossing)):
            asked.append((job,))
    return asked


def _tie(generator: np.random.Generator) -> dict[str, Any]:
    """A job for which both take the same time at a whole number of items, to the last bit."""
    copied, gpu = (int(generator.integers(1, 9)) for _ in range(2))
    gain, items = int(generator.integers(1, 9)), _power_of_two(8, 14, generator)
    step = 2.0**-30
    return {
        "cpu_s": (gpu + copied + gain) * step,
        "gpu_s": gpu * step,
        "bytes_in": 15 * copied,
        "bytes_out": copied,
        "link": 16 / step,
        "overhead_s": items * gain * step,
        "resident": False,
    }


def split_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(bytes of weights, machine): both memories in B, the rates of the GPU's and of the link in B/s."""
    asked = []
    for _ in range(6):
        own, other = int(generator.integers(16, 193)), int(generator.integers(200, 1000))  # GB
        machine = {
            "gpu_memory": own * 1e9,
            "gpu_bandwidth": float(generator.integers(600, 8000)) * 1e9,
            "cpu_memory": other * 1e9,
            "link": float(generator.choice((16, 32, 63, 450, 900))) * 1e9,
        }
        match sizes["kind"]:
            case "fits":
                weights = own * 1e9 * float(generator.integers(20, 80)) / 100
            case "larger than the GPU's memory":
                weights = (own + int(generator.integers(20, 180))) * 1e9
            case "a small host":  # less than what would be read over the link if there were room
                machine["gpu_bandwidth"], machine["link"], weights = 1500e9, 450e9, own * 1e9
                machine["cpu_memory"] = own * 1e9 * float(generator.integers(2, 20)) / 100
            case "full":
                weights = (own + other) * 1e9
            case _:  # too large
                weights = (own + other + int(generator.integers(1, 50))) * 1e9
        asked.append((weights, machine))
    return asked


def _peak(gpu: hardware.GPU) -> float:
    """The rate for float16; the boards for robots are advertised with another dtype only."""
    dtype = "float16" if "float16" in gpu.tensor_fma else next(iter(gpu.tensor_fma))
    return float(hardware.roofline(gpu, dtype).peak)


def offer_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(model, offers). Prices are made up: they change from month to month, so they are an input."""
    asked: list[tuple[Any, ...]] = []
    while len(asked) < 6:
        if sizes["kind"] == "exact fit":
            asked.append(_exactly_filled(generator))
            continue
        chosen = generator.choice(len(hardware.ALL), 3, replace=False)
        gpus = [hardware.ALL[int(i)] for i in chosen]
        offers = [
            {
                "name": gpu.name,
                "memory": float(gpu.dram_bytes),
                "bandwidth": float(gpu.dram_bandwidth),
                "peak": _peak(gpu),
                "watts": float(gpu.tdp),
                "price_per_hour": float(generator.integers(20, 700)) / 100,
            }
            for gpu in gpus
        ]
        size = {"small": (0.3, 4), "large": (30, 500)}.get(str(sizes["kind"]), (5, 90))
        batch = int(generator.integers(1, 4)) if sizes["kind"] != "many at once" else 1000
        model = {
            "parameters": float(round(generator.uniform(*size), 2)) * 1e9,
            "bytes_per_parameter": int(generator.choice((1, 2))),
            "batch": batch,
        }
        weights = model["parameters"] * model["bytes_per_parameter"]
        if all(clear_of_whole_numbers(weights / (0.8 * float(gpu.dram_bytes))) for gpu in gpus):
            asked.append((model, offers))
    return asked


def _exactly_filled(generator: np.random.Generator) -> tuple[Any, ...]:
    """A model whose weights take 80 % of the memory of whole GPUs, of each of two made-up offers."""
    scale = int(generator.integers(1, 5))
    offers = [
        {
            "name": f"offer {index}",
            "memory": 120e9 * scale / int(gpus),
            "bandwidth": float(generator.integers(300, 8000)) * 1e9,
            "peak": float(generator.integers(60, 2500)) * 1e12,
            "watts": float(generator.integers(70, 1000)),
            "price_per_hour": float(generator.integers(20, 700)) / 100,
        }
        for index, gpus in enumerate(generator.choice((1, 2, 4, 5), 2, replace=False), 1)
    ]
    bytes_each = int(generator.choice((1, 2)))
    parameters = 96e9 * scale / bytes_each
    return {"parameters": parameters, "bytes_per_parameter": bytes_each, "batch": 1}, offers


def sm_limits(cap: hardware.Capability) -> dict[str, Any]:
    """The limits of an SM of a compute capability as plain data; sizes in bytes."""
    return {
        "warps": cap.max_warps,
        "blocks": cap.max_blocks,
        "threads_per_block": cap.max_threads_per_block,
        "registers": cap.registers_per_sm,
        "registers_per_thread": cap.max_registers_per_thread,
        "register_step": cap.register_granule,
        "shared": cap.shared_per_sm,
        "shared_kept": cap.shared_reserved,
        "shared_step": cap.shared_granule,
    }


def block_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(SM, threads per block, registers per thread, shared bytes per block); some launches cannot run."""
    caps = list(hardware.TABLE.values())
    asked = []
    for i in range(16):
        sm = sm_limits(caps[int(generator.integers(len(caps)))])
        threads, registers, shared = 32 * int(generator.integers(1, 33)), 16, 0
        match sizes["kind"]:
            case "warps and blocks":
                threads = int(generator.integers(1, 1025))
            case "registers":
                registers = int(generator.integers(24, 256))
                threads = 32 * int(generator.integers(1, 9))
            case "shared memory":
                shared = int(generator.integers(1, sm["shared"] - sm["shared_kept"] + 1))
                threads = 32 * int(generator.integers(1, 9))
            case "cannot run":
                wrong = i % 4
                threads = 1056 if wrong == 0 else 288 if wrong == 1 else 128
                registers = 255 if wrong == 1 else 256 if wrong == 2 else 32
                shared = sm["shared"] - sm["shared_kept"] + 1 if wrong == 3 else 0
            case _:  # all together
                threads = int(generator.integers(1, 1025))
                registers = int(generator.integers(1, 129))
                shared = int(generator.integers(0, 40_000))
        asked.append((sm, threads, registers, shared))
    return asked


ARITHMETIC, LOAD = 4, 500  # cycles until a result can be used, about


def program_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(programs,): for each warp the latency of each of its instructions, in cycles."""
    warps = int(sizes["warps"])

    def program() -> list[int]:
        length = int(generator.integers(10, 41))
        loads = generator.random(length) < 0.15
        spread = generator.integers(-100, 101, length)
        return [int(LOAD + s) if load else ARITHMETIC for load, s in zip(loads, spread, strict=True)]

    return [([program() for _ in range(warps)],) for _ in range(3)]


def jumps_arguments(sizes: Sizes) -> tuple[Array, Array]:
    rows, cols = int(sizes["rows"]), int(sizes["cols"])
    return Array("a", (rows, cols)), Array("out", (rows, JUMPS_BLOCK), role="out")


def _rows(sizes: Sizes) -> Shape:
    return Shape((max(1, int(sizes["rows"])),), (JUMPS_BLOCK,))


def _elements(sizes: Sizes) -> int:
    return int(sizes["rows"]) * int(sizes["cols"])


def _matrix(rows: int, cols: int) -> Case:
    return Case(f"{rows} × {cols}", {"rows": rows, "cols": cols})


def _warps(*counts: int) -> tuple[Case, ...]:
    return tuple(Case(f"{n} warp{'s' * (n != 1)}", {"warps": n}) for n in counts)


_answered = partial(answered, "arch", LAB)


EXERCISES: tuple[Exercise, ...] = (
    _answered(
        "peak",
        3,
        ("plain", "data sheets", "made up"),
        peak_questions,
        (
            "How many multiply-adds start in one cycle on the whole GPU? It is the number of SMs times the "
            "multiply-adds of one SM.",
            "Every multiply-add is two operations, and a second has `clock` cycles.",
            "Divide the advertised rate by yours, and round to the nearest whole number. Look for the dtype "
            "first, because `sheet['units']` may not have it.",
        ),
        "2 · Where a peak comes from",
        rtol=1e-9,
    ),
    _answered(
        "bound",
        4,
        ("square", "matrix times vector", "thin", "on the ridge"),
        bound_questions,
        (
            "Count multiply-adds first: each of the m · n results is a sum of k products.",
            "A has m · k elements, B k · n and C m · n. Each has `product['bytes']` bytes and moves once.",
            "The ridge is the peak divided by the bandwidth. Below it the bytes decide the time, and above "
            "it the arithmetic. So the least time is the larger of the two times.",
        ),
        "4 · The roofline",
        rtol=1e-9,
    ),
    _answered(
        "warps_needed",
        4,
        ("data sheets", "made up", "exact fit"),
        warp_questions,
        (
            "Little's law says: what is under way = rate × time. Which rate must one SM keep up?",
            "The latency is in cycles, and the bandwidth is in bytes per second. Use the clock to convert "
            "one of them.",
            "A warp has 32 lanes with `bytes_per_lane` bytes each under way. The number of warps is whole, "
            "so round up.",
        ),
        "6 · Little's law",
        by_hand=(f"{__name__}.bytes_under_way",),
    ),
    _answered(
        "processors",
        3,
        ("mixed", "the ends"),
        processor_questions,
        (
            "Write down the law, set it equal to the target, and solve for n on paper.",
            "By Amdahl's law (1 − s)/n = 1/target − s. What if the right side is not above 0?",
            "Round up. A target of 1 needs one processor by either law. Test these special cases before you "
            "divide.",
        ),
        "7 · What speed-up is possible",
    ),
    _answered(
        "break_even",
        3,
        ("copied", "resident", "never", "free start", "a tie"),
        job_questions,
        (
            "Write both times as a function of the number n of items.",
            "Every item saves `cpu_s`, and costs `gpu_s` and the time of its bytes over the link. The start "
            "is paid once.",
            "The GPU is faster once the gains of all items exceed the start. At a tie one more item is "
            "needed. And what if an item gains nothing?",
        ),
        "8 · When offloading pays",
    ),
    _answered(
        "split",
        3,
        ("fits", "larger than the GPU's memory", "a small host", "full", "too large"),
        split_questions,
        (
            "Call the bytes in the GPU's memory x. How long does it take to read these x bytes, and how long "
            "the others? Both are read at the same time.",
            "If one of the two is done earlier, move bytes to it. So the best x is where both take equally "
            "long. Solve x / gpu_bandwidth = (weights − x) / link for x.",
            "Now look at the limits. x cannot exceed the GPU's memory, and it cannot be less than what the "
            "CPU's memory has no room for. Take the allowed x that is nearest to the best one.",
        ),
        "Two processors, one address space",
        rtol=1e-9,
    ),
    _answered(
        "cheapest",
        4,
        ("medium", "small", "large", "many at once", "exact fit"),
        offer_questions,
        (
            "Start with one offer. How many of these GPUs hold the weights in 80 % of their memory?",
            "A step reads all weights once, and does 2 · parameters · batch operations. g GPUs share both. "
            "The step takes the longer of the two times.",
            "How many steps make a million tokens, and how many hours is that? All g GPUs cost money and "
            "draw power for all of these hours. At the end compare the offers by money.",
        ),
        "10 · Energy and money",
        rtol=1e-9,
    ),
    _answered(
        "active_blocks",
        5,
        ("warps and blocks", "registers", "shared memory", "cannot run", "all together"),
        block_questions,
        (
            "There are four limits, each a whole number of blocks, and the smallest counts. Begin with "
            "warps: a block of 33 threads takes two.",
            "Registers are given to whole warps in steps, and each of the four quarters has its own share. "
            "Compute how many warps fit into one quarter, multiply by four, and divide by the warps of a "
            "block.",
            "With too many threads in a block, or too many registers in a thread, nothing runs. And if the "
            "driver keeps no shared memory, how many blocks without shared memory fit?",
        ),
        "B2 · Occupancy",
        by_hand=("gpulab.hardware.occupancy",),
    ),
    Exercise(
        name="arch.issue",
        lab=LAB,
        evidence=AnsweredCases(questions=program_questions, measured=True),
        correct_points=1,
        cases=_warps(4, 1, 2, 32, 16),
        budgets=(
            Budget(
                "slowdown",
                1.1,
                1.5,
                "few warps",
                unit="× the bound",
                why="1 is the bound",
                case="4 warps",
                advice="While one warp waits for its load, which other warp is ready? Your order makes that "
                "one wait as well.",
            ),
            Budget(
                "slowdown",
                1.1,
                1.5,
                "any number of warps",
                unit="× the bound",
                why="1 is the bound",
                case=EVERY,
                advice="Your order takes {times} × the limit. In how many of its cycles does no warp issue?",
            ),
        ),
        hints=(
            "Keep the current cycle, and for each warp the cycle at which it is ready again. You need no "
            "more.",
            "In each cycle look for the warps that are ready. If there is none, go to the cycle at which the "
            "first one will be ready.",
            "Take any warp that is ready, write down its number, set its next cycle to now + latency, and go "
            "to the next cycle. When all warps are done, the list is the answer.",
        ),
        section="B3 · Who issues next",
    ),
    Exercise(
        name="arch.jumps",
        lab=LAB,
        correct_points=1.6,
        cases=tuple(
            _matrix(*size) for size in ((2, 300), (3, 129), (2, 128), (1, 1000), (2, 2), (4, 1), (8, 8192))
        ),
        evidence=LaunchTrace(arguments=jumps_arguments, shape=_rows),
        budgets=(
            Budget(
                "global_load_bytes",
                lambda sizes: int(4.4 * _elements(sizes)) + 8 * int(sizes["rows"]),
                1.2,
                "loaded bytes",
                naive=lambda sizes: 8 * int(sizes["rows"]) * (int(sizes["cols"]) - 1),
                why="each element about once",
                advice="Each element is in two differences. Which other thread has loaded it already?",
                case=EVERY,
            ),
            Budget(
                "shared_bytes",
                2048,
                1.2,
                "shared memory",
                naive=32768,
                why="64 warps fit on an SM",
                advice="A block needs {times} × the shared memory of a good answer. How much of the row does "
                "it need at any one time?",
                case=EVERY,
            ),
        ),
        hints=(
            "Go through the row in pieces of 128 columns. In each piece thread t has the pair (t, t + 1).",
            "A tile of 129 elements holds a piece and the first element of the next one. One thread loads "
            "that last element.",
            "Fill, barrier, compare, barrier: there are two barriers in each round of the loop, outside "
            "every `if`. The largest difference so far stays in a register.",
        ),
        section="B5 · Make room",
    ),
)


def first_whole(value: float) -> int:
    """The first whole number above `value`, at least 1."""
    return max(1, floor(value) + 1)


_prediction = partial(prediction, "arch", LAB, tolerance=0.05)


# Those without an answer come from the data sheets or from a run in the lab.
PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "threads",
        "Threads that an H100 can hold at once, divided by those of an EPYC 9654",
        "times",
        reason="132 SMs × 2,048 threads = 270,336, and 96 cores × 2 = 192.",
    ),
    _prediction(
        "wall",
        "From V100 to B200 the float16 peak divided by the bandwidth has grown by a factor of",
        "times",
        reason="125 TFLOP/s over 0.9 TB/s are 139 FLOP/B; 2,250 over 8 are 281. The peak grew 18-fold, the "
        "bandwidth 9-fold.",
        tolerance=0.15,
    ),
    _prediction(
        "add",
        "The most TFLOP/s that an A100 can reach in c = a + b with float32",
        "TFLOP/s",
        reason="There is one operation for 12 bytes: 2.039 TB/s / 12 B.",
        tolerance=0.1,
    ),
    _prediction(
        "ridge_here",
        "The float32 ridge of this computer's CPU",
        "FLOP/B",
        reason="It is the measured rate of the product divided by the measured bandwidth of the copy. With "
        "fewer operations per byte this CPU waits for memory.",
        tolerance=0.5,
    ),
    _prediction(
        "under_way",
        "Bytes that must be under way in the whole H100 at any moment",
        "KB",
        reason="688 cycles at 1.98 GHz are 347 ns, and 3,350 GB/s · 347 ns = 1,164 KB.",
        tolerance=0.1,
    ),
    _prediction(
        "amdahl",
        "The most by which any number of GPUs can speed up a program whose serial share is 5 %",
        "times",
        20,
        "1 / 0.05 = 20. With any number of GPUs the parallel part takes no time, but the serial part stays.",
    ),
    _prediction(
        "copy_share",
        "From host memory over PCIe 4.0, c = a + b takes longer than from an A100's own DRAM by a factor of",
        "times",
        reason="The link carries 31.5 GB/s each way, and the DRAM 2,039. In and out can overlap, so the 8 "
        "bytes that come in decide: 8 / 31.5, divided by 12 / 2,039.",
        tolerance=0.25,
    ),
    _prediction(
        "alexnet",
        "Hours for the training of AlexNet on the float32 lanes of one H100, at the same share of its peak",
        "hours",
        reason="Two GTX 580 have 3.16 TFLOP/s and an H100 has 66.9, so 5.5 days become 132 h · 3.16 / 66.9.",
        tolerance=0.15,
    ),
    _prediction(
        "boxes",
        "Boxes that a ray tests in a tree over 4,096 balls, for rays through neighbouring pixels",
        "boxes",
        reason="A way down has 12 levels with two boxes each. But boxes overlap, and a ray meets several, so "
        "it goes down several ways. It still tests only about 2 % of the balls' number.",
        tolerance=0.5,
    ),
    _prediction(
        "superchip",
        "Milliseconds that a GH200 needs to read 140 GB of weights, 96 GB of them in the GPU's own memory",
        "ms",
        reason="The GPU reads its own 96 GB in 24 ms. The other 44 GB take 44 / 450 s = 98 ms, and both are "
        "read at the same time.",
        tolerance=0.1,
    ),
    _prediction(
        "max_1550",
        "The float64 peak of an Intel Max 1550: 128 Xe-cores, 256 operations per clock each, 1.6 GHz",
        "TFLOP/s",
        reason="128 · 256 · 1.6 · 10⁹ = 52.4 TFLOP/s. The 256 count a multiply-add as two already.",
        tolerance=0.05,
    ),
    _prediction(
        "frames",
        "GB/s for colour and depth on a screen of 1080 × 2400 at 120 Hz, if every pixel is drawn three times "
        "and all of it goes to DRAM",
        "GB/s",
        reason="There are 311 million pixels per second. Each is drawn three times with 12 B: 4 B of depth "
        "read, 4 B of depth written, and 4 B of colour written.",
        tolerance=0.15,
    ),
    _prediction(
        "overtake",
        "Weights from which an M3 Ultra reads faster than an H100 with the rest in host memory over PCIe 5.0",
        "GB",
        reason="The H100 holds 80 GB. Every further gigabyte takes 1/63 s over PCIe, and each gigabyte takes "
        "1/819 s on the M3 Ultra. (W − 80) / 63 = W / 819 at 86.7 GB.",
        tolerance=0.06,
    ),
    _prediction(
        "picojoule",
        "Energy of one dense float16 operation on an H100 at its peak and full power",
        "pJ",
        reason="700 W divided by 989.4 TFLOP/s. With the advertised 1,979 it would be half, because that "
        "figure counts the zeros that 2:4 sparsity skips.",
        tolerance=0.1,
    ),
    _prediction(
        "weights",
        "H100s with 80 GB that hold 70 billion parameters in float16 in 80 % of their memory",
        "GPUs",
        3,
        "140 GB divided by 64 GB per GPU is 2.19, so two are not enough.",
        tolerance=0,
    ),
    _prediction(
        "tail",
        "Share of the places that 109 equal blocks use in all their waves, one per SM, on an A100",
        "%",
        50.5,
        "108 blocks run in the first wave, and one in the second while 107 SMs wait: 109 of 216 places.",
        tolerance=0.02,
    ),
    _prediction(
        "register_step",
        "Warps on an SM of an A100 when each thread has 33 registers",
        "warps",
        48,
        "33 · 32 = 1,056 registers are rounded up to 1,280 per warp, in steps of 256. A quarter of the SM "
        "has 16,384, so it holds 12 warps, and the SM holds 48.",
        tolerance=0,
    ),
    _prediction(
        "busy",
        "Warps that one scheduler needs to issue in every cycle if each instruction takes 4 cycles",
        "warps",
        4,
        "While one warp waits for its result, three others issue.",
        tolerance=0,
    ),
    _prediction(
        "row_occupancy",
        "Warps on an SM of an A100 when a block of 128 threads uses 32 KiB of shared memory",
        "warps",
        reason="A block takes 33 KiB with the driver's share, and an SM has 164 KiB: 4 blocks of 4 warps.",
    ),
)
