"""Examines exercises in plain Python: questions are asked one by one, the answers compared or measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from gpulab.checks import budgets, by_hand, cases, messages, patience
from gpulab.checks.compare import NotAnAnswer, answer_words, first_difference, holds_nan, normal, same_answer
from gpulab.checks.every_case import Failure, parts
from gpulab.checks.parts import Detail, Part
from gpulab.checks.refusals import Refused
from gpulab.checks.registry import STUMBLES, Reference
from gpulab.checks.run import explain, name_of
from gpulab.checks.slips import slip_of
from gpulab.checks.spec import Answer, Case, Exercise, OnQuestions, WrongAnswer
from gpulab.foundation.strict import items

MOST_ANSWERS = 100_000  # of one case


@dataclass(frozen=True)
class AnsweredCases(OnQuestions):
    """The function is plain Python; its arguments and its answer fit JSON.

    `questions(sizes, generator)` lists tuples of arguments; the reference maps (*arguments) to the answer.
    Where many answers are right because the answer is a plan, such as an order or a schedule, the exercise is
    `measured`: its reference gets (answer, *arguments), carries the plan out, raises WrongAnswer with a
    sentence about what is wrong with it, or returns counts by name, which the budgets limit. A count of a
    case is its worst over the case's questions. `by_hand` names functions of gpulab that do what is asked,
    such as ``gpulab.numerics.decode``: the answer may not call them. `words` writes an answer in messages.
    """

    kind = "answered cases"
    line = "answers"
    case_word = "set"

    measured: bool = False
    by_hand: tuple[str, ...] = ()
    words: Callable[[Any], str] = answer_words

    def examine(self, answer: Answer) -> tuple[Part, ...]:
        """All answers right, or what is wrong with the first that is not; then the budgets."""
        exercise = answer.exercise
        counts: dict[str, dict[str, float]] = {case.name: {} for case in exercise.cases}
        with by_hand.refused(self.by_hand):  # once: it may be asked a hundred thousand questions
            return parts(
                exercise,
                answer.fn,
                lambda case: _at(answer, self.measured, case, counts[case.name]),
                lambda: budgets.of_counts(exercise, counts),
                self.case_word,
            )

    def step(self, exercise: Exercise, case: Case, seed: int) -> dict[str, Any]:
        """The questions, and what the answer may not call."""
        asked = cases.questions(exercise, case, seed)
        return {"name": case.name, "questions": asked, "by_hand": self.by_hand}

    @staticmethod
    def record(function: Any, record: Any, exercise: str, case: dict[str, Any]) -> None:
        """Ask one question after the other and write all answers down. Raises Refused."""
        with by_hand.refused(case["by_hand"]):
            answers = [_recorded(function, question) for question in case["questions"]]
        record.line(AnsweredCases.line, exercise=exercise, case=case["name"], answers=answers)

    @staticmethod
    def read(facts: Mapping[str, Any], kernels: Mapping[str, Any]) -> list[Any]:
        """The answers, in the order of the questions."""
        return items(facts["answers"], MOST_ANSWERS)

    def replay(self, answer: Answer, recorded: Mapping[str, Any]) -> tuple[Part, ...]:
        """As `examine`, on a function that gives the recorded answers, one after the other."""
        answers = [each for case in answer.exercise.cases for each in recorded[case.name]]
        return self.examine(replace(answer, fn=giving(name_of(answer.fn), answers)))


def _recorded(function: Callable[..., Any], question: list[Any]) -> Any:
    """What the function answers, as the check compares it: at once, before later calls may change it."""
    try:
        return normal(function(*deepcopy(question)))
    except NotAnAnswer as odd:
        raise Refused(messages.odd_result(str(odd))) from None


def giving(name: str, results: Iterable[Any]) -> Callable[..., Any]:
    """A function of that name that returns these results, one a call, and then None."""
    left = iter(results)

    def replayed(*arguments: Any) -> Any:
        return next(left, None)

    replayed.__name__ = name
    return replayed


def _at(answer: Answer, measured: bool, case: Case, counts: dict[str, float]) -> Failure | None:
    """What is wrong at one case. What a measured exercise's reference counts goes into `counts`."""
    exercise, fn, reference = answer.exercise, answer.fn, answer.reference
    questions = cases.asked(answer, case)
    wrong: list[tuple[str, tuple[Any, ...]]] = []
    slip = ""
    silent = True
    for arguments in questions:
        call = f"{name_of(fn)}({', '.join(answer_words(a, 40) for a in arguments)})"
        try:
            with patience.limited():
                returned = fn(*deepcopy(arguments))
            got = normal(returned)
        except NotAnAnswer as odd:
            return Failure(case, (Detail(messages.odd_answer(call, str(odd))),), True)
        except NotImplementedError as error:
            return Failure(case, explain(error, fn), True)
        except Exception as error:
            return Failure(case, (Detail(messages.while_answering(call)), *explain(error, fn)), True)
        silent = silent and got is None
        if measured:
            said = _count(exercise, got, arguments, reference, counts)
            wrong += [(messages.wrong_plan(call, answer_words(got), said), arguments)] if said else []
        else:
            expected = normal(reference(*deepcopy(arguments)))
            if not same_answer(got, expected, exercise.rtol, exercise.atol):
                wrong.append((_difference(exercise, call, got, expected), arguments))
                if len(wrong) == 1:
                    slip = slip_of(reference, got, arguments, exercise.rtol, exercise.atol)
    if not wrong:
        return None
    (first, asked), more = wrong[0], len(wrong) - 1
    told = (Detail(slip),) if slip else ()
    rest = (Detail(messages.more_answers(more, len(questions))),) if more else ()
    return Failure(case, (Detail(first), *told, *_in_full(fn, asked), *rest), silent=silent)


def _difference(exercise: Exercise, call: str, got: Any, expected: Any) -> str:
    """Both answers, and where they differ if what they are shortened to does not show it.

    Answers that are shortened to the same words are left out.
    """
    assert isinstance(exercise.evidence, AnsweredCases)
    shown = exercise.evidence.words
    words = shown(got), shown(expected)
    said = messages.wrong_answer(call, *words)
    if shown is not answer_words or words == (repr(got), repr(expected)):
        return said
    found = first_difference(got, expected, exercise.rtol, exercise.atol)
    if found is None:
        return said
    place, *items = found
    items = [answer_words(item) for item in items]
    if words[0] == words[1]:
        return messages.differs_at(call, place, *items)
    return messages.and_differs_at(said, place, *items)


LONGEST_QUESTION = 600  # characters: a page of numbers helps nobody


def _in_full(fn: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Detail, ...]:
    """The question to copy and try again, where the line before had to cut it short."""
    call = f"{name_of(fn)}({', '.join(map(repr, arguments))})"
    shortened = any(answer_words(a, 40) != repr(a) for a in arguments)
    return (Detail(messages.question_in_full(call)),) if shortened and len(call) <= LONGEST_QUESTION else ()


# ---------------------------------------------------------------- answers that are plans


def _count(
    exercise: Exercise, got: Any, arguments: tuple[Any, ...], reference: Reference, counts: dict[str, float]
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
