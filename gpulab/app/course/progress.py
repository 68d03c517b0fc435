"""What a learner has done, lab by lab."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gpulab.checks import progress as records
from gpulab.checks import registry
from gpulab.foundation.display import Card, Heading, Note, Piece, Row, Shown, Span, Table
from gpulab.foundation.errors import Message

from . import catalogue


class UnknownLab(Message, LookupError):
    """No lab has that number; the message says which have."""


@dataclass(frozen=True)
class ExerciseDone:
    """One exercise: best points of all, number of checks, whether it was passed."""

    name: str
    points: float
    of: float
    attempts: int
    passed: bool


@dataclass(frozen=True)
class LabDone:
    """One lab by its number, and its exercises."""

    number: str
    title: str
    exercises: tuple[ExerciseDone, ...]

    @property
    def passed(self) -> int:
        return sum(e.passed for e in self.exercises)

    @property
    def share(self) -> float:
        """Passed exercises over all, 0 to 1."""
        return self.passed / len(self.exercises) if self.exercises else 0.0


@dataclass(frozen=True, repr=False)
class Progress(Shown):
    """All labs; shown with `exercises` in full if it is about one."""

    labs: tuple[LabDone, ...]
    place: str
    in_full: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON: labs with their exercises."""
        return {"place": self.place, "labs": [asdict(lab) for lab in self.labs]}

    def card(self) -> Card:
        done = sum(lab.passed for lab in self.labs)
        total = sum(len(lab.exercises) for lab in self.labs)
        pieces: list[Piece] = [Heading(Span("Your progress", "strong"), f"{done} of {total} exercises")]
        for lab in self.labs:
            count = len(lab.exercises)
            mark = "pass" if count and lab.passed == count else "part" if _begun(lab) else "wait"
            pieces.append(Row(lab.number, lab.title, f"{lab.passed} of {count}", mark))
            if self.in_full:
                pieces.append(_table(lab))
        return Card((*pieces, Note(Span(f"Kept in {self.place}", "dim"))))


def _begun(lab: LabDone) -> bool:
    return any(e.attempts for e in lab.exercises)


def _table(lab: LabDone) -> Table:
    rows = tuple(
        (e.name, f"{e.points:g} of {e.of:g}", f"{e.attempts}", "yes" if e.passed else "")
        for e in lab.exercises
    )
    return Table(("exercise", "best points", "checks", "passed"), rows)


def progress(lab: str = "") -> Progress:
    """What has been done in all labs, or exercise by exercise in one: ``"04"``. Raises UnknownLab."""
    data = records.load()["exercises"]
    titles: dict[str, str] = {}
    for each in catalogue.labs().values():
        before = titles.get(each.number)
        titles[each.number] = f"{before} · {each.title}" if before else each.title
    wanted = registry.lab_number(lab) if lab else ""
    found = tuple(
        LabDone(number, title, _exercises(number, data))
        for number, title in titles.items()
        if wanted in ("", number)
    )
    if not found:
        raise UnknownLab(f"there is no lab '{lab}'; labs are {', '.join(titles)}")
    return Progress(found, str(records.place()), bool(lab))


def _exercises(number: str, data: dict[str, Any]) -> tuple[ExerciseDone, ...]:
    found = []
    for exercise in registry.of_lab(number):
        mine = data.get(exercise.name, {})
        found.append(
            ExerciseDone(
                exercise.name,
                float(mine.get("best", 0)),
                exercise.points,
                int(mine.get("attempts", 0)),
                bool(mine.get("passed")),
            )
        )
    return tuple(found)
