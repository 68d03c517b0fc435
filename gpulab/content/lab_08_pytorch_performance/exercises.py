"""Lab 08: what its eleven exercises ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| fold | fold(x, mean, std, weight, bias) | small tensors first | bytes | 32·r·c | 8·r·c | 4 |
| adamw_step | adamw_step(params, grads, means, squares, step, lr) | one launch | launches | 1,480 | 6 | 5 |
| | | | bytes | 100·n | 28·n | |
| clip | clip(grads, most) | decide without a value | launches | 303 | 12 | 4 |
| | | | bytes | 20·n | 12·n | |
| compiles | compiles(shapes) | guards and dynamic sizes | answers | – | – | 3 |
| segments | segments(events) | a caching allocator | answers | – | – | 4 |
| place | place(tensors): offsets | a graph knows when tensors die | arena / most alive | 3.6 | 1.01 | 4 |
| gradients | gradients(weights, x) | keep some, compute the rest again | peak memory | 65·h | 15·h | 5 |
| | | | matrix FLOPs | – | 4 passes | |
| epoch | epoch(loads, step, workers, prefetch) | the slower stage decides | answers | – | – | 3 |
| idle | idle(trace) | gaps on the timeline | answers | – | – | 3 |
| read_ncu | read_ncu(report) | a profiler's table, units and all | answers | – | – | 3 |
| benchmark | benchmark(now, call, flush, synchronize) | four ways to lie about time | µs | – | – | 4 |

Derivations; all tensors are float32, 4 bytes a number.

**fold**: x is r × c. Each of four operations on the whole matrix reads and writes it: 4 · 2 · 4 · r · c
bytes. With scale = weight / std and shift = bias − mean · scale first, on rows of c numbers (3 c and
4 c of them move), one addcmul is left, which moves 2 · r · c + 2 · c. Other ways with rows move up to
15 · c in place of 9. A product and a sum of the whole matrix, in place or not, move 4 · r · c: half way from
the naive version, and half of the budget's points. Launches stay 3 or 4: it is the bytes.

**adamw_step**: GPT-2 has 12 blocks of 12 parameter tensors and 4 others: 148. The textbook's loop has ten
operations a tensor: 1,480 launches. They move 25 numbers per parameter: 2 (decay), 2 + 3 (mean), 2 + 4
(square), 2 + 2 (corrections), 2 + 2 (root, epsilon), 4 (update). One fused operation reads 4 and writes 3; it
is cut into launches of at most 36 tensors: ⌈148 / 36⌉ = 5, and one fills the step count.

**clip**: a norm and a multiplication for each of 148 tensors is 296, and seven for the total. With
multi-tensor operations: norms ⌈148 / 110⌉ + 1 = 3, stack ⌈148 / 128⌉ = 2, norm, + ε, reciprocal, · most,
clamp: 5, and ⌈148 / 110⌉ = 2 for the product: 12, and 14 with `where` for clamp, which is the budget. Bytes:
n numbers are read for the norms, n read and n written for the product.

**gradients**: L blocks on activations of h bytes, h + tanh(h @ w). Autograd keeps h and tanh of each, and
one more at the end: (2 L + 1) · h. With checkpoints every s blocks it keeps ⌈L / s⌉ · h and, at the worst
moment, 2 s · h of one segment, whose last sum nobody needs: − h. For L = 32, s = 4: 15 · h. Gradients of the
weights come on top. Each block's product is computed once forward, twice backward and once again: 4 passes
instead of 3.

**compiles**: a version has for each axis a size, or "any from 2 on". The first has sizes. A later one has
"any" where the sizes of the versions so far differ, its own call's included, but a size of 1 stays. So 2,
3, 4 are two versions, and 2, 1, 3 are three. A test of this lab asks Dynamo.

**place**: the naive plan gives every tensor a place of its own. The least possible is the most that is alive
at once; in order of size and first fit, a training step of 24 blocks takes 1.01 times that. Its blocks keep
L activations at the worst moment, and one hole of that size is 1 / L of the arena: of few blocks 10 % would
be luck, and the room is one hole and a half. Of 3,000 drawn steps of 3 and 5 blocks the solution was above
1.1 in 110, and never above 1 + 1.5 / L.

Where a count is provably the least possible the budget is that count; elsewhere it leaves 10 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import AnsweredCases, Dialogues, TensorGraph
from gpulab.checks.operators import COMMON, MULTI_TENSOR
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Sizes, several

LAB = "08"

WEIGHT_DECAY, BETAS, EPSILON = 0.01, (0.9, 0.999), 1e-8  # of adamw_step: PyTorch's defaults
FLOAT = 4  # bytes
MARGIN = 1.1

KIB, MIB = 2**10, 2**20
ROUND, SEGMENT, LARGE, ROUND_LARGE = 512, 20 * MIB, 10 * MIB, 2 * MIB  # of pytorch.segments


def _case(name: str = "", **sizes: int | float | str) -> Case:
    return Case(name or ", ".join(f"{key} {value}" for key, value in sizes.items()), sizes)


# ---------------------------------------------------------------- tensors


def gpt_shapes(width: int, layers: int, vocabulary: int = 61, context: int = 16) -> list[tuple[int, ...]]:
    """The shapes of GPT-2's parameter tensors at another size (Radford et al. 2019): 12 a block, and 4."""
    d = width
    block = [
        (d,),
        (d,),
        (d, 3 * d),
        (3 * d,),
        (d, d),
        (d,),
        (d,),
        (d,),
        (d, 4 * d),
        (4 * d,),
        (4 * d, d),
        (d,),
    ]
    return [(vocabulary, d), (context, d), *block * layers, (d,), (d,)]


