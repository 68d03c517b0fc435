"""Lab 03: what its nine exercises ask.

| exercise | signature | teaches | counted | naive | good | budget |
|---|---|---|---|---|---|---|
| add_one | add_one(a, out) | one thread per element, guard | sectors in all | – | n/4 | n/4 |
| saxpy | saxpy(alpha, x, y) | grid-stride loop | load sectors | 2·n | n/4 | n/4 |
| | | | sectors in all | – | 3·n/8 | 3·n/8 |
| brighten | brighten(image, gain, out) | two axes, x is the column | load sectors | n | n/8 | n/8 |
| | | | store sectors | n | n/8 | n/8 |
| | | | sectors in all | – | n/4 | n/4 |
| plan_launch | plan_launch(rows, cols, block, slots) | grid, idle, waves | – | – | – | right |
| two_paths | two_paths(a, out) | branches by warp | divergent branches/warp | 1 | 0 | 0.02 |
| | | | instructions/32 elem. | 428 | 260 | 285 |
| matmul | matmul(a, b, c) | sum in a register | load sectors | 33·m·n·k/32 | 5·m·n·k/32 | the same |
| | | | bytes stored/element | 4·k | 4 | 4 |
| | | | sectors in all | – | m·n·(5·k/32 + 1/8) | the same |
| block_sum | block_sum(a, sums) | barriers; which threads go on | loaded bytes/element | – | 4 | 4 |
| | | | divergent branches/block | 47 | 6 | 8 |
| | | | instructions/block | 1,407 | 601 | 1,000 |
| | | | bank conflicts/block | 105 | 0 | 0 |
| diffuse | diffuse(rod, out, steps) | launch = grid barrier | bytes stored/cell and step | 8 | 4 | 4 |
| plan_copies | plan_copies(steps, results) | what must cross | – | – | – | right |

Derivations; a warp has 32 lanes, a sector 32 bytes, a float 4. Budgets count sums over the whole run and no
ratios: a mean over requests or branches falls with each cheap one that is added, and so do sectors a request
when the lanes of a warp take turns.

**saxpy**, n = 98,304 on 16 blocks of 128: 64 warps, 2,048 threads, 48 elements each. Grid-stride: a warp
reads 32 neighbours, 128 bytes on a 128-byte boundary, so 4 sectors, of x and of y. A chunk of 48 neighbours
per thread: lanes 192 bytes apart, one sector each, so 32.

**brighten**, 96 × 256 with blocks of (32, 8): a warp is 32 threads along x. x on the columns: 4 sectors, as
each row is a whole number of 128-byte lines. x on the rows: lanes 1,024 bytes apart, so 32.

**two_paths**, runs of 16 elements, 64 steps each path. A kernel that branches on the lane has two
conditional branches a warp, the guard (uniform) and the path (16 lanes each way, divergent). Either path
has 3 operations a step: growth subtracts, multiplies and fuses, decay multiplies twice and subtracts. A
warp that takes both runs 2 · 64 · 3 = 384 of them and 44 others; a warp of one kind 192, and 68 others,
because the new index needs divisions. Computing both and selecting has no divergent branch and still runs
384.

A last warp that has less to do may split as it likes, and so may one that an uneven end gives two kinds.

**matmul**, m × k by k × n with n a multiple of 32 and blocks of (32, 8). x on the columns: a[row, i] is one
address for the warp, 1 sector; b[i, col] 4 sectors; 5 in each of m·n·k/32 rounds. x on the rows: a[row, i]
lies 4·k bytes apart, 32 sectors; b[i, col] 1; 33. One store of 4 bytes per element of c, or k of them when
the sum is kept in c.

**block_sum**, 256 threads, 8 warps. `t % (2·stride) == 0`: strides 1 to 16 split all 8 warps (40), 32
splits 4, 64 two, 128 one: 47. `t < stride`: 128, 64 and 32 fall on warp boundaries; 16, 8, 4, 2 and 1 split
warp 0: 5. `t == 0` splits warp 0 in both: one more. Bank conflicts: neighbours in `s` lie in neighbouring
banks, one wavefront a request. With `s[2·stride·t]` stride 1 is 2-way, 2 is 4-way, 4, 8 and 16 are 8-way,
32 is 4-way, 64 is 2-way: 105 wavefronts more a block. Warp instructions: 601 a block, 876 where
the first stride is read from blockDim, so that the compiler cannot unroll the rounds; 1,407 with `t %
(2·stride) == 0`; about 3,500 when one thread of the block adds all 256.

**diffuse**: every step writes every cell once, 4·n bytes. Copying the result back after each step writes it
twice.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod
from typing import Any

import numpy as np

from gpulab.checks.builders import LANES, count, sectors_of_neighbours, sectors_of_rows
from gpulab.checks.evidence import AnsweredCases, LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes

LAB = "03"
THREADS = 256  # of a block in the exercises with a fixed launch shape


def _saxpy_case(n: int, blocks: int, threads: int, alpha: float) -> Case:
    return Case(
        f"{n} on {blocks} × {threads}", {"n": n, "blocks": blocks, "threads": threads, "alpha": alpha}
    )


def _image_case(rows: int, cols: int, gain: float) -> Case:
    return Case(f"{rows} × {cols}", {"rows": rows, "cols": cols, "gain": gain})


def _map(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    return (Array("a", (count(sizes),)), Array("out", (count(sizes),), role="out"))


def _add_one_case(n: int, threads: int = THREADS) -> Case:
    return Case(f"{n}" if threads == THREADS else f"{n} in blocks of {threads}", {"n": n, "threads": threads})


def _one_thread_each(sizes: Sizes) -> Shape:
    threads = count(sizes, "threads")
    return Shape((max(1, ceil(count(sizes) / threads)),), (threads,))


def _blocks_of_256(sizes: Sizes) -> Shape:
    return Shape((max(1, ceil(count(sizes) / THREADS)),), (THREADS,))


def _saxpy(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = count(sizes)
    return (
        Scalar("alpha", float(sizes["alpha"]), "float32"),
        Array("x", (n,)),
        Array("y", (n,), role="inout"),
    )


def _given_shape(sizes: Sizes) -> Shape:
    return Shape((count(sizes, "blocks"),), (count(sizes, "threads"),))


def _over(rows: str, cols: str, sizes: Sizes) -> Shape:
    """Blocks of (32, 8) over a matrix, x along its columns."""
    return Shape((max(1, ceil(count(sizes, cols) / 32)), max(1, ceil(count(sizes, rows) / 8))), (32, 8))


def _image(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    shape = (count(sizes, "rows"), count(sizes, "cols"))
    return (
        Array("image", shape, fill="uniform"),
        Scalar("gain", float(sizes["gain"]), "float32"),
        Array("out", shape, role="out"),
    )


def _runs(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = count(sizes)
    return (Array("a", (n,), fill="uniform"), Array("out", (n,), role="out"))


def _product(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    m, k, n = (count(sizes, name) for name in "mkn")
    return (Array("a", (m, k)), Array("b", (k, n)), Array("c", (m, n), role="out"))


def _sums(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = count(sizes)
    return (Array("a", (n,), fill="uniform"), Array("sums", (max(1, ceil(n / THREADS)),), role="out"))


def _rod(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = count(sizes)
    return (
        Array("rod", (n,), fill="uniform"),
        Array("out", (n,), role="out"),
        Scalar("steps", count(sizes, "steps")),
    )


def _launch_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """Matrices and blocks: ordinary ones, blocks that are too large, grids that are too high."""
    questions: list[tuple[Any, ...]] = []
    blocks = ([16, 16], [32, 8], [32, 32], [128, 1], [64, 4], [1, 256], [48, 5])
    for i in range(count(sizes, "questions")):
        rows, cols = (int(v) for v in generator.integers(1, 5000, 2))
        block = list(blocks[int(generator.integers(len(blocks)))])
        if i % 5 == 1:
            block = [[33, 32], [1025, 1], [64, 32]][int(generator.integers(3))]
        elif i % 5 == 2:
            rows, block[1] = int(generator.integers(600_000, 2_000_000)), 8
        elif i % 5 == 3:
            rows, cols = int(generator.integers(0, 2)), int(generator.integers(1, 3))
        slots = int(generator.choice([40 * 4, 80 * 8, 108 * 8, 132 * 8, 132 * 16]))
        questions.append((rows, cols, block, slots))
    return questions


def _copy_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """Programs of GPU and host steps over a few named arrays; a step reads only what exists."""
    questions: list[tuple[Any, ...]] = []
    names = ["a", "b", "c", "d", "e"]
    for _ in range(count(sizes, "programs")):
        exist = list(generator.choice(names, 2, replace=False))
        steps = []
        for _ in range(count(sizes, "steps")):
            where = "gpu" if generator.random() < 0.7 else "host"
            reads = [str(v) for v in generator.permutation(exist)[: int(generator.integers(1, 3))]]
            write = str(generator.choice(names))
            steps.append([where, reads, [write]])
            if write not in exist:
                exist.append(write)
        results = [str(v) for v in generator.permutation(exist)[:2]]
        questions.append((steps, results))
    return questions


def _sectors_of_arrays(*names: str, arrays: int = 2) -> Callable[[Sizes], float]:
    """The sectors of whole arrays, each element touched once; `names` of sizes are multiplied."""
    return lambda sizes: arrays * float(ceil(4 * prod(count(sizes, name) for name in names) / 32))


def _sectors_of_saxpy(sizes: Sizes) -> float:
    """x and y loaded, y stored, each element once."""
    lanes = min(LANES, count(sizes, "threads"))
    return 3.0 * sectors_of_neighbours(count(sizes), count(sizes, "blocks"), lanes)


def _sectors_loaded_by_saxpy(sizes: Sizes) -> float:
    """Those of x and y."""
    return _sectors_of_saxpy(sizes) * 2 / 3


def _sectors_of_one_image(sizes: Sizes) -> float:
    return float(sectors_of_rows(count(sizes, "rows"), count(sizes, "cols")))


def _sectors_of_both_images(sizes: Sizes) -> float:
    return 2 * _sectors_of_one_image(sizes)


def _sectors_of_factors(sizes: Sizes) -> float:
    """One sector of a in each round of a warp, and one row of b for each row of c."""
    m, k, n = (count(sizes, name) for name in "mkn")
    return float(m * k * ceil(n / LANES) + m * sectors_of_rows(k, n))


def _sectors_of_product(sizes: Sizes) -> float:
    return _sectors_of_factors(sizes) + sectors_of_rows(count(sizes, "m"), count(sizes, "n"))


def _sectors(
    kind: str, limit: Callable[[Sizes], float], naive: float, points: float, why: str, advice: str
) -> Budget:
    """On loads or stores by themselves. `naive` is how many times the limit the obvious kernel moves."""
    return Budget(
        metric=f"global_{kind}_sectors",
        limit=limit,
        naive=lambda sizes: naive * limit(sizes),
        points=points,
        label=f"{kind} sectors",
        why=why,
        advice=f"That is {{times}} × what each element once needs. {advice}",
        case=EVERY,
    )


def _sectors_in_all(
    limit: Callable[[Sizes], float], points: float, advice: str, why: str = "no element twice"
) -> Budget:
    return Budget(
        metric="global_sectors",
        limit=limit,
        points=points,
        label="sectors in all",
        why=why,
        advice=f"That is {{times}} × what the elements need. {advice}",
        case=EVERY,
    )


def _warps(sizes: Sizes) -> int:
    """Warps that are launched in blocks of 256 threads."""
    return THREADS // LANES * ceil(count(sizes) / THREADS)


def _instructions(sizes: Sizes) -> float:
    return 285.0 * _warps(sizes)


def _instructions_of_both_paths(sizes: Sizes) -> float:
    return 410.0 * _warps(sizes)


def _divergent_branches(sizes: Sizes) -> float:
    """A fiftieth of the warps, and the last ones with anything to do where they have no whole one's work."""
    ragged = 3 if count(sizes) % THREADS else 0
    return max(ragged, 0.02 * ceil(count(sizes) / LANES))


