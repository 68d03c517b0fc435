"""A toy exercise whose answer is an artefact, and answers to it: right, naive, wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpulab.checks import Array, Budget, Case, Exercise, Scalar, WrongAnswer
from gpulab.checks.evidence import Artefacts

NAME = "toy.codebook"
CODEBOOK = Exercise(
    name=NAME,
    lab="99",
    correct_points=1.0,
    evidence=Artefacts(
        arguments=lambda s: (
            Array("x", (int(s["n"]),), "float64"),
            Scalar("levels", int(s["levels"])),
            Array("fresh", (500,), "float64", role="held out"),
        ),
    ),
    cases=(Case("4 levels", {"n": 2000, "levels": 4}), Case("8 levels", {"n": 3000, "levels": 8})),
    budgets=(
        Budget("bytes", lambda s: 4 * s["levels"] + 16, 1.0, "size", naive=400, unit="B"),
        Budget(
            "rms error",
            0.21,
            2.0,
            "error",
            naive=0.3,
            advice="Where are most of the numbers?",
        ),
    ),
)


def read(artefact: Any, given: Any, held_out: Any, sizes: Any) -> dict[str, float]:
    codebook = artefact["codebook"].astype(np.float64)
    if codebook.shape[0] < 2:
        raise WrongAnswer("a codebook has at least two levels")
    fresh = held_out["fresh"].astype(np.float64)
    nearest = np.abs(fresh[:, None] - codebook).min(1)
    return {"rms error": float(np.sqrt((nearest**2).mean()))}


def lloyd(x, levels):
    book = np.quantile(x, (np.arange(levels) + 0.5) / levels)
    for _ in range(40):
        owner = np.abs(x[:, None] - book).argmin(1)
        book = np.array([x[owner == i].mean() for i in range(levels)])
    return {"codebook": book.astype(np.float32)}


def evenly_spaced(x, levels):
    return {"codebook": np.linspace(x.min(), x.max(), levels, dtype=np.float32)}


def remembers_all(x, levels):
    return {"codebook": x}


def one_level(x, levels):
    return {"codebook": np.zeros(1, np.float32)}


def other_name(x, levels):
    return {"book": np.zeros(4, np.float32)}


def a_list(x, levels):
    return [0.0, 1.0]


def complex_numbers(x, levels):
    return {"codebook": np.zeros(4, np.complex64)}


def not_a_number(x, levels):
    return {"codebook": np.array([0.0, np.nan], np.float32)}


def far_away(x, levels):
    return {"codebook": np.full(4, 1e300)}


def too_large(x, levels):
    return {"codebook": np.zeros(5_000_000, np.float32)}


def hidden_in_a_name(x, levels):
    return {"x" * 65: np.zeros(4)}


def in_another_shape(x, levels):
    return {"codebook": np.zeros((4, 4, 4), np.float32)}


def nothing(x, levels):
    lloyd(x, levels)


def empty(x, levels):
    raise NotImplementedError()


def fails(x, levels):
    return x[5000]
