"""Verdicts as data, and their store: same submission, same tests, same environment, same verdict."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gpulab.checks import registry
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.spec import Evidence
from grading.core import texts


@dataclass(frozen=True)
class Line:
    """One thing that earns points: `right`, or a budget by its label.

    `summary` is the half line behind the points, `reason` says in the learner's words why points are lost,
    `short` is the reason for a table of the class.
    """

    label: str
    points: float
    of: float
    summary: str = ""
    reason: str = ""
    short: str = ""

    @property
    def passed(self) -> bool:
        return self.points >= self.of


@dataclass(frozen=True)
class ExerciseVerdict:
    """The verdict on one exercise. `ungraded` says why there is none, `doubt` why a person must look at one
    whose points stand."""

    exercise: str
    cell: str  # grade id of its test cell
    lines: tuple[Line, ...]
    cases: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ungraded: str = ""
    doubt: str = ""

    @property
    def points(self) -> float:
        return round(sum(line.points for line in self.lines), 2)

    @property
    def of(self) -> float:
        return round(sum(line.of for line in self.lines), 2)

    @property
    def passed(self) -> bool:
        return not self.ungraded and self.points >= self.of

    @property
    def reason(self) -> str:
        """The first reason for a lost point, for a table of the class."""
        return self.ungraded or next((line.short for line in self.lines if line.short), "")


@dataclass(frozen=True)
class NotebookVerdict:
    """The verdict on one notebook of a submission.

    `key` names all that it was worked out from, `submission` the answers alone (the graft's digest), `timed`
    the device on which what passed was timed, if it was.
    """

    key: str
    submission: str
    exercises: tuple[ExerciseVerdict, ...]
    ungraded: str = ""
    compiler: str = ""
    device: str = ""
    seconds: dict[str, float] = field(default_factory=dict)  # by step: record, replay
    timed: str = ""

    @property
    def edition(self) -> str:
        """Equal for equal verdicts: what the gradebook remembers."""
        return f"{self.key}-{self.timed}" if self.timed else self.key

    @property
    def points(self) -> float:
        return round(sum(e.points for e in self.exercises), 2)

    @property
    def of(self) -> float:
        return round(sum(e.of for e in self.exercises), 2)

    def by_cell(self, cell: str) -> ExerciseVerdict | None:
        """The verdict that belongs to a test cell."""
        return next((e for e in self.exercises if e.cell == cell), None)


def as_text(verdict: ExerciseVerdict, whole: NotebookVerdict) -> str:
    """What a learner reads under the test cell; every string in it is cleaned."""
    rows = [f"{verdict.exercise}   {verdict.points:g} of {verdict.of:g}"]
    if verdict.ungraded or whole.ungraded:
        rows.append("  " + texts.UNGRADED.format(reason=texts.clean(verdict.ungraded or whole.ungraded)))
    wide = max((len(line.label) for line in verdict.lines), default=0)
    for line in verdict.lines:
        earned = f"{line.points:g} of {line.of:g}" if line.of else f"{line.points:g}" if line.points else "–"
        head = f"  {line.label:<{wide}}   {earned}   "
        said = texts.wrap(line.summary) + texts.wrap(line.reason)
        rows.append((head + "".join(said[:1])).rstrip())
        rows += [" " * len(head) + text for text in said[1:]]
    rows += [f"  note: {texts.clean(note)}" for note in verdict.notes]
    if verdict.cases and whole.compiler:
        rows.append("  " + _judged(verdict, whole))
    return "\n".join(rows) + "\n"


def _judged(verdict: ExerciseVerdict, whole: NotebookVerdict) -> str:
    """At what, and where a kernel ran, with what: no compiler and no GPU have a part in a plain function."""
    kind: type[Evidence] | Evidence = LaunchTrace
    with contextlib.suppress(registry.UnknownExercise):  # of a lab that has changed since
        kind = registry.find(verdict.exercise).evidence
    cases = texts.clean(_range(verdict.cases, f"{kind.case_word}s"))
    if not kind.launches:
        return texts.JUDGED_AT.format(cases=cases)
    return texts.JUDGED.format(compiler=whole.compiler, device=whole.device, cases=cases)


def _range(cases: tuple[str, ...], what: str) -> str:
    if len(cases) <= 2:
        return " and ".join(cases)
    return f"{len(cases)} {what} ({cases[0]} … {cases[-1]})"


class Store:
    """Verdicts on disk, one file for each notebook and student, written whole or not at all."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, student: str, lab: str, notebook: str) -> Path:
        return self.folder / lab / f"{student}@{notebook}.json"

    def get(self, student: str, lab: str, notebook: str) -> NotebookVerdict | None:
        """The stored verdict; None when there is none, or none that can be read."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return from_json(json.loads(self.path(student, lab, notebook).read_text()))
        return None

    def put(self, student: str, lab: str, notebook: str, verdict: NotebookVerdict) -> None:
        """Store a verdict: beside it first, then swapped in, so a full disk or a signal loses nothing."""
        path = self.path(student, lab, notebook)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(asdict(verdict), indent=1, ensure_ascii=False))


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is either the old one or the new one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def from_json(record: dict[str, Any]) -> NotebookVerdict:
    """The inverse of `dataclasses.asdict` for verdicts."""
    exercises: Iterable[dict[str, Any]] = record["exercises"]
    return NotebookVerdict(**{**record, "exercises": tuple(map(exercise_from_json, exercises))})


def exercise_from_json(record: dict[str, Any]) -> ExerciseVerdict:
    """The inverse of `dataclasses.asdict` for one exercise's verdict."""
    lines = tuple(Line(**line) for line in record["lines"])
    return ExerciseVerdict(
        **{**record, "lines": lines, "cases": tuple(record["cases"]), "notes": tuple(record["notes"])}
    )
