"""Lab 07, part A: what its seven exercises in CUDA C++ ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| cpp.invert | kernel (image, out, rows, cols, pitch) | padded rows | load sectors | 8 × good | a row's | 4 |
| | | | store sectors | 8 × good | a row's | |
| | | | sectors in all | – | 2·rows·⌈cols/32⌉ | |
| cpp.scale | host (x, factor), three types | templates, typed scalars | launches | – | 1 | 4 |
| | | | bytes/element | – | 2·itemsize | |
| cpp.copy4 | kernel (a, b, n), 1,024 threads | 16-byte loads, their tail | requests | n/16 | n/64 | 3 |
| | | | sectors in all | – | n/4 | |
| cpp.mix | mix(ptx) → counts | reading PTX | answers | – | – | 3 |
| cpp.two_product | kernel (a, b, p, e, n) | the fused multiply-add | flops/element | 17 | 3 | 3 |
| | | | instructions/warp | 42 | 28 | |
| | | pointers that may alias | bytes loaded/element | 32 | 16 | |
| cpp.way | way(binary, gpu) → what runs | machine code and PTX of other GPUs | answers | – | – | 3 |
| cpp.shuffle | kernel (a, out, n, step), mended | 32-bit products overflow | – | – | – | 2 |

Derivations:

**invert**: bytes, so a warp along a row asks for 32 B, which is one sector because rows start at multiples of
32 (the pitch is one). Walking its 32 × 8 block column by column, a warp's 32 lanes lie in 4 columns of 8
rows: 8 sectors a request. A row of `cols` elements has ⌈cols/32⌉ sectors, loaded once and stored once.

**scale**: each element is read once and written once.

**copy4**: 32 lanes · 16 B = 512 B in one request instead of 128 B: ⌈⌊n/4⌋/32⌉ requests, and one more for the
up to three elements behind the last whole four; as many stored. With 4-byte accesses ⌈n/32⌉ each. Bytes and
sectors stay: n · 4 B / 32 B each way.

**two_product**: p = a·b is one operation, e = fma(a, b, −p) two: 3. Without it, T. J. Dekker's product
("A floating-point technique for extending the available precision", 1971) splits both factors (c = s·x,
high = c − (c − x), low = x − high: 4 operations each), multiplies (1) and adds up
low·low' − (((p − high·high') − low·high') − high·low') (4 products, 4 differences): 4 + 4 + 1 + 8 = 17.
Two doubles are loaded, 16 B; a kernel that stores p before it is done with a and b loads them again, because
p might point at them: 32 B.

**shuffle**: out[i] = a[(i · step) % n] with step = 48,271: the product needs more than 32 bits from
i = 88,977 on, since 88,977 · 48,271 = 4,295,008,767 and 2³² = 4,294,967,296. The check takes another
step where the product is too large, so that what it says is not the learner's answer.

Where a count is provably the least possible the budget is that count; elsewhere it leaves 10 %.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import AnsweredCases, LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes
from gpulab.simulator.compile import cuda_c_module

LAB = "07"

TILE = (32, 8)  # a block of cpp.invert
STREAM = Shape(grid=(4,), block=(256,))  # the launch of cpp.copy4
BLOCK = 256
STEP = 48_271  # a prime, of the notebook's shuffle
LARGE_STEP = 1_000_003  # a prime whose products leave 32 bits at i = 4,295


def blocks(n: int, size: int) -> int:
    """Blocks of `size` that cover n elements; at least one, because a grid of none cannot be launched."""
    return max(1, -(-n // size))


def _n(sizes: Sizes) -> int:
    return int(sizes["n"])


def _size(n: int) -> Case:
    return Case(f"{n:,}", {"n": n})


def _blocks_of(size: int) -> Shape:
    return Shape((size,), (BLOCK,))


def image(rows: int, cols: int, pitch: int) -> Case:
    """An image of rows × cols bytes whose rows lie `pitch` bytes apart."""
    return Case(f"{rows} × {cols} in {pitch}", {"rows": rows, "cols": cols, "pitch": pitch})


def invert_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    shape = (int(sizes["rows"]), int(sizes["pitch"]))
    return (
        Array("image", shape, "uint8", fill="integers:0:256"),
        Array("out", shape, "uint8", role="inout", fill="integers:0:256"),
        *(Scalar(name, int(sizes[name]), "int32") for name in ("rows", "cols", "pitch")),
    )


def invert_shape(sizes: Sizes) -> Shape:
    return Shape((blocks(int(sizes["cols"]), TILE[0]), blocks(int(sizes["rows"]), TILE[1])), TILE)


def image_sectors(sizes: Sizes) -> int:
    """Every sector with an element of the image."""
    return int(sizes["rows"]) * -(-int(sizes["cols"]) // 32)


def invert_sectors(sizes: Sizes) -> int:
    """Loaded once and stored once."""
    return 2 * image_sectors(sizes)


def column_sectors(sizes: Sizes) -> int:
    """Where a warp takes columns of its block: 8 sectors for one."""
    return 8 * image_sectors(sizes)


def typed(n: int, dtype: str) -> Case:
    """n elements of a type."""
    return Case(f"{n:,} {dtype}", {"n": n, "dtype": dtype})


def scale_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    dtype = str(sizes["dtype"])
    whole = dtype.startswith("int")
    x = Array("x", (_n(sizes),), dtype, role="inout", fill="integers:-1000:1000" if whole else "normal")
    return (x, Scalar("factor", 3, "int64") if whole else Scalar("factor", 0.7, "float64"))


def scale_bytes(sizes: Sizes) -> int:
    """Every element read once and written once."""
    return 2 * _n(sizes) * np.dtype(str(sizes["dtype"])).itemsize


def copy4_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = _n(sizes)
    return (Array("a", (n,)), Array("b", (n,), role="out"), Scalar("n", n, "int32"))


def copy4_requests(sizes: Sizes) -> int:
    """Load and store requests of a copy in fours, and one each for what is left."""
    n = _n(sizes)
    return 2 * (-(-(n // 4) // 32) + (n % 4 > 0))


def two_product_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = _n(sizes)
    inputs = (Array(name, (n,), "float64") for name in "ab")
    outputs = (Array(name, (n,), "float64", role="out") for name in "pe")
    return (*inputs, *outputs, Scalar("n", n, "int32"))


def shuffle_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = _n(sizes)
    return (
        Array("a", (n,)),
        Array("out", (n,), role="out"),
        Scalar("n", n, "int32"),
        Scalar("step", int(sizes.get("step", STEP)), "int32"),
    )


def stepping(n: int, step: int) -> Case:
    """A shuffle of n elements with a step of its own."""
    return Case(f"{n:,} in steps of {step:,}", {"n": n, "step": step})


# Kernels whose PTX is to be read: what each has is named by its case. {t} is a type, {k} a number.
PTX_SOURCES = {
    "plain": """
