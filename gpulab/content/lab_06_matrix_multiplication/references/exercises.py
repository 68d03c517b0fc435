"""Expected results of lab 06's exercises, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpulab.checks.spec import Sizes

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]


def product(inputs: Arrays, sizes: Sizes) -> Expected:
    """Of two matrices, or of the matrices of two batches."""
    return {"c": inputs["a"] @ inputs["b"]}


def matvec(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"y": inputs["a"] @ inputs["x"]}


def layer(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"y": inputs["x"] @ inputs["w"].T}


REFERENCES: dict[str, Callable[..., Any]] = {
    "gemm.tiled": product,
    "gemm.column": product,
    "gemm.blocked": product,
    "gemm.wide": product,
    "gemm.staged": product,
    "gemm.matvec": matvec,
    "gemm.batched": product,
    "gemm.split_k": product,
    "gemm.fragments": product,
    "gemm.lanes": layer,
    "gemm.tiles": product,
    "gemm.steady": product,
}
