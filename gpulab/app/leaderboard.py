"""A leaderboard of the projects of lab 22, on this machine: your attempts between naive, reference and bound.

An entry is what checks counted, nothing more; points and merit are worked out from the exercises whenever a
board is shown, so the same counts have the same place everywhere. Entries of others come and go as files.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpulab.analysis.profile import METRICS
from gpulab.checks import progress, registry, scoring
from gpulab.checks.budgets import case_of
from gpulab.checks.spec import Budget, Exercise
from gpulab.checks.verdict import Verdict
from gpulab.foundation.display import Card, Heading, Note, Piece, Shown, Table, number, points
from gpulab.foundation.errors import Message

FILE = "leaderboard.json"
FORMAT = 1
LARGEST_FILE = 1 << 20
LONGEST_NAME = 40
SUFFIX = "_project"  # of the first half of an exercise's name

# Label of a budget → what was counted; None for an exercise whose result is not right.
Counts = Mapping[str, float] | None


class UnknownProject(Message, LookupError):
    """There is no project of that name; the message lists those that are there."""


class NothingToEnter(Message, LookupError):
    """No exercise of the project has been checked."""


class NoSuchFile(Message, FileNotFoundError):
    """A file of entries is not there."""


class NotALeaderboard(Message, ValueError):
    """A file cannot be read as one; the message says why."""


@dataclass(frozen=True)
class Entry:
    """One attempt at a project. `who` is empty for the learner's own."""

    project: str
    attempt: str
    counts: Mapping[str, Counts]
    who: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.project, self.who, self.attempt


def projects() -> dict[str, tuple[Exercise, ...]]:
    """The projects with their exercises: all whose names begin with ``NAME_project.``"""
    found: dict[str, tuple[Exercise, ...]] = {}
    for exercise in registry.exercises():
        topic = exercise.name.partition(".")[0]
        if topic.endswith(SUFFIX):
            name = topic.removesuffix(SUFFIX)
            found[name] = (*found.get(name, ()), exercise)
    return found


def find(project: str) -> tuple[Exercise, ...]:
    """The exercises of a project. Raises UnknownProject."""
    known = projects()
    if project not in known:
        raise UnknownProject(f"There is no project {project!r}; there are {', '.join(sorted(known))}.")
    return known[project]


# ---------------------------------------------------------------- what an entry is worth


def points_of(entry: Entry) -> float:
    """Points for being right and for every budget, as the checks give them. The report is not in it."""
    total = 0.0
    for exercise in find(entry.project):
        counts = entry.counts.get(exercise.name)
        if counts is None:
            continue
        total += exercise.correct_points
        for budget in exercise.budgets:
            sizes = case_of(exercise, budget).sizes
            if budget.label not in counts:
                break  # an earlier budget earned nothing
            got = scoring.score(budget, counts[budget.label], sizes)
            total += round(budget.points * got.share, 2)
            if not got.share:
                break
    return total


def merit_of(entry: Entry) -> float:
    """How far from naive, 0, to the bound, 100: the mean over all counts that have both, weighted by points.

    The way is measured as budgets measure it, on a logarithmic scale.
    """
    done = weights = 0.0
    for exercise, budget in _ranked(entry.project):
        sizes = case_of(exercise, budget).sizes
        counts = entry.counts.get(exercise.name) or {}
        weights += budget.points
        if budget.label in counts:
            naive, bound = budget.naive_for(sizes), budget.bound_for(sizes)
            assert bound is not None
            done += budget.points * scoring.share(budget.sense, counts[budget.label], bound, naive)
    return 100 * done / weights if weights else 0.0


def _ranked(project: str) -> Iterator[tuple[Exercise, Budget]]:
    for exercise in find(project):
        for budget in exercise.budgets:
            if budget.naive is not None and budget.bound is not None:
                yield exercise, budget