def _divergent_branches_of_sums(sizes: Sizes) -> float:
    """Of each block, and once more for the guards of one that is not full."""
    return 8.0 * (ceil(count(sizes) / THREADS) + (count(sizes) % THREADS > 0))


def _one_store_each(sizes: Sizes) -> float:
    return 4.0 * count(sizes, "m") * count(sizes, "n")


def _one_store_a_round(sizes: Sizes) -> float:
    return _one_store_each(sizes) * count(sizes, "k")


def _one_write_a_step(sizes: Sizes) -> float:
    """Both ends of a rod of one cell are the same cell, and may be written each."""
    return 4.0 * max(count(sizes), 2) * count(sizes, "steps")


def _two_writes_a_step(sizes: Sizes) -> float:
    return 4.0 * count(sizes) * (2 * count(sizes, "steps") - 1)


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="basics.add_one",
        lab=LAB,
        varies=("n",),
        correct_points=1.5,
        cases=(
            *(_add_one_case(n) for n in (256, 1, 1023, 0, 1025)),
            _add_one_case(500, 128),
            _add_one_case(1024),
        ),
        evidence=LaunchTrace(arguments=_map, shape=_one_thread_each),
        budgets=(
            _sectors_in_all(_sectors_of_arrays("n"), 0.5, "How many elements does each of your threads do?"),
        ),
        hints=(
            "Which three numbers tell a thread its place in the whole grid?",
            "How many threads do the blocks before yours have? Your place in your own block comes on top.",
            "Threads with i >= a.size must do nothing: put the one line of work under `if i < a.size:`.",
        ),
        section="1 · One thread, one element",
    ),
    Exercise(
        name="basics.saxpy",
        lab=LAB,
        varies=("n",),
        correct_points=2.0,
        cases=(
            _saxpy_case(1023, 4, 256, 2.5),
            _saxpy_case(1025, 4, 256, -0.5),
            _saxpy_case(300, 1, 1, 2.5),
            _saxpy_case(1, 3, 64, 1.0),
            _saxpy_case(0, 1, 32, 2.5),
            _saxpy_case(98_304, 16, 128, 3.0),
        ),
        evidence=LaunchTrace(arguments=_saxpy, shape=_given_shape, race_case="1025 on 4 × 256"),
        budgets=(
            _sectors(
                "load",
                _sectors_loaded_by_saxpy,
                8,
                2.0,
                "32 neighbours are 4 sectors",
                "Look at one warp in one round of the loop. Which elements do its 32 lanes touch together?",
            ),
            _sectors_in_all(_sectors_of_saxpy, 1.0, "Is the step of your loop the number of all threads?"),
        ),
        rtol=1e-5,
        atol=1e-6,
        hints=(
            (
                "A thread starts at its own index and goes on until n. How far is its next element, if all "
                "threads of the grid go on together?"
            ),
            "The distance is the number of threads in the grid: cuda.gridsize(1).",
            "for i in range(cuda.grid(1), y.size, cuda.gridsize(1)): … and the loop's end is the guard.",
        ),
        section="2 · Any number of elements: the grid-stride loop",
    ),
    Exercise(
        name="basics.brighten",
        lab=LAB,
        varies=("rows", "cols"),
        correct_points=2.0,
        cases=(
            _image_case(64, 64, 1.5),
            _image_case(33, 65, 2.0),
            _image_case(1025, 33, 1.5),
            _image_case(7, 1023, 0.5),
            _image_case(1, 1, 1.5),
            _image_case(20, 37, 1.75),
            _image_case(96, 256, 1.25),
        ),
        evidence=LaunchTrace(arguments=_image, shape=lambda sizes: _over("rows", "cols", sizes)),
        budgets=(
            _sectors(
                "load",
                _sectors_of_one_image,
                8,
                1.0,
                "32 pixels of a row are 4 sectors",
                "Threads 0, 1, 2 … of a warp differ in x. Are image[…] of x = 0 and of x = 1 neighbours in "
                "memory?",
            ),
            _sectors(
                "store",
                _sectors_of_one_image,
                8,
                1.0,
                "32 pixels of a row are 4 sectors",
                "The last index of out is the one that runs through memory. Which of x and y should it be?",
            ),
            _sectors_in_all(_sectors_of_both_images, 1.0, "How many pixels does each of your threads do?"),
        ),
        rtol=1e-6,
        hints=(
            (
                "`cuda.grid(2)` returns (x, y). In an array `image[i, j]`, which index moves to the "
                "neighbour in memory?"
            ),
            (
                "The grid covers the columns with x, so x is the column and y the row: image[y, x]. Each "
                "axis needs its own guard."
            ),
            "Rows are image.shape[0] and columns are image.shape[1]; min(1, …) is there for device code too.",
        ),
        section="3 · Two axes",
    ),
    Exercise(
        name="basics.plan_launch",
        lab=LAB,
        correct_points=3.0,
        evidence=AnsweredCases(questions=_launch_questions),
        cases=(Case("5 plans", {"questions": 5}), Case("50 plans", {"questions": 50})),
        hints=(
            (
                "How many blocks are needed for cols columns when each covers block[0] of them? Try 1, 32 "
                "and 33 columns by hand."
            ),
            "(cols + bx - 1) // bx rounds up; at least one block is launched even for an empty matrix.",
            (
                "Idle threads are all threads launched minus rows · cols. Waves are the blocks divided by "
                "the slots, rounded up."
            ),
        ),
        section="4 · Choosing the launch",
    ),
    Exercise(
        name="basics.two_paths",
        lab=LAB,
        varies=("n",),
        correct_points=2.0,
        cases=(
            Case("256", {"n": 256}),
            Case("1000", {"n": 1000}),
            Case("17", {"n": 17}),
            Case("1025", {"n": 1025}),
            Case("16384", {"n": 16_384}),
        ),
        evidence=LaunchTrace(arguments=_runs, shape=_blocks_of_256),
        budgets=(
            Budget(
                metric="divergent_branches",
                limit=_divergent_branches,
                naive=lambda sizes: ceil(count(sizes) / LANES),
                points=1.0,
                label="divergent branches",
                why="no warp takes both paths",
                case=EVERY,
                advice=(
                    "Lanes 0–15 of each warp grow and lanes 16–31 decay. Which 32 elements could one warp "
                    "take, all of one kind?"
                ),
            ),
            Budget(
                metric="instructions",
                limit=_instructions,
                naive=_instructions_of_both_paths,
                points=2.0,
                label="warp instructions",
                why="285 for each warp",
                case=EVERY,
                advice="Computing both paths and choosing one has no divergent branch, and still costs both.",
            ),
        ),
        rtol=1e-5,
        atol=1e-6,
        hints=(
            "Keep the work per element as it is and change only which thread does which element.",
            (
                "Number the growing elements 0, 1, 2 …: element number g lies at index g // 16 * 32 + g % "
                "16. Where does the decaying one number g lie?"
            ),
            (
                "Let warps 0, 2, 4 … take 32 growing elements each and warps 1, 3, 5 … 32 decaying ones: "
                "which warp a thread is in is i // 32. Guard with the new index."
            ),
        ),
        section="5 · Branches cost what the warp runs",
    ),
    Exercise(
        name="basics.matmul",
        lab=LAB,
        varies=("m", "k", "n"),
        correct_points=2.0,
        cases=(
            Case("32 × 32 × 32", {"m": 32, "k": 32, "n": 32}),
            Case("33 × 17 × 65", {"m": 33, "k": 17, "n": 65}),
            Case("1 × 100 × 1", {"m": 1, "k": 100, "n": 1}),
            Case("9 × 1 × 40", {"m": 9, "k": 1, "n": 40}),
            Case("64 × 96 × 128", {"m": 64, "k": 96, "n": 128}),
        ),
        evidence=LaunchTrace(
            arguments=_product,
            shape=lambda sizes: _over("m", "n", sizes),
            race_case="33 × 17 × 65",
        ),
        budgets=(
            _sectors(
                "load",
                _sectors_of_factors,
                33 / 5,
                1.5,
                "in each round of a warp 1 for a, 4 for b",
                "In one round of the loop, which elements of a and of b do the 32 lanes of a warp read?",
            ),
            Budget(
                metric="global_store_bytes",
                limit=_one_store_each,
                naive=_one_store_a_round,
                points=1.0,
                label="bytes stored",
                why="one store for each element of c",
                case=EVERY,
                advice="Does your loop write to c in each round? A sum fits in a register.",
            ),
            _sectors_in_all(
                _sectors_of_product,
                0.5,
                "Which elements of a and b does one thread read, and how often?",
                "no element twice by a thread",
            ),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "One thread computes one element of c. Which row of a and which column of b does it need?",
            (
                "The grid covers the columns of c with x, so x is the column and y the row, as in the image. "
                "Add up in a variable that starts as float32(0.0)."
            ),
            (
                "for i in range(a.shape[1]): the sum grows by a[row, i] * b[i, col]; after the loop one "
                "line writes c[row, col]."
            ),
        ),
        section="6 · A matrix product, the plain way",
    ),
    Exercise(
        name="basics.block_sum",
        lab=LAB,
        varies=("n",),
        correct_points=2.0,
        cases=(
            Case("256", {"n": 256}),
            Case("1000", {"n": 1000}),
            Case("1", {"n": 1}),
            Case("1025", {"n": 1025}),
            Case("8192", {"n": 8192}),
        ),
        evidence=LaunchTrace(arguments=_sums, shape=_blocks_of_256, race_case="1000"),
        budgets=(
            Budget(
                metric="global_load_bytes",
                limit=lambda sizes: 4.0 * count(sizes),
                points=0.5,
                label="bytes loaded",
                case=EVERY,
                why="each element once",
                advice="Each element is loaded {times} times. Let the block fetch it once, into s.",
            ),
            Budget(
                metric="divergent_branches",
                limit=_divergent_branches_of_sums,
                naive=lambda sizes: 47.0 * ceil(count(sizes) / THREADS),
                points=0.5,
                label="divergent branches",
                why="8 for each block, and 8 where the last is not full",
                case=EVERY,
                advice=(
                    "In the first round 128 of 256 threads add. Which 128 should it be, so that whole warps"
                    " have nothing to do?"
                ),
            ),
            Budget(
                metric="instructions",
                limit=lambda sizes: 1000.0 * ceil(count(sizes) / THREADS),
                naive=lambda sizes: 1400.0 * ceil(count(sizes) / THREADS),
                points=1.5,
                label="warp instructions",
                why="1,000 for each block",
                case=EVERY,
                advice=(
                    "256 numbers take 8 rounds if all threads that have a pair add at the same time. How "
                    "many rounds does your slowest thread need?"
                ),
            ),
            Budget(
                metric="bank_conflicts",
                limit=0.0,
                naive=lambda sizes: 105.0 * ceil(count(sizes) / THREADS),
                points=0.5,
                label="bank conflicts",
                why="neighbouring threads, neighbouring words",
                case=EVERY,
                advice=(
                    "Let neighbouring threads use neighbouring elements of s: then each lane has a bank of "
                    "its own."
                ),
            ),
        ),
        rtol=1e-5,
        hints=(
            (
                "The race check names two lines and two threads of different warps. What makes the second "
                "wait for the first?"
            ),
            (
                "A barrier belongs behind every round in which some thread reads what another wrote, and "
                "all threads must reach it."
            ),
            (
                "For the cost: begin with stride 128, add s[t + stride] to s[t] for t < stride, and halve "
                "the stride in each round."
            ),
        ),
        section="Detective · A sum that is right today",
        detective=True,
    ),
    Exercise(
        name="basics.diffuse",
        lab=LAB,
        varies=("n",),
        correct_points=2.0,
        cases=(
            Case("300, 1 step", {"n": 300, "steps": 1}),
            Case("1025, 4 steps", {"n": 1025, "steps": 4}),
            Case("64, 9 steps", {"n": 64, "steps": 9}),
            Case("100, 2 steps", {"n": 100, "steps": 2}),
            Case("2, 3 steps", {"n": 2, "steps": 3}),
            Case("4096, 8 steps", {"n": 4096, "steps": 8}),
        ),
        evidence=LaunchTrace(arguments=_rod, race_case="1025, 4 steps"),
        budgets=(
            Budget(
                metric="global_store_bytes",
                limit=_one_write_a_step,
                naive=_two_writes_a_step,
                points=2.0,
                label="bytes stored",
                why="each step writes each cell once",
                case=EVERY,
                advice="Does a second kernel copy the result back? Two arrays can take turns instead.",
            ),
        ),
        rtol=1e-4,
        atol=1e-5,
        hints=(
            "No barrier inside a kernel makes one block wait for another. What does?",
            (
                "Write a kernel for one step, from one array into another, and launch it `steps` times from "
                "Python. cuda.device_array_like(out) makes a second array."
            ),
            (
                "rod may not change, so only the first step reads it. Whether the number of steps is odd "
                "decides into which array the first step must write, so that the last one lands in out."
            ),
        ),
        section="7 · Waiting for each other",
    ),
    Exercise(
        name="basics.plan_copies",
        lab=LAB,
        correct_points=4.0,
        evidence=AnsweredCases(questions=_copy_questions),
        cases=(
            Case("one step", {"programs": 6, "steps": 1}),
            Case("three steps", {"programs": 20, "steps": 3}),
            Case("ten steps", {"programs": 20, "steps": 10}),
        ),
        hints=(
            (
                "Keep two sets: the names whose newest version is on the host, and those whose newest "
                "version is on the device."
            ),
            (
                "A read adds the name to the reader's set, with a copy if it was not there. A write leaves "
                "the name in the writer's set only."
            ),
            (
                "Begin with every name on the host. After the last step each result must be in the host's "
                "set, or it needs one more copy."
            ),
        ),
        section="8 · Copies",
    ),
)

