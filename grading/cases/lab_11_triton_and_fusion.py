"""The judge's own sizes for lab 11. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_11_triton_and_fusion.exercises import WAVE, cancelling, graphs, masked, tiles


def _vectors(*sizes: int) -> tuple[Case, ...]:
    return tuple(Case(f"{n:,}", {"n": n}) for n in sizes)


def _matrices(*sizes: tuple[int, int], seed: int = 1) -> tuple[Case, ...]:
    return tuple(
        Case(f"{rows} × {cols}", {"rows": rows, "cols": cols, "seed": seed + i})
        for i, (rows, cols) in enumerate(sizes)
    )


def _products(*sizes: tuple[int, int, int]) -> tuple[Case, ...]:
    return tuple(Case(f"{m} × {n} × {k}", {"m": m, "n": n, "k": k}) for m, n, k in sizes)


DROPOUT = _matrices((31, 65), (5, 7), (1, 200), (48, 512), seed=77)
GRAPHS = (
    "log-softmax",
    "two results",
    "gated",
    "centre columns",
    "rows between products",
    "a gate beside a norm",
    "norm before a product",
)

CASES: dict[str, tuple[Case, ...]] = {
    "triton.momentum": _vectors(700, 2, 1025, 6144),
    "triton.softmax": (*_matrices((17, 129), (5, 3)), masked(9, 700), *_matrices((96, 512))),
    "triton.softmax_columns": (*_matrices((130, 21), (6, 5)), masked(40, 33), *_matrices((128, 192))),
    "triton.layer_norm": _matrices((5, 17), (3, 257), (1, 2), (48, 256)),
    "triton.gelu_dropout": DROPOUT,
    "triton.gelu_dropout_back": DROPOUT,
    "triton.linear": (
        *_products((40, 64, 30), (65, 17, 100), (2, 1, 3)),
        cancelling(32, 50, 110),
        *_products((128, 64, 192)),
    ),
    "triton.order": tuple(tiles(*grid) for grid in ((3, 5, 4), (7, 10, 8), (1, 6, 5), (48, 80, WAVE))),
    "triton.fuse": (*map(graphs, GRAPHS), graphs(*GRAPHS)),
}
