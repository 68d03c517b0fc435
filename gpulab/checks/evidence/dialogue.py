"""Examines exercises whose function asks back: among its arguments are functions, and the judge answers them.

The reference leads. It gets `ask` and a question's arguments, calls the learner's function with
``ask(*given)`` as often as it likes, functions of its own among what is given, and counts what they are
asked. It raises WrongAnswer with a sentence, or returns counts by name, which budgets limit. In a notebook
all of that is one process; for the judge the learner's function is in a sandbox, with nothing but calls and
answers as JSON in between.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gpulab.checks import budgets, cases, messages
from gpulab.checks.compare import answer_words, normal
from gpulab.checks.dialogue_member import Over, line_of, play
from gpulab.checks.every_case import Failure, parts
from gpulab.checks.on_ranks import file_of
from gpulab.checks.parts import Detail, Part, Unwritten
from gpulab.checks.registry import STUMBLES
from gpulab.checks.run import name_of
from gpulab.checks.spec import Answer, Case, Exercise, OnQuestions, WrongAnswer
from gpulab.checks.verdict import no_points
from gpulab.subjects.distributed.network import Trouble

MOST_CALLS = 200_000  # of the judge's functions, at one case


@dataclass(frozen=True)
class Outcome:
    """How a case went: `counts` by name; or what is `wrong` after the question that was `asked`, in words; or
    the trouble for which there was no answer."""

    counts: dict[str, float] = field(default_factory=dict)
    wrong: str = ""
    asked: str = ""
    trouble: Trouble | None = None


class Stopped(BaseException):
    """The learner's function came to no answer. No Exception, so that no reference takes it for its own."""

    def __init__(self, trouble: Trouble) -> None:
        self.trouble = trouble
        super().__init__(trouble.text)


class Dialogue:
    """What a reference asks through. Where the learner's function is, a subclass knows."""

    def __init__(self) -> None:
        self.asked = ""
        self._functions: dict[int, Callable[..., Any]] = {}
        self._calls = 0

    def ask(self, *given: Any) -> Any:
        """Call the learner's function. Raises Stopped, and what one of the given functions raises."""
        self._functions = {place: value for place, value in enumerate(given) if callable(value)}
        names = {place: function.__name__ for place, function in self._functions.items()}
        shown = [names[n] if n in names else answer_words(value, 40) for n, value in enumerate(given)]
        self.asked = ", ".join(shown)
        answer = self._answer(
            [{"function": names[n]} if n in names else {"value": normal(v)} for n, v in enumerate(given)]
        )
        if answer is None:
            raise WrongAnswer(messages.gives_none())
        return answer

    def _answer(self, given: list[dict[str, Any]]) -> Any:
        raise NotImplementedError

    def reply(self, place: Any, arguments: Any) -> Any:
        """What one of the given functions answers. Raises WrongAnswer."""
        function = self._functions.get(place) if type(place) is int else None
        if function is None or not isinstance(arguments, list):
            raise WrongAnswer(messages.not_a_plan())
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise WrongAnswer(messages.too_many_calls(MOST_CALLS))
        try:
            return normal(function(*arguments))
        except STUMBLES:
            shown = ", ".join(answer_words(a, 40) for a in arguments)
            raise WrongAnswer(messages.odd_form(function.__name__, shown)) from None


