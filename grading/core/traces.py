"""What came out of the sandbox, read with suspicion: types, sizes and numbers are checked before use.

Lines that are cut off (a crash, a limit) are dropped; a line that is there must be right.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpulab.checks import artefacts
from gpulab.checks.artefacts import Artefact
from gpulab.checks.on_host import MOST_LAUNCHES
from gpulab.checks.tensor_graphs import Graph
from grading.core import texts
from grading.core.errors import TraceError
from grading.core.recorder import FORMAT, LARGEST_LINE

DIED = "died"  # the kind of a failure that ended the whole process
MOST_LINES = 20_000
MOST_BUFFERS = 256  # of one case
LARGEST_BUFFER = 1 << 30
LARGEST_PTX = 8 << 20
LARGEST_ARGUMENTS = 4096  # as of a launch in CUDA
DEEPEST_JSON = 40
MOST_NOTES = 20  # on one exercise
MOST_CHARACTERS = 2_000  # of an error's text

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Kernel:
    """PTX with the name of its entry, and the compiler that it names as its own."""

    name: str
    entry: str
    ptx: str
    cc: tuple[int, int]
    max_registers: int | None
    compiler: str = ""


@dataclass(frozen=True)
class Label:
    """What the learner calls a piece of a buffer, for messages."""

    name: str
    buffer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    itemsize: int


@dataclass(frozen=True)
class RecordedLaunch:
    """One launch. `pointers` are (offset in the arguments, buffer, offset in the buffer)."""

    kernel: str
    grid: Dim3
    block: Dim3
    shared_bytes: int
    arguments: bytes
    pointers: tuple[tuple[int, int, int], ...]
    labels: tuple[Label, ...]


@dataclass(frozen=True)
class Upload:
    """The host wrote a buffer before any launch used it: bytes, or one byte repeated, which is free."""

    buffer: int
    data: bytes
    fill: int | None = None


Event = RecordedLaunch | Upload


@dataclass(frozen=True)
class CaseTrace:
    """The record of one exercise at one case. The first buffers are the exercise's arrays, in order."""

    buffers: tuple[int, ...]  # bytes of each
    events: tuple[Event, ...]

    @property
    def launches(self) -> tuple[RecordedLaunch, ...]:
        return tuple(e for e in self.events if isinstance(e, RecordedLaunch))

    @property
    def uploaded(self) -> int:
        return sum(len(e.data) for e in self.events if isinstance(e, Upload))


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
    cases: dict[str, dict[str, CaseTrace]] = field(default_factory=dict)  # by exercise and case
    answers: dict[str, dict[str, list[Any]]] = field(default_factory=dict)  # by exercise and case
    graphs: dict[str, dict[str, Graph]] = field(default_factory=dict)  # by exercise and case
    artefacts: dict[str, dict[str, Artefact]] = field(default_factory=dict)  # by exercise and case
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
            _READERS[record["line"]](trace, record)
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


def _text(value: Any, most: int = MOST_CHARACTERS) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text is a {type(value).__name__}")
    return value[:most]


def _number(value: Any, most: int, least: int = 0) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"a number is {value!r:.40}, not from {least} to {most:,}")
    return value


def _list(value: Any, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"no list of at most {most:,} items")
    return value


def _dim3(value: Any) -> Dim3:
    x, y, z = (_number(n, 2**31 - 1, 1) for n in _list(value, 3))
    return x, y, z


def _start(trace: Trace, record: dict[str, Any]) -> None:
    if record["format"] != FORMAT:
        raise ValueError(f"format {record['format']!r:.20}")
    trace.about = {k: _text(v, 100) for k, v in record.items() if k != "line" and isinstance(v, str)}


def _at(trace: Trace, record: dict[str, Any]) -> None:
    trace.last = _text(record["exercise"] if "exercise" in record else record["cell"], 100)


def _failed(trace: Trace, record: dict[str, Any]) -> None:
    failure = Failure(_text(record["kind"], 60), _text(record["error"]))
    if "cell" in record:
        trace.cell_failures[_text(record["cell"], 100)] = failure
    else:
        trace.failures[_text(record["exercise"], 100)] = failure


def _noted(trace: Trace, record: dict[str, Any]) -> None:
    notes = dict.fromkeys(texts.clean(_text(note)) for note in _list(record["notes"], 10_000))
    trace.notes[_text(record["exercise"], 100)] = tuple(notes)[:MOST_NOTES]