extern "C" __global__ void plain(const {t}* x, const {t}* y, {t}* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * y[i] + ({t}){k};
}}""",
    "integers": """
extern "C" __global__ void integers(const int* x, const unsigned char* y, int* out, int n) {{
    int i = blockIdx.x * {k} + threadIdx.x;
    if (i < n) out[i] = x[i] * y[i] + {k};
}}""",
    "wide": """
extern "C" __global__ void wide(const {t}{w}* x, const {t}{w}* y, {t}* out) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {t}{w} a = x[i], b = y[i];
    out[i] = a.x * b.x + a.y * ({t}){k};
}}""",
    "unrolled": """
extern "C" __global__ void unrolled(const {t}* x, const {t}* y, {t}* out) {{
    {t} sum = 0;
    #pragma unroll
    for (int j = 0; j < {k}; j++) sum += x[threadIdx.x + 32 * j] * y[j];
    out[threadIdx.x] = sum;
}}""",
    "other memories": """
__constant__ {t} weights[8];
extern "C" __global__ void memories(const {t}* __restrict__ x, {t}* out) {{
    __shared__ {t} tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
    __syncthreads();
    out[t] = tile[63 - t] * weights[t % 8] + x[t + 64];
}}""",
}


def listing(source: str) -> str:
    """The PTX of CUDA C++ from its kernel's head on."""
    ptx = cuda_c_module(source, (8, 0), "listing").ptx
    return ptx[ptx.index(".visible .entry") :].rstrip("\0\n")


