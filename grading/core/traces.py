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
from gpulab.foundation.strict import text
from grading.core import texts
from grading.core.errors import TraceError

FORMAT = 1
MOST_LINES = 20_000
LARGEST_LINE = 32 << 20
DEEPEST_JSON = 40


@dataclass(frozen=True)
class Failure:
    """Why there is no record of a cell or an exercise, as the recorder said it."""

    kind: str
    error: str


@dataclass
class Trace:
    """All that one notebook left behind."""

    about: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)
    recorded: dict[str, dict[str, dict[str, Any]]] = field(  # by kind of evidence, exercise and case
        default_factory=lambda: {name: {} for name in KINDS}
    )
    cell_failures: dict[str, Failure] = field(default_factory=dict)  # by grade id of the cell
    failures: dict[str, Failure] = field(default_factory=dict)  # by exercise
    last: str = ""  # where the recorder was last
    done: bool = False


def read_trace(content: bytes) -> Trace:
    """Raises TraceError for anything that the recorder does not write."""
    trace = Trace()
    lines = content.split(b"\n")
    if len(lines) > MOST_LINES:
        raise TraceError(texts.BAD_TRACE.format(why=f"{len(lines):,} lines"))
    for line in lines[:-1]:  # what follows the last line break was cut off
        if len(line) > LARGEST_LINE:
            raise TraceError(texts.BAD_TRACE.format(why=f"a line of {len(line):,} bytes"))
        try:
            record = json.loads(line, parse_constant=float)
            _limit_depth(record)
            _READERS.get(record["line"], _evidence)(trace, record)
        except (ValueError, KeyError, TypeError, IndexError, RecursionError, OverflowError) as error:
            why = f"{type(error).__name__}: {error}"
            raise TraceError(texts.BAD_TRACE.format(why=texts.clean(why, 120))) from None
    return trace


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


def _start(trace: Trace, record: dict[str, Any]) -> None:
    if record["format"] != FORMAT:
        raise ValueError(f"format {record['format']!r:.20}")
    trace.about = {k: text(v, 100) for k, v in record.items() if k != "line" and isinstance(v, str)}


def _at(trace: Trace, record: dict[str, Any]) -> None:
    trace.last = text(record["exercise"] if "exercise" in record else record["cell"], 100)


def _failed(trace: Trace, record: dict[str, Any]) -> None:
    failure = Failure(text(record["kind"], 60), text(record["error"]))
    if "cell" in record:
        trace.cell_failures[text(record["cell"], 100)] = failure
    else:
        trace.failures[text(record["exercise"], 100)] = failure


def _kernel(trace: Trace, record: dict[str, Any]) -> None:
    trace.kernels[text(record["digest"], 64)] = read_kernel(record)


def _evidence(trace: Trace, record: dict[str, Any]) -> None:
    """A line that a kind of evidence wrote, one a case. Raises KeyError for a line of nobody."""
    kind = {kind.line: kind for kind in KINDS.values() if kind.line}[record["line"]]
    exercise = trace.recorded[kind.kind].setdefault(text(record["exercise"], 100), {})
    exercise[text(record["case"], 100)] = kind.read(record, trace.kernels)


def _done(trace: Trace, record: dict[str, Any]) -> None:
    trace.done = True


_READERS: dict[str, Callable[[Trace, dict[str, Any]], None]] = {
    "start": _start,
    "at": _at,
    "failed": _failed,
    "kernel": _kernel,
    "done": _done,
}
