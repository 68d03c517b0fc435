"""Exercises whose answer is data: scored on what the function never saw, and refused with a reason."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gpulab.checks import cases, checking, messages
from gpulab.checks.evidence import artefact as artefacts
from gpulab.checks.evidence.artefact import NotAnArtefact, bytes_of, from_data, packed, to_data
from gpulab.checks.parts import Part
from gpulab.checks.spec import Answer
from tests.checks import codebook
from tests.checks.codebook import CODEBOOK, read


def verdict(fn: object) -> tuple[Part, ...]:
    return checking.examine(Answer(CODEBOOK, fn, read))


def said(parts: tuple[Part, ...]) -> str:
    return " ".join(f"{p.label}: {p.summary} {' '.join(d.text for d in p.details)}" for p in parts)


def test_a_good_artefact_meets_all_budgets() -> None:
    parts = verdict(codebook.lloyd)
    assert [p.state for p in parts] == ["pass", "pass", "pass"], said(parts)
    assert parts[1].measured == 8 * 4 + len("codebook") + 8


def test_the_artefact_is_scored_on_data_that_its_maker_never_saw() -> None:
    seen = []

    def remember(x, levels):
        seen.append(x.copy())
        return codebook.lloyd(x, levels)

    verdict(remember)
    for case, given_x in zip(CODEBOOK.cases, seen, strict=True):
        made = {a.name: a.value for a in cases.arguments(CODEBOOK, case)}
        assert np.array_equal(made["x"], given_x)
        assert not np.isin(made["fresh"], given_x).any()


def test_what_is_given_depends_on_another_seed_than_what_is_held_out() -> None:
    case = CODEBOOK.cases[0]
    made = {a.name: a.value for a in cases.arguments(CODEBOOK, case, seed=5)}
    one_stream = cases.generator(CODEBOOK, case, 5)
    assert np.array_equal(made["fresh"], one_stream.standard_normal(500))
    assert not np.isin(made["x"], cases.generator(CODEBOOK, case, 5).standard_normal(9000)).any()


def test_the_function_gets_copies_and_no_held_out_array() -> None:
    def spoils(x, levels):
        x[:] = 0
        return codebook.evenly_spaced(np.array([-3.0, 3.0]), levels)

    assert verdict(spoils)[0].state == "pass"
    assert set(inspect.signature(codebook.lloyd).parameters) == {"x", "levels"}


def test_a_naive_artefact_earns_the_first_points_only() -> None:
    parts = verdict(codebook.evenly_spaced)
    assert parts[0].state == parts[1].state == "pass"
    assert parts[2].points < 2
    assert "Where are most of the numbers?" in said(parts)


def test_to_remember_everything_costs_bytes() -> None:
    parts = verdict(codebook.remembers_all)
    assert [p.state for p in parts] == ["pass", "fail", "wait"]
    assert parts[1].measured == 3000 * 8 + 16


@pytest.mark.parametrize(
    "name, words",
    {
        "one_level": "a codebook has at least two levels",
        "other_name": "cannot be read as the exercise describes it: book float32 (4,)",
        "in_another_shape": "cannot be read as the exercise describes it: codebook float32 (4, 4, 4)",
        "a_list": "returns a list; it should return a dictionary of arrays by name",
        "complex_numbers": "`codebook` is a complex64, which cannot be handed in",
        "not_a_number": "`codebook` holds NaN or infinity",
        "far_away": "gives no finite number for: rms error",
        "too_large": "returns 20,000,016 bytes; at most 16,777,216",
        "hidden_in_a_name": "a name is a text of 1 to 64 characters",
        "nothing": "returns nothing yet: is a `return` missing?",
        "fails": "IndexError",
    }.items(),
)
def test_what_is_no_good_artefact_is_told_so(name: str, words: str) -> None:
    parts = verdict(getattr(codebook, name))
    assert words in said(parts)
    assert sum(p.points for p in parts) == 0


def test_an_unwritten_function_is_told_that_it_is_empty() -> None:
    assert messages.empty("empty") in said(verdict(codebook.empty))


def test_tensors_of_pytorch_are_taken_as_arrays() -> None:
    torch = pytest.importorskip("torch")
    weights = torch.arange(6.0).reshape(2, 3).requires_grad_()
    assert packed({"w": weights.T})["w"].tolist() == [[0, 3], [1, 4], [2, 5]]
    with pytest.raises(NotAnArtefact, match="cannot be handed in"):
        packed({"w": torch.zeros(2, dtype=torch.bfloat16)})


ANY = st.sampled_from(artefacts.TYPES).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=64), ANY, max_size=5))
def test_an_artefact_comes_back_from_json_as_it_was(artefact: dict[str, np.ndarray]) -> None:
    again = from_data(json.loads(json.dumps(to_data(packed(artefact)))))
    assert list(again) == list(artefact)
    for name, array in artefact.items():
        assert again[name].dtype == array.dtype and again[name].shape == array.shape
        assert again[name].tobytes() == array.tobytes()
    assert bytes_of(again) >= sum(a.nbytes for a in artefact.values())


GOOD = {"name": "a", "dtype": "float32", "shape": [2], "data": "AAAAAAAAAAA="}


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"name": 3},
        {"name": "x" * 65},
        {"dtype": "object"},
        {"dtype": "complex64"},
        {"dtype": ">f4"},
        {"dtype": "float32,float32"},
        {"shape": [3]},
        {"shape": [-2]},
        {"shape": [True]},
        {"shape": [2.0]},
        {"shape": [1 << 60, 1 << 60]},
        {"shape": [1] * 9},
        {"data": "AAAA*AAAAAA="},
        {"data": 7},
        {"dtype": "bool", "shape": [2], "data": "AgE="},
    ],
)
def test_a_forged_artefact_is_refused(change: dict[str, object]) -> None:
    from_data([GOOD])
    with pytest.raises((ValueError, KeyError, TypeError)):
        from_data([{**GOOD, **change}])


def test_two_arrays_of_one_name_or_too_many_are_refused() -> None:
    with pytest.raises(ValueError):
        from_data([GOOD, GOOD])
    with pytest.raises(ValueError):
        from_data([{**GOOD, "name": str(i)} for i in range(artefacts.MOST_ARRAYS + 1)])
    with pytest.raises(TypeError):
        from_data({"a": GOOD})
