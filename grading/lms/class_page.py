"""`class.html`: how a class stands, over all labs, on one page that needs no server and runs no script.

It is made from the tables of `final.py` and the stored verdicts. Whatever a student or a roster wrote is
escaped, and the page's own policy lets a browser load and run nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from statistics import mean, median

from grading.core import texts
from grading.core.course import Course
from grading.core.verdicts import Store, write_whole
from grading.lms import final
from grading.lms.final import Final
from grading.lms.roster import Student

Tables = Mapping[str, Sequence[Final]]
BINS = 10
MOST_REASONS = 20
LOW = 0.5  # of all points: who has less falls behind
DROP = 0.25  # of a lab's points: so much less than in one's other labs, in the last one, is a drop
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>How the class stands</title>
<style>{style}</style>
<h1>How the class stands</h1>
{body}
</html>
"""


@dataclass
class Exercise:
    """One exercise of one lab: each student's share of its points, 0 … 1, without those that wait."""

    lab: str
    name: str
    shares: list[float] = field(default_factory=list)
    waits: int = 0


@dataclass(frozen=True)
class Standing:
    """One student over the labs for them; `share` is of all their points, what was not handed in is 0."""

    who: Student
    share: float
    handed_in: int
    of: int
    signs: tuple[str, ...]  # why somebody should have a look; empty for most


def write(course: Course, tables: Tables, rosters: Collection[str] = ()) -> Path:
    """Write the page beside `grades.csv`; returns its path. `rosters` names the labs that have one."""
    names, reasons = _from_verdicts(course, tables)
    students = standings(tables, rosters)
    body = [
        f"<p>Students: {len(students)}. Labs: {len(tables)}. "
        "Grades that are not final are counted as they are now.</p>",
        _behind(students),
        "<h2>The labs</h2><div class=labs>",
        *(_lab(name, rows) for name, rows in sorted(tables.items())),
        "</div>",
        _wrong(reasons),
        _exercises(exercises(tables, names)),
        _everybody(students),
    ]
    style = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    write_whole(course.class_page, PAGE.format(style=style, body="\n".join(body)))
    return course.class_page


def standings(tables: Tables, rosters: Collection[str] = ()) -> list[Standing]:
    """Everybody, the lowest share first, over the labs that are for him or her: those with a row for the
    student, and those without a roster, which cannot say whom they are for. Each lab weighs as many points as
    it has.
    """
    most = {lab: max((row.of for row in rows), default=0.0) for lab, rows in tables.items()}
    rows_of: dict[str, dict[str, Final]] = defaultdict(dict)
    for lab in sorted(tables):
        for row in tables[lab]:
            rows_of[row.who.id][lab] = row
    found = []
    for rows in rows_of.values():
        shares = [row.total / row.of if row.of else 0.0 for row in rows.values() if row.cells]
        asked = [lab for lab in sorted(tables) if lab in rows or lab not in rosters]
        whole = sum(most[lab] for lab in asked)
        share = sum(row.total for row in rows.values()) / whole if whole else 0.0
        missing = [lab for lab in asked if lab not in rows or not rows[lab].cells]
        signs = [f"nothing of {texts.some(missing, 4)}"] if missing else []
        if share < LOW:
            signs.append(f"{share:.0%} of all points")
        if len(shares) > 1 and shares[-1] < mean(shares[:-1]) - DROP:
            signs.append(f"{shares[-1]:.0%} in the last lab, {mean(shares[:-1]):.0%} before")
        who = next(iter(rows.values())).who
        found.append(Standing(who, share, len(shares), len(asked), tuple(signs)))
    return sorted(found, key=lambda each: (each.share, each.who.id))


def exercises(tables: Tables, names: Mapping[tuple[str, str, str], str]) -> list[Exercise]:
    """Every exercise of all labs, in order; `names` has them by lab, notebook and grade id."""
    found: dict[tuple[str, str, str], Exercise] = {}
    for lab, rows in sorted(tables.items()):
        for row in (row for row in rows if not row.by):  # a group's answers count once
            for (notebook, cell), grade in row.cells.items():
                place = (lab, notebook, cell)
                each = found.setdefault(place, Exercise(lab, names.get(place, cell)))
                if grade.waits:
                    each.waits += 1
                elif grade.of:
                    each.shares.append(grade.points / grade.of)
    return list(found.values())


Reasons = Mapping[tuple[str, str, str], set[str]]  # students by lab, exercise and reason