PREDICTIONS: tuple[Prediction, ...] = (
    Prediction(
        name="basics.blocks",
        lab=LAB,
        question="How many blocks of 256 threads cover 1,025 elements?",
        unit="blocks",
        answer=5,
        reason="4 blocks have 1,024 threads, one too few; the fifth has 255 threads without an element.",
    ),
    Prediction(
        name="basics.rounds",
        lab=LAB,
        question="98,304 elements on 16 blocks of 128 threads: how many elements does each thread get?",
        unit="elements",
        answer=48,
        reason="16 · 128 = 2,048 threads, and 98,304 / 2,048 = 48.",
    ),
    Prediction(
        name="basics.swapped",
        lab=LAB,
        question="`image[x, y]` of 96 × 256 pixels: how many sectors does one load request move?",
        unit="sectors",
        answer=32,
        reason=(
            "Threads that differ in x are a row apart, 256 · 4 = 1,024 bytes: a sector for each of the 32."
        ),
    ),
    Prediction(
        name="basics.blocks_3620",
        lab=LAB,
        question="How many blocks of (16, 16) cover a 3620 × 3620 matrix?",
        unit="blocks",
        answer=227 * 227,
        reason="3620 / 16 = 226.25, rounded up on each axis: 227 · 227.",
    ),
    Prediction(
        name="basics.uniform",
        lab=LAB,
        question="How many percent of the branches of `two_paths_by_lane` are uniform?",
        unit="%",
        answer=50,
        tolerance=0.02,
        reason=(
            "Every warp meets two branches. All its threads pass the guard; the choice splits them 16 to 16."
        ),
    ),
    Prediction(
        name="basics.matmul_sectors",
        lab=LAB,
        question="How many sectors does a load request of the matrix product move on average?",
        unit="sectors",
        answer=2.5,
        reason="One sector for the element of A that all threads share, four for 32 neighbours of B: 5 / 2.",
    ),
    Prediction(
        name="basics.two_writes",
        lab=LAB,
        question="How many bytes are stored per cell and step, if the result is copied back each time?",
        unit="B",
        answer=8,
        reason="The step writes each cell once, 4 bytes, and the copy writes each cell once more.",
    ),
    Prediction(
        name="basics.copies",
        lab=LAB,
        question="Three kernels with two NumPy arrays each: how many copies?",
        unit="copies",
        answer=12,
        reason="Each launch copies both arrays in and both back, 4 copies; two would do: x in and w out.",
    ),
)
