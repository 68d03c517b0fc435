"""Examines exercises in plain Python: questions are asked one by one, the answers compared."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from . import cases, messages
from .compare import NotAnAnswer, answer_words, normal, same_answer
from .registry import Reference
from .run import explain, name_of
from .spec import Case, Exercise
from .verdict import Detail, Part


def examine(exercise: Exercise, fn: Callable[..., Any], reference: Reference) -> tuple[Part, ...]:
    """The one part of such an exercise: all answers right, or what is wrong with the first that is not."""
    right = 0
    failure: tuple[Case, tuple[Detail, ...], bool] | None = None
    for case in exercise.cases:
        details, stopped = _at(exercise, case, fn, reference)
        if not details:
            right += 1
        elif failure is None:
            failure = case, details, stopped
        if stopped:
            break
    of = exercise.correct_points
    if failure is None:
        return (Part("right", "pass", of, of, messages.all_right([c.name for c in exercise.cases], "set")),)
    case, details, stopped = failure
    said = messages.stopped_at if stopped else messages.first_wrong
    summary = said(right, len(exercise.cases), case.name, "set")
    if details[0].text == messages.empty(name_of(fn)):
        summary = messages.no_result()
    return (Part("right", "fail", 0.0, of, summary, details),)


def _at(
    exercise: Exercise, case: Case, fn: Callable[..., Any], reference: Reference
) -> tuple[tuple[Detail, ...], bool]:
    """What is wrong at one case, and whether the function stopped with an exception."""
    questions = cases.questions(exercise, case)
    wrong: list[str] = []
    silent = True  # None so far, where None is never right
    for arguments in questions:
        call = f"{name_of(fn)}({', '.join(answer_words(a, 40) for a in arguments)})"
        expected = normal(reference(*deepcopy(arguments)))
        try:
            got = normal(fn(*deepcopy(arguments)))
        except NotAnAnswer as odd:
            return (Detail(messages.odd_answer(call, str(odd))),), True
        except NotImplementedError as error:
            return explain(error, fn), True
        except Exception as error:
            return (Detail(messages.while_answering(call)), *explain(error, fn)), True
        silent = silent and got is None
        if not same_answer(got, expected, exercise.rtol, exercise.atol):
            wrong.append(messages.wrong_answer(call, answer_words(got), answer_words(expected)))
    if not wrong:
        return (), False
    if silent:
        return (Detail(messages.returns_nothing(name_of(fn))),), False
    first, more = wrong[0], len(wrong) - 1
    return (Detail(first), *((Detail(messages.more_answers(more, len(questions))),) if more else ())), False
