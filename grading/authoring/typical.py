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
from grading.core import texts
from grading.core.course import Course
from grading.core.texts import clean
from grading.core.verdicts import ExerciseVerdict, from_json
from grading.lms.classroom import open_lab

NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?|\b0x[0-9a-f]+\b|\bnan\b")
QUOTED = re.compile(r"`[^`]*`")
MORE = re.compile(r"(?<=…) · … more.*")  # elements that are wrong, too
CODE = re.compile(r"(?<=\(line …): .*")
# Words that are said of any wrong result, so that they tell no error from another.
COMMON = frozenset(re.findall(r"\w+", "at be first from in index is more nan of on out should sizes wrong"))
NOTHING_IN_IT = ("is still empty", "returns nothing yet")  # what a check says of a stub without an exception
NO_ANSWER = re.compile(
    "|".join(
        re.escape(max(re.split(r"\{[^}]*\}", words), key=len).strip())
        for words in (
            texts.STUB,
            texts.NO_FUNCTION,
            texts.NO_FUNCTION_AFTER,
            texts.STOPPED,
            texts.ENDED_ITSELF,
            texts.DIED,
            texts.NOT_REACHED,
            *NOTHING_IN_IT,
        )
    )
)
MOST = 8  # kinds of errors of an exercise that are shown


@dataclass(frozen=True)
class Kind:
    """One kind of error: at which labels it fails, what is said (numbers left out), of how many students.

    `like` names the files of `wrong/` of which the check says the same; `answered` is false where there was
    nothing to judge, such as a stub or a cell that never ended.
    """

    labels: tuple[str, ...]
    said: str
    students: int
    like: tuple[str, ...]
    answered: bool = True


@dataclass(frozen=True)
class Typical:
    """The errors of one exercise: of the class, most frequent first, and what of `wrong/` it has not.

    Of those `untold` the check says what it says of every wrong result: the class may have them or not.
    """

    exercise: str
    students: int  # who have a verdict
    passed: int
    kinds: tuple[Kind, ...]
    unseen: tuple[Wrong, ...]
    untold: tuple[Wrong, ...] = ()


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
    untold = tuple(each for each in wrong if is_untold(each))
    for (labels, said), group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        like = [
            each
            for each in wrong
            if each not in untold and any(fails_alike(each, verdict) for verdict in group)
        ]
        seen |= {each.path for each in like}
        names = tuple(each.path.stem for each in like)
        kinds.append(Kind(labels, said, len(group), names, not NO_ANSWER.search(said)))
    unseen = tuple(each for each in wrong if each.path not in seen and each not in untold)
    return Typical(name, len(verdicts), sum(v.passed for v in verdicts), tuple(kinds), unseen, untold)


def general(reason: str) -> str:
    """A reason without numbers and a learner's own names, which differ from submission to submission."""
    said = NUMBER.sub("…", QUOTED.sub("`…`", reason))
    return clean(CODE.sub(")", MORE.sub("", said)), 160)


def is_untold(wrong: Wrong) -> bool:
    """Whether what the check says of a wrong submission is said of every wrong result."""
    return wrong.fails in ("", "right") and set(re.findall(r"\w+", words(wrong.says))) <= COMMON


def words(text: str) -> str:
    """A text in small letters and without its numbers."""
    return re.sub(r"\s+", " ", NUMBER.sub(" ", text)).strip().lower()


def fails_alike(wrong: Wrong, verdict: ExerciseVerdict) -> bool:
    """Whether a verdict misses the labels of a wrong submission and says its words, numbers left out.

    Words that are nothing but a number name a size or a count, which the judge's own cases do not share.
    """
    labels = ", ".join(line.label for line in verdict.lines if line.short)
    if wrong.fails and labels != wrong.fails:
        return False
    text = " ".join(f"{line.summary} {line.reason}" for line in verdict.lines)
    return bool(re.search(rf"(?<!\w){re.escape(words(wrong.says))}(?!\w)", words(text)))


def markdown(lab: str, found: Iterable[Typical]) -> str:
    """The errors as a page."""
    rows = [f"# Typical errors in {lab}", ""]
    for each in found:
        head = f"{each.passed} of {each.students} passed" if each.students else "no class graded yet"
        rows += [f"## {each.exercise}: {head}", ""]
        for kind in each.kinds[:MOST]:
            like = ""
            if kind.answered:
                like = (
                    f" (the same is said of wrong/{', '.join(kind.like)})"
                    if kind.like
                    else " (like no file of wrong/)"
                )
            at = f" at {', '.join(kind.labels)}" if kind.labels else ""
            rows.append(f"- **{kind.students}** fail{'s' * (kind.students == 1)}{at}: {kind.said}{like}")
        if len(each.kinds) > MOST:
            rows.append(f"- and {len(each.kinds) - MOST} other kinds")
        if each.unseen:
            rows.append("- known, and seen in nobody:" if each.students else "- known:")
            rows += [f"    - {w.path.stem.replace('_', ' ')}: {_sign(w)}" for w in each.unseen]
        if each.untold:
            rows.append("- known, and not to be told from other wrong results:")
            rows += [f"    - {w.path.stem.replace('_', ' ')}" for w in each.untold]
        rows.append("")
    return "\n".join(rows)


def _sign(wrong: Wrong) -> str:
    fails = f"fails at {wrong.fails}" if wrong.fails else "fails"
    return f"{fails}, the check says “{wrong.says}”" if wrong.says else fails