def _from_verdicts(course: Course, tables: Tables) -> tuple[dict[tuple[str, str, str], str], Reasons]:
    """What exercises are called, by lab, notebook and grade id; and who lost points for which reason."""
    store = Store(course.verdicts)
    names: dict[tuple[str, str, str], str] = {}
    reasons: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for lab, rows in tables.items():
        for row in rows:
            for notebook in {notebook for notebook, _ in row.cells}:
                verdict = store.get(row.holder, lab, notebook)
                for each in verdict.exercises if verdict else ():
                    names[lab, notebook, each.cell] = each.exercise
                    if each.reason and not each.ungraded:
                        reasons[lab, each.exercise, texts.clean(each.reason, 90)].add(row.who.id)
    return names, reasons


def _table(head: Sequence[str], rows: Iterable[str], numbers: Sequence[int]) -> str:
    cells = "".join(f"<th{' class=n' * (i in numbers)}>{escape(name)}" for i, name in enumerate(head))
    return f"<table><tr>{cells}{''.join(rows)}</table>"


def _percent(share: float) -> str:
    """A share as a number and as a bar."""
    wide = 100 * min(1.0, max(0.0, share))
    return f"{share:.0%}<span class=track><span class=share style='width:{wide:.0f}%'></span></span>"


def _name(who: Student) -> str:
    return escape(f"{who.name} ({who.id})" if who.name and who.name != who.id else who.id)


def _exercise(name: str, lab: str) -> str:
    return f"{escape(name)}<br><small>{escape(lab)}</small>"


def _behind(students: Sequence[Standing]) -> str:
    named = [each for each in students if each.signs]
    if not named:
        return "<h2>Who falls behind</h2><p>Nobody.</p>"
    rows = (f"<tr><td>{_name(each.who)}<td>{escape('; '.join(each.signs))}" for each in named)
    told = f"Nothing handed in for a lab, less than {LOW:.0%} of all points, or much worse in the last lab."
    return f"<h2>Who falls behind</h2><p>{told}</p>{_table(('student', 'why'), rows, ())}"


def histogram(shares: Iterable[float]) -> list[int]:
    """Students in each tenth of a lab's points; full marks, and more, are in the last."""
    counts = [0] * BINS
    for share in shares:
        counts[min(BINS - 1, max(0, int(share * BINS + 1e-9)))] += 1
    return counts


def _lab(name: str, rows: Sequence[Final]) -> str:
    shares = [row.total / row.of for row in rows if row.cells and row.of]
    counts = histogram(shares)
    told = "; ".join(
        f"{100 * i // BINS} to {100 * (i + 1) // BINS} %: {n}" for i, n in enumerate(counts) if n
    )
    bars = "".join(f"<i style='height:{100 * n / max(1, *counts):.0f}%'></i>" for n in counts)
    middle = f"Median {median(shares):.0%}, mean {mean(shares):.0%}. " if shares else ""
    states = escape(final.standing(rows))
    return (
        f"<section><h3>{escape(name)}</h3><div class=bars role=img aria-label='Students by share of points: "
        f"{told or 'nobody'}'>{bars}</div><div class=ends><span>0 %</span><span>of the points</span>"
        f"<span>100 %</span></div><p>{middle}{states}.</p></section>"
    )


def _wrong(reasons: Reasons) -> str:
    most = sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))[:MOST_REASONS]
    rows = (
        f"<tr><td class=n>{len(who)}<td>{_exercise(exercise, lab)}<td>{escape(reason)}"
        for (lab, exercise, reason), who in most
    )
    if not most:
        return "<h2>What the class gets wrong</h2><p>The judge found nothing wrong.</p>"
    told = f"The reasons for lost points that most students share, at most {MOST_REASONS}."
    table = _table(("students", "exercise", "reason"), rows, (0,))
    return f"<h2>What the class gets wrong</h2><p>{told}</p>{table}"


def _exercises(found: Sequence[Exercise]) -> str:
    def row(each: Exercise) -> Iterator[str]:
        yield f"<tr><td>{_exercise(each.name, each.lab)}"
        if not each.shares:
            yield "<td class=n>–<td class=n>–"
        else:
            yield f"<td class=n>{_percent(mean(each.shares))}"
            yield f"<td class=n>{mean(share >= 1 for share in each.shares):.0%}"
        yield f"<td class=n>{each.waits or ''}"

    rows = ("".join(row(each)) for each in found)
    table = _table(("exercise", "mean", "full marks", "wait"), rows, (1, 2, 3))
    return f"<h2>Each exercise</h2>{table}"


def _everybody(students: Sequence[Standing]) -> str:
    rows = (
        f"<tr><td>{_name(one.who)}<td class=n>{one.handed_in} of {one.of}<td class=n>{_percent(one.share)}"
        for one in students
    )
    table = _table(("student", "labs", "points"), rows, (1, 2))
    return f"<h2>Everybody</h2><details><summary>{len(students)} students</summary>{table}</details>"
