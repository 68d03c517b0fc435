"""`course.toml` beside the gradebook: dates, the rule for late submissions, how long data is kept.

timezone = "Europe/Berlin"      # of times without an offset

[release]                       # when learners get a lab: `python -m grading course`
04_memory_hierarchy = 2027-01-08T08:00:00

[due]
04_memory_hierarchy = 2027-01-15T23:59:00

[extra.04_memory_hierarchy]     # later due dates of some students
ada = 2027-01-18T23:59:00

[late]
per_day = 10                    # percent of the points earned, for each day begun
most = 50                       # percent: no more is ever taken off
grace_hours = 2                 # so much later is not late

[[extension.bob]]               # more days for one student, in some labs or in all
days = 7
labs = ["04_memory_hierarchy"]
why = "illness"

[waive.04_memory_hierarchy]     # nothing is taken off, and why
cleo = "hospital"

[[group]]                       # one hand-in for several students, in some labs or in all
name = "red"
members = ["ada", "bob"]
labs = ["04_memory_hierarchy"]

[slip]
days = 5                        # everybody's for the whole course: each moves a due date by a day
per_lab = 2

[retention]
days = 400
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from grading.core.commands import guess
from grading.core.course import Course
from grading.core.errors import GradingError

KEYS = {
    "": ("timezone", "release", "due", "extra", "extension", "waive", "group", "late", "slip", "retention"),
    "late": ("per_day", "most", "grace_hours"),
    "slip": ("days", "per_lab"),
    "retention": ("days",),
}


QUOTES = 'An id with a dot or an @ needs quotation marks, such as "ada@uni.edu"'


@dataclass(frozen=True)
class Late:
    """What being late costs: shares of the points earned, for each day begun; nothing within the grace."""

    per_day: float
    most: float = 1.0
    grace: timedelta = timedelta(0)

    def share(self, late: timedelta) -> float:
        """The share that is taken off (0 … 1) of what came so much after it was due."""
        if late <= max(self.grace, timedelta(0)):
            return 0.0
        return min(self.most, self.per_day * math.ceil(late / timedelta(days=1)))


@dataclass(frozen=True)
class Extension:
    """More time for one student: in these labs, or in all where none is named."""

    more: timedelta
    labs: tuple[str, ...] = ()
    why: str = ""

    def of(self, lab: str) -> bool:
        """Whether it holds in a lab."""
        return not self.labs or lab in self.labs


@dataclass(frozen=True)
class Group:
    """Students who hand in together: in these labs, or in all where none is named."""

    name: str
    members: tuple[str, ...]
    labs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Slip:
    """Days that each student may take: in the whole course, and of them in one lab."""

    days: int
    per_lab: int


@dataclass(frozen=True)
class Settings:
    """What an instructor decided. Times are in UTC, without saying so, as nbgrader keeps them."""

    release: dict[str, datetime] = field(default_factory=dict)  # by lab
    due: dict[str, datetime] = field(default_factory=dict)  # by lab
    extra: dict[str, dict[str, datetime]] = field(default_factory=dict)  # by lab and student
    extensions: dict[str, tuple[Extension, ...]] = field(default_factory=dict)  # by student
    waived: dict[str, dict[str, str]] = field(default_factory=dict)  # why, by lab and student
    groups: tuple[Group, ...] = ()
    late: Late | None = None
    slip: Slip | None = None
    keep: timedelta | None = None  # student data, after it was handed in
    zone: tzinfo | None = None  # of times without an offset

    def groups_of(self, lab: str) -> list[Group]:
        """The groups that hold in a lab."""
        return [group for group in self.groups if not group.labs or lab in group.labs]

    def due_of(self, lab: str, student: str) -> tuple[datetime, str] | None:
        """When a lab is due for a student, the latest that holds, and why; None where it has no due date."""
        if lab not in self.due:
            return None
        times = [(self.due[lab], "")]
        if later := self.extra.get(lab, {}).get(student):
            times.append((later, f"due {self.shown(later)}"))
        for each in self.extensions.get(student, ()):
            if each.of(lab):
                when = self.due[lab] + each.more
                times.append((when, f"due {self.shown(when)}{f' ({each.why})' if each.why else ''}"))
        return max(times, key=lambda time: time[0])

    def shown(self, when: datetime) -> str:
        """A time as an instructor writes it: ``2027-01-15 23:59``, with its time zone."""
        local = when.replace(tzinfo=UTC).astimezone(self.zone or UTC)
        return f"{local:%Y-%m-%d %H:%M} {self.zone or 'UTC'}"


def read(course: Course) -> Settings:
    """The settings of a course; without a file there are none. Raises GradingError for nonsense."""
    path = course.settings
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        hint = f". {QUOTES}" if isinstance(error, tomllib.TOMLDecodeError) else ""
        raise GradingError(f"{path} is no TOML: {error}{hint}") from None
    try:
        return _settings(data, set(course.lab_names()))
    except _Odd as odd:
        raise GradingError(f"{path}: {odd}") from None


class _Odd(Exception):
    """What is wrong in the file, and what to write."""


def _settings(data: Mapping[str, Any], labs: set[str]) -> Settings:
    for table, known in KEYS.items():
        given = data.get(table, {}) if table else data
        if not isinstance(given, dict):
            raise _Odd(f"'{table}' is a table: write [{table}]")
        if strangers := [key for key in given if key not in known]:
            where = f"[{table}]" if table else "the file"
            near = guess(strangers[0], known)
            raise _Odd(f"{where} has no '{strangers[0]}'{near}; known are {', '.join(known)}")
    zone = _zone(data.get("timezone"))
    release = dict(_times(data.get("release", {}), "release", zone))
    due = dict(_times(data.get("due", {}), "due", zone))
    extra = data.get("extra", {})
    if not isinstance(extra, dict):
        raise _Odd("'extra' has a table for each lab: write [extra.LAB]")
    later = {lab: dict(_times(times, f"extra.{lab}", zone)) for lab, times in extra.items()}
    extensions = dict(_extensions(data.get("extension", {})))
    waived = dict(_waived(data.get("waive", {})))
    groups = _groups(data.get("group", []))
    longer = [lab for each in extensions.values() for extension in each for lab in extension.labs]
    longer += [lab for group in groups for lab in group.labs]
    for lab in [*release, *due, *later, *longer, *waived]:
        if lab not in labs:
            raise _Odd(f"there is no lab '{lab}'{guess(lab, labs)}; labs are {', '.join(sorted(labs))}")
    if without := [lab for lab in later if lab not in due]:
        raise _Odd(f"[extra.{without[0]}] needs a due date in [due]")
    for lab in release.keys() & due.keys():
        if early := [when for when in (due[lab], *later.get(lab, {}).values()) if when <= release[lab]]:
            said = Settings(zone=zone)
            raise _Odd(
                f"{lab} is due at {said.shown(early[0])}, before [release] hands it out at "
                f"{said.shown(release[lab])}"
            )
    late = data.get("late")
    rule = None
    if late is not None:
        rule = Late(
            _number(late, "late", "per_day", 100) / 100,
            _number(late, "late", "most", 100, 100) / 100,
            timedelta(hours=_number(late, "late", "grace_hours", 10_000, 0)),
        )
    slip = None
    if "slip" in data:
        most = _whole(data["slip"], "slip", "days", 1000)
        slip = Slip(most, _whole(data["slip"], "slip", "per_lab", 1000, most))
    days = data.get("retention")
    keep = timedelta(days=_number(days, "retention", "days", 100_000)) if days is not None else None
    return Settings(release, due, later, extensions, waived, groups, rule, slip, keep, zone)


def _zone(name: object) -> tzinfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError):
        raise _Odd(f'there is no timezone {name!r}: write one such as "Europe/Berlin" or "UTC"') from None


def _times(table: object, name: str, zone: tzinfo | None) -> Iterator[tuple[str, datetime]]:
    if not isinstance(table, dict):
        raise _Odd(f"'{name}' is a table: write [{name}]")
    for key, value in table.items():
        if isinstance(value, dict):
            raise _Odd(f"[{name}] {key} is no time but a table. {QUOTES}")
        if not isinstance(value, datetime):
            raise _Odd(f"[{name}] {key} is no time: write 2027-01-15T23:59:00, without quotation marks")
        if value.tzinfo is None and zone is None:
            raise _Odd(f'[{name}] {key} has no offset: add timezone = "Europe/Berlin" at the top')
        yield (
            key,
            (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC).replace(tzinfo=None),
        )


def _extensions(table: object) -> Iterator[tuple[str, tuple[Extension, ...]]]:
    if not isinstance(table, dict):
        raise _Odd("'extension' has a table for each student: write [[extension.STUDENT]]")
    for student, given in table.items():
        name, found = f"extension.{student}", []
        for each in given if isinstance(given, list) else [given]:
            if not isinstance(each, dict):
                raise _Odd(f"'{name}' is a table: write [[{name}]] and days = 3")
            if strangers := [key for key in each if key not in ("days", "labs", "why")]:
                hint = f". {QUOTES}" if isinstance(each[strangers[0]], dict | list) else ""
                raise _Odd(f"[{name}] has no '{strangers[0]}'; known are days, labs, why{hint}")
            labs, why = each.get("labs", []), each.get("why", "")
            if not isinstance(labs, list) or not all(isinstance(lab, str) for lab in labs):
                raise _Odd(f'[{name}] labs is no list of names: write labs = ["04_memory_hierarchy"]')
            if "labs" in each and not labs:
                raise _Odd(f"[{name}] labs names none: name some, or leave labs out, which means all")
            if not isinstance(why, str):
                raise _Odd(f'[{name}] why is no text: write why = "illness"')
            more = timedelta(days=_number(each, name, "days", 1000))
            found.append(Extension(more, tuple(labs), why))
        yield student, tuple(found)


def _waived(table: object) -> Iterator[tuple[str, dict[str, str]]]:
    if not isinstance(table, dict):
        raise _Odd("'waive' has a table for each lab: write [waive.LAB]")
    for lab, students in table.items():
        if not isinstance(students, dict):
            raise _Odd(f"'waive.{lab}' is a table: write [waive.{lab}]")
        for student, why in students.items():
            if isinstance(why, dict):
                raise _Odd(f"[waive.{lab}] {student} is no reason but a table. {QUOTES}")
            if not isinstance(why, str):
                raise _Odd(f'[waive.{lab}] {student} has no reason: write {student} = "hospital"')
        yield lab, students


def _groups(tables: object) -> tuple[Group, ...]:
    form = 'write [[group]], name = "red", members = ["ada", "bob"]'
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise _Odd(f"'group' has a table for each group: {form}")
    found: list[Group] = []
    for each in tables:
        if strangers := [key for key in each if key not in ("name", "members", "labs")]:
            raise _Odd(f"[[group]] has no '{strangers[0]}'; known are name, members, labs")
        name, members, labs = each.get("name"), each.get("members"), each.get("labs", [])
        if not isinstance(name, str) or not name:
            raise _Odd(f"[[group]] has no name: {form}")
        for what, ids in (("members", members), ("labs", labs)):
            if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
                raise _Odd(f"[[group]] {name}: {what} is no list of names: {form}")
        if len(set(members)) < 2:
            raise _Odd(f"[[group]] {name} has fewer than two members: {form}")
        if "labs" in each and not labs:
            raise _Odd(f"[[group]] {name}: labs names none: name some, or leave labs out, which means all")
        group = Group(name, tuple(members), tuple(labs))
        for other in found:
            both = sorted({*members} & {*other.members})
            if both and (not labs or not other.labs or {*labs} & {*other.labs}):
                raise _Odd(f"{both[0]} is in two groups of one lab, {other.name} and {name}")
        found.append(group)
    return tuple(found)


def _whole(table: Mapping[str, Any], name: str, key: str, largest: int, default: int | None = None) -> int:
    number = _number(table, name, key, largest, default)
    if number != int(number):
        raise _Odd(f"[{name}] {key} = {number:g} is no whole number")
    return int(number)


def _number(
    table: Mapping[str, Any], name: str, key: str, largest: float, default: float | None = None
) -> float:
    value = table.get(key, default)
    if value is None:
        raise _Odd(f"[{name}] needs '{key}'")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= largest:
        raise _Odd(f"[{name}] {key} = {value!r} is no number from 0 to {largest:g}")
    return float(value)
