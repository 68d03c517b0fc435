"""What came out of the sandbox, read with suspicion: types, sizes and numbers are checked before use.

Lines that are cut off (a crash, a limit) are dropped; a line that is there must be right.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpulab.checks.evidence import KINDS
from gpulab.checks.evidence.launch_records import Kernel, read_kernel
from gpulab.foundation.strict import items, text
from grading.core import texts
from grading.core.errors import RecordError
from grading.core.recorder import FORMAT, LARGEST_LINE

DIED = "died"  # the kind of a failure that ended the whole process
MOST_LINES = 20_000
DEEPEST_JSON = 40
MOST_NOTES = 20  # on one exercise


@dataclass(frozen=True)
class Failure:
    """Why there is no record of a cell or an exercise, as the recorder said it."""

    kind: str
    error: str


@dataclass
class Record:
    """All that one notebook left behind."""

    about: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    recorded: dict[str, dict[str, dict[str, Any]]] = field(  # by kind of evidence, exercise and case
        default_factory=lambda: {name: {} for name in KINDS}
    )
    cell_failures: dict[str, Failure] = field(default_factory=dict)  # by grade id of the cell
    failures: dict[str, Failure] = field(default_factory=dict)  # by exercise
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by exercise: what of cells was left out
    last: str = ""  # where the recorder was last
    done: bool = False

    def doubt(self, exercise: str) -> str:
        """Why a person should look at an answer that lost points: something of it did not run here."""
        failure = self.failures.get(exercise)
        causes = [failure] if failure else []
        if failure and failure.kind == "missing":
            causes += self.cell_failures.values()
        died = [cause.error for cause in causes if cause.kind == DIED]
        return next(iter((*died, *self.notes.get(exercise, ()))), "")


def read_record(content: bytes) -> Record:
    """Raises RecordError for anything that the recorder does not write."""
    record = Record()
    lines = content.split(b"\n")
    if len(lines) > MOST_LINES:
        raise RecordError(texts.BAD_RECORD.format(why=f"{len(lines):,} lines"))
    for line in lines[:-1]:  # what follows the last line break was cut off
        if len(line) > LARGEST_LINE:
            raise RecordError(texts.BAD_RECORD.format(why=f"a line of {len(line):,} bytes"))
        try:
            facts = json.loads(line, parse_constant=float)
            _limit_depth(facts)
            _READERS.get(facts["line"], _evidence)(record, facts)
        except (ValueError, KeyError, TypeError, IndexError, RecursionError, OverflowError) as error:
            why = f"{type(error).__name__}: {error}"
            raise RecordError(texts.BAD_RECORD.format(why=texts.clean(why, 120))) from None
    return record


def _limit_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEEPEST_JSON:
            raise ValueError("nested too deep")
        level = [
            inner
            for outer in level
            if isinstance(outer, list | dict)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, list | dict)
        ]


def _start(record: Record, line: dict[str, Any]) -> None:
    if line["format"] != FORMAT:
        raise ValueError(f"format {line['format']!r:.20}")
    record.about = {k: text(v, 100) for k, v in line.items() if k != "line" and isinstance(v, str)}


def _at(record: Record, line: dict[str, Any]) -> None:
    record.last = text(line["exercise"] if "exercise" in line else line["cell"], 100)


def _failed(record: Record, line: dict[str, Any]) -> None:
    failure = Failure(text(line["kind"], 60), text(line["error"]))
    if "cell" in line:
        record.cell_failures[text(line["cell"], 100)] = failure
    else:
        record.failures[text(line["exercise"], 100)] = failure


def _noted(record: Record, line: dict[str, Any]) -> None:
    notes = dict.fromkeys(texts.clean(text(note)) for note in items(line["notes"], 10_000))
    record.notes[text(line["exercise"], 100)] = tuple(notes)[:MOST_NOTES]


def _kernel(record: Record, line: dict[str, Any]) -> None:
    record.kernels[text(line["digest"], 64)] = read_kernel(line)


def _evidence(record: Record, line: dict[str, Any]) -> None:
    """A line that a kind of evidence wrote, one a case. Raises KeyError for a line of nobody."""
    kind = {kind.line: kind for kind in KINDS.values() if kind.line}[line["line"]]
    exercise = record.recorded[kind.kind].setdefault(text(line["exercise"], 100), {})
    exercise[text(line["case"], 100)] = kind.read(line, record.kernels)


def _done(record: Record, line: dict[str, Any]) -> None:
    record.done = True


_READERS: dict[str, Callable[[Record, dict[str, Any]], None]] = {
    "start": _start,
    "at": _at,
    "failed": _failed,
    "noted": _noted,
    "kernel": _kernel,
    "done": _done,
}
