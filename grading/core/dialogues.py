"""Exercises whose function asks back: it runs in a sandbox, and the judge answers its calls, live.

Nothing is recorded and replayed here, because what is asked depends on what was answered. The reference leads
on the judge's side, where what the given functions know stays; over the one connection go calls and answers
as JSON, checked and capped.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from gpulab.checks import messages, registry
from gpulab.checks.evidence.dialogue import Dialogue, Outcome, Stopped, hold
from gpulab.checks.spec import Answer, Case, Contents, WrongAnswer
from gpulab.subjects.distributed.frames import BadFrame, Head, Reader, encode
from gpulab.subjects.distributed.network import Trouble
from grading.core import limited, sandbox, texts
from grading.core.ranks import Asked
from grading.core.sandbox import Limits

Outcomes = dict[tuple[str, str], Outcome]  # by exercise and case; not those after one without an answer
GRACE = 3.0  # seconds to come to an end when told to
STARTS = 20.0  # seconds that a child may take to start on a busy machine
LONGEST_TEXT = 2000


def outcomes(
    steps: Sequence[dict[str, Any]],
    asked: Iterable[Asked],
    job_bytes: Callable[[dict[str, Any]], bytes],
    limits: Limits,
    until: float | None = None,
    *,
    unsafe: bool = False,
    apart: bool = True,
    stopped: Callable[[], bool] = lambda: False,
) -> Outcomes:
    """How each case of the exercises that are asked went, in the order of `steps`.

    One sandbox serves them all, and is started anew after an exercise that does not come to an end. All
    together may take until `until`, or `limits.seconds`, one case `limits.patience`. Once `stopped` says so,
    none is started.
    References work `apart`, in a limited child, which knows the exercises of labs alone; not if `unsafe`.
    """
    by_name = {each.name: each for each in asked}
    order = [step["exercise"] for step in steps if step.get("exercise") in by_name]
    left = [by_name[name] for name in order]
    until = time.monotonic() + limits.seconds if until is None else until
    found: Outcomes = {}
    while left and not stopped():
        if time.monotonic() >= until:
            late = Outcome(trouble=Trouble("too long", texts.STOPPED.format(seconds=limits.seconds)))
            return found | {(each.name, each.cases[0].name): late for each in left}
        todo = {each.name for each in left}
        job = [step for step in steps if "cell" in step or step.get("exercise") in todo]
        data = job_bytes({"patience": limits.patience, "steps": job})
        with sandbox.rank(data, limits, unsafe=unsafe) as connection:
            while left:
                held, goes_on = (_held_apart if apart and not unsafe else _held)(
                    left.pop(0), connection, until, limits
                )
                found |= held
                if not goes_on:
                    break
    return found


def _held_apart(
    asked: Asked, connection: socket.socket, until: float, limits: Limits
) -> tuple[Outcomes, bool]:
    """The same in a limited child: what a reference does with answers may take long."""
    try:
        left = until - time.monotonic()
        data, goes_on = limited.call(
            _in_child,
            (asked.name, asked.exercise.name, asked.cases, asked.seeds),
            connection,
            left,
            limits,
            limits=replace(limits, seconds=min(limits.seconds, left + STARTS)),
        )
    except limited.Ended as ended:
        return {(asked.name, asked.cases[0].name): Outcome(trouble=Trouble("too long", str(ended)))}, False
    return {(asked.name, case): _outcome(facts) for case, facts in data}, goes_on


def _in_child(
    named: tuple[str, str, tuple[Case, ...], tuple[int, ...]],
    connection: socket.socket,
    left: float,
    limits: Limits,
) -> tuple[list[tuple[str, dict[str, Any]]], bool]:
    """The outcomes by case as data, and whether the other side goes on."""
    name, exercise, cases, seeds = named
    asked = Asked(name, registry.find(exercise), cases, seeds)
    found, goes_on = _held(asked, connection, time.monotonic() + left, limits)
    return [(case, asdict(outcome)) for (_, case), outcome in found.items()], goes_on


def _outcome(facts: dict[str, Any]) -> Outcome:
    """The inverse of `dataclasses.asdict`."""
    trouble = facts["trouble"]
    return Outcome(**{**facts, "trouble": Trouble(**trouble) if trouble else None})


def _held(asked: Asked, connection: socket.socket, until: float, limits: Limits) -> tuple[Outcomes, bool]:
    """The cases of one exercise, up to the first without an answer; and whether the other side goes on."""
    there = There(connection, until)
    return _cases(asked, there, limits), there.leave()


def _cases(asked: Asked, there: There, limits: Limits) -> Outcomes:
    first = asked.name, asked.cases[0].name
    try:
        there.meet(asked.name)
    except Stopped as trouble:
        return {first: Outcome(trouble=trouble.trouble)}
    reference = registry.reference(asked.exercise.name)
    found: Outcomes = {}
    for case, seed in zip(asked.cases, asked.seeds, strict=True):
        there.begin(limits.patience)
        answer = Answer(asked.exercise, None, reference, Contents({case.name: seed}))
        outcome = hold(answer, case, there)
        if outcome.wrong and not there.whole:  # later cases cannot be tried
            outcome = replace(outcome, wrong="", trouble=Trouble("refused", outcome.wrong))
        found[asked.name, case.name] = outcome
        if outcome.trouble:
            break
    return found


class There(Dialogue):
    """The learner's function at the other end of a connection. `whole` says whether it goes on answering."""

    def __init__(self, connection: socket.socket, until: float) -> None:
        super().__init__()
        self.whole = True
        self._connection = connection
        self._last = until  # of all exercises
        self._until = until  # of the case
        self._seconds = max(until - time.monotonic(), 0.0)
        self._reader = Reader(payload=0)
        self._frames: deque[Head] = deque()

    def begin(self, seconds: float) -> None:
        """The next case, which may take so long."""
        now = time.monotonic()
        self._seconds = max(min(seconds, self._last - now), 0.0)
        self._until = now + self._seconds
        self._calls = 0

    def meet(self, exercise: str) -> None:
        """Wait until the other side is ready for an exercise. Raises Stopped where it never is."""
        head = self._hear()
        if head.get("op") != "ready" or head.get("exercise") != exercise:
            raise self._stop("forged", messages.forged_dialogue())
        if head.get("absent") is not False:
            raise Stopped(Trouble("error", "", error="missing"))

    def say(self, head: Head) -> None:
        """Send a frame. Raises Stopped where nobody takes it."""
        try:
            self._connection.settimeout(max(self._until - time.monotonic(), 0.01))
            self._connection.sendall(encode(head))
        except TimeoutError:
            raise self._stop("too long", messages.no_answer(self._seconds)) from None
        except OSError:
            raise self._stop("died", messages.ended_in_dialogue()) from None

    def leave(self) -> bool:
        """Go on to the next exercise; False where the other side cannot."""
        if self.whole:
            self.begin(GRACE)
            try:
                self.say({"op": "next"})
            except Stopped:
                self.whole = False
        return self.whole

    def _answer(self, given: list[dict[str, Any]]) -> Any:
        self.say({"op": "ask", "given": given})
        while True:
            head = self._hear()
            if head.get("op") == "call":
                try:
                    value = self.reply(head.get("place"), head.get("arguments"))
                except WrongAnswer:
                    self._end()
                    raise
                self.say({"op": "reply", "value": value})
            elif head.get("op") == "answer":
                return head.get("value")
            elif head.get("op") == "error":
                raise Stopped(_error(head))
            else:
                raise self._stop("forged", messages.forged_dialogue())

    def _end(self) -> None:
        """Tell the other side that its calls are over, and wait for it to come back."""
        self._until = min(self._until, time.monotonic() + GRACE)
        try:
            op: Any = "call"
            while op == "call":
                self.say({"op": "stop"})
                op = self._hear().get("op")
            self.whole = op in ("answer", "error")
        except Stopped:
            self.whole = False

    def _hear(self) -> Head:
        """The next frame. Raises Stopped."""
        while not self._frames:
            left = self._until - time.monotonic()
            if left <= 0:
                raise self._stop("too long", messages.no_answer(self._seconds))
            self._connection.settimeout(left)
            try:
                data = self._connection.recv(1 << 16)
                if not data:
                    raise self._stop("died", messages.ended_in_dialogue())
                for head, payload in self._reader.feed(data):
                    if payload:
                        raise BadFrame("raw bytes")
                    self._frames.append(head)
            except TimeoutError:
                continue
            except BadFrame:
                raise self._stop("forged", messages.forged_dialogue()) from None
            except OSError:
                raise self._stop("died", messages.ended_in_dialogue()) from None
        return self._frames.popleft()

    def _stop(self, kind: Any, text: str) -> Stopped:
        self.whole = False
        return Stopped(Trouble(kind, text))


def _error(head: Head) -> Trouble:
    """What the learner's function raised, as its process says."""
    kind, text, file = (texts.clean(head.get(key, ""), LONGEST_TEXT) for key in ("kind", "text", "file"))
    line = head.get("line")
    return Trouble("error", text, line=line if type(line) is int and line > 0 else 0, error=kind, file=file)
