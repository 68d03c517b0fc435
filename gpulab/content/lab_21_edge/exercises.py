"""Lab 21: what its eight exercises ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| launch | launch(api, threads, block, most) | interfaces across vendors | answers | – | – | 3 |
| plan | plan(model, device, need, formats, caches) | bits, cache, deadline | answers | – | – | 4 |
| energy | energy(modes, period, idle, sleep, battery) | joules, not watts | answers | – | – | 3 |
| deadline | deadline(arrivals, times, limit) | drop, do not queue | answers | – | – | 4 |
| matmul | matmul(a, …, c_zero) → codes | what an int8 runtime computes | answers | – | – | 4 |
| compress | compress(model, x, inputs, limit) → arrays | pruning, packing | bytes, wide | 3,793 | 1,677 | 5 |
| | | | error/all in 4 bits, wide | 2 | 0.85 | |
| place | place(layers, first, memory), a plan | hybrid CPU and GPU | time/least, experts | 1.9 | 1 | 5 |
| | | | time/least, costly link | 1.25 | 1 | |
| federated | federated(weights, replies, bits) | FedAvg and its bytes | answers | – | – | 2 |

Derivations:

**plan**: 8 billion weights: 16 bits each are 16 GB; 8 bits and a 16-bit scale for each 64 of them 8 + 16/64 =
8.25 bits, 8.25 GB; 4 bits 4.25 GB. One token reads all of them: at 102 GB/s (Orin Nano Super) 157, 81 and 42
ms. NVIDIA measured 19.14 tokens per second there, 52 ms, for Llama 3.1 8B in int4; 79 % of the bound.

**energy**: a job takes t seconds at w watts, the rest of the period r watts: w·t + r·(period − t) joules, or
(w − r)·t above idling. Sleeping at s watts pays when (r − s)·(period − t) is more than the wake-up's joules.

**deadline**: a camera with a frame every p ms and a model of c > p ms. With a queue the n-th frame's age is
c + (n − 1)(c − p): after T seconds frame T/c is shown, and it arrived at T·p/c. With 33.3 and 40 ms and 60 s:
frame 1,500 arrived at 50 s, 10 s ago. With one place that the newest frame takes, no frame waits longer than
the frame before it runs: its age is at most 2c.

**matmul**: round(acc · M) + zero is not round(acc · M + zero) where a tie meets an odd zero point: to
even 2.5 → 2, + 3 = 5; 5.5 → 6.

**compress**: 3/8 of the hidden units do the work; of the others half are never active and have the largest
weights, half pass hardly anything on. A unit's part in the output is the root mean square of its activation ×
the norm of its outgoing weights. Wide case: 3/8 of 160 units and 8 more are 68; at 32/2 + 8/2 + 3 = 23 B each
and 113 B beside 1,677 B, against 3,793 B for all in 4 bits and 12,800 B in float16. Their error is 0.2 to 0.7
times that of all in 4 bits, because without the large dead weights scales are finer; with scales made before
pruning it is 1, by size of weights 0.9 to 4 times, by activation alone 0.9 to 3 (60 seeds). What `codes_in`
and `codes_out` are read as must go the way of the kept units' weights: a cosine of 1 or nearly, of 0 where
halves are swapped or codes have nothing to do with the model.

**place**: "experts": attention is small and saves 110 µs, experts are seven times as large and save 45;
filling the GPU from the front takes 1.9 to 2.3 times the least. "costly link": layers that save most are
neighbours of layers that save little. The best seven apart save about 60 µs each less two sends of 22; seven
in a row save 4 · 60 + 3 · 23 less two sends in all. Most µs for a MB takes 1.1 to 1.6 times the least, from
the front 1.2 to 1.4. A test measures both on 50 seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import answered, prediction
from gpulab.checks.cases import of_kinds
from gpulab.checks.evidence import AnsweredCases, Artefacts
from gpulab.checks.spec import Array, Budget, Case, Exercise, Prediction, Scalar, Sizes
from gpulab.simulator import hardware

LAB = "21"

Numbers = np.random.Generator


# ---------------------------------------------------------------- interfaces

APIS = ("CUDA", "HIP", "OpenCL", "SYCL", "Metal", "Vulkan", "WebGPU")


def launch_questions(sizes: Sizes, generator: Numbers) -> list[tuple[Any, ...]]:
    """(api, threads, block, most): threads and block are [x, y, z]."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    apis = {"groups": ("CUDA", "HIP", "Metal", "Vulkan", "WebGPU"), "items": ("OpenCL",), "order": ("SYCL",)}
    for number in range(6):
        block = [int(2 ** generator.integers(2, 5)), int(2 ** generator.integers(0, 3)), 1]
        threads = [int(generator.integers(1, 40)) * n + int(generator.integers(1, n + 1)) for n in block]
        if kind == "volumes":
            block[2], threads[2] = 2, int(generator.integers(1, 30))
        size = block[0] * block[1] * block[2]
        most = size * int(generator.integers(1, 3))
        if kind == "too large" and number % 2:
            most = size - int(generator.integers(1, 4))
        some = apis.get(kind, APIS)
        asked.append((some[number % len(some)], threads, block, most))
    return asked


