"""`gpulab check FILE`: the points of all exercises that a notebook or script checks.

In an Action of GitHub the sum is reported as two notices of the run. GitHub Classroom reads them: they are
those of its own reporter (classroom-resources/autograding-grading-reporter, src/notify-classroom.js).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpulab.app import from_file
from gpulab.checks.face import check
from gpulab.checks.registry import UnknownExercise, find
from gpulab.foundation.strict import clean


@dataclass(frozen=True)
class Points:
    """What one exercise of a file has: points, of how many, and the first reason for a lost one."""

    exercise: str
    points: float
    of: float
    reason: str = ""


def points(path: Path) -> Iterator[Points]:
    """Check every exercise that the file checks, in order, each alone: one that fails costs no other.

    Raises NotInFile for a file that cannot be read or checks nothing.
    """
    asked = dict.fromkeys(name for unit in from_file.units(path) for name, _ in unit.checks())
    if not asked:
        raise from_file.NotInFile(f"{path} checks no exercise: a call of gpulab.check(…) is missing")
    for name in asked:
        try:
            of = find(name).points
        except UnknownExercise as error:
            raise from_file.NotInFile(f"{path}: {error}") from None
        try:
            fn = from_file.function(path, name)
        except (from_file.Failed, from_file.NotInFile) as error:
            yield Points(name, 0.0, of, _last_line(str(error)))
            continue
        verdict = check(name, fn, attempt=False)
        missed = next((part for part in verdict.parts if part.state != "pass"), None)
        yield Points(
            name, verdict.points, of, clean(f"{missed.label}: {missed.summary}", 120) if missed else ""
        )


def _last_line(text: str) -> str:
    return clean(text.strip().splitlines()[-1] if text.strip() else "it failed", 120)


def lines(path: Path, found: Iterable[Points]) -> Iterator[str]:
    """For a terminal: a line for each exercise and the sum."""
    found = list(found)
    wide = max(len(each.exercise) for each in found)
    for each in found:
        yield f"{each.exercise:<{wide}}  {each.points:g} of {each.of:g}  {each.reason}".rstrip()
    yield f"{path.name}: {sum(p.points for p in found):g} of {sum(p.of for p in found):g} points"


def report(found: Iterable[Points]) -> None:
    """In an Action of GitHub: the sum as notices of the run, and a table for its page. Elsewhere nothing."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    found = list(found)
    got, of = round(sum(p.points for p in found), 2), round(sum(p.of for p in found), 2)
    print(f"::notice title=Autograding complete::Points {got:g}/{of:g}")
    print(f"::notice title=Autograding report::{json.dumps({'totalPoints': got, 'maxPoints': of})}")
    if page := os.environ.get("GITHUB_STEP_SUMMARY"):
        rows = [f"| {p.exercise} | {p.points:g} of {p.of:g} | {p.reason.replace('|', '/')} |" for p in found]
        with open(page, "a", encoding="utf-8") as file:
            file.write("\n".join(["| exercise | points | |", "|---|---|---|", *rows, ""]))