def mix_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """The PTX of two kernels with the case's traits."""
    source = PTX_SOURCES[str(sizes["traits"])]
    types = generator.permutation(["float", "double"])
    return [
        (listing(source.format(t=t, k=generator.integers(3, 8), w=4 if t == "float" else 2)),) for t in types
    ]


def _traits(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"traits": name}) for name in names)


MIX_CASES = _traits(*PTX_SOURCES)


# cpp.way: compute capabilities of GPUs, and those with instructions or a family of their own.
CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0", "12.1")
WITH_OWN, WITH_FAMILY = CAPABILITIES[4:], CAPABILITIES[5:]


def way_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """Fat binaries and GPUs."""

    def entry(kind: str, capability: str, suffix: str = "") -> str:
        return f"{kind}_{capability.replace('.', '')}{suffix}"

    def of_any(kinds: tuple[str, ...], suffixes: str = "") -> str:
        suffix = str(generator.choice(["", *suffixes]))
        known = {"a": WITH_OWN, "f": WITH_FAMILY}.get(suffix, CAPABILITIES)
        return entry(str(generator.choice(kinds)), str(generator.choice(known)), suffix)

    match sizes["kind"]:
        case "machine code":
            return [([entry("sm", old)], new) for old in CAPABILITIES for new in CAPABILITIES]
        case "PTX":
            return [([entry("compute", old)], new) for old in CAPABILITIES for new in CAPABILITIES]
        case "one GPU only":
            found = [
                ([entry(k, old, "a")], new) for k in ("sm", "compute") for old in WITH_OWN for new in WITH_OWN
            ]
        case "families":
            found = [
                ([entry(k, old, "f")], new)
                for k in ("sm", "compute")
                for old in WITH_FAMILY
                for new in WITH_FAMILY
            ]
        case _:
            both = ("sm", "compute")
            found = [
                ([of_any(both, "af") for _ in range(int(generator.integers(2, 5)))], new)
                for new in CAPABILITIES
                for _ in range(6)
            ]
            found.append(([], "9.0"))
    return found


def _kinds(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"kind": name}) for name in names)


