"""What is right, and in which words wrong elements are found again."""

from __future__ import annotations

import enum
from collections import Counter, deque
from functools import reduce
from typing import Any

import numpy as np
import pytest

from gpulab.checks.compare import (
    NotAnAnswer,
    answer_words,
    mismatch,
    normal,
    ordinal,
    pair_words,
    same_answer,
    value_words,
    where,
)


def wrong(*indices: Any, shape: tuple[int, ...]) -> np.ndarray:
    mask = np.zeros(shape, bool)
    for index in indices:
        mask[index] = True
    return mask


def test_equal_arrays_have_no_mismatch() -> None:
    a = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    assert mismatch("a", a, a.astype(np.float64)) is None


def test_without_tolerance_the_reference_is_rounded_once_to_the_type_of_the_result() -> None:
    third = np.array([1 / 3])
    assert mismatch("a", third.astype(np.float32), third) is None
    assert mismatch("a", np.nextafter(third.astype(np.float32), np.float32(1)), third) is not None


def test_a_mismatch_says_how_far_off_the_first_wrong_element_is_and_how_far_it_may_be() -> None:
    found = mismatch("a", np.array([2.0, 4.01]), np.array([2.0, 4.0]), rtol=1e-3, atol=2e-3)
    assert found is not None
    assert found.relative == pytest.approx((2.5e-3, 1.5e-3))
    at_zero = mismatch("a", np.array([1.0]), np.array([0.0]), rtol=1e-3)
    assert at_zero is not None and np.isnan(at_zero.relative).all()


def test_the_tolerance_counts_from_the_reference() -> None:
    expected = np.array([100.0, 0.0])
    assert mismatch("a", np.array([100.9, 0.009], np.float32), expected, rtol=0.01, atol=0.01) is None
    found = mismatch("a", np.array([101.1, 0.0], np.float32), expected, rtol=0.01)
    assert found is not None and found.first == (0,)


@pytest.mark.parametrize("rtol", [0.0, 0.5])
@pytest.mark.parametrize(
    ("got", "expected", "right"),
    [
        (np.nan, np.nan, True),
        (np.nan, 1.0, False),
        (1.0, np.nan, False),
        (np.inf, np.inf, True),
        (-np.inf, np.inf, False),
        (np.inf, 1.0, False),
        (3e38, np.inf, False),
    ],
)
def test_nan_and_infinity_are_right_only_where_the_reference_has_them(
    got: float, expected: float, right: bool, rtol: float
) -> None:
    found = mismatch("a", np.array([got], np.float32), np.array([expected]), rtol=rtol, atol=rtol)
    assert (found is None) == right


def test_integers_are_compared_without_loss() -> None:
    big = np.array([2**62 + 1])
    assert mismatch("a", big, big) is None
    assert mismatch("a", big - 1, big) is not None


def test_an_empty_array_is_right() -> None:
    assert mismatch("a", np.zeros((0, 5)), np.zeros((0, 5))) is None


def test_a_reference_of_another_shape_is_a_mistake_of_the_exercise() -> None:
    with pytest.raises(ValueError, match=r"the reference of `a` has shape \(2,\), not \(3,\)"):
        mismatch("a", np.zeros(3), np.zeros(2))


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (wrong(3, shape=(8,)), ""),
        (wrong(slice(None), shape=(8,)), "every element"),
        (wrong(slice(1024, None), shape=(1027,)), "from index 1,024 on"),
        (wrong(slice(0, 3), shape=(8,)), "up to index 2"),
        (wrong(slice(2, 5), shape=(8,)), "indices 2 to 4"),
        (wrong(slice(1, None, 2), shape=(8,)), "every 2nd from index 1 on"),
        (wrong(0, 3, 4, shape=(8,)), "between index 0 and 4"),
        (wrong((32, slice(3, 9)), shape=(40, 20)), "all in row 32"),
        (wrong((slice(3, 9), 7), shape=(40, 20)), "all in column 7"),
        (wrong((slice(32, None), slice(None)), shape=(40, 20)), "all of rows 32 to 39, the last 8"),
        (wrong((slice(None), slice(16, None)), shape=(40, 20)), "all of columns 16 to 19, the last 4"),
        (wrong((slice(35, None), slice(2, 5)), shape=(40, 20)), "all in rows 35 to 39, the last 5"),
        (wrong((slice(4, 6), slice(None)), shape=(40, 20)), "all of rows 4 to 5"),
        (wrong((0, 0), (5, 5), (7, 7), shape=(9, 9)), "all on the diagonal"),
        (~np.eye(4, dtype=bool), "everything but the diagonal"),
        (wrong((0, 1), (8, 2), (4, 0), shape=(9, 9)), "all on the border"),
        (wrong((1, 1), (5, 2), (4, 7), shape=(9, 9)), "4 % of the array, spread"),
        (wrong((1, 2, 3), (1, 5, 6), shape=(4, 8, 8)), "all with index 0 = 1"),
    ],
)
def test_the_place_of_wrong_elements_is_named(mask: np.ndarray, words: str) -> None:
    assert where(mask) == words


