"""The kernels of the validation, as a table; below it, what each is launched with and what is right."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from gpulab.foundation.errors import Message
from gpulab.subjects.numerics import decode, encode

from .case import CUDA_C, NUMBA, Array, Case, Kernel, Variant, in_cuda_c, in_numba

THREADS = 256
f32, i32, f64 = np.float32, np.int32, np.float64


class UnknownKernel(Message, LookupError):
    """A name that is in no row of the table."""


# ---- numbers --------------------------------------------------------------------------------------


def whole(n: int, below: int = 8, seed: int = 1) -> Array:
    """Small whole numbers as float32: sums and products of them are exact in any order."""
    return np.random.default_rng(seed).integers(0, below, n).astype(f32)


def real(n: int, seed: int = 2) -> Array:
    return np.random.default_rng(seed).normal(size=n).astype(f32)


def zeros(n: int, dtype: Any = f32) -> Array:
    return np.zeros(n, dtype)


def blocks(n: int, threads: int = THREADS) -> tuple[int]:
    return (-(-n // threads),)


def line(n: int, arguments: tuple[Any, ...], expected: dict[int, Array], **more: Any) -> Case:
    """A thread for each of n elements."""
    return Case(blocks(n), (THREADS,), arguments, expected, **more)


# ---- streams, strides, gathers --------------------------------------------------------------------


def copy(n: int) -> Case:
    x = whole(n)
    return line(n, (x, zeros(n), i32(n)), {1: x})


def saxpy(n: int) -> Case:
    x, y = whole(n), whole(n, seed=2)
    return line(n, (x, y, f32(3), i32(n)), {1: 3 * x + y})


def triad(n: int) -> Case:
    x, y = whole(n).astype(f64), whole(n, seed=2).astype(f64)
    return Case((min(n // THREADS, 528),), (THREADS,), (x, y, zeros(n, f64), f64(3), i32(n)), {2: x + 3 * y})


def bytes_(n: int) -> Case:
    x = np.random.default_rng(1).integers(0, 256, n).astype(np.uint8)
    return line(n, (x, zeros(n, np.uint8), i32(n)), {1: x ^ 0x5A})


def fours(n: int) -> Case:
    x = whole(n)
    return Case(blocks(n // 4), (THREADS,), (x, zeros(n), i32(n)), {1: x})


def strided(n: int, stride: int) -> Case:
    x = whole(n * stride)
    return line(n, (x, zeros(n), i32(stride), i32(n)), {1: x[::stride]})


def shifted(n: int, by: int) -> Case:
    x = whole(n + by)
    return line(n, (x, zeros(n), i32(by), i32(n)), {1: x[by:]})


def gather(n: int) -> Case:
    x, places = whole(n), np.random.default_rng(3).integers(0, n, n).astype(i32)
    return line(n, (x, places, zeros(n), i32(n)), {2: x[places]})


def scatter(n: int) -> Case:
    x, places = whole(n), np.random.default_rng(3).permutation(n).astype(i32)
    y = zeros(n)
    y[places] = x
    return line(n, (x, places, zeros(n), i32(n)), {2: y})


def transpose(n: int) -> Case:
    a = whole(n * n)
    return Case((n // 32, n // 32), (32, 8), (a, zeros(n * n), i32(n)), {1: a.reshape(n, n).T.reshape(-1)})


def stencil_line(n: int) -> Case:
    x = whole(n)
    wide = np.pad(x, 4)
    return line(n, (x, zeros(n), i32(n)), {1: np.sum([wide[k : k + n] for k in range(9)], axis=0)})


def stencil_plane(n: int) -> Case:
    a = whole(n * n).reshape(n, n)
    b = np.zeros_like(a)
    b[1:-1, 1:-1] = (a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]) / 4
    return Case((n // 32, n // 8), (32, 8), (a.reshape(-1), zeros(n * n), i32(n)), {1: b.reshape(-1)})


def _ring(n: int) -> Array:
    """A permutation of one cycle: element i says which comes next."""
    order = np.random.default_rng(4).permutation(n)
    following = np.empty(n, i32)
    following[order] = np.roll(order, -1)
    return following


def _walked(following: Array, start: Array, steps: int) -> Array:
    at = start
    for _ in range(steps):
        at = following[at]
    return at


def chase(n: int) -> Case:
    following, steps = _ring(n), 256
    end = _walked(following, np.arange(32), steps).astype(i32)
    return Case((1,), (32,), (following, zeros(32, i32), i32(steps)), {1: end})


# ---- shared memory --------------------------------------------------------------------------------


def banks(n: int, stride: int) -> Case:
    threads, rounds = 64, 32
    words = np.zeros(2048)
    for k in range(rounds):
        np.add.at(words, (np.arange(threads) * stride + k) % 2048, 1)
    sums = words.reshape(-1, threads).sum(0)
    return Case(
        (n,), (threads,), (zeros(n * threads), i32(stride), i32(rounds)), {0: np.tile(sums, n).astype(f32)}
    )  # fmt: skip


def shared_chase(n: int) -> Case:
    following, steps = _ring(1024), 256
    end = _walked(following, np.arange(64), steps).astype(i32)
    return Case((n,), (64,), (following, zeros(64 * n, i32), i32(steps)), {1: np.tile(end, n)})


def barriers(n: int) -> Case:
    x, rounds = whole(256 * n), 64
    return Case(
        (n,),
        (256,),
        (x, zeros(256 * n), i32(rounds)),
        {1: np.roll(x.reshape(n, 256), -rounds, 1).reshape(-1)},
    )


def resident(n: int, shared: int) -> Case:
    x, rounds = whole(n), 8
    threads = n // rounds
    return Case(
        blocks(threads, 128), (128,), (x, zeros(threads), i32(rounds), i32(n)),
        {1: x.reshape(rounds, threads).sum(0)}, shared=shared,
    )  # fmt: skip


# ---- threads together -----------------------------------------------------------------------------


def sum_of_blocks(n: int) -> Case:
    x = whole(n)
    return Case((n // 256,), (256,), (x, zeros(n // 256)), {1: x.reshape(-1, 256).sum(1)})


def sum_shuffles(n: int) -> Case:
    grid = min(n // 1024, 264)
    x = whole(n)
    sums = np.pad(x, (0, -n % (grid * 256))).reshape(-1, grid, 256).sum((0, 2))
    return Case((grid,), (256,), (x, zeros(grid), i32(n)), {1: sums})


def sum_atomic(n: int) -> Case:
    x = whole(n).astype(i32)
    return line(n, (x, zeros(64, i32), i32(n)), {1: x.reshape(-1, 64).sum(0).astype(i32)})


def scan(n: int) -> Case:
    x = whole(n)
    return Case((n // 256,), (256,), (x, zeros(n)), {1: x.reshape(-1, 256).cumsum(1).reshape(-1)})


def histogram(n: int, blocks_: int = 0) -> Case:
    """Of 256 numbers of which the small ones are frequent."""
    x = (np.random.default_rng(5).exponential(40, n).astype(i32)) % 256
    grid = (min(blocks_, n // 256),) if blocks_ else blocks(n)
    return Case(
        grid, (THREADS,), (x, zeros(256, i32), i32(n)), {1: np.bincount(x, minlength=256).astype(i32)}
    )


def _softmax(x: Array) -> Array:
    e = np.exp(x.astype(f64) - x.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)).astype(f32)


def softmax(n: int, columns: int = 1000) -> Case:
    x = real(n * columns)
    y = _softmax(x.reshape(n, columns)).reshape(-1)
    return Case((n,), (128,), (x, zeros(x.size), i32(columns)), {1: y}, rtol=1e-4, atol=1e-7)


def softmax_of_warps(n: int) -> Case:
    x = real(n)
    y = _softmax(x.reshape(-1, 32)).reshape(-1)
    return Case(blocks(n), (THREADS,), (x, zeros(n)), {1: y}, rtol=1e-4, atol=1e-7)


def layer_norm(n: int, columns: int = 768) -> Case:
    x, scale, shift = real(n * columns), real(columns, 3), real(columns, 4)
    rows = x.reshape(n, columns).astype(f64)
    y = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5) * scale + shift
    return Case(
        (n,), (128,), (x, scale, shift, zeros(x.size), i32(columns)), {3: y.astype(f32).reshape(-1)},
        rtol=1e-4, atol=1e-5,
    )  # fmt: skip


# ---- arithmetic -----------------------------------------------------------------------------------


def chain(n: int, dtype: Any) -> Case:
    x, rounds = whole(n).astype(dtype), 256
    a = dtype(0.5 if dtype != i32 else 3)
    v = x
    for _ in range(rounds):
        v = v * a + dtype(1)
    return line(n, (x, zeros(n, dtype), a, i32(rounds)), {1: v}, rtol=1e-6)


def chain_logic(n: int) -> Case:
    x, a, rounds = whole(n).astype(i32), 0x2545F491, 256
    v = x
    for k in range(rounds):
        v = ((v << 3) ^ i32(a)) + (v & i32(k))
    return line(n, (x, zeros(n, i32), i32(a), i32(rounds)), {1: v})


def chain_exp(n: int) -> Case:
    x, rounds = whole(n), 128
    v = x.astype(f64)
    for _ in range(rounds):
        v = np.exp2(-v)
    return line(n, (x, zeros(n), i32(rounds)), {1: v.astype(f32)}, rtol=1e-5)


def chain_divide(n: int) -> Case:
    x, a, rounds = whole(n), 2.5, 64
    v = x.astype(f64)
    for _ in range(rounds):
        v = a / (v + 1)
    return line(n, (x, zeros(n), f32(a), i32(rounds)), {1: v.astype(f32)}, rtol=1e-5)


def chain_shuffle(n: int) -> Case:
    x, rounds = whole(n, 32).astype(i32), 64
    rows = x.reshape(-1, 32)
    for _ in range(rounds):
        rows = np.take_along_axis(rows, (np.arange(32) + rows) % 32, 1)
    return line(n, (x, zeros(n, i32), i32(rounds)), {1: rows.reshape(-1)})


def four_chains(n: int) -> Case:
    x, rounds = whole(n), 128
    v = np.stack([x + f32(k) for k in range(4)])
    for _ in range(rounds):
        v = v * f32(0.5) + f32(1)
    return line(n, (x, zeros(n), f32(0.5), i32(rounds)), {1: v.sum(0)}, rtol=1e-6)


def pairs_f16(n: int) -> Case:
    x, rounds = whole(n).astype(np.float16), 32
    v = x
    for _ in range(rounds):
        v = (v.astype(f32) * f32(0.5) + f32(0.5)).astype(np.float16)
    return Case(blocks(n // 2), (THREADS,), (x, zeros(n, np.float16), i32(rounds), i32(n)), {1: v})


def pairs_bf16(n: int) -> Case:
    x = encode(real(n), "BF16").astype(np.uint16)
    y = encode(2 * decode(x, "BF16") + 1, "BF16").astype(np.uint16)
    return Case(blocks(n // 2), (THREADS,), (x, zeros(n, np.uint16), i32(n)), {1: y})


def diverge(n: int, ways: int) -> Case:
    x, rounds = whole(n), 16
    way = (np.arange(n) % ways).astype(f32)
    v = x
    for _ in range(rounds):
        v = v * f32(0.5) + way
    return line(n, (x, zeros(n), i32(ways), i32(rounds)), {1: v}, rtol=1e-6)


def uneven(n: int) -> Case:
    lengths = np.random.default_rng(6).integers(0, 64, n).astype(i32)
    v = np.ones(n, i32)
    for k in range(64):
        v = np.where(k < lengths, v * i32(3) + i32(k), v)
    return line(n, (lengths, zeros(n, i32)), {1: v})


# ---- products -------------------------------------------------------------------------------------


def product(
    n: int, tile: tuple[int, int], block: tuple[int, ...], dtype: Any = f32, by_columns: bool = False
) -> Case:
    """c = a · b of n × n. A block makes `tile` (columns, rows) of c; a and b hold small whole numbers."""
    a, b = whole(n * n, 4).reshape(n, n), whole(n * n, 4, 2).reshape(n, n)
    c = a @ b
    given = [m.reshape(-1) for m in (a, b.T if by_columns else b)]
    if dtype == "BF16":
        given = [encode(m, "BF16").astype(np.uint16) for m in given]
    else:
        given = [m.astype(dtype) for m in given]
    result: Any = f64 if dtype == f64 else f32
    grid = (n // tile[0], n // tile[1])
    return Case(grid, block, (*given, zeros(n * n, result), i32(n)), {2: c.reshape(-1).astype(result)})


def attention(n: int) -> Case:
    """n queries and n keys of 32 features."""
    q, k, v = (real(n * 32, seed).reshape(n, 32) * f32(0.5) for seed in (1, 2, 3))
    y = _softmax(q.astype(f64) @ k.T.astype(f64)) @ v
    return Case(
        blocks(n * 32, 128), (128,), (q.reshape(-1), k.reshape(-1), v.reshape(-1), zeros(n * 32), i32(n)),
        {3: y.reshape(-1).astype(f32)}, rtol=1e-3, atol=1e-5,
    )  # fmt: skip


# ---- the table ------------------------------------------------------------------------------------

LINE = (1 << 12, 1 << 18, 1 << 22)  # elements that are read once
CHAIN = (1 << 10, 1 << 14, 1 << 17)  # threads that are busy for long
PLANE = (64, 512, 2048)  # rows and columns
FEW = (4, 132, 1056)  # blocks: less than the SMs of a large GPU, as many, several waves
ROWS = (8, 256, 4096)
MATRIX = (64, 192, 384)

Row = tuple[str, str, Any, tuple[int, int, int]]  # name, entry, case, sizes

MEMORY: tuple[Row, ...] = (
    ("copy", "copy", copy, LINE),
    ("saxpy", "saxpy", saxpy, LINE),
    ("triad", "triad", triad, LINE),
    ("bytes", "bytes", bytes_, LINE),
    ("fours", "fours", fours, LINE),
    *(
        (f"strided-{k}", "strided", partial(strided, stride=k), (1 << 12, 1 << 17, 1 << 20))
        for k in (2, 8, 32)
    ),
    *((f"shifted-{k}", "shifted", partial(shifted, by=k), LINE) for k in (1, 8)),
    ("gather", "gather", gather, (1 << 12, 1 << 17, 1 << 21)),
    ("scatter", "scatter", scatter, (1 << 12, 1 << 17, 1 << 21)),
    ("transpose-naive", "transpose_naive", transpose, PLANE),
    ("transpose-tiled", "transpose_tiled", transpose, PLANE),
    ("transpose-padded", "transpose_padded", transpose, PLANE),
    ("stencil-line", "stencil_line", stencil_line, (1 << 12, 1 << 18, 1 << 21)),
    ("stencil-plane", "stencil_plane", stencil_plane, PLANE),
    ("chase", "chase", chase, (1 << 10, 1 << 16, 1 << 23)),  # an L1, an L2, more than most L2s
)
SHARED: tuple[Row, ...] = (
    *((f"banks-4B-{k}", "banks_4", partial(banks, stride=k), FEW) for k in (1, 2, 3, 4, 8, 16, 32)),
    *((f"banks-8B-{k}", "banks_8", partial(banks, stride=k), FEW) for k in (1, 2, 16, 32)),
    *((f"banks-16B-{k}", "banks_16", partial(banks, stride=k), FEW) for k in (1, 2, 8, 32)),
    ("shared-chase", "shared_chase", shared_chase, FEW),
    ("barriers", "barriers", barriers, FEW),
    *(
        (f"resident-{kb}KB", "resident", partial(resident, shared=kb << 10), (1 << 13, 1 << 17, 1 << 21))
        for kb in (1, 8, 24, 48)
    ),
)
TOGETHER: tuple[Row, ...] = (
    ("sum-tree", "sum_tree", sum_of_blocks, (1 << 12, 1 << 17, 1 << 21)),
    ("sum-interleaved", "sum_interleaved", sum_of_blocks, (1 << 12, 1 << 17, 1 << 21)),
    ("sum-shuffles", "sum_shuffles", sum_shuffles, LINE),
    ("sum-atomic", "sum_atomic", sum_atomic, (1 << 12, 1 << 16, 1 << 20)),
    ("scan-block", "scan_block", scan, (1 << 12, 1 << 17, 1 << 21)),
    ("scan-shuffles", "scan_shuffles", scan, (1 << 12, 1 << 17, 1 << 21)),
    ("histogram-global", "histogram_global", histogram, (1 << 12, 1 << 16, 1 << 20)),
    ("histogram-shared", "histogram_shared", partial(histogram, blocks_=264), (1 << 12, 1 << 17, 1 << 21)),
    ("softmax", "softmax", softmax, ROWS),
    ("softmax-of-warps", "softmax_of_warps", softmax_of_warps, (1 << 12, 1 << 17, 1 << 21)),
    ("layer-norm", "layer_norm", layer_norm, ROWS),
)
ARITHMETIC: tuple[Row, ...] = (
    ("chain-f32", "chain_f32", partial(chain, dtype=f32), CHAIN),
    ("chain-f64", "chain_f64", partial(chain, dtype=f64), CHAIN),
    ("chain-i32", "chain_i32", partial(chain, dtype=i32), CHAIN),
    ("chain-logic", "chain_logic", chain_logic, CHAIN),
    ("chain-exp", "chain_exp", chain_exp, CHAIN),
    ("chain-divide", "chain_divide", chain_divide, CHAIN),
    ("chain-shuffle", "chain_shuffle", chain_shuffle, CHAIN),
    ("four-chains", "four_chains", four_chains, CHAIN),
    ("pairs-f16", "pairs_f16", pairs_f16, LINE),
    ("pairs-bf16", "pairs_bf16", pairs_bf16, LINE),
    *((f"diverge-{k}", "diverge", partial(diverge, ways=k), CHAIN) for k in (1, 2, 8, 32)),
    ("uneven", "uneven", uneven, CHAIN),
)
PRODUCTS: tuple[Row, ...] = (
    ("matmul-naive", "matmul_naive", partial(product, tile=(16, 16), block=(16, 16)), (64, 128, 256)),
    ("matmul-tiled", "matmul_tiled", partial(product, tile=(16, 16), block=(16, 16)), MATRIX),
    (
        "matmul-tiled-f64", "matmul_tiled_f64", partial(product, tile=(16, 16), block=(16, 16), dtype=f64),
        MATRIX,
    ),
    ("matmul-registers", "matmul_registers", partial(product, tile=(64, 64), block=(256,)), (64, 256, 768)),
    ("wmma-f16", "wmma_f16", partial(product, tile=(16, 16), block=(32,), dtype=np.float16), MATRIX),
    (
        "mma-bf16", "mma_bf16", partial(product, tile=(8, 16), block=(32,), dtype="BF16", by_columns=True),
        MATRIX,
    ),
    ("mma-tf32", "mma_tf32", partial(product, tile=(8, 16), block=(32,), by_columns=True), MATRIX),
    ("mma-f64", "mma_f64", partial(product, tile=(8, 8), block=(32,), dtype=f64, by_columns=True), MATRIX),
    ("attention", "attention", attention, (32, 128, 512)),
)  # fmt: skip
FILES = {
    "memory": MEMORY,
    "shared": SHARED,
    "together": TOGETHER,
    "arithmetic": ARITHMETIC,
    "products": PRODUCTS,
}
KERNELS: tuple[Kernel, ...] = tuple(
    Kernel(name, file, entry, case, sizes)
    for file, rows in FILES.items()
    for name, entry, case, sizes in rows
)


def variants() -> list[Variant]:
    """Every kernel in every language that its file has it in."""
    return [
        Variant(kernel, language)
        for kernel in KERNELS
        for language, there in ((CUDA_C, in_cuda_c(kernel.file)), (NUMBA, in_numba(kernel.file)))
        if kernel.entry in there
    ]


def chosen(names: Iterable[str]) -> list[Variant]:
    """The variants of these names: ``copy`` in both languages, ``copy/numba`` in one; all if none is named.

    Raises UnknownKernel.
    """
    names = list(names)
    known = variants()
    for name in names:
        if not any(name in (v.key, v.kernel.name) for v in known):
            listed = ", ".join(kernel.name for kernel in KERNELS)
            raise UnknownKernel(
                f"no kernel is called {name!r}. There are {listed}; copy/numba is one language."
            )
    return [v for v in known if not names or v.key in names or v.kernel.name in names]
