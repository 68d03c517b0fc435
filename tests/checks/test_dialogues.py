"""Exercises whose function asks back: who answers counts, and every way in which draws come out is gone through."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpulab
from gpulab.checks import WrongAnswer, branches, messages, registry
from gpulab.checks.evidence import dialogue as dialogues

from . import guessing
from .guessing import DRAW, GUESS, draw_reference, guess_reference, halves, one_by_one


@pytest.fixture(autouse=True)
def toys():
    registry.add(GUESS, guess_reference)
    registry.add(DRAW, draw_reference)
    yield
    registry.remove(GUESS.name)
    registry.remove(DRAW.name)


def said(verdict):
    return " ".join(str(verdict).split())


def test_who_asks_well_passes_and_its_calls_are_counted():
    verdict = gpulab.check("toy.guess", halves)
    assert verdict.passed and verdict.points == 2
    assert verdict.parts[1].measured in (9, 10), "1,000 numbers take 9 or 10 halvings"


def test_who_asks_too_often_is_right_and_misses_the_budget():
    verdict = gpulab.check("toy.guess", one_by_one)
    assert verdict.right and verdict.parts[1].state in ("fail", "part")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda is_below, high: 3.5, "(is_below, 8)`: it finds 3.5, should be"),
        (lambda is_below, high: None, "it gives None: is a `return` missing?"),
        (lambda is_below, high: is_below(), "calls `is_below()`, which is not the form"),
        (lambda is_below, high: is_below("x"), "it asks `is_below('x')`, which is no whole number"),
        (lambda is_below, high: is_below({1: object()}), "takes numbers, text, lists and dictionaries; it got an object"),
        (lambda is_below, high: object(), "returns an object; return numbers"),
        (lambda is_below, high: 1 // 0, "ZeroDivisionError"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(answer, words):
    verdict = gpulab.check("toy.guess", answer)
    assert verdict.points == 0 and words in said(verdict), said(verdict)


def test_an_empty_answer_is_called_empty():
    def guess(is_below, high):
        raise NotImplementedError

    assert "`guess` is still empty" in said(gpulab.check("toy.guess", guess))


def test_a_refused_call_ends_the_dialogue_whatever_the_function_catches():
    def stubborn(is_below, high):
        for _ in range(10):
            with contextlib.suppress(BaseException):
                is_below("x")
        return halves(is_below, high)

    verdict = gpulab.check("toy.guess", stubborn)
    assert verdict.points == 0 and "no whole number" in said(verdict)


def test_calls_without_end_are_stopped(monkeypatch):
    monkeypatch.setattr(dialogues, "MOST_CALLS", 100)

    def endless(is_below, high):
        while True:
            is_below(1)

    assert "more than 100 times" in said(gpulab.check("toy.guess", endless))


def test_what_is_handed_in_and_out_is_a_copy():
    def spoils(choose, weights):
        drawn = guessing.without(choose, list(weights))
        weights[0] = 99.0
        return drawn

    assert gpulab.check("toy.draw", spoils).passed


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (guessing.again_until_another, "gives [0, 0] with probability 0.0625"),
        (guessing.not_normalised, "these are none: they sum to 0.5"),
        (lambda choose, weights: [choose([0.5, -0.5, 1.0]), 0], "entry 1 is -0.5"),
        (lambda choose, weights: [choose([float("nan")]), 0], "an entry is not finite"),
        (lambda choose, weights: [choose(0.5), 0], "it takes a list of numbers"),
        (lambda choose, weights: [choose([True]), 0], "not all of its entries are numbers"),
        (lambda choose, weights: [choose([1.0]), random.random()], "with probability"),
        (lambda choose, weights: [choose([(x := random.random()), 1 - x]), 1], "draws from other probabilities"),
        (lambda choose, weights: {"first": choose(weights)}, "not of the form that is asked for"),
        (lambda choose, weights: [choose([0.5, 0.5]) for _ in range(15)], "more than 10,000 ways"),
    ],
)  # fmt: skip
def test_draws_that_are_wrong_are_told(answer, words):
    verdict = gpulab.check("toy.draw", answer)
    assert verdict.points == 0 and words in said(verdict), said(verdict)


def test_every_way_is_gone_through_once_and_what_cannot_be_drawn_never_is():
    ways = []

    def play(choose):
        first = choose([0.25, 0.0, 0.75])
        ways.append((first, choose([0.5, 0.5]) if first else 0))
        return ways[-1]

    found = branches.distribution(play)
    assert ways == [(0, 0), (2, 0), (2, 1)]
    assert found == {(0, 0): 0.25, (2, 0): 0.375, (2, 1): 0.375}


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 4))
def test_the_probabilities_of_independent_draws_multiply_and_sum_to_one(weights, draws):
    p = [w / sum(weights) for w in weights]
    found = branches.distribution(lambda choose: [choose(p) for _ in range(draws)])
    assert len(found) == len(p) ** draws and abs(sum(found.values()) - 1) < 1e-9
    for answer, got in found.items():
        expected = 1.0
        for pick in answer:
            expected *= p[pick]
        assert abs(got - expected) < 1e-9


def test_other_distributions_are_told_apart_and_rounding_is_not():
    branches.compare({1: 0.5, 2: 0.5}, {1: 0.5 + 1e-9, 2: 0.5 - 1e-9})
    with pytest.raises(WrongAnswer, match=r"gives \[1, 2\] with probability 0\.000000, should be 0\.250000"):
        branches.compare({(1, 1): 1.0}, {(1, 1): 0.75 + 1e-7, (1, 2): 0.25})


def test_one_of_a_count_is_said_in_the_singular():
    assert [messages.quantity(1, unit) for unit in ("passes", "launches", "questions")] == [
        "1 pass",
        "1 launch",
        "1 question",
    ]