def _shapes(sizes: Sizes) -> list[tuple[int, ...]]:
    return gpt_shapes(int(sizes["width"]), int(sizes["blocks"]))


def _tensors(sizes: Sizes) -> int:
    return len(_shapes(sizes))


def _numbers(sizes: Sizes) -> int:
    return sum(math.prod(shape) for shape in _shapes(sizes))


def _matrix(sizes: Sizes) -> tuple[int, int]:
    return int(sizes["rows"]), int(sizes["cols"])


def fold_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    rows, cols = _matrix(sizes)
    return (
        Array("x", (rows, cols)),
        Array("mean", (cols,)),
        Array("std", (cols,), fill=lambda numbers, shape, _: 0.5 + numbers.random(shape)),
        Array("weight", (cols,)),
        Array("bias", (cols,)),
        Array("out", (rows, cols), role="out"),
    )


def adamw_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    shapes = _shapes(sizes)
    return (
        *several("params", shapes, role="inout"),
        *several("grads", shapes),
        *several("means", shapes, role="inout", fill=_small),
        *several("squares", shapes, role="inout", fill="uniform"),
        Scalar("step", int(sizes["step"])),
        Scalar("lr", 0.01, "float64"),
    )


def _small(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    return 0.1 * numbers.standard_normal(shape)


def clip_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    def fill(numbers: np.random.Generator, shape: tuple[int, ...], _: Sizes) -> np.ndarray:
        return float(sizes["scale"]) * numbers.standard_normal(shape)

    return (*several("grads", _shapes(sizes), role="inout", fill=fill), Scalar("most", 1.0, "float64"))


def gradients_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    blocks, rows, width = (int(sizes[key]) for key in ("blocks", "rows", "width"))
    shapes = [(width, width)] * blocks
    return (
        *several("weights", shapes, fill=_small, grad=True),
        Array("x", (rows, width)),
        *(Array(f"weights[{i}].grad", shape, role="out") for i, shape in enumerate(shapes)),
    )


def activation_bytes(sizes: Sizes) -> int:
    """Bytes of one activation of pytorch.gradients."""
    return FLOAT * int(sizes["rows"]) * int(sizes["width"])


def least_peak(sizes: Sizes) -> float:
    """Bytes held at the worst moment with the best distance of checkpoints, gradients of weights included."""
    blocks, weight = int(sizes["blocks"]), FLOAT * int(sizes["width"]) ** 2
    best = min(-(-blocks // s) + 2 * s - 1 for s in range(1, blocks + 1))
    return best * activation_bytes(sizes) + blocks * weight


def one_pass(sizes: Sizes) -> int:
    """FLOPs of the matrix products of all blocks, once forward."""
    rows, width = int(sizes["rows"]), int(sizes["width"])
    return 2 * int(sizes["blocks"]) * rows * width * width


# ---------------------------------------------------------------- questions


def segment_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """Programs as lists of [name, bytes]; 0 bytes frees what has that name."""
    match sizes["kind"]:
        case "one":
            return [([[0, n]],) for n in (1, 512, 513, LARGE - 1, LARGE, LARGE + 1)] + [([],)]
        case "again":  # the same sizes, over and over: nothing new after the first round
            names = iter(range(10_000))
            rounds: list[list[int]] = []
            for _ in range(4):
                taken = [next(names) for _ in range(5)]
                rounds += [[name, MIB * (2 + k)] for k, name in enumerate(taken)]
                rounds += [[name, 0] for name in taken]
            return [(rounds,)]
        case "neighbours":  # pieces that must become one again, in several orders
            size = 5 * MIB
            orders = ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [0, 2], [1, 2])
            return [
                ([*([i, size] for i in range(4)), *([i, 0] for i in order), [9, 9 * MIB], [10, 19 * MIB]],)
                for order in orders
            ]
        case "best fit":  # a gap of 6 MiB before one of 4: the small one first goes into the second
            full = [[0, 6 * MIB], [1, MIB], [2, 4 * MIB], [3, 9 * MIB], [0, 0], [2, 0]]
            return [([*full, [4, small * MIB], [5, 6 * MIB]],) for small in (3, 4)]
    return [(_program(int(sizes["length"]), generator),) for _ in range(6)]


def _program(length: int, generator: np.random.Generator) -> list[list[int]]:
    events: list[list[int]] = []
    alive: list[int] = []
    for name in range(length):
        if alive and generator.random() < 0.45:
            events.append([alive.pop(int(generator.integers(len(alive)))), 0])
        else:
            scale = (4 * KIB, MIB, 3 * MIB, 24 * MIB)[int(generator.integers(4))]
            events.append([name, int(generator.integers(1, scale))])
            alive.append(name)
    return events


def place_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """Tensors as [bytes, first, last]: they are alive from one moment to the other, both included."""
    if "blocks" in sizes:
        return [(_training_step(int(sizes["blocks"]), generator),) for _ in range(2)]
    return [
        ([],),
        ([[64, 0, 5]],),
        ([[64, 0, 1], [64, 1, 2], [64, 2, 3]],),  # the second meets both, the others do not meet
        ([[256, 0, 1], [64, 2, 3], [64, 2, 3], [128, 2, 3]],),
    ]


def _training_step(blocks: int, generator: np.random.Generator) -> list[list[int]]:
    """What a training step holds: activations until their backward, short-lived ones, gradients."""
    end = 4 * blocks
    found: list[list[int]] = []
    for i in range(blocks):
        size = 64 * int(generator.integers(1, 9))
        forward, backward = 2 * i, end - 2 * i
        found.append([2 * size, forward, backward])
        found.append([size * int(generator.integers(1, 5)), forward, forward + 1])
        found.append([size * int(generator.integers(1, 5)), backward - 1, backward])
        found.append([size, backward - 2, backward])
    return [found[i] for i in generator.permutation(len(found))]


def _arena(sizes: Sizes) -> float:
    """The end of the last tensor, over the most that is alive at once: room for a hole and a half."""
    return max(MARGIN, 1 + 1.5 / int(sizes["blocks"])) if "blocks" in sizes else MARGIN


def epoch_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(ms to load each batch, ms of a training step, workers, batches that each may be ahead)."""
    match sizes["kind"]:
        case "no workers":
            return [([5, 5, 5], 3, 0, 0), ([], 3, 0, 0), ([4], 7, 0, 0), ([0, 9, 2], 1, 0, 0)]
        case "even":
            return [([8] * 12, step, workers, 2) for step in (1, 4, 8, 20) for workers in (1, 2, 4)]
        case "one slow batch":
            return [([2, 2, 2, 40, 2, 2, 2, 2, 2, 2], 5, 2, prefetch) for prefetch in (1, 2, 8)]
    return [
        (
            [int(n) for n in generator.integers(0, 30, int(generator.integers(1, 40)))],
            int(generator.integers(0, 12)),
            int(generator.integers(1, 5)),
            int(generator.integers(1, 5)),
        )
        for _ in range(20)
    ]


def compiles_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """Shapes of the calls of one function."""

    def drawn(axes: int, calls: int, lowest: int, highest: int) -> tuple[list[list[int]]]:
        return (generator.integers(lowest, highest + 1, (calls, axes)).tolist(),)

    match sizes["kind"]:
        case "one axis":
            return [
                ([[8], [9], [10], [8]],),
                ([[5], [5], [5]],),
                ([],),
                *(drawn(1, 7, 2, 6) for _ in range(3)),
            ]
        case "two axes":
            return [([[8, 4], [9, 4], [8, 5], [9, 9]],), *(drawn(2, 9, 2, 4) for _ in range(5))]
        case "size 1":
            return [
                ([[1, 4], [5, 4], [6, 4], [1, 4]],),
                ([[8, 4], [9, 4], [1, 4], [1, 9], [1, 4]],),
                *(drawn(2, 10, 1, 3) for _ in range(6)),
            ]
    return [drawn(int(generator.integers(1, 4)), 12, 1, 4) for _ in range(12)]


GPU_WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def idle_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """Traces as PyTorch's profiler exports them; times are whole µs."""

    def event(category: str, ts: int, dur: int, stream: int = 7) -> dict[str, Any]:
        return {"ph": "X", "cat": category, "name": category, "ts": ts, "dur": dur, "tid": stream}

    match sizes["kind"]:
        case "one stream":
            return [
                ([event("kernel", 100, 10), event("kernel", 130, 5), event("kernel", 135, 5)],),
                ([event("kernel", 40, 10)],),
                ([],),
            ]
        case "host and device":
            host = [event("cpu_op", 0, 500, 1), event("cuda_runtime", 3, 4, 1)]
            name = {"ph": "M", "name": "process_name", "args": {"name": "python"}}
            return [
                ([*host, event("kernel", 20, 30), event("gpu_memcpy", 90, 10), event("gpu_memset", 55, 5)],),
                ([name, event("kernel", 7, 3), {"ph": "i", "cat": "kernel", "ts": 900, "name": "mark"}],),
                (host,),
            ]
        case "two streams":
            return [
                ([event("kernel", 0, 100, 7), event("kernel", 10, 20, 8), event("kernel", 150, 10, 8)],),
                ([event("gpu_memcpy", 60, 30, 9), event("kernel", 0, 70, 7), event("kernel", 120, 1, 7)],),
            ]
    found = []
    for _ in range(6):
        events, at = [event("cpu_op", 0, 10_000, 1)], 0
        for _ in range(60):
            at += int(generator.integers(0, 25))
            category = GPU_WORK[min(int(generator.integers(0, 6)), 2)]
            events.append(event(category, at, int(generator.integers(1, 30)), int(generator.integers(7, 10))))
        found.append(([events[i] for i in generator.permutation(len(events))],))
    return found


NCU_TIMES = (("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9))  # unit, ns
NCU_BYTES = (("byte", 1), ("Kbyte", 1e3), ("Mbyte", 1e6), ("Gbyte", 1e9))
NCU_COLUMNS = (
    "gpu__time_duration.sum",
    "dram__bytes.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
)


def read_ncu_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """Tables as Nsight Compute writes them with ``--csv --page raw``."""
    kind = str(sizes["kind"])
    chosen = kind == "any report"

    def table(launches: int) -> str:
        times = NCU_TIMES[int(generator.integers(0, 4)) if chosen or kind == "other units" else 1]
        sizes_in = NCU_BYTES[int(generator.integers(0, 4)) if chosen or kind == "other units" else 0]
        columns = {"ID": "", "Kernel Name": "", **dict.fromkeys(NCU_COLUMNS, "")}
        columns |= {NCU_COLUMNS[0]: times[0], NCU_COLUMNS[1]: sizes_in[0]}
        if chosen or kind == "other columns":
            columns |= {"Grid Size": "", "launch__registers_per_thread": "register/thread", "Device": ""}
            names = [str(name) for name in generator.permutation(list(columns))]
        else:
            names = list(columns)
        lines = ["==PROF== Connected to process 99"] * (chosen or kind == "lines before it")
        lines += [_quoted(names), _quoted([columns[name] for name in names])]
        for launch in range(launches):
            ns, moved = int(generator.integers(1_000, 900_000)), int(generator.integers(1_000, 10**9))
            requests = 0 if launch == 2 else int(generator.integers(1, 10**6))
            row = {"ID": str(launch), "Kernel Name": f"kernel<{launch}, {ns % 7}>(float *)", "Device": "0"}
            row |= {"Grid Size": "(64, 1, 1)", "launch__registers_per_thread": "32"}
            values = (ns / times[1], moved / sizes_in[1], requests, requests * int(generator.integers(1, 33)))
            row |= {name: _in_thousands(value) for name, value in zip(NCU_COLUMNS, values, strict=True)}
            lines.append(_quoted([row[name] for name in names]))
        return "\n".join(lines) + "\n"

    return [(table(launches),) for launches in (1, 4, 3)]


def _quoted(cells: list[str]) -> str:
    return ",".join(f'"{cell}"' for cell in cells)


def _in_thousands(value: float) -> str:
    """A number with all its digits, thousands apart."""
    return f"{value:,.9f}".rstrip("0").rstrip(".")


class ClockedGPU:
    """A GPU with a clock of its own, in µs, on which one function can be timed.

    `machine` is the number of a machine, see `facts_of`, or facts: ``compile`` (µs that the host is busy
    at the first call), ``launch`` (µs of the host at each call), ``cold`` and ``warm`` (µs of the GPU when
    the inputs come from DRAM or lie in the L2 already), ``flush`` (µs of the GPU to write other data over
    the L2), ``hiccup`` (how many times longer one of every four calls takes, no one knows which, because
    somebody else uses the machine).
    """

    def __init__(self, machine: int | Mapping[str, float]) -> None:
        self._facts = facts_of(machine) if isinstance(machine, int) else machine
        self._chance = np.random.default_rng(machine if isinstance(machine, int) else 8)
        self._calls = self._disturbed = 0
        self._host = self._gpu_free = 0.0
        self._in_cache = False

    def now(self) -> float:
        """What the host's clock says."""
        return self._host

    def call(self) -> None:
        """Call the function: the host goes on as soon as it has launched."""
        if self._calls % 4 == 0:
            self._disturbed = self._calls + int(self._chance.integers(4))
        length = self._facts["warm"] if self._in_cache else self._facts["cold"]
        length *= self._facts["hiccup"] if self._calls == self._disturbed else 1
        self._host += self._facts["launch"] + (self._facts["compile"] if self._calls == 0 else 0)
        self._gpu_free = max(self._gpu_free, self._host) + length
        self._in_cache = True
        self._calls += 1

    def flush(self) -> None:
        """Have the GPU write other data, so that the inputs are no longer in its L2."""
        self._gpu_free = max(self._gpu_free, self._host) + self._facts["flush"]
        self._in_cache = False

    def synchronize(self) -> None:
        """Wait until the GPU has done all that it was asked."""
        self._host = max(self._host, self._gpu_free)


MACHINES = ("asynchronous", "compiled at the first call", "cached", "disturbed", "any")


def facts_of(machine: int) -> dict[str, float]:
    """The facts of a machine by its number; the remainder by 5 says in which of MACHINES it lies."""
    generator = np.random.default_rng(machine)
    drawn: dict[str, float] = {
        "compile": int(generator.integers(1_000, 9_000_000)),
        "launch": int(generator.integers(3, 12)),
        "cold": int(generator.integers(50, 900)),
        "warm": int(generator.integers(5, 50)),
        "flush": int(generator.integers(20, 80)),
        "hiccup": int(generator.integers(3, 40)),
    }
    calm: dict[str, float] = {"compile": 0, "launch": 0, "warm": drawn["cold"], "flush": 0, "hiccup": 1}
    match MACHINES[machine % len(MACHINES)]:
        case "asynchronous":
            return {**drawn, **calm, "launch": drawn["launch"]}
        case "compiled at the first call":
            return {**drawn, **calm, "compile": 2_000_000}
        case "cached":
            return {**drawn, **calm, **{name: drawn[name] for name in ("launch", "warm", "flush")}}
        case "disturbed":
            return {**drawn, **calm, **{name: drawn[name] for name in ("launch", "hiccup")}}
    return drawn


def benchmark_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """Numbers of machines for a ClockedGPU, which only who asks the answer has.

    Where chance disturbs there are more: one measurement is right on three machines of four.
    """
    kind = MACHINES.index(str(sizes["kind"]))
    by_chance = MACHINES[kind] in ("disturbed", "any")
    return [
        (len(MACHINES) * int(generator.integers(1, 10**6)) + kind,) for _ in range(12 if by_chance else 3)
    ]


def _kinds(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"kind": name}) for name in names)


def _gpt(width: int, blocks: int, **more: int | float) -> Case:
    return Case(f"{12 * blocks + 4} tensors", {"width": width, "blocks": blocks, **more})


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="pytorch.fold",
        lab=LAB,
        evidence=TensorGraph(arguments=fold_arguments, operators=COMMON | {"addcmul"}),
        correct_points=1.5,
        cases=(
            _case("7 × 5", rows=7, cols=5),
            _case("1 × 33", rows=1, cols=33),
            _case("0 × 4", rows=0, cols=4),
            _case("1000 × 64", rows=1000, cols=64),
        ),
        rtol=1e-4,
        atol=2e-5,
        budgets=(
            Budget(
                "bytes",
                lambda s: int(MARGIN * FLOAT * (2 * math.prod(_matrix(s)) + 15 * _matrix(s)[1])),
                2.5,
                "bytes moved",
                naive=lambda s: FLOAT * (8 * math.prod(_matrix(s)) + 4 * _matrix(s)[1]),
                why="x read once, out written once",
                advice="How often does the whole matrix go through memory? Which operations could work on a "
                "row of numbers instead, and which one multiplies and adds at once?",
                unit="B",
                case=EVERY,
            ),
        ),
        hints=(
            "(x − mean) / std · weight + bias is x · scale + shift. What are scale and shift?",
            "scale = weight / std, and shift = bias − mean · scale. Both have one number per column.",
            "`torch.addcmul(a, b, c)` is a + b · c in one launch, and it broadcasts.",
        ),
        section="2 · Bytes, not only launches",
    ),
    Exercise(
        name="pytorch.adamw_step",
        lab=LAB,
        evidence=TensorGraph(
            arguments=adamw_arguments,
            operators=COMMON | MULTI_TENSOR | {"addcmul", "addcdiv", "lerp", "_fused_adamw_"},
        ),
        correct_points=1.5,
        cases=(_gpt(6, 0, step=1), _gpt(4, 2, step=1000), _gpt(8, 12, step=3)),
        rtol=1e-4,
        atol=1e-5,
        budgets=(
            Budget(
                "launches",
                12,
                2.5,
                "launches",
                naive=lambda s: 10 * _tensors(s),
                why="one fused operation",
                advice="Which operation of PyTorch does the whole step for a list of tensors?",
                unit="launches",
                case=EVERY,
            ),
            Budget(
                "bytes",
                lambda s: int(MARGIN * 7 * FLOAT * _numbers(s)),
                1,
                "bytes moved",
                naive=lambda s: 25 * FLOAT * _numbers(s),
                why="four numbers read and three written per parameter",
                advice="Each operation reads and writes all parameters again. How many are there?",
                unit="B",
                case=EVERY,
            ),
        ),
        hints=(
            "`torch._foreach_mul_(params, 0.99)` multiplies all tensors of a list in a few launches. Each "
            "line of the loop has such a form, and that brings you to about twenty launches.",
            "`torch._fused_adamw_` is what `torch.optim.AdamW(fused=True)` calls. It takes the lists of "
            "params, grads, means, squares, an empty list, and a list of step counts.",
            "Each step count is a tensor with one float; all may be the same tensor, "
            "`torch.full((), float(step))`. lr, beta1, beta2, weight_decay, eps, amsgrad=False and "
            "maximize=False go by name.",
        ),
        section="3 · Many small tensors",
    ),
    Exercise(
        name="pytorch.clip",
        lab=LAB,
        evidence=TensorGraph(arguments=clip_arguments, operators=COMMON | MULTI_TENSOR),
        correct_points=1.5,
        cases=(
            _gpt(6, 0, scale=1.0),
            Case("no gradient", {"width": 3, "blocks": 1, "scale": 0.0}),
            Case("short enough", {"width": 3, "blocks": 1, "scale": 0.001}),
            _gpt(8, 12, scale=0.5),
        ),
        rtol=1e-4,
        atol=1e-7,
        budgets=(
            Budget(
                "launches",
                14,
                2,
                "launches",
                naive=lambda s: 2 * _tensors(s) + 7,
                why="norms and product over all tensors at once",
                advice="Which operations come once for each tensor? Which work on one number "
                "only, and can two of those be one?",
                unit="launches",
            ),
            Budget(
                "bytes",
                lambda s: int(MARGIN * 3 * FLOAT * _numbers(s)),
                0.5,
                "bytes moved",
                naive=lambda s: 5 * FLOAT * _numbers(s),
                why="read for the norm, read and written for the product",
                advice="Is there a copy of all gradients?",
                unit="B",
            ),
        ),
        hints=(
            "The length of all gradients together is the norm of their norms.",
            "The factor is min(1, most / (length + 1e-6)). `clamp(max=1.0)` is the min, and stays a tensor.",
            "`torch._foreach_norm`, `torch.stack`, `torch.linalg.vector_norm`, `clamp`, and then "
            "`torch._foreach_mul_`.",
        ),
        section="4 · No value, no wait",
    ),
    Exercise(
        name="pytorch.compiles",
        lab=LAB,
        evidence=AnsweredCases(questions=compiles_questions),
        correct_points=3,
        cases=_kinds("one axis", "two axes", "size 1", "any calls"),
        hints=(
            "Keep a list of versions. A version is a list with a number for each fixed size, and None for "
            "each dynamic one.",
            "A version serves a call if every fixed size is equal and every dynamic one gets 2 or more.",
            "Keep a second list with what has been compiled for: a size for each axis, or None once two "
            "compilations differ. A new version copies it, but a size of 1 stays 1.",
        ),
        section="5 · From eager code to graphs",
    ),
    Exercise(
        name="pytorch.segments",
        lab=LAB,
        evidence=AnsweredCases(questions=segment_questions),
        correct_points=4,
        cases=(
            *_kinds("one", "again", "neighbours", "best fit"),
            Case("random, 30 events", {"kind": "random", "length": 30}),
            Case("random, 200 events", {"kind": "random", "length": 200}),
        ),
        hints=(
            "Keep a list of blocks for each segment, in order of address: [size, name or None]. "
            "A segment of 20 MiB starts as one free block.",
            "Best fit: of all free blocks that are large enough take the smallest, and of equal ones the "
            "first. Put what is left of it behind it as a new free block.",
            "When a block becomes free, look at its neighbours in the same list: a free one before and a "
            "free one behind become one with it.",
        ),
        section="6 · Memory that comes back",
    ),
    Exercise(
        name="pytorch.place",
        lab=LAB,
        evidence=AnsweredCases(questions=place_questions, measured=True),
        correct_points=1.5,
        cases=(
            _case("small ones", kind="small"),
            _case("a step of 3 blocks", blocks=3),
            _case("a step of 24 blocks", blocks=24),
        ),
        budgets=(
            Budget(
                "arena",
                _arena,
                2.5,
                "arena",
                naive=3.1,
                why="1 is the most that is alive at once",
                advice="Which tensors are never alive together, and could have the same place?",
                unit="times the least",
                case=EVERY,
            ),
        ),
        hints=(
            "Two tensors may lie over each other when one is dead before the other is made: "
            "`last < first` of the other.",
            "Take the tensors one by one. For each look only at those that have a place already and are "
            "alive at the same time, in order of their offsets, and take the first gap that is large enough.",
            "The order matters: place the largest first, because small ones fit into gaps and large ones do "
            "not.",
        ),
        section="6 · Memory that comes back",
    ),
    Exercise(
        name="pytorch.gradients",
        lab=LAB,
        evidence=TensorGraph(arguments=gradients_arguments, operators=COMMON | {"tanh_backward"}),
        correct_points=2,
        cases=(
            _case("1 block", blocks=1, rows=8, width=4),
            _case("7 blocks", blocks=7, rows=16, width=5),
            _case("32 blocks", blocks=32, rows=512, width=16),
        ),
        rtol=1e-4,
        atol=1e-5,
        budgets=(
            Budget(
                "peak_bytes",
                lambda s: int(MARGIN * least_peak(s)),
                2,
                "peak memory",
                naive=lambda s: (2 * int(s["blocks"]) + 1) * activation_bytes(s),
                why="checkpoints at the best distance",
                advice="Which is larger, what the checkpoints hold or what one segment needs while it is "
                "computed again?",
                unit="B",
            ),
            Budget(
                "matrix_flops",
                lambda s: 4 * one_pass(s),
                1,
                "matrix FLOPs",
                why="no block is computed more than twice",
                advice="How often is one block's product computed forward?",
                unit="FLOP",
            ),
        ),
        hints=(
            "`torch.utils.checkpoint.checkpoint(fn, *inputs, use_reentrant=False)` calls fn, keeps nothing "
            "but its inputs, and calls it again during the backward pass.",
            "Let fn take h and several weights and go through several blocks. How many give the least of "
            "blocks / s + 2 · s?",
            "s near √(blocks / 2): 4 for 32 blocks. Loop over `range(0, len(weights), s)`, and call "
            "`.backward()` on the mean at the end.",
        ),
        section="7 · Keep it or compute it again",
    ),
    Exercise(
        name="pytorch.epoch",
        lab=LAB,
        evidence=AnsweredCases(questions=epoch_questions),
        correct_points=3,
        cases=_kinds("no workers", "even", "one slow batch", "any"),
        hints=(
            "Without workers nothing overlaps: all loads and all steps, one after the other.",
            "Keep three lists: when batch i is loaded, when it is handed over, when its step is done. A "
            "batch is handed over when it is loaded and the step before is done.",
            "Worker i % workers starts on batch i when it has loaded batch i − workers, and when batch "
            "i − workers · prefetch has been handed over.",
        ),
        section="8 · Feeding the GPU",
    ),
    Exercise(
        name="pytorch.idle",
        lab=LAB,
        evidence=AnsweredCases(questions=idle_questions),
        correct_points=3,
        cases=_kinds("one stream", "host and device", "two streams", "any"),
        hints=(
            'Keep the events with `ph` "X" whose `cat` is one of the three, and sort them by `ts`.',
            "Walk along and remember until when the GPU has been busy, on any stream. A gap is there when "
            "the next event starts later than that.",
            "`until = max(until, ts + dur)`: a short event must not set the clock back behind a long one on "
            "another stream.",
        ),
        section="10 · Profilers and traces",
    ),
    Exercise(
        name="pytorch.read_ncu",
        lab=LAB,
        rtol=1e-6,
        evidence=AnsweredCases(questions=read_ncu_questions),
        correct_points=3,
        cases=_kinds("a report", "lines before it", "other units", "other columns", "any report"),
        hints=(
            'Leave out the lines that begin with "==", and give the others to `csv.reader`: it yields the '
            "names, the units, and then a row for each launch.",
            "Find a column by its name, because there may be others before it.",
            "Turn a text into a number in base units: take the commas out, and multiply by the factor of the "
            "unit of this column.",
        ),
        section="10 · Profilers and traces",
    ),
    Exercise(
        name="pytorch.benchmark",
        lab=LAB,
        evidence=Dialogues(questions=benchmark_questions),
        correct_points=4,
        cases=_kinds(*MACHINES),
        hints=(
            "A clock may be read only when the GPU has nothing left to do: before you start it and before "
            "you stop it.",
            "Call once before you measure anything. Before each measured call write over the L2, and wait "
            "until that is done.",
            "One call between two readings of the clock, at least 15 times, and the median of the times.",
        ),
        section="Detective · A benchmark that lies",
    ),
)