# ---------------------------------------------------------------- what fits

FORMATS = (  # name, bits, weights that share a 16-bit scale (0: none), loss
    ("float16", 16, 0, 0.0),
    ("int8", 8, 64, 0.1),
    ("int6", 6, 64, 0.4),
    ("int4", 4, 32, 1.5),
    ("int4 wide", 4, 128, 2.0),
    ("int3", 3, 64, 6.0),
)
CACHES = (("float16", 16, 0.0), ("int8", 8, 0.25), ("int4", 4, 1.75))
MODELS: dict[str, dict[str, Any]] = {
    # Numbers in matrices that every token reads, numbers in the table of which a token reads one row, and the
    # cache's shape; from the models' published configurations. A table that is both stands in the first.
    "Llama 3.1 8B": {"parameters": 7.505e9, "table": 0.525e9, "layers": 32, "kv_heads": 8, "head_dim": 128},
    "Llama 3.2 3B": {"parameters": 3.213e9, "table": 0.0, "layers": 28, "kv_heads": 8, "head_dim": 128},
    "Qwen2.5 7B": {"parameters": 7.071e9, "table": 0.545e9, "layers": 28, "kv_heads": 4, "head_dim": 128},
    "Llama 2 7B": {"parameters": 6.607e9, "table": 0.131e9, "layers": 32, "kv_heads": 32, "head_dim": 128},
}


def costs(
    model: dict[str, Any], device: dict[str, Any], context: int, form: Sequence[Any], cache: Sequence[Any]
) -> tuple[Any, ...]:
    """Bytes in memory, and the least seconds of a token at the end of the context."""
    _, bits, group, _ = form
    weights = model["parameters"] * (bits + (16 / group if group else 0)) / 8
    numbers = 2 * model["layers"] * model["kv_heads"] * model["head_dim"] * context
    kept = numbers * cache[1] / 8
    return weights + 2 * model["table"] + kept, (weights + kept) / device["bandwidth"]


def choices(
    model: dict[str, Any],
    device: dict[str, Any],
    need: dict[str, Any],
    formats: Sequence[Any],
    caches: Sequence[Any],
) -> list[tuple[Any, ...]]:
    """(loss, format, cache, bytes, seconds) of all that fits and is in time, the least loss first."""
    found = []
    for form in formats:
        for cache in caches:
            size, seconds = costs(model, device, need["context"], form, cache)
            if size <= device["memory"] - device["reserved"] and seconds <= need["seconds"]:
                found.append((form[3] + cache[2], form[0], cache[0], size, seconds))
    return sorted(found)


def _edges(
    model: dict[str, Any],
    device: dict[str, Any],
    need: dict[str, Any],
    formats: Sequence[Any],
    caches: Sequence[Any],
) -> bool:
    """Is some choice so near a limit that rounding would decide?"""
    room = device["memory"] - device["reserved"]
    return any(
        abs(size / room - 1) < 1e-6 or abs(seconds / need["seconds"] - 1) < 1e-6
        for form in formats
        for cache in caches
        for size, seconds in (costs(model, device, need["context"], form, cache),)
    )


