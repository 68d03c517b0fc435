"""Contents of a case: the same for the same seed, poison where nothing may be read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpulab.checks import Array, Case, cases
from tests.checks.toys import CEIL_DIV, DOUBLE, SCALE


def test_contents_depend_on_seed_and_case_and_on_nothing_else() -> None:
    first, second = DOUBLE.cases[:2]

    def a(case: Case, seed: int) -> np.ndarray:
        return cases.arguments(DOUBLE, case, seed)[0].value

    assert np.array_equal(a(first, 1), a(first, 1))
    assert not np.array_equal(a(first, 1), a(first, 2))
    assert not np.array_equal(a(first, 1), a(second, 1)[:256])


def test_outputs_are_poisoned_or_hold_garbage_that_differs_from_draw_to_draw() -> None:
    def out(garbage: np.random.Generator | None) -> np.ndarray:
        return cases.arguments(DOUBLE, DOUBLE.cases[0], garbage=garbage)[1].value

    assert np.isnan(out(None)).all()
    draws = np.random.default_rng(1)
    one, two = out(draws).view(np.uint32), out(draws).view(np.uint32)
    assert len(set(one)) > 200 and (one != two).mean() > 0.9


def test_scalars_have_the_type_that_the_exercise_says() -> None:
    factor = cases.arguments(SCALE, SCALE.cases[0])[1]
    assert (factor.value, factor.value.dtype, factor.role) == (3, np.int32, "scalar")


@pytest.mark.parametrize(
    ("fill", "dtype", "low", "high"),
    [
        ("uniform", "float32", 0, 1),
        ("integers:3:7", "int32", 3, 6),
        ("zeros", "float64", 0, 0),
        ("normal", "int16", -100, 100),
    ],
)
def test_fills_stay_in_their_range(fill: str, dtype: str, low: float, high: float) -> None:
    made = cases.contents(Array("a", (500,), dtype, fill=fill), {}, np.random.default_rng(0))
    assert made.dtype == np.dtype(dtype)
    assert made.min() >= low and made.max() <= high


def test_a_fill_may_be_a_function() -> None:
    ramp = Array("a", (3, 2), "int32", fill=lambda numbers, shape, sizes: np.full(shape, sizes["n"]))
    assert cases.contents(ramp, {"n": 7}, np.random.default_rng(0)).tolist() == [[7, 7]] * 3


def test_an_unknown_fill_is_a_mistake_of_the_lab() -> None:
    with pytest.raises(ValueError, match="array `a`: there is no fill 'gaussian'"):
        cases.contents(Array("a", (3,), fill="gaussian"), {}, np.random.default_rng(0))


def test_the_reference_computes_in_float64_and_cannot_change_the_inputs() -> None:
    made = cases.arguments(DOUBLE, DOUBLE.cases[0])

    def reference(inputs, sizes):
        assert inputs["a"].dtype == np.float64
        inputs["a"] *= 2
        return {"out": inputs["a"]}

    results = cases.expected(reference, made, DOUBLE.cases[0])
    assert np.array_equal(results["out"], 2 * made[0].value.astype(np.float64))


def test_questions_are_the_same_for_the_same_seed() -> None:
    assert cases.questions(CEIL_DIV, CEIL_DIV.cases[0], 5) == cases.questions(CEIL_DIV, CEIL_DIV.cases[0], 5)


def test_another_name_of_the_exercise_gives_other_contents() -> None:
    other = replace(DOUBLE, name="toy.other")
    case = DOUBLE.cases[0]
    assert not np.array_equal(cases.arguments(DOUBLE, case)[0].value, cases.arguments(other, case)[0].value)