def _beyond(entry: Entry) -> str:
    """The labels of counts that are better than their bounds, between commas."""
    found = []
    for exercise, budget in _ranked(entry.project):
        count = (entry.counts.get(exercise.name) or {}).get(budget.label)
        bound = budget.bound_for(case_of(exercise, budget).sizes)
        if count is None or bound is None or math.isclose(count, bound):
            continue
        if scoring.met(budget.sense, count, bound):
            found.append(budget.label)
    return ", ".join(found)


def _published(project: str, which: str) -> Entry:
    """What naive solutions, references (with the budgets' margin) and bounds cost, as an entry."""
    counts: dict[str, Counts] = {}
    for exercise in find(project):
        of: dict[str, float] = {}
        for budget in exercise.budgets:
            sizes = case_of(exercise, budget).sizes
            limit = budget.limit_for(sizes)
            value = {
                "naive": budget.naive_for(sizes),
                "reference": limit,
                "bound": budget.bound_for(sizes),
            }[which]
            of[budget.label] = limit if value is None else value
        counts[exercise.name] = of
    return Entry(project, which, counts, who="–")


# ---------------------------------------------------------------- the file


def place() -> Path:
    """The file: beside the progress."""
    return progress.place().with_name(FILE)


def entries() -> list[Entry]:
    """All that are kept, in the order in which they came. A missing file holds none.

    Raises NotALeaderboard for a damaged one.
    """
    try:
        return read(place())
    except FileNotFoundError:
        return []


def read(path: Path) -> list[Entry]:
    """The entries of a file. Raises FileNotFoundError, or NotALeaderboard for what is none."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise NoSuchFile(f"There is no file {path}.") from None
    except OSError as error:
        raise NotALeaderboard(f"{path} cannot be read: {error.strerror}.") from None
    if path.is_dir():
        raise NotALeaderboard(f"{path} is a folder: name the file that was exported.")
    if size > LARGEST_FILE:
        raise NotALeaderboard(f"{path} has more than {LARGEST_FILE:,} bytes: that is no leaderboard.")
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
        if data["format"] != FORMAT:
            raise ValueError(f"its format is {data['format']!r}, not {FORMAT}")
        return [_entry(row) for row in data["entries"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
        raise NotALeaderboard(f"{path} is no leaderboard: {why}.") from None


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no count")


def _entry(row: Mapping[str, Any]) -> Entry:
    project = _name(row["project"])
    known = {e.name: {b.label for b in e.budgets} for e in projects().get(project, ())}
    counts: dict[str, Counts] = {}
    for exercise, of in row["counts"].items():
        if exercise not in known:
            raise ValueError(f"project {project!r} has no exercise {_name(exercise)!r}")
        if of is not None:
            of = {label: _count(value) for label, value in of.items() if label in known[exercise]}
        counts[exercise] = of
    return Entry(project, _name(row["attempt"]), counts, _name(row["who"]))


def _name(text: Any) -> str:
    """A name as it may be shown: one line, without control characters, not too long."""
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is no name")
    return "".join(c for c in text if c.isprintable()).strip()[:LONGEST_NAME]


def _count(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{value!r} is no count")
    return float(value)


def _write(path: Path, rows: list[Entry]) -> None:
    data = {
        "format": FORMAT,
        "entries": [
            {"project": e.project, "who": e.who, "attempt": e.attempt, "counts": e.counts} for e in rows
        ],
    }
    text = json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise NotALeaderboard(f"{path} cannot be written: {error.strerror}.") from None


def _with(rows: list[Entry], more: list[Entry]) -> list[Entry]:
    """Entries of the same person and the same name replace the earlier ones."""
    return list({entry.key: entry for entry in (*rows, *more)}.values())


# ---------------------------------------------------------------- what a learner does


def enter(project: str, attempt: str) -> Board:
    """Put what a project's last checks counted on the board, under a name: ``enter("attention", "tiles")``.

    The same name again replaces the attempt. Raises UnknownProject, NothingToEnter before the first check.
    """
    records = progress.load()["exercises"]
    counts: dict[str, Counts] = {}
    for exercise in find(project):
        last = records.get(exercise.name, {}).get("last")
        if last:
            counts[exercise.name] = _counted(Verdict.from_dict(last))
    if not counts:
        raise NothingToEnter(f"Nothing of project {project!r} was checked yet: run its checks first.")
    _write(place(), _with(entries(), [Entry(project, _name(attempt), counts)]))
    return board(project)


def _counted(verdict: Verdict) -> Counts:
    if not verdict.right:
        return None
    return {part.label: part.measured for part in verdict.parts[1:] if part.measured is not None}


def export(path: Path, who: str) -> int:
    """Write one's own entries into a file, under a name; how many there are."""
    name = _name(who)
    if not name:
        raise NotALeaderboard("Entries for others need a name: say who you are.")
    mine = [Entry(e.project, e.attempt, e.counts, name) for e in entries() if not e.who]
    _write(path, mine)
    return len(mine)