WAY_CASES = _kinds("machine code", "PTX", "one GPU only", "families", "whole programs")

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="cpp.invert",
        lab=LAB,
        correct_points=1.6,
        evidence=LaunchTrace(arguments=invert_arguments, shape=invert_shape, face="cupy"),
        cases=(
            image(8, 32, 32),
            image(16, 64, 96),
            image(9, 33, 64),
            image(1, 1, 32),
            image(30, 257, 288),
            image(64, 256, 512),
        ),
        budgets=(
            Budget(
                "global_load_sectors",
                image_sectors,
                0.8,
                "load sectors",
                naive=column_sectors,
                why="32 lanes × 1 B = 1 sector",
                advice="Lanes differ in `threadIdx.x`. By how many bytes do their addresses differ?",
                case=EVERY,
            ),
            Budget(
                "global_store_sectors",
                image_sectors,
                0.8,
                "store sectors",
                naive=column_sectors,
                why="32 lanes × 1 B = 1 sector",
                advice="Lanes differ in `threadIdx.x`. By how many bytes do their addresses differ?",
                case=EVERY,
            ),
            Budget(
                "global_sectors",
                invert_sectors,
                0.8,
                "sectors in all",
                why="each element loaded once, stored once",
                advice="That is {times} × what the image has. Does each thread handle one element?",
                case=EVERY,
            ),
        ),
        hints=(
            "`blockIdx.x * blockDim.x + threadIdx.x` is the column. Which expression gives the row?",
            "Row `row` starts `row * pitch` bytes after `image`. Where is its element `col`?",
            "Threads with `col >= cols` or `row >= rows` have no element, even if `col < pitch`.",
        ),
        section="2 · Pointers know no shape",
    ),
    Exercise(
        name="cpp.scale",
        lab=LAB,
        varies=("n",),
        correct_points=2,
        evidence=LaunchTrace(arguments=scale_arguments, face="cupy"),
        cases=(
            typed(1000, "float32"),
            typed(1000, "float64"),
            typed(777, "int32"),
            typed(1, "float32"),
            typed(0, "float64"),
            typed(100_000, "float32"),
        ),
        budgets=(
            Budget(
                "launches",
                1,
                1,
                "launches",
                why="one is enough",
                advice="Can one launch have enough blocks for all elements?",
                case=EVERY,
            ),
            Budget(
                "global_bytes",
                scale_bytes,
                1,
                "bytes",
                why="each element read once, written once",
                advice="That is {times} × the bytes of one pass. How many threads work on the same element?",
                case=EVERY,
            ),
        ),
        hints=(
            '`module.get_function("scale<float>")` is one instance. Which C++ type is `x.dtype`?',
            "A launch converts nothing, so `factor` must have the type T. `x.dtype.type(factor)` has it.",
            "A grid of 0 blocks is an error in CUDA. Return before the launch if there is nothing to do.",
        ),
        section="4 · One text, many types",
    ),
    Exercise(
        name="cpp.copy4",
        lab=LAB,
        correct_points=1.2,
        evidence=LaunchTrace(arguments=copy4_arguments, shape=lambda sizes: STREAM, face="cupy"),
        cases=tuple(map(_size, (4096, 1000, 1, 3, 1023, 65_536, 65_539))),
        budgets=(
            Budget(
                "global_requests",
                copy4_requests,
                1.4,
                "requests",
                naive=lambda sizes: 2 * -(-_n(sizes) // 32),
                why="16 B a lane",
                advice="That is {times} × the budget. How many bytes does a lane move with one load, and "
                "how many lanes take part in the tail?",
            ),
            Budget(
                "global_sectors",
                lambda sizes: 2 * -(-_n(sizes) // 8),
                0.4,
                "sectors in all",
                why="each element loaded once, stored once",
                advice="That is {times} × what the two arrays have. Is anything copied twice, or does one "
                "thread copy one float after another?",
            ),
        ),
        hints=(
            "`reinterpret_cast<const float4*>(a)` is the same address, counted in steps of 16 bytes.",
            "There are n / 4 whole float4 in n floats. Copy them in a grid-stride loop.",
            "The rest starts at element n / 4 * 4. It is at most three floats, for a second loop or an if.",
        ),
        section="5 · Sixteen bytes at a time",
    ),
    Exercise(
        name="cpp.mix",
        lab=LAB,
        evidence=AnsweredCases(questions=mix_questions),
        correct_points=3,
        cases=MIX_CASES,
        hints=(
            "Go through the listing line by line. The opcode is the first word of a line, or the second if "
            "the first starts with @.",
            '`opcode.split(".")` gives its parts. In a load from global memory the first part is `ld`, and '
            "one of the others is `global`.",
            "The last part is a type with its number of bits, as in `f64`. A part `v2` or `v4` multiplies "
            "the bytes by 2 or 4. Fused multiply-adds are `fma` for floats and `mad` for integers: count "
            "only `fma`.",
        ),
        section="6 · From your line to PTX",
    ),
    Exercise(
        name="cpp.two_product",
        lab=LAB,
        varies=("n",),
        correct_points=1.4,
        evidence=LaunchTrace(
            arguments=two_product_arguments,
            shape=lambda sizes: _blocks_of(blocks(_n(sizes), BLOCK)),
            face="cupy",
        ),
        cases=tuple(map(_size, (1000, 1, 257, 0, 4096))),
        budgets=(
            Budget(
                "instructions",
                lambda sizes: 34 * BLOCK // 32 * blocks(_n(sizes), BLOCK),
                0.4,
                "instructions",
                why="34 for each warp",
                advice="Integer arithmetic can do it as well, but it costs more. Which single instruction "
                "rounds a product and a sum only once?",
                case=EVERY,
            ),
            Budget(
                "flops",
                lambda sizes: 3 * _n(sizes),
                0.6,
                "operations",
                naive=lambda sizes: 17 * _n(sizes),
                why="1 for p, 2 for e",
                advice="Which single instruction rounds a product and a sum only once?",
                case=EVERY,
            ),
            Budget(
                "global_load_bytes",
                lambda sizes: 16 * _n(sizes),
                0.6,
                "bytes loaded",
                naive=lambda sizes: 32 * _n(sizes),
                why="a and b once",
                advice="After `p[i]` is stored, can the compiler be sure that `a[i]` has not changed?",
                case=EVERY,
            ),
        ),
        hints=(
            "The error of a product fits exactly into a double. It is `a * b - p` if nothing is rounded in "
            "between.",
            "`fma(x, y, z)` is x · y + z, rounded once. What must z be?",
            "Load a[i] and b[i] into two variables first, or promise with `__restrict__` that the pointers "
            "do not overlap.",
        ),
        section="8 · One rounding instead of two",
    ),
    Exercise(
        name="cpp.way",
        lab=LAB,
        evidence=AnsweredCases(questions=way_questions),
        correct_points=3,
        cases=WAY_CASES,
        hints=(
            'Take an entry apart: `entry.split("_")` gives the kind and the rest, and `rest.rstrip("af")` '
            "the digits of the rest. The last digit is the minor number.",
            "Write one condition for each row of the table. Python compares tuples as compute capabilities "
            "are ordered: `(8, 9) < (9, 0)`.",
            "Look at all entries before you answer: PTX counts only if no machine code fits.",
        ),
        section="9 · The tool box",
    ),
    Exercise(
        name="cpp.shuffle",
        lab=LAB,
        correct_points=2,
        evidence=LaunchTrace(
            arguments=shuffle_arguments,
            shape=lambda sizes: _blocks_of(blocks(_n(sizes), BLOCK)),
            face="cupy",
        ),
        cases=(*map(_size, (1000, 50_000, 1)), stepping(5_003, LARGE_STEP)),
        hints=(
            "Compute `i * step` by hand for the first wrong i. How many bits does it need?",
            "Which type does `i * step` have if both factors have 32 bits?",
            "C++ multiplies in the type of the factors, and looks at the left side of `=` only afterwards. "
            "So one factor must be wider, not the result.",
        ),
        section="Detective · The shuffle that was tested",
        detective=True,
    ),
)


_prediction = partial(prediction, "", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "cpp.grid",
        "Blocks of 256 threads for 1,000,000 elements",
        "blocks",
        3907,
        "1,000,000 / 256 = 3,906.25, and the last quarter of a block needs a block of its own.",
    ),
    _prediction(
        "cpp.offset",
        "Distance of element (3, 10) from the start of an image of bytes with a pitch of 512",
        "bytes",
        1546,
        "Three rows of 512 bytes and ten elements of one byte: 3 · 512 + 10.",
    ),
    _prediction(
        "cpp.requests",
        "Load requests that read 65,536 floats as float4",
        "requests",
        512,
        "65,536 / 4 = 16,384 float4, and a request of a warp loads 32 of them.",
    ),
    _prediction(
        "cpp.opcodes",
        "Instructions of saxpy's PTX that touch a floating-point number, including its argument `a`",
        "instructions",
        5,
        "One ld.param for `a`, two ld.global, one fma and one st.global. The others compute addresses.",
    ),
    _prediction(
        "cpp.forward",
        "GPUs among nine, from 7.5 to 12.1, for which PTX of `compute_80` can be compiled",
        "GPUs",
        reason="PTX goes to its own GPU and to every later one, so only 7.5 is left out.",
    ),
    _prediction(
        "cpp.debug",
        "The machine code of saxpy's debug build has, compared with the optimised one,",
        "times the instructions",
        reason="Nothing is optimised: every variable is stored in memory after each line and loaded again "
        "before the next.",
        tolerance=0.5,
    ),
    _prediction(
        "cpp.zeros",
        "Pairs among 1,000 with a = b for which fma(a, a, −b·b) is exactly 0",
        "pairs",
        None,
        "b·b is rounded, and the a·a inside the fma is not. They are equal only where rounding loses "
        "nothing.",
        0.5,
    ),
)