def _kernel(trace: Trace, record: dict[str, Any]) -> None:
    ptx = record["ptx"]
    if not isinstance(ptx, str) or len(ptx) > LARGEST_PTX:
        raise ValueError(f"PTX of more than {LARGEST_PTX:,} characters")
    major, minor = (_number(n, 99) for n in _list(record["cc"], 2))
    most = record["max_registers"]
    trace.kernels[_text(record["digest"], 64)] = Kernel(
        _text(record["name"], 200),
        _text(record["entry"]),
        ptx,
        (major, minor),
        None if most is None else _number(most, 255, 1),
        _text(record.get("compiler", ""), 100),
    )


def _case(trace: Trace, record: dict[str, Any]) -> None:
    buffers = tuple(_number(n, LARGEST_BUFFER) for n in _list(record["buffers"], MOST_BUFFERS))
    used: set[int] = set()
    events: list[Event] = []
    for item in _list(record["events"], MOST_LAUNCHES + MOST_BUFFERS):
        event = _launch(trace, item, buffers) if "kernel" in item else _upload(item, buffers, used)
        if isinstance(event, RecordedLaunch):
            used |= {buffer for _, buffer, _ in event.pointers}
        events.append(event)
    exercise = trace.cases.setdefault(_text(record["exercise"], 100), {})
    exercise[_text(record["case"], 100)] = CaseTrace(buffers, tuple(events))


def _launch(trace: Trace, item: dict[str, Any], buffers: tuple[int, ...]) -> RecordedLaunch:
    if item["kernel"] not in trace.kernels:
        raise ValueError("a launch of a kernel that is not in the record")
    arguments = bytes.fromhex(_text(item["arguments"], 2 * LARGEST_ARGUMENTS + 2))
    if len(arguments) > LARGEST_ARGUMENTS:
        raise ValueError(f"arguments of more than {LARGEST_ARGUMENTS:,} bytes")
    pointers = []
    for place in _list(item["pointers"], MOST_BUFFERS):
        where, buffer, offset = _list(place, 3)
        buffer = _number(buffer, len(buffers) - 1)
        pointers.append((_number(where, len(arguments) - 8), buffer, _number(offset, buffers[buffer])))
    return RecordedLaunch(
        item["kernel"],
        _dim3(item["grid"]),
        _dim3(item["block"]),
        _number(item["shared_bytes"], 1 << 20),
        arguments,
        tuple(pointers),
        tuple(_label(label, buffers) for label in _list(item["labels"], 64)),
    )


def _label(item: dict[str, Any], buffers: tuple[int, ...]) -> Label:
    buffer = _number(item["buffer"], len(buffers) - 1)
    dtype = _text(item["dtype"], 20)
    if not re.fullmatch(r"[a-z]+[0-9]*", dtype):
        raise ValueError("a label's type")
    return Label(
        texts.clean(_text(item["name"], 60)),
        buffer,
        _number(item["offset"], buffers[buffer]),
        tuple(_number(n, 2**40) for n in _list(item["shape"], 8)),
        tuple(_number(n, 2**40) for n in _list(item["strides"], 8)),
        dtype,
        _number(item["itemsize"], 64, 1),
    )


def _upload(item: dict[str, Any], buffers: tuple[int, ...], used: set[int]) -> Upload:
    buffer = _number(item["buffer"], len(buffers) - 1)
    if buffer in used:
        raise ValueError("a buffer was written from the host between launches")
    if "fill" in item:
        return Upload(buffer, b"", _number(item["fill"], 255))
    try:
        data = base64.b64decode(_text(item["data"], LARGEST_LINE), validate=True)
    except binascii.Error as error:
        raise ValueError("an upload is no base64") from error
    if len(data) != buffers[buffer]:
        raise ValueError("an upload of another size than its buffer")
    return Upload(buffer, data)


def _answers(trace: Trace, record: dict[str, Any]) -> None:
    exercise = trace.answers.setdefault(_text(record["exercise"], 100), {})
    exercise[_text(record["case"], 100)] = _list(record["answers"], 100_000)


def _graph(trace: Trace, record: dict[str, Any]) -> None:
    exercise = trace.graphs.setdefault(_text(record["exercise"], 100), {})
    exercise[_text(record["case"], 100)] = Graph.from_data(record["graph"])


def _artefact(trace: Trace, record: dict[str, Any]) -> None:
    exercise = trace.artefacts.setdefault(_text(record["exercise"], 100), {})
    exercise[_text(record["case"], 100)] = artefacts.from_data(record["arrays"])


def _done(trace: Trace, record: dict[str, Any]) -> None:
    trace.done = True


_READERS: dict[str, Callable[[Trace, dict[str, Any]], None]] = {
    "start": _start,
    "at": _at,
    "failed": _failed,
    "noted": _noted,
    "kernel": _kernel,
    "case": _case,
    "answers": _answers,
    "graph": _graph,
    "artefact": _artefact,
    "done": _done,
}