@pytest.mark.parametrize(
    ("n", "text"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (22, "22nd")]
)
def test_ordinals(n: int, text: str) -> None:
    assert ordinal(n) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(2), "2.0"),
        (np.float32(0.73), "0.73"),
        (np.int32(-3), "-3"),
        (float("nan"), "nan"),
        (1e30, "1e+30"),
    ],
)
def test_values_are_short(value: Any, text: str) -> None:
    assert value_words(value) == text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ([1, 2], "[1, 2]"),
        (list(range(20)), "[0, 1, 2, 3, 4, 5, …]"),
        ([{"name": "L40S", "memory": 48e9, "watts": 350.0}], "[{'name': 'L40S', …}]"),
        ((("a)", [1]), "rest of the words"), "(('a)', [1]), …)"),
    ],
)
def test_a_long_answer_is_cut_short_and_its_brackets_are_closed(answer: Any, text: str) -> None:
    assert answer_words(answer, 24) == text


def test_two_elements_that_differ_are_told_with_the_digits_in_which_they_do():
    assert pair_words(np.float32(0.5), np.float32(0.25)) == ("0.5", "0.25")
    assert pair_words(1.0, np.nextafter(1.0, 2)) == ("1.0", "1.0000000000000002")
    assert pair_words(np.float32(1), np.nextafter(np.float32(1), np.float32(2))) == ("1.0", "1.00000012")


@pytest.mark.parametrize(
    ("got", "expected", "right"),
    [
        (3, 3, True),
        (3.0, 3, True),
        (True, 1, False),
        (1, True, False),
        (None, None, True),
        (0, None, False),
        ("ab", "ab", True),
        ([1, 2.0], [1, 2], True),
        ([1], [1, 2], False),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": 1}, {"b": 1}, False),
        (float("nan"), float("nan"), True),
        (1.0001, 1.0, True),
        (1.01, 1.0, False),
        ("1", 1, False),
    ],
)
def test_answers_are_compared_by_value_and_kind(got: Any, expected: Any, right: bool) -> None:
    assert same_answer(got, expected, rtol=1e-3) is right


def test_a_whole_number_beyond_all_floats_is_only_wrong() -> None:
    assert not same_answer(10**4000, 1.5, rtol=1e-3)


def test_answers_become_json() -> None:
    given = {"a": (np.int64(1), np.float32(0.5)), 2: {3, 1}, "b": np.arange(2)}
    assert normal(given) == {"a": [1, 0.5], "2": [1, 3], "b": [0, 1]}


class Level(enum.IntEnum):
    HIGH = 3


class Name(enum.StrEnum):
    OF = "of"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (range(3), [0, 1, 2]),
        ({10, 9, 1}, [1, 9, 10]),
        ({"b", "a", 1}, ["a", "b", 1]),
        ({(1, 2): 0, (np.int64(3), np.True_): 1}, {"(1, 2)": 0, "(3, True)": 1}),
        ({"b": 1, "a": 2}.keys(), ["b", "a"]),
        ({"b": 1, "a": 2}.values(), [1, 2]),
        ({"b": 1}.items(), [["b", 1]]),
        (deque([1, 2]), [1, 2]),
        (Counter("aab"), {"a": 2, "b": 1}),
        (np.array([1, None], object), [1, None]),
        ([Level.HIGH, Name.OF, np.str_("x"), np.float64(2), np.longdouble(0.5)], [3, "of", "x", 2.0, 0.5]),
        ([True, np.bool_(False), np.array(True), None], [True, False, True, None]),
        (-0.0, -0.0),
        (10**4000, 10**4000),
    ],
)
def test_an_answer_in_whatever_form_is_made_of_jsons_own_types(given: Any, expected: Any) -> None:
    def types(value: Any) -> Any:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return type(value), *map(types, inner)

    assert normal(given) == expected
    assert types(normal(given)) == types(expected)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (iter([1]), "list_iterator"),
        ([1j], "complex"),
        (np.complex64(1), "complex64"),
        (np.array([1j]), "complex"),
        (b"", "bytes"),
        (np.datetime64("2026-01-01"), "datetime64"),
        (reduce(lambda inner, _: [inner], range(100), 0), "list nested too deep"),
    ],
)
def test_an_answer_that_is_no_json_is_refused_by_its_type(given: Any, words: str) -> None:
    with pytest.raises(NotAnAnswer, match=words):
        normal([given])


def test_an_answer_whose_first_item_is_long_still_shows_some_of_it() -> None:
    assert answer_words(["x" * 100, 1], 40) == "['" + "x" * 36 + " …"
