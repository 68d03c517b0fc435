"""Examines exercises in plain Python: questions are asked one by one, the answers compared or measured."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from . import budgets, by_hand, cases, messages
from .compare import NotAnAnswer, answer_words, first_difference, holds_nan, normal, same_answer
from .every_case import Failure, parts
from .registry import STUMBLES, Reference
from .run import explain, name_of
from .spec import Case, Exercise, WrongAnswer
from .verdict import Detail, Part


def examine(exercise: Exercise, fn: Callable[..., Any], reference: Reference) -> tuple[Part, ...]:
    """All answers right, or what is wrong with the first that is not; then budgets on what was counted."""
    counts: dict[str, dict[str, float]] = {case.name: {} for case in exercise.cases}
    with by_hand.refused(exercise.by_hand):  # once: it may be asked a hundred thousand questions
        return parts(
            exercise,
            fn,
            lambda case: _at(exercise, case, fn, reference, counts[case.name]),
            lambda: budgets.of_counts(exercise, counts),
            "set",
        )


def _at(
    exercise: Exercise, case: Case, fn: Callable[..., Any], reference: Reference, counts: dict[str, float]
) -> Failure | None:
    """What is wrong at one case. What a measured exercise's reference counts goes into `counts`."""
    questions = cases.questions(exercise, case)
    wrong: list[tuple[str, tuple]] = []
    silent = True
    for arguments in questions:
        call = f"{name_of(fn)}({', '.join(answer_words(a, 40) for a in arguments)})"
        try:
            got = normal(fn(*deepcopy(arguments)))
        except NotAnAnswer as odd:
            return Failure(case, (Detail(messages.odd_answer(call, str(odd))),), True)
        except NotImplementedError as error:
            return Failure(case, explain(error, fn), True)
        except Exception as error:
            return Failure(case, (Detail(messages.while_answering(call)), *explain(error, fn)), True)
        silent = silent and got is None
        if exercise.measured:
            said = _count(exercise, got, arguments, reference, counts)
            wrong += [(messages.wrong_plan(call, answer_words(got), said), arguments)] if said else []
        else:
            expected = normal(reference(*deepcopy(arguments)))
            if not same_answer(got, expected, exercise.rtol, exercise.atol):
                wrong.append((_difference(exercise, call, got, expected), arguments))
    if not wrong:
        return None
    (first, asked), more = wrong[0], len(wrong) - 1
    rest = (Detail(messages.more_answers(more, len(questions))),) if more else ()
    return Failure(case, (Detail(first), *_in_full(fn, asked), *rest), silent=silent)


def _difference(exercise: Exercise, call: str, got: Any, expected: Any) -> str:
    """Both answers, and where they differ if what they are shortened to does not show it."""
    words = answer_words(got), answer_words(expected)
    said = messages.wrong_answer(call, *words)
    if words == (repr(got), repr(expected)):
        return said
    found = first_difference(got, expected, exercise.rtol, exercise.atol)
    if found is None:
        return said
    place, *items = found
    return messages.and_differs_at(said, place, *map(answer_words, items))


LONGEST_QUESTION = 600  # characters: a page of numbers helps nobody


def _in_full(fn: Callable[..., Any], arguments: tuple) -> tuple[Detail, ...]:
    """The question to copy and try again, where the line before had to cut it short."""
    call = f"{name_of(fn)}({', '.join(map(repr, arguments))})"
    shortened = any(answer_words(a, 40) != repr(a) for a in arguments)
    return (Detail(messages.question_in_full(call)),) if shortened and len(call) <= LONGEST_QUESTION else ()


# ---------------------------------------------------------------- answers that are plans


def _count(
    exercise: Exercise, got: Any, arguments: tuple, reference: Reference, counts: dict[str, float]
) -> str:
    """Carry a plan out and keep the worst of each count; says what is wrong with the plan.

    NaN is part of no plan: it is above no limit, so that a reference that compares would let it pass.
    """
    if holds_nan(got):
        return messages.nan_in_a_plan()
    try:
        found = reference(got, *deepcopy(arguments))
    except WrongAnswer as wrong:
        return str(wrong)
    except STUMBLES:
        return messages.not_a_plan()
    budgets.keep_worst(exercise, counts, found)
    return ""
