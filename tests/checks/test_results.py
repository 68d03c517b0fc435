"""Which output is wrong first, and which are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpulab.checks import Array, Case
from gpulab.checks.cases import Argument
from gpulab.checks.diagnose import wrong_result
from gpulab.checks.results import first_mismatch
from gpulab.checks.run import Outcome
from tests.checks import toys

CASE = Case("3", {"n": 3})
ONES = np.ones(3, np.float32)
OUTPUTS = tuple(Argument(Array(name, (3,), role="out"), np.zeros(3, np.float32)) for name in ("a", "b", "c"))


def found(**after):
    exercise = replace(toys.DOUBLE, cases=(CASE,))
    return first_mismatch(
        exercise, CASE, Outcome(OUTPUTS, after), lambda inputs, sizes: dict.fromkeys("abc", ONES)
    )


def test_the_first_wrong_output_is_told_with_those_that_are_right() -> None:
    wrong = found(a=ONES, b=2 * ONES, c=ONES)
    assert (wrong.array, wrong.right) == ("b", ("a", "c"))
    said = [detail.text for detail in wrong_result(wrong, None, True, ())]
    assert said[0].startswith("`b[0]` is 2.0, should be 1.0") and said[1] == "`a` and `c` are right"


def test_of_two_wrong_outputs_the_first_is_told_and_neither_is_called_right() -> None:
    wrong = found(a=2 * ONES, b=2 * ONES, c=ONES)
    assert (wrong.array, wrong.right) == ("a", ("c",))
    assert wrong_result(wrong, None, True, ())[1].text == "`c` is right"


def test_nothing_is_found_where_all_are_right() -> None:
    assert found(a=ONES, b=ONES, c=ONES) is None