class Here(Dialogue):
    """The learner's function in this process."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def _answer(self, given: list[dict[str, Any]]) -> Any:
        refused: list[WrongAnswer] = []

        def reply(place: int, arguments: list[Any]) -> Any:
            try:
                return deepcopy(self.reply(place, arguments))
            except WrongAnswer as wrong:
                refused.append(wrong)
                raise Over from None

        try:
            answer = play(self.fn, deepcopy(given), reply)
        except (Exception, SystemExit, Over) as error:
            if refused:
                raise refused[0] from None
            file = file_of(self.fn)
            kind, text, line = type(error).__name__, str(error), line_of(error, file)
            raise Stopped(Trouble("error", text, line=line, error=kind, file=file)) from None
        if refused:
            raise refused[0]
        return answer


def hold(answer: Answer, case: Case, dialogue: Dialogue) -> Outcome:
    """All questions of a case, up to the first that goes wrong. Only the dialogue leads to the function."""
    counts: dict[str, float] = {}
    for arguments in cases.asked(answer, case):
        try:
            found = answer.reference(dialogue.ask, *deepcopy(arguments))
        except WrongAnswer as wrong:
            return Outcome(wrong=str(wrong), asked=dialogue.asked)
        except Stopped as stopped:
            return Outcome(trouble=stopped.trouble, asked=dialogue.asked)
        except STUMBLES:
            return Outcome(wrong=messages.not_a_plan(), asked=dialogue.asked)
        budgets.keep_worst(answer.exercise, counts, found)
    return Outcome(counts)


@dataclass(frozen=True)
class Dialogues(OnQuestions):
    """The function is plain Python, and among its arguments are functions that the judge answers.

    The reference gets (ask, *arguments of a question), calls the function with ``ask(*given)`` as often as it
    likes, functions of its own among what is given, counts what they are asked, and raises WrongAnswer, or
    returns counts by name. `gpulab.checks.branches` goes through all ways in which draws of the function can
    come out. `decorator` is the line that makes of what the learner writes a function that can be called so,
    where there is one.
    """

    kind = "dialogue"
    case_word = "set"
    live = True

    decorator: str = ""

    def examine(self, answer: Answer) -> tuple[Part, ...]:
        """All parts; the function is asked here."""
        fn = answer.fn
        if self.decorator and inspect.isfunction(fn):
            said = messages.no_decorator(name_of(fn), self.decorator)
            return no_points(answer.exercise, messages.no_result(), (Detail(said),))
        return self._examine(answer, lambda case: hold(answer, case, Here(fn)))

    def _examine(self, answer: Answer, source: Callable[[Case], Outcome]) -> tuple[Part, ...]:
        counts: dict[str, dict[str, float]] = {}
        return parts(
            answer.exercise,
            answer.fn,
            lambda case: _at(case, answer.fn, source(case), counts),
            lambda: budgets.of_counts(answer.exercise, counts),
            self.case_word,
        )

    def step(self, exercise: Exercise, case: Case, seed: int) -> dict[str, Any]:
        """The name of the case alone: all questions stay with the judge."""
        return {"name": case.name}

    @staticmethod
    def serving(connection: Any) -> Callable[[Any, str], None]:
        """Answer what the judge asks, until it goes on to the next exercise."""
        from gpulab.checks import dialogue_member

        return partial(dialogue_member.serve, connection)

    def replay(self, answer: Answer, recorded: Mapping[str, Any]) -> tuple[Part, ...]:
        """As `examine`, on how the cases went while the function was in its sandbox."""
        return self._examine(answer, lambda case: recorded[case.name])


def _at(
    case: Case, fn: Callable[..., Any], outcome: Outcome, counts: dict[str, dict[str, float]]
) -> Failure | None:
    call = f"{name_of(fn)}({outcome.asked})"
    if outcome.trouble:
        return Failure(case, _trouble(outcome.trouble, fn, call), True)
    if outcome.wrong:
        return Failure(case, (Detail(messages.in_dialogue(call, outcome.wrong)),))
    counts[case.name] = outcome.counts
    return None


def _trouble(trouble: Trouble, fn: Callable[..., Any], call: str) -> tuple[Detail, ...]:
    """Why there was no answer, and the line of the learner's code to look at."""
    if trouble.error == "NotImplementedError":
        return (Unwritten(messages.empty(name_of(fn))),)
    if trouble.kind != "error":
        return (Detail(messages.in_dialogue(call, trouble.text)),)
    first = (trouble.text.strip().splitlines() or [""])[0]
    said = (
        Detail(messages.while_answering(call)),
        Detail(messages.raised(trouble.error, first, trouble.line)),
    )
    text = linecache.getline(trouble.file, trouble.line).strip() if trouble.line else ""
    return (*said, Detail(text, trouble.line)) if text else said
