"""Small exercises of all kinds, for tests. Their references stand beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from gpulab.checks import Array, Budget, Case, Exercise, Scalar, Shape, Sizes, WrongAnswer
from gpulab.checks.evidence import AnsweredCases, LaunchTrace

Inputs = Mapping[str, np.ndarray]


def _n(sizes: Sizes) -> int:
    return int(sizes["n"])


def _vector(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    return Array("a", (_n(sizes),)), Array("out", (_n(sizes),), role="out")


def _in_blocks(sizes: Sizes) -> Shape:
    return Shape((-(-_n(sizes) // 256),), (256,))


DOUBLE = Exercise(
    name="toy.double",
    lab="99",
    correct_points=2.0,
    cases=tuple(Case(str(n), {"n": n}) for n in (256, 1025, 1, 0)),
    evidence=LaunchTrace(arguments=_vector, shape=_in_blocks),
    hints=("How many threads are there?", "Which have no element?", "Put a guard there."),
    section="1 · Guards",
)

INVERSE = Exercise(
    name="toy.inverse",
    lab="99",
    correct_points=1.0,
    cases=(Case("64", {"n": 64}),),
    evidence=LaunchTrace(
        arguments=lambda sizes: (
            Array(
                "a", (_n(sizes),), fill=lambda numbers, shape, _: np.where(np.arange(shape[0]) % 8, 2.0, 0.0)
            ),
            Array("out", (_n(sizes),), role="out"),
        ),
        shape=_in_blocks,
    ),
    rtol=1e-6,
)

SCALE = Exercise(
    name="toy.scale",
    lab="99",
    correct_points=1.0,
    cases=(Case("1000", {"n": 1000}),),
    evidence=LaunchTrace(
        arguments=lambda sizes: (
            Array("x", (_n(sizes),), "int32", "inout", "integers:0:50"),
            Scalar("factor", 3, "int32"),
        ),
        shape=_in_blocks,
    ),
)

TRANSPOSE = Exercise(
    name="toy.transpose",
    lab="99",
    correct_points=2.0,
    cases=tuple(Case(f"{r}×{c}", {"r": r, "c": c}) for r, c in ((32, 64), (33, 65), (1, 1), (96, 128))),
    evidence=LaunchTrace(
        arguments=lambda s: (
            Array("a", (int(s["r"]), int(s["c"]))),
            Array("out", (int(s["c"]), int(s["r"])), role="out"),
        ),
        shape=lambda s: Shape((-(-int(s["c"]) // 32), -(-int(s["r"]) // 32)), (32, 32)),
        race_case="33×65",
    ),
    budgets=(
        Budget(
            "global_store_sectors_per_request",
            limit=4,
            points=1.4,
            label="store sectors",
            naive=32,
            why="a copy needs 4",
            advice="Which index should run fastest in `out`?",
        ),
        Budget(
            "bank_conflict_ways",
            limit=1,
            points=1.6,
            label="bank conflicts",
            naive=16.5,
            advice="In which bank does each element of a column of the tile lie?",
        ),
    ),
    hints=("one", "two", "three"),
    section="3 · Tiles",
)

FILL = Exercise(
    name="toy.fill",
    lab="99",
    correct_points=1.0,
    cases=(Case("10×5", {"r": 10, "c": 5}), Case("1025×33", {"r": 1025, "c": 33})),
    evidence=LaunchTrace(
        arguments=lambda s: (
            Array("a", (int(s["r"]), int(s["c"]))),
            Array("out", (int(s["r"]), int(s["c"])), role="out"),
        ),
    ),
    budgets=(
        Budget(
            "launches",
            limit=1,
            points=0.5,
            label="launches",
            sense="==",
            case="10×5",
            advice="Once is enough.",
        ),
    ),
)

CEIL_DIV = Exercise(
    name="toy.ceil_div",
    lab="99",
    correct_points=1.0,
    evidence=AnsweredCases(
        questions=lambda sizes, numbers: [
            (int(n), int(numbers.integers(1, 33))) for n in numbers.integers(0, int(sizes["high"]), 6)
        ],
    ),
    cases=(Case("small", {"high": 10}), Case("large", {"high": 10_000})),
)

ROUTE = Exercise(
    name="toy.route",
    lab="99",
    correct_points=1.0,
    evidence=AnsweredCases(
        questions=lambda sizes, numbers: [
            ([int(x) for x in numbers.permutation(100)[: int(sizes["stops"])]],) for _ in range(3)
        ],
        measured=True,
    ),
    cases=(Case("3 stops", {"stops": 3}), Case("8 stops", {"stops": 8})),
    budgets=(
        Budget("steps", 200, 1.0, "way", naive=600, unit="steps", advice="Must it go {times} × as far?"),
        Budget("turns", 0, 0.5, "turns", unit="turns"),
    ),
)


def walk(order: list[int], stops: list[int]) -> dict[str, float]:
    """Visits the stops in the order of the plan, from 0, and counts."""
    if sorted(order) != sorted(stops):
        raise WrongAnswer(f"it visits {len(order)} stops and not each of the {len(stops)} once.")
    ways = [b - a for a, b in zip([0, *order], order, strict=False)]
    return {
        "steps": float(sum(map(abs, ways))),
        "turns": float(sum(a * b < 0 for a, b in pairwise(ways))),
    }


TOYS: dict[str, tuple[Exercise, Callable[..., Any]]] = {
    "toy.double": (DOUBLE, lambda inputs, sizes: {"out": 2 * inputs["a"]}),
    "toy.inverse": (INVERSE, lambda inputs, sizes: {"out": 1 / inputs["a"]}),
    "toy.scale": (SCALE, lambda inputs, sizes: {"x": 3 * inputs["x"]}),
    "toy.transpose": (TRANSPOSE, lambda inputs, sizes: {"out": inputs["a"].T}),
    "toy.fill": (FILL, lambda inputs, sizes: {"out": inputs["a"] + 1}),
    "toy.ceil_div": (CEIL_DIV, lambda n, size: (n + size - 1) // size),
}
