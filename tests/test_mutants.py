"""The tool that counts which mistakes the tests notice makes mistakes, one at a time, and sees them noticed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools import mutants

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("a < b", "a <= b"),
        ("a + b", "a - b"),
        ("a and b", "a or b"),
        ("max", "min"),
        ("np.minimum", "np.maximum"),
        ("True", "False"),
        ("7", "8"),
        ("a if b else c", "c if b else a"),
    ],
)
def test_a_mutant_is_a_wrong_piece_of_the_same_kind(right: str, wrong: str) -> None:
    node = ast.parse(right, mode="eval").body
    assert mutants.mistake(node) and ast.unparse(node) == wrong


def test_what_has_no_wrong_twin_is_left_alone() -> None:
    assert not mutants.mistake(ast.parse("call(x)", mode="eval").body)


@pytest.mark.parametrize("module", mutants.TESTS)
def test_each_module_has_mutants_and_the_tests_that_must_notice_them(module: str) -> None:
    assert len(list(mutants.mutants(module))) > 10
    assert all((ROOT / test).is_file() for test in mutants.TESTS[module])


def test_a_module_is_mutated_at_the_place_that_is_named() -> None:
    module = "gpulab.analysis.profile.metrics"
    found = {mutant.change: mutant for mutant in mutants.mutants(module)}
    mutant = found["max  →  min"]
    tree = ast.parse(mutants.file_of(module).read_text(encoding="utf-8"))
    changed = list(ast.walk(tree))[mutant.place]
    assert mutants.mistake(changed) and ast.unparse(changed) == "min"
    assert "'max': min" in ast.unparse(tree)


def test_how_facts_combine_cannot_be_changed_unnoticed() -> None:
    module = "gpulab.analysis.profile.metrics"
    mutant = next(mutant for mutant in mutants.mutants(module) if mutant.change == "max  →  min")
    assert mutants.lives(None, mutants.TESTS[module])
    assert not mutants.lives(mutant, mutants.TESTS[module])
