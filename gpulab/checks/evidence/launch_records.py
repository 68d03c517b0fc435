"""What a recorder writes of launches, as data, and its reader, which trusts none of it."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpulab.checks.on_host import MOST_LAUNCHES
from gpulab.foundation.strict import clean, items, number, text

MOST_BUFFERS = 256  # of one case
LARGEST_BUFFER = 1 << 30
LARGEST_PTX = 8 << 20
LARGEST_ARGUMENTS = 4096  # as of a launch in CUDA
LARGEST_UPLOAD = 32 << 20  # characters

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
    """One launch. `pointers` are (offset in the arguments, buffer, offset in the buffer).

    `cluster` and `scratch` are those of `device.Launch`.
    """

    kernel: Kernel
    grid: Dim3
    block: Dim3
    shared_bytes: int
    arguments: bytes
    pointers: tuple[tuple[int, int, int], ...]
    labels: tuple[Label, ...]
    cluster: Dim3 | None = None
    scratch: tuple[int, int] | None = None


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


def read_kernel(facts: Mapping[str, Any]) -> Kernel:
    """One kernel. Raises ValueError, KeyError or TypeError for one that the recorder does not write."""
    ptx = facts["ptx"]
    if not isinstance(ptx, str) or len(ptx) > LARGEST_PTX:
        raise ValueError(f"PTX of more than {LARGEST_PTX:,} characters")
    major, minor = (number(n, 99) for n in items(facts["cc"], 2))
    most = facts["max_registers"]
    return Kernel(
        text(facts["name"], 200),
        text(facts["entry"]),
        ptx,
        (major, minor),
        None if most is None else number(most, 255, 1),
        text(facts.get("compiler", ""), 100),
    )


def read_case(facts: Mapping[str, Any], kernels: Mapping[str, Kernel]) -> CaseTrace:
    """The record of one case, whose launches are of these kernels, by digest.

    Raises ValueError, KeyError or TypeError for one that the recorder does not write.
    """
    buffers = tuple(number(n, LARGEST_BUFFER) for n in items(facts["buffers"], MOST_BUFFERS))
    used: set[int] = set()
    events: list[Event] = []
    for item in items(facts["events"], MOST_LAUNCHES + MOST_BUFFERS):
        event = _launch(kernels, item, buffers) if "kernel" in item else _upload(item, buffers, used)
        if isinstance(event, RecordedLaunch):
            used |= {buffer for _, buffer, _ in event.pointers}
        events.append(event)
    return CaseTrace(buffers, tuple(events))


def _launch(
    kernels: Mapping[str, Kernel], item: Mapping[str, Any], buffers: tuple[int, ...]
) -> RecordedLaunch:
    if item["kernel"] not in kernels:
        raise ValueError("a launch of a kernel that is not in the record")
    arguments = bytes.fromhex(text(item["arguments"], 2 * LARGEST_ARGUMENTS + 2))
    if len(arguments) > LARGEST_ARGUMENTS:
        raise ValueError(f"arguments of more than {LARGEST_ARGUMENTS:,} bytes")
    pointers = []
    for place in items(item["pointers"], MOST_BUFFERS):
        where, buffer, offset = items(place, 3)
        buffer = number(buffer, len(buffers) - 1)
        pointers.append((number(where, len(arguments) - 8), buffer, number(offset, buffers[buffer])))
    return RecordedLaunch(
        kernels[item["kernel"]],
        _dim3(item["grid"]),
        _dim3(item["block"]),
        number(item["shared_bytes"], 1 << 20),
        arguments,
        tuple(pointers),
        tuple(_label(label, buffers) for label in items(item["labels"], 64)),
        _dim3(item["cluster"]) if "cluster" in item else None,
        _scratch(item["scratch"], len(arguments)) if "scratch" in item else None,
    )


def _scratch(item: Any, arguments: int) -> tuple[int, int]:
    where, nbytes = items(item, 2)
    return number(where, arguments - 8), number(nbytes, LARGEST_BUFFER)


def _label(item: Mapping[str, Any], buffers: tuple[int, ...]) -> Label:
    buffer = number(item["buffer"], len(buffers) - 1)
    dtype = text(item["dtype"], 20)
    if not re.fullmatch(r"[a-z]+[0-9]*", dtype):
        raise ValueError("a label's type")
    return Label(
        clean(text(item["name"], 60)),
        buffer,
        number(item["offset"], buffers[buffer]),
        tuple(number(n, 2**40) for n in items(item["shape"], 8)),
        tuple(number(n, 2**40) for n in items(item["strides"], 8)),
        dtype,
        number(item["itemsize"], 64, 1),
    )


def _upload(item: Mapping[str, Any], buffers: tuple[int, ...], used: set[int]) -> Upload:
    buffer = number(item["buffer"], len(buffers) - 1)
    if buffer in used:
        raise ValueError("a buffer was written from the host between launches")
    if "fill" in item:
        return Upload(buffer, b"", number(item["fill"], 255))
    try:
        data = base64.b64decode(text(item["data"], LARGEST_UPLOAD), validate=True)
    except binascii.Error as error:
        raise ValueError("an upload is no base64") from error
    if len(data) != buffers[buffer]:
        raise ValueError("an upload of another size than its buffer")
    return Upload(buffer, data)


def _dim3(value: Any) -> Dim3:
    x, y, z = (number(n, 2**31 - 1, 1) for n in items(value, 3))
    return x, y, z