_prediction = partial(prediction, "pytorch", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "gelu_launches",
        "`gelu_by_hand` takes",
        "launches",
        reason="One for each operation: a product, a quotient, an error function, a sum, a product.",
    ),
    _prediction(
        "overhead",
        "One operation on a tensor of one number takes, on this machine's CPU,",
        "µs",
        reason="That is the way from Python through the dispatcher to the kernel and back; hardly any "
        "arithmetic is in it.",
        tolerance=1.0,
    ),
    _prediction(
        "standardise_bytes",
        "`standardise` moves, for each byte of x,",
        "bytes",
        reason="Four operations, and each reads the matrix and writes it.",
        tolerance=0.02,
    ),
    _prediction(
        "tensors",
        "GPT-2 with 12 blocks has",
        "parameter tensors",
        148,
        "12 in each block: two norms, and four linear layers, with weight and bias each; then two "
        "embeddings and the last norm: 12 · 12 + 2 + 2.",
    ),
    _prediction(
        "graphs",
        "Dynamo cuts `clip_by_hand` into",
        "graphs",
        reason="The `if` needs a value: what stands before it is one graph, what follows is another.",
    ),
    _prediction(
        "compilations",
        "A function called with 8, 9, 10 and 11 rows is compiled",
        "times",
        reason="Once for 8 rows, and once more for any number of rows, because 9 showed that it changes.",
    ),
    _prediction(
        "regions",
        "Of twelve equal blocks, compiled one by one, Dynamo makes",
        "graphs",
        reason="They share the code of `forward`, and weights are inputs of the graph, so one version serves "
        "all.",
    ),
    _prediction(
        "traces",
        "The `tf.function` is traced",
        "times",
        reason="Once for each of two shapes, once for each of the Python numbers 2 and 3, and once for all "
        "scalar tensors of one type.",
    ),
    _prediction(
        "kernel_share",
        "The column Time (%) shows for the long kernel",
        "%",
        reason="30 µs of 30 + 20 · 3 µs, all kernels together. Gaps are not in it.",
        tolerance=0.02,
    ),
    _prediction(
        "chase_share",
        "The kernel that follows a chain of addresses reaches",
        "% of the bandwidth",
        reason="One warp waits for each of its loads before it can issue the next, so hardly any bytes are "
        "under way.",
        tolerance=0.5,
    ),
    _prediction(
        "reserved",
        "For three tensors of 9 MiB PyTorch reserves",
        "MiB",
        40,
        "Two fit into a segment of 20 MiB and leave 2; the third makes another.",
    ),
    _prediction(
        "kept",
        "For the backward pass of `chain` autograd keeps",
        "KiB",
        reason="Each block keeps its input and its tanh: 2 · 32 activations of 32 KiB.",
        tolerance=0.1,
    ),
    _prediction(
        "loader",
        "20 batches at 24 ms to load and 8 ms to use take, with two workers,",
        "ms",
        256,
        "Two workers bring two batches every 24 ms, and the GPU needs 16 for them: loading decides. Ten "
        "pairs are loaded after 240 ms, and then two steps are left.",
        0.02,
    ),
    _prediction(
        "stride",
        "In a channels-last tensor of 8 × 64 × 32 × 32 neighbours in a row are apart by",
        "elements",
        64,
        "The channel runs fastest, so the 64 channels of one pixel lie between them.",
    ),
    _prediction(
        "layout_bytes",
        "Converting a tensor to channels last and back again moves, for each byte of it,",
        "bytes",
        reason="Each conversion reads all of it and writes all of it.",
    ),
    _prediction(
        "lie",
        "The benchmark says, of a call that takes 205 µs,",
        "µs",
        reason="Nobody waits for the GPU: ten launches of 5 µs are timed.",
    ),
)
