"""Typical errors of each exercise: those that `wrong/` names, and what the class's verdicts say.

For who teaches and who writes labs: what to talk about, which wrong answers are missing in `wrong/`, which
hints help nobody. It counts students and names none.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from grading.authoring.prove import Wrong, wrong_files
from grading.core.course import Course
from grading.core.texts import clean
from grading.core.verdicts import ExerciseVerdict, from_json
from grading.lms.classroom import open_lab

NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?|\b0x[0-9a-f]+\b|\bnan\b")
QUOTED = re.compile(r"`[^`]*`")
MOST = 8  # kinds of errors of an exercise that are shown


@dataclass(frozen=True)
class Kind:
    """One kind of error: which labels lose points, what is said (numbers left out), of how many students.

    `like` names the files of `wrong/` that fail in the same way.
    """

    labels: tuple[str, ...]
    said: str
    students: int
    like: tuple[str, ...]


@dataclass(frozen=True)
class Typical:
    """The errors of one exercise: of the class, most frequent first, and what of `wrong/` it has not."""

    exercise: str
    students: int  # who have a verdict
    passed: int
    kinds: tuple[Kind, ...]
    unseen: tuple[Wrong, ...]


def typical(course: Course, lab: str) -> list[Typical]:
    """The errors of all exercises of a lab, in its order. Without a graded class, those of `wrong/` alone."""
    asked = [q.exercise for questions in open_lab(course, lab).questions.values() for q in questions]
    wrong = defaultdict(list)
    for each in wrong_files(course.solutions / lab):
        wrong[each.exercise].append(each)
    verdicts = defaultdict(list)
    for verdict in _verdicts(course, lab):
        verdicts[verdict.exercise].append(verdict)
    return [_of_exercise(name, verdicts[name], wrong[name]) for name in asked]


def _verdicts(course: Course, lab: str) -> Iterable[ExerciseVerdict]:
    for path in sorted((course.verdicts / lab).glob("*.json")):
        try:
            whole = from_json(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a damaged one is judged again in the next run
        yield from (verdict for verdict in whole.exercises if not (whole.ungraded or verdict.ungraded))


def _of_exercise(name: str, verdicts: list[ExerciseVerdict], wrong: list[Wrong]) -> Typical:
    groups: dict[tuple[tuple[str, ...], str], list[ExerciseVerdict]] = defaultdict(list)
    for verdict in verdicts:
        if not verdict.passed:
            labels = tuple(line.label for line in verdict.lines if line.short)
            groups[labels, general(verdict.reason)].append(verdict)
    kinds, seen = [], set()
    for (labels, said), group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        like = [each for each in wrong if any(fails_alike(each, verdict) for verdict in group)]
        seen |= {each.path for each in like}
        kinds.append(Kind(labels, said, len(group), tuple(each.path.stem for each in like)))
    unseen = tuple(each for each in wrong if each.path not in seen)
    return Typical(name, len(verdicts), sum(v.passed for v in verdicts), tuple(kinds), unseen)


def general(reason: str) -> str:
    """A reason without numbers and a learner's own names, which differ from submission to submission."""
    return clean(NUMBER.sub("…", QUOTED.sub("`…`", reason)), 160)


def fails_alike(wrong: Wrong, verdict: ExerciseVerdict) -> bool:
    """Whether a verdict misses the labels of a wrong submission and says its words, numbers left out.

    Words that are nothing but a number name a size or a count, which the judge's own cases do not share.
    """
    labels = ", ".join(line.label for line in verdict.lines if line.short)
    if wrong.fails and labels != wrong.fails:
        return False
    text = " ".join(f"{line.summary} {line.reason}" for line in verdict.lines)
    words = re.sub(r"\s+", " ", NUMBER.sub(" ", wrong.says)).strip().lower()
    return words in re.sub(r"\s+", " ", NUMBER.sub(" ", text)).lower()


def markdown(lab: str, found: Iterable[Typical]) -> str:
    """The errors as a page."""
    rows = [f"# Typical errors in {lab}", ""]
    for each in found:
        head = f"{each.passed} of {each.students} passed" if each.students else "no class graded yet"
        rows += [f"## {each.exercise}: {head}", ""]
        for kind in each.kinds[:MOST]:
            like = f" (as in wrong/{', '.join(kind.like)})" if kind.like else " (not in wrong/)"
            rows.append(f"- **{kind.students}** lose {', '.join(kind.labels) or 'points'}: {kind.said}{like}")
        if len(each.kinds) > MOST:
            rows.append(f"- and {len(each.kinds) - MOST} other kinds")
        if each.unseen:
            rows.append("- known, and seen in nobody:" if each.students else "- known:")
            rows += [f"    - {w.path.stem.replace('_', ' ')}: {_sign(w)}" for w in each.unseen]
        rows.append("")
    return "\n".join(rows)


def _sign(wrong: Wrong) -> str:
    fails = f"loses {wrong.fails}" if wrong.fails else "loses points"
    return f"{fails}, the check says “{wrong.says}”" if wrong.says else fails