def plan_questions(sizes: Sizes, generator: Numbers) -> list[tuple[Any, ...]]:
    """(model, device, need, formats, caches): what runs best on a device that is too small."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    while len(asked) < 5:
        model = dict(MODELS[str(generator.choice(sorted(MODELS)))])
        machine = hardware.edge(str(generator.choice(sorted(hardware.EDGE))))
        memory = float(generator.choice((6, 8, 12, 16))) * 1e9
        device = {
            "memory": memory,
            "reserved": float(generator.integers(5, 25)) * 1e8,
            "bandwidth": float(machine.dram_bandwidth),
        }
        context = 1024 * int(generator.integers(1, 9))
        need = {"context": context, "seconds": 1.0}
        formats = [list(f) for f in FORMATS]
        caches = [list(c) for c in CACHES]
        order = generator.permutation(len(formats))
        formats = [formats[i] for i in order]
        if kind == "enough room":
            device |= {"memory": 64e9}
        if kind == "long context":
            need["context"] = 1024 * int(generator.integers(16, 65))
        if kind == "a deadline":
            device["memory"] = 64e9
            need["seconds"] = round(float(generator.uniform(0.2, 1.0)) * 16e9 / device["bandwidth"], 4)
        if kind == "a large table":
            model["table"] = float(generator.integers(10, 20)) * 1e8
            device["memory"] = float(generator.choice((12, 16, 24))) * 1e9
            need["seconds"] = round(float(generator.uniform(0.3, 1.0)) * 9e9 / device["bandwidth"], 4)
        if kind == "nothing fits":
            device["memory"] = float(generator.integers(20, 40)) * 1e8 + device["reserved"]
        question = (model, device, need, formats, caches)
        if not _edges(*question) and _tells(kind, *question):
            asked.append(question)
    return asked


def _tells(
    kind: str,
    model: dict[str, Any],
    device: dict[str, Any],
    need: dict[str, Any],
    formats: Sequence[Any],
    caches: Sequence[Any],
) -> bool:
    """Does the question ask what its case is for?"""
    found = choices(model, device, need, formats, caches)
    if kind == "nothing fits":
        weights = [costs(model, device, 0, form, caches[0])[0] for form in formats]
        return not found and min(weights) < device["memory"]
    if not found or (len(found) > 1 and found[1][0] - found[0][0] < 1e-9):
        return False
    form, cache = found[0][1:3]
    if kind == "enough room":
        return (form, cache) == ("float16", "float16")
    if kind == "long context":  # the weights' best format leaves no room for the cache
        alone = choices(model, device, need | {"context": 0}, formats, caches)
        return bool(cache != "float16" and alone[0][1] != form)
    if kind == "a deadline":
        unhurried = choices(model, device, need | {"seconds": 1e9}, formats, caches)
        return (form, cache) != unhurried[0][1:3]
    if kind == "a large table":
        read = {"seconds": need["seconds"] - 2 * model["table"] / device["bandwidth"]}
        if_read = choices(model, device, need | read, formats, caches)
        if_absent = choices(model | {"table": 0.0}, device, need, formats, caches)
        return if_read[:1] != found[:1] and if_absent[0][1:3] != (form, cache)
    return form not in ("float16", "int8")


# ---------------------------------------------------------------- energy


def energy_of(
    watts: float, seconds: float, period: float, idle: float, sleep: Sequence[float]
) -> tuple[Any, ...]:
    """Joules of a period in which the rest is idled, and slept."""
    rest = period - seconds
    return watts * seconds + idle * rest, watts * seconds + sleep[0] * rest + sleep[1]


def ways(modes: Sequence[Any], period: float, idle: float, sleep: Sequence[float]) -> list[tuple[Any, ...]]:
    """(joules, mode, how) of all modes that are done in time, the least first."""
    found = []
    for name, watts, seconds in modes:
        if seconds <= period:
            joules = energy_of(watts, seconds, period, idle, sleep)
            found += [(joules[0], name, "idle"), (joules[1], name, "sleep")]
    return sorted(found)


def energy_questions(sizes: Sizes, generator: Numbers) -> list[tuple[Any, ...]]:
    """(modes, period, idle, sleep, battery): modes are [name, watts, seconds]; sleep is [watts, joules]."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    while len(asked) < 5:
        base = float(generator.integers(4, 40)) / 2
        modes, watts, seconds = [], float(generator.integers(6, 12)), base
        for name in ("slow", "middle", "fast", "faster"):
            modes.append([name, watts, seconds])
            watts += float(generator.integers(2, 14))
            seconds = round(seconds * float(generator.uniform(0.5, 0.98)), 2)
        idle = float(generator.integers(1, 11)) / 2
        sleep = [float(generator.integers(1, 5)) / 10, float(generator.integers(2, 120))]
        period = round(base * float(generator.uniform(1.05, 6)), 1)
        if kind == "in time":
            period = round(base * float(generator.uniform(0.5, 0.95)), 1)
        if kind == "rarely":
            period = round(base * float(generator.uniform(8, 60)), 1)
        question = ([modes[i] for i in generator.permutation(4)], period, idle, sleep, float(40 + len(asked)))
        found = ways(*question[:4])
        if len(found) < 3 or found[1][0] - found[0][0] < 1e-6:
            continue
        best = found[0]
        least_watts = min(modes, key=lambda mode: mode[1])[0]
        wanted = {
            "race": best[1:] == ("faster", "idle"),
            "slow and steady": best[1:] == ("slow", "idle"),
            "between": best[1] in ("middle", "fast"),
            "rarely": best[2] == "sleep",
            "in time": best[1] != least_watts and len(found) < 8,
        }
        if wanted[kind]:
            asked.append(question)
    return asked


