"""`gpulab.hint`: three steps for each exercise, the next one after another failed check, all once passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpulab.foundation.display import Card, Heading, Note, Piece, Row, Shown, Span, points

from . import messages, progress, registry
from .spec import Exercise


@dataclass(frozen=True, repr=False)
class Hint(Shown):
    """The steps given so far, and what to do next. `steps` are the texts, `next` the last line."""

    exercise: str
    steps: tuple[str, ...]
    total: int
    next: str
    note: str = ""
    last: str = ""

    def card(self) -> Card:
        right = messages.hint_heading(len(self.steps), self.total) if self.total else ""
        pieces: list[Piece] = [Heading(Span(self.exercise, "strong"), right)]
        pieces += [Note(self.last)] if self.last else []
        pieces += [Row(f"{i}", step) for i, step in enumerate(self.steps, 1)]
        pieces += [Note(Span(line, "dim")) for line in (self.next, self.note) if line]
        return Card(tuple(pieces))


def hint(name: str) -> Hint:
    """The hints of an exercise: the first at once, each later one after another failed check.

    After the last one the next call names the section to read again; so does any call once the exercise is
    passed, with all steps. Raises UnknownExercise.
    """
    exercise = registry.find(name)
    steps = tuple(step for step in exercise.hints if step)
    with progress.change() as data:
        mine = progress.of_exercise(data, name)
        if mine["passed"]:
            mine["hints"] = len(steps)
        asked = mine["hints"]
        may = not asked or mine["failed"] > mine["failed_at_hint"]
        over = asked >= len(steps)
        if may and not over:
            mine["hints"] = asked = asked + 1
            mine["failed_at_hint"] = mine["failed"]
    note = "" if progress.saved() else messages.not_saved(str(progress.place()))
    return Hint(name, steps[:asked], len(steps), _next(exercise, steps, may, over), note, _last(mine))


def _last(mine: Mapping[str, Any]) -> str:
    """What the last check found wrong, in half a line; empty where there was none, or all was right."""
    last = mine.get("last") or {}
    failed = [part for part in last.get("parts", ()) if part.get("state") in ("fail", "part")]
    if mine["passed"] or not failed:
        return ""
    said = "; ".join(
        f"{part['label']} ({part['summary']})" if part.get("summary") else part["label"] for part in failed
    )
    return messages.last_check(points(last["points"]), points(last["of"]), said)


def _next(exercise: Exercise, steps: tuple[str, ...], may: bool, over: bool) -> str:
    if not steps:
        return messages.no_hints(exercise.name, exercise.section)
    if over:
        return messages.hint_over(exercise.section)
    return messages.hint_try(exercise.name) if may else messages.hint_wait()
