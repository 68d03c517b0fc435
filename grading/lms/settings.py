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

from grading.core.course import Course
from grading.core.errors import GradingError

KEYS = {
    "": ("timezone", "release", "due", "extra", "late", "retention"),
    "late": ("per_day", "most", "grace_hours"),
    "retention": ("days",),
}


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
class Settings:
    """What an instructor decided. Times are in UTC, without saying so, as nbgrader keeps them."""

    release: dict[str, datetime] = field(default_factory=dict)  # by lab
    due: dict[str, datetime] = field(default_factory=dict)  # by lab
    extra: dict[str, dict[str, datetime]] = field(default_factory=dict)  # by lab and student
    late: Late | None = None
    keep: timedelta | None = None  # student data, after it was handed in
    zone: tzinfo | None = None  # of times without an offset

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
        raise GradingError(f"{path} is no TOML: {error}") from None
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
            raise _Odd(f"{where} has no '{strangers[0]}'; known are {', '.join(known)}")
    zone = _zone(data.get("timezone"))
    release = dict(_times(data.get("release", {}), "release", zone))
    due = dict(_times(data.get("due", {}), "due", zone))
    extra = data.get("extra", {})
    if not isinstance(extra, dict):
        raise _Odd("'extra' has a table for each lab: write [extra.LAB]")
    later = {lab: dict(_times(times, f"extra.{lab}", zone)) for lab, times in extra.items()}
    for lab in [*release, *due, *later]:
        if lab not in labs:
            raise _Odd(f"there is no lab '{lab}'; labs are {', '.join(sorted(labs))}")
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
    days = data.get("retention")
    keep = timedelta(days=_number(days, "retention", "days", 100_000)) if days is not None else None
    return Settings(release, due, later, rule, keep, zone)


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
        if not isinstance(value, datetime):
            raise _Odd(f"[{name}] {key} is no time: write 2027-01-15T23:59:00, without quotation marks")
        if value.tzinfo is None and zone is None:
            raise _Odd(f'[{name}] {key} has no offset: add timezone = "Europe/Berlin" at the top')
        yield (
            key,
            (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC).replace(tzinfo=None),
        )


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