# ---------------------------------------------------------------- deadlines


def deadline_questions(sizes: Sizes, generator: Numbers) -> list[tuple[Any, ...]]:
    """(arrivals, times, limit), whole milliseconds."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    for least in (3, 5, 8, 10, 12):  # the shortest first: it is the one shown
        frames, period = least + 5 * (kind == "spikes"), int(generator.integers(20, 40))
        arrivals = [i * period for i in range(frames)]
        mean = {"fast": 0.7, "slow": 1.3, "much too slow": 2.7}.get(kind, 1.0)
        times = [max(1, round(mean * period + int(generator.integers(-4, 5)))) for _ in range(frames)]
        if kind == "spikes":
            times = [t // 2 if generator.random() < 0.75 else 3 * t for t in times]
            times[int(generator.integers(2, frames - 3))] = 3 * period
        if kind == "jitter":
            arrivals = sorted(a + int(generator.integers(0, period)) for a in arrivals)
            arrivals = [a + i for i, a in enumerate(arrivals)]  # no two at once
        if kind == "to the millisecond":
            times = [period * int(generator.integers(1, 4)) for _ in range(frames)]
        if kind == "one frame":
            arrivals, times = [int(generator.integers(0, 50))], times[:1]
        asked.append((arrivals, times, round(1.6 * period)))
    return asked


# ---------------------------------------------------------------- integers


def matmul_questions(sizes: Sizes, generator: Numbers) -> list[tuple[Any, ...]]:
    """(a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero): a and c are uint8, b is int8."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    while len(asked) < 4:
        m, k, n = (int(x) for x in generator.integers(1, 5, 3))
        k += 3
        if not asked:  # one code is easier to look at
            m = n = 1
        a = generator.integers(0, 256, (m, k))
        b = generator.integers(-128, 128, (k, n))
        a_zero, b_zero, c_zero = 0, 0, int(generator.integers(0, 256))
        if kind == "zero points":
            a_zero, b_zero = int(generator.integers(1, 255)), int(generator.integers(-20, 20)) * 2 + 1
        a_scale, b_scale = 2.0 ** -int(generator.integers(3, 8)), 2.0 ** -int(generator.integers(3, 8))
        wide = float(np.abs((a - a_zero) @ (b - b_zero)).max()) or 1.0
        ratio = wide / float(generator.integers(60, 120))
        if kind == "all codes":  # much is cut off at both ends
            ratio, c_zero = ratio / 6, int(generator.integers(100, 156))
        if kind == "ties":  # small accumulators, halved: every second result is a tie
            a, b = generator.integers(0, 6, (m, k)), generator.integers(-5, 6, (k, n))
            ratio, c_zero = 2.0, 2 * int(generator.integers(40, 80)) + 1
        c_scale = a_scale * b_scale * (2.0 ** round(np.log2(ratio)) if kind == "ties" else round(ratio, 3))
        exact = (a - a_zero) @ (b - b_zero) * (a_scale * b_scale / c_scale)
        near = np.abs(exact - np.floor(exact) - 0.5).min()
        if (kind == "ties" and near == 0) or (kind != "ties" and near > 1e-6):
            rows = [[int(x) for x in row] for row in a], [[int(x) for x in row] for row in b]
            asked.append((rows[0], a_scale, a_zero, rows[1], b_scale, b_zero, c_scale, c_zero))
    return asked


