"""What a submission recorded at one case, as a program for a device: machine code, launches and buffers.

Made in a limited child (`limited.call`), because it parses the record. The machine code is made before, by a
linker in a sandbox (`core.linking`).
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpulab.checks import run
from gpulab.checks.evidence.launch_records import CaseTrace, Kernel, Upload
from gpulab.checks.evidence.launch_replay import OTHER_BUFFERS, TOO_MANY_UPLOADS, check_shape, compiled
from gpulab.checks.evidence.launch_trace import launch_trace_of
from gpulab.checks.on_host import MOST_UPLOADED
from gpulab.checks.refusals import Refused
from gpulab.checks.spec import Array, Case, Exercise
from gpulab.foundation.errors import Message
from gpulab.simulator.compile import CompileError
from gpulab.simulator.compile.ptxas import link, linked_elsewhere
from grading.core import texts
from grading.core.errors import RecordError
from grading.core.linking import results
from grading.core.notebooks import Question
from grading.core.records import read_record
from grading.core.replay import ReplayJob, exercise_of, judged, recorded, why_not

Capability = tuple[int, int]


@dataclass(frozen=True)
class Program:
    """One case of one submission, ready to run. `head` is JSON, see `_program`; `codes` are its kernels'.

    The first `given` buffers are the exercise's arrays, in order.
    """

    head: dict[str, Any]
    codes: tuple[bytes, ...]

    @property
    def given(self) -> int:
        return int(self.head["given"])


def from_data(data: dict[str, Any]) -> Program:
    """The inverse of what `programs` gives for one case."""
    return Program(data["head"], tuple(base64.b64decode(code) for code in data["codes"]))


def programs(
    content: bytes, end: str, questions: tuple[Question, ...], cases: dict[str, tuple[Case, ...]],
    cc: Capability | None, linked: bytes = b"",
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """By exercise: ``{"refused": why}``, or ``{"cases": {name: program}}``.

    The machine code for compute capability `cc` is in `linked`, see `linking`. None leaves the PTX as it was
    recorded, for a device that runs that.
    """
    try:
        record = read_record(content)
    except RecordError as error:
        return {q.exercise: {"refused": str(error)} for q in questions}
    job = ReplayJob(content, end, questions, cases, {}, {}, {})
    found: dict[str, dict[str, Any]] = {}
    for question in questions:
        exercise = judged(exercise_of(question.exercise), cases[question.exercise])
        try:
            if why := why_not(exercise, question, record, job):
                raise Refused(why)
            there = recorded(exercise, question, record, job)
            with linked_elsewhere(results(linked)):
                made = {c.name: _program(exercise, c, there[c.name], cc) for c in exercise.cases}
            found[question.exercise] = {"cases": made}
        except Message as error:
            found[question.exercise] = {"refused": str(error)}
    return found


def _program(exercise: Exercise, case: Case, record: CaseTrace, cc: Capability | None) -> dict[str, Any]:
    """One program as data. Raises Refused where it breaks one of the judge's rules, and CompileError."""
    given = tuple(array_bytes(exercise, case))
    if record.buffers[: len(given)] != given:
        raise Refused(OTHER_BUFFERS.format(case=case.name))
    if record.uploaded > MOST_UPLOADED:
        raise Refused(TOO_MANY_UPLOADS.format(size=record.uploaded, case=case.name, limit=MOST_UPLOADED))
    evidence = launch_trace_of(exercise)
    if evidence.shape is not None:
        shape = evidence.shape(case.sizes)
        check_shape((shape.grid, shape.block, shape.shared_bytes), record, case.name)
    codes: dict[Kernel, bytes] = {}
    for launch in record.launches:
        if launch.kernel not in codes:
            codes[launch.kernel] = _code(launch.kernel, exercise.gpu, cc)
    order = list(codes)
    head = {
        "given": len(given),
        "buffers": record.buffers,
        "uploads": [_upload(e) for e in record.events if isinstance(e, Upload)],
        "launches": [
            {
                "kernel": order.index(launch.kernel),
                "entry": launch.kernel.entry,
                "grid": launch.grid,
                "block": launch.block,
                "shared_bytes": launch.shared_bytes,
                "arguments": launch.arguments.hex(),
                "pointers": launch.pointers,
            }
            for launch in record.launches
        ],
    }
    return {"head": head, "codes": [base64.b64encode(code).decode() for code in codes.values()]}


def array_bytes(exercise: Exercise, case: Case) -> list[int]:
    """The size of each array of a case, in order."""
    return [_nbytes(a) for a in launch_trace_of(exercise).arguments(case.sizes) if isinstance(a, Array)]


def _nbytes(array: Array) -> int:
    return math.prod(array.shape) * np.dtype(array.dtype).itemsize


def _upload(event: Upload) -> dict[str, Any]:
    if event.fill is not None:
        return {"buffer": event.buffer, "fill": event.fill}
    return {"buffer": event.buffer, "data": event.data.hex()}


def _code(kernel: Kernel, gpu: str, cc: Capability | None) -> bytes:
    with run.reference_device(gpu) as device:
        checked = compiled(kernel, device)
    if checked.cooperative:
        raise Refused(texts.COOPERATIVE.format(kernel=checked.name))
    if cc is None:
        return kernel.ptx.encode()
    try:
        return link(kernel.ptx, cc, kernel.max_registers)[1]
    except CompileError as error:
        raise Refused(texts.clean(str(error), 300)) from None
