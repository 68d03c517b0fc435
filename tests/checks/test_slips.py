"""Usual mistakes get a sentence of their own, and a right answer never does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gpulab
from gpulab.checks import cases, registry, slips
from gpulab.checks.compare import mismatch, normal, same_answer
from gpulab.checks.evidence.answered_cases import AnsweredCases
from gpulab.checks.evidence.communication import Communication, whole
from gpulab.checks.slips import array_slip_of, slip_of, usual_slips
from gpulab.checks.spec import Answer, OnArrays
from gpulab.content.lab_16_sharded_training.references import exercises as sharded


def with_slips() -> list[str]:
    """The exercises whose references know usual mistakes."""
    found = [e for e in registry.exercises() if isinstance(e.evidence, AnsweredCases)]
    return [e.name for e in found if registry.reference(e.name) in slips._OF]


def test_a_slip_that_answers_the_same_is_told_and_another_is_not() -> None:
    @usual_slips((lambda n: 1 / n, "The reciprocal."), (lambda n: -n, "The sign."))
    def same(n: int) -> int:
        return n

    assert slip_of(same, -3, [3]) == "The sign."
    assert slip_of(same, 0.34, [3], rtol=0.1) == "The reciprocal."
    assert slip_of(same, 7, [3]) == ""
    assert slip_of(same, 0, [0]) == "The sign.", "1 / 0 is no answer, and the next slip is looked at"
    assert slip_of(max, 7, [3]) == ""


def test_a_learner_reads_it_below_what_the_answer_should_be() -> None:
    verdict = str(gpulab.check("shard.memory", lambda parameters, ranks, stage: 16 * parameters // ranks))
    words = " ".join(verdict.split())
    assert "should be" in words.partition("divides all 16 bytes")[0]
    assert "divides all 16 bytes" not in str(gpulab.check("shard.memory", sharded.memory))


@pytest.mark.parametrize("name", with_slips())
def test_every_slip_is_wrong_at_some_question_and_its_sentence_is_one(name: str) -> None:
    exercise, reference = registry.find(name), registry.reference(name)
    questions = [
        arguments
        for seed in range(3)
        for case in exercise.cases
        for arguments in exercise.evidence.questions(case.sizes, np.random.default_rng(seed))
    ]
    for slip, sentence in slips._OF[reference]:
        assert sentence[0].isupper() and sentence.endswith(".")
        rights = [
            same_answer(normal(slip(*q)), normal(reference(*q)), exercise.rtol, exercise.atol)
            for q in questions
        ]
        assert not all(rights), sentence


ON_ARRAYS = [
    e
    for e in registry.exercises()
    if isinstance(e.evidence, OnArrays) and registry.reference(e.name) in slips._OF
]


@pytest.mark.parametrize("exercise", ON_ARRAYS, ids=[e.name for e in ON_ARRAYS])
def test_every_slip_in_arrays_is_wrong_somewhere_and_known_there(exercise) -> None:
    reference = registry.reference(exercise.name)
    if isinstance(exercise.evidence, Communication):
        exercise = whole(exercise)
    answer = Answer(exercise, None, reference)
    for slip, sentence in slips._OF[reference]:
        assert sentence[0].isupper() and sentence.endswith(".")
        told = []
        for case in exercise.cases:
            made = cases.of(answer, case)
            right, wrong = cases.expected(reference, made, case), cases.expected(slip, made, case)
            for name, array in wrong.items():
                if found := mismatch(name, array, right[name], exercise.rtol, exercise.atol):
                    told.append(array_slip_of(reference, found, made, case))
        assert sentence in told, sentence


def _scaled_twice(q, k, v, tile):
    scores = q @ k.t() / q.shape[1] ** 0.5
    weights = torch.exp(scores - scores.amax(1, keepdim=True))
    return weights @ v / weights.sum(1, keepdim=True), scores.amax(1) + torch.log(weights.sum(1))


def _not_divided(q, k, v, tile):
    scores = q @ k.t()
    weights = torch.exp(scores - scores.amax(1, keepdim=True))
    return weights @ v, scores.amax(1) + torch.log(weights.sum(1))


def _over_the_queries(q, k, v, tile):
    scores = q @ k.t()
    weights = torch.exp(scores - scores.amax(0))
    return weights / weights.sum(0) @ v, scores.amax(1) + torch.log(torch.exp(scores).sum(1))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (_scaled_twice, "The same happens if q is divided by √d twice. It already comes divided."),
        (
            _not_divided,
            "The same happens if the sums of weighted values are not divided by the sum of the weights.",
        ),
        (_over_the_queries, "The same happens if the softmax is taken down the columns."),
    ],
    ids=["scaled twice", "not divided", "over the queries"],
)
def test_a_learner_of_attention_reads_which_step_is_wrong(wrong, sentence) -> None:
    assert sentence in " ".join(str(gpulab.check("attention.tiled", wrong)).split())


def test_descriptors_are_shown_in_hexadecimal_with_their_fields() -> None:
    def describe(start, leading, stride, swizzle):
        return (
            start // 16
            | leading // 16 << 16
            | stride // 16 << 32
            | {0: 0, 128: 1, 64: 2, 32: 3}[swizzle] << 61
        )

    said = " ".join(str(gpulab.check("tensor.describe", describe)).split())
    assert "swizzle 1, and other bits are set), should be 0xc0000" in said
    assert "swizzle 3)" in said


def test_lists_that_look_alike_where_they_are_cut_are_left_out() -> None:
    def cast(tensors, length, recipe):
        return [[float(np.float32(x)) * (1 + (k > 5)) for x in tensor] for k, tensor in enumerate(tensors)]

    def nearly(tensors, length, recipe):
        right = registry.reference("bits.cast")(tensors, length, recipe)
        right[-1][-1] += 1.0
        return right

    assert "should be [[" in " ".join(str(gpulab.check("bits.cast", cast)).split())
    said = " ".join(str(gpulab.check("bits.cast", nearly)).split())
    assert "in the answer of `nearly(" in said and "All before it is right" in said
    assert "should be [[" not in said
