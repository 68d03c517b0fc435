"""Which labs a class of learners has by now: those that a person names, or by the dates in `course.toml`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from grading.core import texts
from grading.core.commands import guess
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.lms.settings import Settings

LINK = re.compile(r"\[([^\[\]]+)\]\((?:labs/)?(\d\d_\w+)/[^()\s]*\)")


def named(course: Course, text: str) -> list[str]:
    """The labs of ``03,04`` or ``03_cuda_with_numba``, in order. Raises GradingError for what is none."""
    known = course.lab_names()
    wanted = [course.whole_name(part.strip()) for part in text.split(",") if part.strip()]
    if odd := [lab for lab in wanted if lab not in known]:
        raise GradingError(
            f"--labs {text}: there is no lab '{texts.clean(odd[0], 40)}'{guess(odd[0], known)}. "
            f"Write numbers such as 03,04; there are {', '.join(known)}"
        )
    if not wanted:
        raise GradingError("--labs names no lab: write numbers such as 03,04")
    return sorted(set(wanted))


def choose(
    course: Course, dates: Settings, folder: Path, labs: Collection[str], now: datetime
) -> tuple[list[str], list[str]]:
    """The labs that `folder` is to hold, and what a person should know of them.

    Those of `labs`; without any, those that `dates` have released, and all where no date is set. A lab that
    the folder has stays, because learners have it by now.
    """
    known = course.lab_names()
    here = {lab for lab in known if list((folder / "labs" / lab).glob("*.ipynb"))}
    due_now = {lab for lab, when in dates.release.items() if when <= now}
    out = set(labs) or (due_now if dates.release else set(known))
    return [lab for lab in known if lab in out | here], list(_notes(dates, out, here, now))


def _notes(dates: Settings, out: Collection[str], here: Collection[str], now: datetime) -> Iterator[str]:
    for lab in sorted(out):
        when = dates.release.get(lab)
        if when and when > now:
            yield f"{lab} is out before its date, {dates.shown(when)}, because --labs names it"
        if lab not in here and (due := dates.due.get(lab)) and due <= now:
            yield f"{lab} was due at {dates.shown(due)}, before learners get it: is course.toml of last year?"
    for lab in sorted(set(here) - set(out)):
        when = dates.release.get(lab)
        if when and when > now:
            yield (
                f"{lab} stays, because the folder has it, although its date is {dates.shown(when)}; "
                "if no learner has it yet, delete it there"
            )
    if later := sorted((when, lab) for lab, when in dates.release.items() if when > now and lab not in out):
        when, lab = later[0]
        yield f"next: {lab} at {dates.shown(when)}; run the same command then"
    if dates.release and (never := sorted(set(dates.due) - dates.release.keys() - set(out) - set(here))):
        yield f"due, but without a date in [release], so nobody gets it: {', '.join(never)}"


def table(dates: Settings, out: Sequence[str]) -> str:
    """Markdown for learners: what is due when, and what comes; empty where no date is set."""
    labs = sorted({*dates.release, *(lab for lab in dates.due if lab in out)})
    if not labs:
        return ""
    rows = ["## Dates", "", "| lab | from | due |", "|---|---|---|"]
    for lab in labs:
        times = (dates.release.get(lab), dates.due.get(lab))
        cells = [dates.shown(when) if when else "" for when in times]
        rows.append(f"| {lab.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n\n"


def without_links(text: str, labs: Collection[str]) -> str:
    """A page whose links into labs that are not there are only their words."""
    return LINK.sub(lambda found: found[0] if found[2] in labs else found[1], text)