def take(path: Path) -> int:
    """Take the entries of somebody's file in; how many. Those without a name are refused.

    Raises FileNotFoundError, NotALeaderboard.
    """
    more = read(path)
    if any(not entry.who for entry in more):
        raise NotALeaderboard(f"{path} has entries without a name: it was not made by --export.")
    _write(place(), _with(entries(), more))
    return len(more)


# ---------------------------------------------------------------- the board


@dataclass(frozen=True, repr=False)
class Board(Shown):
    """The entries of a project from the best to the worst, with naive, reference and bound among them."""

    project: str
    entries: tuple[Entry, ...] = field(default=())

    def ranking(self) -> list[Entry]:
        """By merit, then by points, then by name."""
        published = [_published(self.project, which) for which in ("naive", "reference", "bound")]
        rows = [*self.entries, *published]
        return sorted(rows, key=lambda e: (-merit_of(e), -points_of(e), e.who, e.attempt))

    def card(self) -> Card:
        rows = self.ranking()
        counted = [e for e in rows if e.who != "–"]
        places = {e.key: str(n) for n, e in enumerate(filter(points_of, counted), 1)}
        of = sum(exercise.points for exercise in find(self.project))
        table = tuple(
            (
                places.get(e.key, ""),
                "" if e.who == "–" else e.who or "you",
                e.attempt,
                f"{merit_of(e):.1f}",
                "" if e.who == "–" else f"{points(points_of(e))} of {points(of)}",
            )
            for e in rows
        )
        header = ("place", "who", "attempt", "merit", "points")
        pieces: list[Piece] = [
            Heading(f"project {self.project}", "merit: naive 0, bound 100; the reference is the budget"),
            Table(header, table, frozenset({1, 2})),
            *self._counts(next((e for e in counted if not e.who), None)),
        ]
        if not counted:
            pieces.append(Note("Nobody is on it yet."))
        for e in counted:
            if below := _beyond(e):
                said = f"{e.who or 'You'}, {e.attempt}: beyond what was thought to be the bound in {below}."
                pieces.append(Note(f"{said} Look how; a bound may be wrong."))
        if any(e.who for e in counted):
            pieces.append(Note("Others' entries are what their files say; nobody has checked them here."))
        return Card(tuple(pieces))

    def _counts(self, mine: Entry | None) -> list[Table]:
        """Every count: naive, reference, bound and one's own best attempt."""
        rows = []
        for exercise in find(self.project):
            counts = (mine.counts.get(exercise.name) if mine else None) or {}
            for budget in exercise.budgets:
                sizes = case_of(exercise, budget).sizes
                values = (
                    budget.naive_for(sizes),
                    budget.limit_for(sizes),
                    budget.bound_for(sizes),
                    counts.get(budget.label),
                )
                name = f"{exercise.name.partition('.')[2]}: {budget.label}"
                unit = METRICS[budget.metric].unit if budget.metric in METRICS else budget.unit
                rows.append((name, *("" if v is None else number(v, unit) for v in values)))
        return [Table(("count", "naive", "reference", "bound", "you"), tuple(rows))]


def board(project: str) -> Board:
    """The board of a project. Raises UnknownProject."""
    find(project)
    return Board(project, tuple(e for e in entries() if e.project == project))
