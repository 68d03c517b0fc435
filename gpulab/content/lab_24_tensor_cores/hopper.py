"""Lab 24, part A: what its six exercises ask, all kernels on the H100.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| tensor.describe | describe(…) → 64 bits | matrix descriptors | answers | – | – | 3 |
| tensor.tile | host code, 128 threads | wgmma, one tile | copies | – | 2 a step | 5 |
| | | | loads by threads | – | 0 | |
| | | | products | – | 1 for 16 of k | |
| | | | instructions | m·n·k/32 | m·n·k/128 | |
| tensor.overlap | host code, 160 threads | wgmma in flight | products in flight | 0 | 4 but at the last | 5 |
| | | | mixed warps | – | 0 | |
| | | | barriers | 1 a step | 1 | |
| | | | phases | 1 a step | 1 for 3 steps | |
| | | | products | – | 1 for 16 of k | |
| | | | copies | – | 2 a step | |
| | | | loads by threads | – | 0 | |
| | | | instructions | – | as tensor.tile | |
| tensor.pingpong | host code, 288 threads | warpgroups in turn | of one group | all | every other tile | 5 |
| | | | idle arrivals | 2 a warp and tile | 1 | |
| | | | blocks | 1 a tile | 1 for 64 rows | |
| | | | phases | 1 for 2 steps | 1 for 3 steps | |
| | | | mixed warps | – | 0 | |
| | | | barriers | 1 a tile | 1 | |
| | | | products, copies, loads by threads | – | as tensor.tile | |
| | | | instructions | m·n·k/32 | m·n·k/64 | |
| tensor.promote | host code, FP8 | sums in float32 | waits | k/32 | k/128 | 5 |
| | | | operations | k/32 sums | k/128 sums | |
| | | | products | – | 1 for 32 of k | |
| | | | instructions | – | as tensor.tile | |
| tensor.fence | kernel, corrected | the async proxy | – | – | – | 3 |

Derivations:

**tile**, **overlap**: a block makes 64 × 64 of C. A step is 64 of k: two copies, A's tile and B's, of 8 KiB
each. A product is m64n64k16, so four a step; each of the four warps counts it. Threads load nothing: the
copy engine fills shared memory and the tensor cores read it. If the four products of a step stay in flight
while those of the step before are waited for, 4 · (steps − 1) / steps are in flight behind a wait on
average: behind the last wait is nothing. A product can be asked for and never be used, so the first budget
limits instructions: the float32 lanes need at least m·n·k / 32 of them. A quarter of that is more than eight
times what `overlap` takes.

**pingpong**: a block makes the n / 64 tiles of 64 rows, with k / 64 steps for each. Two warpgroups take
turns, so the one that has more makes ⌈tiles / 2⌉ of them, with four products a step. One ring of three slots
carries all steps of the block: ⌈tiles · steps / 3⌉ phases. An mbarrier by which the warpgroups hand over
their turn has a phase for every other tile, which is more when a tile has one step. The turn is handed over
while the last products are in flight, so a warp arrives only once a tile with none in flight: when it frees
the last slot. It arrives twice if it hands over after the wait for its products. Waiting for parity works
only one phase ahead. The second warpgroup that does not wait for its turn looks for a step which is
steps / 3 phases ahead of its mbarrier: with four steps it finds the phase "before the first" and goes on.
gelu takes some 40 instructions for each number, so half of m·n·k / 32 instructions are allowed.

**promote**: with e4m3 a product is m64n64k32. Hopper keeps 13 fraction bits below the largest term when it
adds (measured bit for bit by MMA-Sim), so a sum that has grown to S loses up to S · 2⁻¹³ with every
product. For k = 2,048 and numbers from 0.5 to 1.9 the relative error is 3.7 % if everything is summed in
the tensor cores, and 0.023 % if sums of 128 are added in float32. That takes one addition for 128 of k and
element: m · n · k / 128 operations beside the 2 · m · n · k of the products; after every product it would
be m · n · k / 32.

**fence**: the tile is right in the simulator's memory when the tensor cores read it, so only the sanitizer
sees the missing fence. On a GPU the result is wrong now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import count, prediction
from gpulab.checks.compare import answer_words
from gpulab.checks.evidence import AnsweredCases, LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Shape, Sizes
from gpulab.content.pipelines import lanes_budget, phases_budget, roles_apart

LAB = "24"
GPU = "H100"
TILE = 64  # rows and columns of C that a block makes, and halves of k in a step
FP8_STEP = 128  # e4m3 of k in a step: rows of 128 bytes
SPANS = (0, 32, 64, 128)


def shape(m: int, n: int, k: int) -> Case:
    return Case(f"{m} × {n} × {k}", {"m": m, "n": n, "k": k})


def halves(sizes: Sizes) -> tuple[Array, ...]:
    m, n, k = (count(sizes, name) for name in "mnk")
    return (
        Array("a", (m, k), "float16"),
        Array("b", (n, k), "float16"),
        Array("c", (m, n), role="out"),
    )


def eights(sizes: Sizes) -> tuple[Array, ...]:
    """Codes of e4m3 from 0.5 to 1.875: all positive, so that sums grow."""
    m, n, k = (count(sizes, name) for name in "mnk")
    return (
        Array("a", (m, k), "uint8", fill="integers:48:64"),
        Array("b", (n, k), "uint8", fill="integers:48:64"),
        Array("c", (m, n), role="out"),
    )


def rows_of_floats(sizes: Sizes) -> tuple[Array, ...]:
    m = count(sizes, "m")
    return (
        Array("a", (m, TILE)),
        Array("b", (TILE, TILE), "float16"),
        Array("c", (m, TILE), role="out"),
    )


def blocks(sizes: Sizes) -> int:
    return count(sizes, "m") * count(sizes, "n") // TILE**2


def copies(step: int, sizes: Sizes) -> int:
    """One of A and one of B in each step of `step` elements of k."""
    return 2 * blocks(sizes) * count(sizes, "k") // step


def products(k: int, sizes: Sizes) -> int:
    """Products of `k` elements along k, once for each of four warps."""
    return 4 * blocks(sizes) * count(sizes, "k") // k


def promoted(every: int, sizes: Sizes) -> int:
    """Operations of the products, and an addition of each element of C after `every` elements of k."""
    m, n, k = (count(sizes, name) for name in "mnk")
    return 2 * m * n * k + m * n * (k // every)


def descriptor_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    span = count(sizes, "swizzle")
    start, leading, stride = (16 * generator.integers(1, (8192, 512, 512), (6, 3))).T
    if span:
        start = start // 1024 * 1024
    return [(int(s), int(l), int(t), span) for s, l, t in zip(start, leading, stride, strict=True)]


FIELDS = {"start": (0, 14), "leading": (16, 14), "stride": (32, 14), "swizzle": (62, 2)}  # first bit, bits


def descriptor_words(answer: Any) -> str:
    """A descriptor in hexadecimal, with its fields as they are stored; other answers as they are."""
    if type(answer) is not int or answer < 0:
        return answer_words(answer)
    fields = {name: answer >> first & (1 << bits) - 1 for name, (first, bits) in FIELDS.items()}
    rest = answer - sum(value << FIELDS[name][0] for name, value in fields.items())
    said = ", ".join(f"{name} {value}" for name, value in fields.items())
    return f"{answer:#018x} ({said}{', and other bits are set' if rest else ''})"


def _by_threads(points: float, metric: str, label: str) -> Budget:
    return Budget(
        metric,
        0,
        points,
        label,
        why="the copy engine brings tiles, the tensor cores read them",
        advice="Which line loads thread by thread? The tensor cores read shared memory by themselves.",
        case=EVERY,
    )


def copies_budget(points: float, limit: Callable[[Sizes], int]) -> Budget:
    """So many copies from global memory at every case: with fewer, threads have brought tiles."""
    return Budget(
        "bulk_load_requests",
        limit,
        points,
        "copies",
        sense="==",
        why="one of A and one of B a step",
        advice="That is {times} × as many. How many threads send a copy? With none, threads bring the tiles.",
        case=EVERY,
    )


def _products(points: float, k: int) -> Budget:
    return Budget(
        "warpgroup_products",
        partial(products, k),
        points,
        "products",
        sense="==",
        why=f"one for {k} of k, counted by each of 4 warps",
        advice="Does a step multiply the same part of its tiles twice? With no product at all, the tensor "
        "cores do nothing.",
        case=EVERY,
    )


def steps(sizes: Sizes) -> int:
    return count(sizes, "k") // TILE


def strips(sizes: Sizes) -> int:
    """Blocks that make the tiles of 64 rows each."""
    return count(sizes, "m") // TILE


def tiles(sizes: Sizes) -> int:
    """Tiles that such a block makes, one after another."""
    return count(sizes, "n") // TILE


def phases_in_turn(sizes: Sizes) -> int:
    """Of a slot's mbarriers; those of the turns have one for every other tile."""
    return max(-(-tiles(sizes) * steps(sizes) // 3), -(-tiles(sizes) // 2))


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="tensor.describe",
        lab=LAB,
        correct_points=3,
        evidence=AnsweredCases(questions=descriptor_questions, words=descriptor_words),
        cases=tuple(Case(f"swizzle {span}", {"swizzle": span}) for span in SPANS),
        hints=(
            "Every field of bytes is counted in units of 16: divide first, then shift it to its place.",
            "Start at bit 0, leading at bit 16, stride at bit 32, each 14 bits wide; the swizzle at bit 62.",
            "The codes of the swizzles are 0 for none, 1 for 128 bytes, 2 for 64 and 3 for 32.",
        ),
        section="1 · An operand is an address and two steps",
    ),
    Exercise(
        name="tensor.tile",
        lab=LAB,
        gpu=GPU,
        correct_points=2.5,
        evidence=LaunchTrace(arguments=halves, face="cupy"),
        cases=tuple(shape(*each) for each in ((64, 64, 128), (64, 64, 64), (128, 64, 192), (128, 128, 256))),
        rtol=1e-3,
        atol=2e-2,
        budgets=(
            lanes_budget(0.25),
            copies_budget(0.5, partial(copies, TILE)),
            _by_threads(1, "shared_load_requests", "loads from shared memory"),
            _by_threads(0.5, "global_load_requests", "loads from global memory"),
            _products(0.25, 16),
        ),
        hints=(
            "In each step: thread 0 expects 16 KiB and sends two copies; all wait; then `begin_products()`,"
            " four `multiply`, `end_products()`, `wait_products<0>()`.",
            "16 halves are 32 bytes, which is 2 in the units of a descriptor: the i-th product of a step "
            "takes `descriptor(tile) + 2 * i` of both operands.",
            "The very first product must not add to the registers, which hold anything: `adds` is false for"
            " it. And all threads meet before the tile is copied over.",
        ),
        section="2 · A warpgroup multiplies",
    ),
    Exercise(
        name="tensor.overlap",
        lab=LAB,
        gpu=GPU,
        correct_points=1.5,
        evidence=LaunchTrace(arguments=halves, face="cupy"),
        cases=tuple(shape(*each) for each in ((64, 64, 320), (64, 64, 64), (128, 64, 512), (128, 128, 256))),
        rtol=1e-3,
        atol=2e-2,
        budgets=(
            lanes_budget(0.2),
            Budget(
                "warpgroup_products_in_flight",
                lambda sizes: 4 * (1 - 1 / steps(sizes)),
                1.0,
                "products in flight",
                naive=0,
                sense=">=",
                why="those of one step, whenever there is a next one",
                advice="Which products does the warpgroup wait for in a step? Those that it has just issued "
                "can stay in flight.",
                case=EVERY,
            ),
            roles_apart(0.6),
            Budget(
                "barriers",
                lambda sizes: 5 * blocks(sizes),
                0.6,
                "block barriers",
                naive=lambda sizes: 5 * blocks(sizes) * (1 + steps(sizes)),
                why="one for each of 5 warps: the mbarriers are initialised",
                advice="The producer waits at `empty`, the warpgroup at `full`. No wait needs all 5 warps.",
                case=EVERY,
            ),
            phases_budget(3, steps, 0.5),
            _products(0.25, 16),
            copies_budget(0.25, partial(copies, TILE)),
            _by_threads(0.1, "shared_load_requests", "loads from shared memory"),
        ),
        hints=(
            "The producer is `roles` of lab 23, with two copies a slot instead of one.",
            "`wait_products<1>()` leaves the products of this step in flight. So the slot that is free "
            "after it is that of the step before.",
            "Each of the four warps arrives at `empty` of the step before, by one lane. After the loop, "
            "wait for the last products with `wait_products<0>()` before the sums are stored.",
        ),
        section="3 · Copy the next tile while this one is multiplied",
    ),
    Exercise(
        name="tensor.pingpong",
        lab=LAB,
        gpu=GPU,
        correct_points=1.5,
        evidence=LaunchTrace(arguments=halves, face="cupy"),
        cases=tuple(shape(*each) for each in ((64, 128, 256), (64, 64, 64), (64, 256, 64), (128, 192, 320))),
        rtol=1e-3,
        atol=2e-2,
        budgets=(
            lanes_budget(0.2, 0.5),
            Budget(
                "warpgroup_products_most",
                lambda sizes: 4 * steps(sizes) * -(-tiles(sizes) // 2),
                0.6,
                "products of one warpgroup",
                naive=lambda sizes: 4 * steps(sizes) * tiles(sizes),
                why="every other tile, four products a step",
                advice="Which tiles does each warpgroup make? One takes the even ones, the other the rest.",
                case=EVERY,
            ),
            Budget(
                "idle_arrivals",
                lambda sizes: 4 * tiles(sizes) * strips(sizes),
                0.9,
                "arrivals without products in flight",
                sense="==",
                naive=lambda sizes: 8 * tiles(sizes) * strips(sizes),
                why="one for each tile, of each of 4 warps: its last slot is free",
                advice="When does the other warpgroup get its turn? It could multiply as soon as your last "
                "products have been asked for.",
                case=EVERY,
            ),
            Budget(
                "blocks",
                strips,
                0.3,
                "blocks",
                naive=blocks,
                why="one for 64 rows of a, which makes all their tiles",
                advice="The loop over tiles belongs into the kernel: each block makes n / 64 of them.",
                case=EVERY,
            ),
            roles_apart(0.3),
            Budget(
                "barriers",
                lambda sizes: 9 * strips(sizes),
                0.3,
                "block barriers",
                naive=lambda sizes: 9 * strips(sizes) * (1 + tiles(sizes)),
                why="one for each of 9 warps: the mbarriers are initialised",
                advice="The warpgroups hand over their turn by an mbarrier. The producer does not wait "
                "for it.",
                case=EVERY,
            ),
            Budget(
                "mbarrier_phases",
                phases_in_turn,
                0.4,
                "phases of an mbarrier",
                naive=lambda sizes: -(-tiles(sizes) * steps(sizes) // 2),  # two slots
                why="3 slots, used in turn by all tiles of a block",
                advice="Number the steps of a block through all of its tiles: step p is in slot p % 3.",
                case=EVERY,
            ),
            _products(0.2, 16),
            copies_budget(0.2, partial(copies, TILE)),
            _by_threads(0.1, "shared_load_requests", "loads from shared memory"),
        ),
        hints=(
            "Number the steps through all tiles: tile j has the numbers j · k/64 to (j + 1) · k/64 − 1. The "
            "producer sends them all in this order, and a warpgroup reads those of its own tiles.",
            "Before its i-th tile, warpgroup 1 waits for phase i of its turn, and warpgroup 0 for phase "
            "i − 1 of its own: `wait(&turn[g], (i & 1) ^ (g == 0))`.",
            "When the last products of a tile have been asked for, one lane of each warp arrives at the turn "
            "of the other warpgroup. When they have been made, it frees the last slot. Then come gelu and "
            "the stores.",
        ),
        section="3 · Copy the next tile while this one is multiplied",
    ),
    Exercise(
        name="tensor.promote",
        lab=LAB,
        gpu=GPU,
        correct_points=1.5,
        evidence=LaunchTrace(arguments=eights, face="cupy"),
        cases=tuple(shape(*each) for each in ((64, 64, 1024), (64, 64, 128), (128, 64, 2048))),
        rtol=2e-3,
        budgets=(
            lanes_budget(0.25),
            _products(0.75, 32),
            Budget(
                "warpgroup_waits",
                lambda sizes: products(FP8_STEP, sizes),
                1,
                "waits for products",
                naive=partial(products, 32),
                why="one for 128 of k, of each of 4 warps",
                advice="After how many products do you wait? Sums are needed after 128 of k.",
                case=EVERY,
            ),
            Budget(
                "flops",
                partial(promoted, 128),
                1.5,
                "operations",
                naive=partial(promoted, 32),
                why="the products, and one addition for 128 of k",
                advice="How often does each thread add to its own sums? Once for 128 of k is enough.",
                case=EVERY,
            ),
        ),
        hints=(
            "Let the tensor cores start again in every step: `adds` is false for a step's first product.",
            "After `wait_products<0>()` the registers `d` hold the sum over this step's 128 of k. Add each "
            "to a second array of 32 floats.",
            "The second array begins at zero and is what you store at the end.",
        ),
        section="4 · Sums of eight-bit numbers",
    ),
    Exercise(
        name="tensor.fence",
        lab=LAB,
        gpu=GPU,
        correct_points=3,
        evidence=LaunchTrace(
            arguments=rows_of_floats,
            shape=lambda sizes: Shape((count(sizes, "m") // TILE,), (128,)),
            face="cupy",
        ),
        cases=tuple(Case(f"{m} rows", {"m": m}) for m in (64, 128, 256)),
        rtol=5e-3,
        atol=5e-2,
        hints=(
            "What writes the tile of A, and what reads it?",
            "Threads and tensor cores access shared memory by different paths. What makes the writes of the"
            " one visible to the other?",
            "Every thread that wrote calls `ptx::fence_proxy_async(ptx::space_shared)` before the barrier.",
        ),
        section="Detective · Right on every run",
        detective=True,
    ),
)


_prediction = partial(prediction, "", LAB)

PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "tensor.bytes",
        "Bytes of shared memory that the tensor cores read for a product of m64n64k16 in float16",
        "bytes",
        4096,
        "64 · 16 elements of A and as many of B, of 2 bytes each.",
    ),
    _prediction(
        "tensor.registers",
        "Sums that each of 128 threads holds of a tile of 64 × 64",
        "registers",
        32,
        "64 · 64 / 128 = 32, of 32 bits each.",
    ),
    _prediction(
        "tensor.turns",
        "How many times as fast two warpgroups in turn are as one, for 8 tiles with 600 cycles of products "
        "and 500 cycles of everything after them",
        "times",
        1.66,
        "One warpgroup takes 8 · (600 + 500) = 8,800 cycles. With two, the tensor cores multiply without a "
        "gap for 8 · 600 cycles and only the last 500 follow: 5,300 cycles. 8,800 / 5,300 = 1.66.",
        0.02,
    ),
    _prediction(
        "tensor.lost",
        "Largest part of a sum, in percent, that 64 additions can lose if each loses up to 2⁻¹³ of it",
        "%",
        0.78,
        "64 / 8,192 = 0.78 %.",
        0.02,
    ),
)