# ---------------------------------------------------------------- pruned and packed


def packed_bytes(inputs: int, outputs: int, units: int) -> int:
    """What an artefact of `compress` takes: two codes a byte, a number and a scale a unit, and all else."""
    return units * (inputs // 2 + outputs // 2 + 3) + 2 * outputs + 97


def _kept(sizes: Sizes) -> int:
    return 3 * int(sizes["hidden"]) // 8 + 8


def _limit(sizes: Sizes) -> int:
    return packed_bytes(int(sizes["inputs"]), int(sizes["outputs"]), _kept(sizes))


def small_network(generator: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """A column for each hidden unit: its incoming weights, then its outgoing ones."""
    inputs, hidden, outputs = (int(sizes[name]) for name in ("inputs", "hidden", "outputs"))
    columns = []
    for unit in range(hidden):
        away = generator.normal(0, 1, outputs)
        if unit < 3 * hidden // 8:  # does the work
            coming = generator.normal(0.3, 1, inputs)
        elif unit % 2:  # never active: inputs are not negative
            coming = -np.abs(generator.normal(0, 1.5, inputs))
            away = generator.choice((-9, 9), outputs) * generator.uniform(0.6, 1, outputs)
        else:  # active, and hardly anybody listens
            coming, away = generator.normal(1.2, 1.5, inputs), 0.02 * away
        columns.append(np.concatenate([coming / np.sqrt(inputs), away]))
    return np.array(columns)[generator.permutation(hidden)].T


def _not_negative(generator: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    return np.abs(generator.standard_normal(shape))


def compress_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    inputs, hidden, outputs = (int(sizes[name]) for name in ("inputs", "hidden", "outputs"))
    return (
        Array("model", (inputs + outputs, hidden), fill=small_network),
        Array("x", (400, inputs), fill=_not_negative),
        Scalar("inputs", inputs),
        Scalar("limit", _limit(sizes)),
        Array("fresh", (400, inputs), role="held out", fill=_not_negative),
    )


def network_case(name: str, inputs: int, hidden: int, outputs: int) -> Case:
    return Case(name, {"inputs": inputs, "hidden": hidden, "outputs": outputs})


# ---------------------------------------------------------------- placement


def place_questions(sizes: Sizes, generator: Numbers) -> list[tuple[Any, ...]]:
    """(layers, first, memory): layers are [CPU µs, GPU µs, MB on the GPU, µs to send the output]."""
    return [_chain(str(sizes["kind"]), generator) for _ in range(3)]


def _chain(kind: str, generator: Numbers) -> tuple[Any, ...]:
    def between(low: int, high: int) -> int:
        return int(generator.integers(low, high))

    if kind == "equal layers":
        layer = [between(80, 120), between(10, 20), 4, between(5, 30)]
        return [list(layer) for _ in range(12)], layer[3], 4 * between(4, 9) + 1
    if kind == "all fits":
        layers = [[between(60, 90), between(8, 20), between(2, 5), between(2, 9)] for _ in range(8)]
        return layers, between(2, 9), 40
    if kind == "not worth it":  # the link costs more than the GPU saves
        layers = [[between(10, 20), between(5, 10), 4, between(40, 60)] for _ in range(8)]
        return layers, between(60, 90), 12
    if kind == "costly link":  # the layers that gain most stand apart, in the middle
        layers = []
        for number in range(17):
            strong = 5 <= number < 13 and number % 2
            cpu = between(65, 80) if strong else between(28, 36)
            layers.append([cpu, between(8, 12), 3, between(18, 26)])
        return layers, between(18, 26), 3 * 7 + between(0, 3)
    if kind == "experts":  # attention: small, all of it read; experts: large, an eighth of it read
        layers = []
        for _ in range(9):
            layers.append([between(100, 150), between(6, 12), 2, between(3, 6)])
            layers.append([between(50, 60), between(6, 12), between(14, 19), between(3, 6)])
        return layers, between(3, 6), 2 * 9 + between(8, 12)
    layers = [[between(20, 200), between(5, 40), between(1, 9), between(1, 60)] for _ in range(10)]
    return layers, between(1, 60), between(12, 30)


# ---------------------------------------------------------------- learning where the data is


def federated_questions(sizes: Sizes, generator: Numbers) -> list[tuple[Any, ...]]:
    """(weights, replies, bits): a reply is [samples, weights], or None from a client that fell silent."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    for _ in range(5):
        length, clients = int(generator.integers(1, 6)), int(generator.integers(2, 7))
        weights = [round(float(w), 3) for w in generator.normal(size=length)]
        replies: list[Any] = []
        for _ in range(clients):
            samples = 20 if kind == "equal" else int(generator.integers(1, 400))
            replies.append([samples, [round(w + float(generator.normal()), 3) for w in weights]])
        if kind == "some silent":
            replies[int(generator.integers(clients))] = None
        if kind == "all silent":
            replies = [None] * clients
        if kind == "nothing seen":
            replies[0][0] = 0
        asked.append((weights, replies, int(generator.choice((3, 5, 7))) if kind == "few bits" else 32))
    return asked


# ---------------------------------------------------------------- the exercises


_answered = partial(answered, "edge", LAB)


def _place_budget(points: float, case: str, naive: float, why: str, advice: str) -> Budget:
    unit = "× the least time"
    return Budget("share", 1, points, case, naive=naive, unit=unit, why=why, case=case, advice=advice)


EXERCISES: tuple[Exercise, ...] = (
    _answered(
        "launch",
        3,
        ("groups", "items", "order", "volumes", "too large"),
        launch_questions,
        (
            "Begin with the refusal: how many threads does a block have? Then compute the number of blocks "
            "along each axis, as in lab 03, and round up.",
            "The table has two kinds of interfaces: some state how many groups to start, the others how many "
            "items there are in all.",
            "The number of all items is groups × block, axis by axis, so a partly filled block counts in "
            "full. SYCL's lists begin with the slowest axis, both of them.",
        ),
        "2 · One GPU, many interfaces",
    ),
    _answered(
        "plan",
        4,
        ("enough room", "eight gigabytes", "long context", "a deadline", "a large table", "nothing fits"),
        plan_questions,
        (
            "Try all pairs of a format and a cache, and keep those that fit into memory and are fast enough.",
            "A weight costs bits + 16/group bits, or just bits if the group is 0. The cache holds keys and "
            "values: 2 × layers × kv_heads × head_dim numbers for each token of the context.",
            "Memory holds weights, table (2 bytes a number) and cache. A token reads weights and cache but "
            "not the table. Of the pairs that are left, take the one with the smallest sum of losses.",
        ),
        "3 · Eight billion weights in eight gigabytes",
        rtol=1e-9,
        by_hand=tuple(f"{__name__}.{name}" for name in ("choices", "costs")),
    ),
    _answered(
        "energy",
        3,
        ("race", "slow and steady", "between", "rarely", "in time"),
        energy_questions,
        (
            "Leave out each mode that takes longer than the period. For every other mode, compute the joules "
            "of the whole period and not of the job alone.",
            "The job takes watts × seconds. The rest of the period costs either `idle` watts, or sleep[0] "
            "watts and in addition sleep[1] joules to wake up.",
            "The average power is joules ÷ period, and Wh ÷ W gives hours.",
        ),
        "4 · Watts and joules",
        rtol=1e-9,
        by_hand=tuple(f"{__name__}.{name}" for name in ("ways", "energy_of")),
    ),
    _answered(
        "deadline",
        4,
        ("one frame", "fast", "slow", "much too slow", "spikes", "jitter", "to the millisecond"),
        deadline_questions,
        (
            "Go through the frames in the order of their arrival, and keep two things: when the GPU is "
            "free, and which frame waits.",
            "Before you handle an arrival at t, check whether a frame is waiting and the GPU becomes free at "
            "or before t. If so, start the waiting frame when the GPU becomes free.",
            "Then handle the new frame. If the GPU is free (free ≤ t), the frame starts at t. Otherwise it "
            "takes the waiting place, and a frame that was there is dropped. After the last arrival, the "
            "waiting frame still runs.",
        ),
        "5 · Deadlines",
    ),
    _answered(
        "matmul",
        4,
        ("no zero points", "zero points", "all codes", "ties"),
        matmul_questions,
        (
            "Add up (a − a_zero) · (b − b_zero) in whole numbers, which are exact.",
            "One factor turns the sum into steps of c: a_scale · b_scale / c_scale. Round that product, and "
            "only then add c_zero.",
            "Python's `round` rounds halves to the even neighbour, as ONNX does. At the end, clip to 0 … "
            "255.",
        ),
        "6 · ONNX: one file for many runtimes",
    ),
    Exercise(
        name="edge.compress",
        lab=LAB,
        evidence=Artefacts(arguments=compress_arguments),
        correct_points=1,
        cases=(
            network_case("narrow", 16, 64, 4),
            network_case("middle", 24, 96, 6),
            network_case("wide", 32, 160, 8),
        ),
        budgets=(
            Budget(
                "bytes",
                _limit,
                2,
                "size",
                naive=lambda s: packed_bytes(int(s["inputs"]), int(s["outputs"]), int(s["hidden"])),
                unit="B",
                why="the value of `limit`",
                advice="What does each kept unit cost, and how many of them does the limit pay for?",
            ),
            Budget(
                "error",
                0.85,
                2,
                "error",
                naive=2.0,
                unit="× that of all units in 4 bits",
                advice="Which units did you keep: is each of them ever active on `x`, and does what it says "
                "count in the output? And for which weights are the scales made?",
            ),
        ),
        hints=(
            "First choose the units. The activation of unit j for each row of x is max(0, x @ "
            "model[:inputs, j]), and it reaches the outputs through model[inputs:, j]. A unit that is never "
            "active can go, however large its weights are.",
            "A unit contributes to the output by the root mean square of its activation times the norm of "
            "its outgoing weights. Keep the units that contribute most, as many as the limit pays for.",
            "Compute the scales after pruning: largest magnitude / 7, as float16, or 1 where that is 0. The "
            "codes are round(w / scale) + 8, clipped to 0 … 15. Rows 0, 2, 4 … are the low halves: "
            "low | high << 4.",
        ),
        section="7 · Pruned and packed",
    ),
    Exercise(
        name="edge.place",
        lab=LAB,
        evidence=AnsweredCases(questions=place_questions, measured=True),
        correct_points=2,
        cases=of_kinds("equal layers", "all fits", "not worth it", "mixed", "experts", "costly link"),
        budgets=(
            _place_budget(
                1,
                "experts",
                1.9,
                "no plan is faster",
                "It takes {times} × the least time. Which layers save most µs per MB of GPU memory?",
            ),
            _place_budget(
                2,
                "costly link",
                1.25,
                "no plan is faster",
                "It takes {times} × the least time. How often does your plan cross the link, and what does a "
                "layer save when its neighbours are on the other side?",
            ),
        ),
        hints=(
            "Every placement of the first i layers ends on one side and has used some memory. Of two "
            "placements that agree in both, only the faster one can be part of the best.",
            "So keep a table: (side, memory used) → least time and its plan. Begin with (CPU, 0) → 0.",
            "For each layer and each entry, try both sides. Add the layer's time and, if the side changes, "
            "the time to send the output of the layer before. At the end, add the way back to the CPU.",
        ),
        section="8 · Two processors, one model",
    ),
    _answered(
        "federated",
        2,
        ("equal", "skewed", "some silent", "nothing seen", "few bits", "all silent"),
        federated_questions,
        (
            "The new weights are an average over the replies, each weighted by its number of samples.",
            "Every client received the model at 4 bytes a weight, including those that did not answer.",
            "Each reply is len(weights) numbers of `bits` bits, rounded up to whole bytes for each reply. If "
            "no samples were seen, the weights stay as they are.",
        ),
        "9 · Learning where the data is",
        rtol=1e-9,
    ),
)


_prediction = partial(prediction, "edge", LAB, tolerance=0.05)


def bytes_of(parameters: float, bits: float, group: int = 0) -> float:
    """Weights with a 16-bit scale for each group."""
    return parameters * (bits + (16 / group if group else 0)) / 8


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "tops",
        "An AGX Orin's headline figure is 275 TOPS. How many dense int8 TOPS does its GPU have?",
        "TOPS",
        85,
        "The 275 TOPS assume 2:4 sparsity, and 105 of them belong to another unit: (275 − 105) / 2 = 85.",
        tolerance=0.03,
    ),
    _prediction(
        "eight",
        "How many GB do 8 billion weights take in 8 bits, with a 16-bit scale for every 64 of them?",
        "GB",
        bytes_of(8e9, 8, 64) / 1e9,
        "A weight takes 8 + 16/64 = 8.25 bits, so the weights alone exceed the 8 GB of the board.",
        tolerance=0.01,
    ),
    _prediction(
        "token",
        "What is the least time of a token with 8 billion weights of 4.25 bits at 102 GB/s?",
        "ms",
        1e3 * bytes_of(8e9, 4, 64) / 102e9,
        "Each token reads all weights once: 4.25 GB / 102 GB/s = 42 ms.",
        tolerance=0.05,
    ),
    _prediction(
        "modes",
        "An AGX Orin goes from its 50 W mode to 30 W. What is the least time of a token at 30 W, divided "
        "by that at "
        "50 W?",
        "times",
        1,
        "The limit lowers the GPU's clock and switches half of it off. The memory's clock stays, "
        "however, and "
        "decoding waits for memory.",
        tolerance=0,
    ),
    _prediction(
        "age",
        "A camera delivers 30 frames a second, the model takes 40 ms, and frames wait in a queue. How "
        "old is the "
        "frame that is finished after one minute?",
        "s",
        10,
        "After 60 s, 1,500 frames are finished, and frame 1,500 arrived at 1,500 / 30 = 50 s. It is 10 s "
        "old.",
        tolerance=0.02,
    ),
    _prediction(
        "int8",
        "How many times smaller is a model's int8 file than its float32 file?",
        "times",
        reason="A weight takes 1 byte instead of 4; scales, names and biases take a little more.",
        tolerance=0.05,
    ),
    _prediction(
        "layers",
        "Half of the layers move from the CPU to a GPU that reads 10 times as fast. By what factor does "
        "a token get "
        "faster, without transfers?",
        "times",
        1 / 0.55,
        "Half of the time stays as it was, and the other half shrinks to a tenth: 1 / (0.5 + 0.05) = "
        "1.82. This is "
        "Amdahl's law.",
        tolerance=0.03,
    ),
)
