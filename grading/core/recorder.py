"""Runs inside the sandbox, alone: a learner's cells, then each exercise's function on the judge's cases.

Reads a job from standard input and writes one file, a line of JSON per fact, as it goes: what was recorded
before a crash or a limit is kept. Nothing of this process is believed: a forged record is only another
submission, replayed on contents that were not here. So this script defends nothing; the sandbox does.

A job is {"patience": seconds, "cells": seconds, "steps": […]}: so long may each step take, and all cells
together. A step is a cell, {"cell": id, "source": text}, or an exercise,
{"exercise": name, "function": name, "cases": […]}, where "by_hand" may list functions that the answer may not
call. A case is {"name": …} with "questions", a list of argument
lists, or with "arguments", a list of {"array", "shape", "dtype", "role"} and {"scalar", "value", "dtype"},
and "face", whose arrays they are to be; where the function is a kernel also "launch": [grid, block, bytes of
dynamic shared memory]. Where it computes with PyTorch, "operators" lists those that it may use, and each
array says with "grad" whether it wants a gradient. Where it makes an artefact ("makes") each array has
"contents", in base64.

An exercise for several ranks says so with "ranks". It is not recorded: this script runs once more in each of
several sandboxes, with the number of a descriptor as its second argument. Behind that is the network, which
gives the rank its tasks and carries what ranks say to one another. One whose function asks back says so with
"dialogue": it is played in one more sandbox, whose connection leads to whom it asks.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import math
import os
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

FORMAT = 1
LARGEST_LINE = 32 << 20  # bytes; a longer one would cost all exercises their verdict


class Refused(Exception):
    """The learner's function did what the exercise does not allow; the text says what and why."""


class Record:
    """The file that comes out."""

    def __init__(self, path: str):
        self.descriptor = os.open(path, os.O_WRONLY)
        self.kernels: set[str] = set()  # digests of those that are in the file

    def line(self, line: str, /, **facts: Any) -> None:
        """Add one fact."""
        text = json.dumps({"line": line, **facts}, default=int, separators=(",", ":"))
        if len(text) > LARGEST_LINE:
            raise Refused(
                f"what was recorded is too large: {len(text):,} bytes; at most {LARGEST_LINE:,} are read"
            )
        data = memoryview(text.encode() + b"\n")
        while data:
            data = data[os.write(self.descriptor, data) :]


def said(error: BaseException) -> str:
    """An error in one line, with the line of the learner's cell that raised it."""
    text = str(error).strip() or type(error).__name__
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} (line {error.lineno})"
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(("<cell", "<ipython"))
    ]
    where = f" (line {frames[-1].lineno}: {frames[-1].line})" if frames and frames[-1].line else ""
    name = type(error).__name__
    return (text if text.startswith(name) else f"{name}: {text}") + where


def attempt(record: Record, facts: dict[str, Any], body: Callable[[], None], seconds: float = 0) -> None:
    """Run `body`; whatever it raises becomes a line of the record and ends nothing else.

    With `seconds` it may take so long.
    """
    from gpulab.checks.cells import Impatient, patience

    try:
        with patience(seconds) if seconds else contextlib.nullcontext():
            body()
    except Impatient as error:
        record.line("failed", kind="stopped", error=str(error) or f"stopped after {seconds:.0f} s", **facts)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        with contextlib.suppress(Exception):
            record.line("failed", kind=type(error).__name__, error=said(error), **facts)


class Tracer:
    """Stands at the device's door while an exercise is recorded: notes launches and uploads, runs nothing."""

    def __init__(self, record: Record, rules: Any):
        self.record = record
        self.rules = rules  # of gpulab.checks.on_host, which also numbers the buffers
        self.events: list[dict[str, Any]] = []

    def host_access(self, device: Any, allocation: Any, writes: bool) -> None:
        """The host wants to see or change device memory."""
        self.rules.host_access(allocation, writes)

    def launch(self, device: Any, launch: Any) -> None:
        """Note a launch, and before it what the host wrote."""
        for buffer, data in self.rules.uploads():
            filled = len(data) == 1
            what = {"fill": data[0]} if filled else {"data": base64.b64encode(data).decode()}
            self.events.append({"buffer": buffer, **what})
        kernel = launch.kernel
        if kernel.digest not in self.record.kernels:
            self.record.kernels.add(kernel.digest)
            self.record.line(
                "kernel", digest=kernel.digest, name=kernel.name, entry=kernel.entry, ptx=kernel.ptx,
                cc=kernel.cc, max_registers=kernel.max_registers, compiler=kernel.compiler,
            )  # fmt: skip
        arguments = bytearray(launch.arguments)
        pointers = [list(place) for place in self.rules.launch(device, launch)]
        for at, _, _ in pointers:
            arguments[at : at + 8] = bytes(8)
        self.events.append(
            {
                "kernel": kernel.digest,
                "grid": launch.grid,
                "block": launch.block,
                "shared_bytes": launch.shared_bytes,
                "arguments": arguments.hex(),
                "pointers": pointers,
                "labels": [self._label(device, label) for label in launch.arrays],
            }
        )

    def _label(self, device: Any, label: Any) -> dict[str, Any]:
        allocation = device.memory.find(label.address)
        return {
            "name": label.name,
            "buffer": self.rules.number(allocation),
            "offset": label.address - allocation.address,
            "shape": label.shape,
            "strides": label.strides,
            "dtype": label.dtype,
            "itemsize": label.itemsize,
        }


def trace_case(function: Any, record: Record, exercise: str, case: dict[str, Any]) -> None:
    """Call the function on handles of the case's arrays."""
    import numpy as np

    from gpulab import cuda
    from gpulab.checks import launching, messages, on_host
    from gpulab.frontends.cupy.memory import using_allocator
    from gpulab.simulator import device as devices

    device = devices.current()
    values: list[Any] = []
    allocations: list[Any] = []
    names: list[str] = []
    fixed: set[int] = set()
    for argument in case["arguments"]:
        if "scalar" in argument:
            value = np.dtype(argument["dtype"]).type(argument["value"])
            values.append(launching.scalar(value, case["face"]))
            continue
        if argument["role"] == "in":
            fixed.add(len(names))
        handle = cuda.device_array(tuple(argument["shape"]), argument["dtype"])
        values.append(launching.given(handle, case["face"]))
        names.append(argument["array"])
        allocations.append(device.memory.allocations[-1])
    rules = on_host.Rules(allocations, names, fixed)
    tracer = Tracer(record, rules)
    if "launch" in case:
        grid, block, shared = case["launch"]
        if not launching.is_kernel(function):
            name = getattr(function, "__name__", "this")
            raise Refused(messages.not_a_kernel(name, case["face"]))
    # CuPy's pool would make one buffer of arrays that live one after the other.
    with device.executed_by(tracer), using_allocator(None):
        if "launch" in case:
            launching.launch(function, tuple(grid), tuple(block), shared, values)
        else:
            function(*values)
    record.line(
        "case",
        exercise=exercise,
        case=case["name"],
        buffers=[allocation.nbytes for allocation in rules.buffers],
        events=tracer.events,
    )


def graph_case(function: Any, record: Record, exercise: str, case: dict[str, Any]) -> None:
    """Call a PyTorch function on tensors without contents."""
    import numpy as np

    from gpulab.checks.cases import Argument
    from gpulab.checks.spec import Array, Scalar
    from gpulab.checks.tensor_graphs import NotAGraph
    from gpulab.checks.tensor_graphs import record as graph_of

    made = []
    for given in case["arguments"]:
        dtype = np.dtype(given["dtype"])
        if "scalar" in given:
            scalar = Scalar(given["scalar"], given["value"], given["dtype"])
            made.append(Argument(scalar, dtype.type(given["value"])))
            continue
        shape = tuple(given["shape"])
        array = Array(given["array"], shape, given["dtype"], given["role"], grad=given["grad"])
        made.append(Argument(array, np.broadcast_to(np.zeros((), dtype), shape)))
    try:
        graph = graph_of(function, made, frozenset(case["operators"]))
    except NotAGraph as error:
        raise Refused(str(error)).with_traceback(error.__traceback__) from None
    record.line("graph", exercise=exercise, case=case["name"], graph=graph.to_data())


def artefact_case(function: Any, record: Record, exercise: str, case: dict[str, Any]) -> None:
    """Call the function on arrays with contents; what it returns is written down."""
    import numpy as np

    from gpulab.checks.artefacts import NotAnArtefact, packed, to_data

    values: list[Any] = []
    for given in case["arguments"]:
        dtype = np.dtype(given["dtype"])
        if "scalar" in given:
            values.append(dtype.type(given["value"]))
        else:
            contents = np.frombuffer(base64.b64decode(given["contents"]), dtype)
            values.append(contents.reshape(given["shape"]).copy())
    try:
        artefact = packed(function(*values))
    except NotAnArtefact as error:
        raise Refused(str(error)) from None
    record.line("artefact", exercise=exercise, case=case["name"], arrays=to_data(artefact))


def by_hand(step: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
    """While it is entered, what gpulab has for the exercise refuses the learner's function."""
    if "by_hand" not in step:
        return contextlib.nullcontext()
    from gpulab.checks.by_hand import refused

    return refused(step["by_hand"])


def answer(function: Callable[..., Any], question: list[Any]) -> Any:
    """What the function answers, as the check compares it: at once, before later calls may change it."""
    from gpulab.checks import messages
    from gpulab.checks.compare import NotAnAnswer, normal

    try:
        return normal(function(*copy.deepcopy(question)))
    except NotAnAnswer as odd:
        raise Refused(messages.odd_result(str(odd))) from None


def record_exercise(function: Callable[..., Any], record: Record, step: dict[str, Any]) -> None:
    """All cases of one exercise. Of one for several ranks, or that is a dialogue, nothing is recorded."""
    for case in step["cases"]:
        if "ranks" in case or "dialogue" in case:
            continue
        if "questions" in case:
            with by_hand(step):
                answers = [answer(function, question) for question in case["questions"]]
            record.line("answers", exercise=step["exercise"], case=case["name"], answers=answers)
        elif "makes" in case:
            artefact_case(function, record, step["exercise"], case)
        elif "operators" in case:
            graph_case(function, record, step["exercise"], case)
        else:
            trace_case(function, record, step["exercise"], case)


def serve_exercise(wire: Any, function: Any, exercise: str) -> None:
    """Compute what the network asks of this rank, until it goes on to the next exercise."""
    from gpulab.checks.on_ranks import file_of, work_of
    from gpulab.subjects.distributed.member import serve

    file = file_of(function)
    wire.say({"op": "ready", "exercise": exercise, "absent": function is None, "file": file})
    serve(wire, work_of(function), file)


def serving(number: str) -> Callable[[Callable[..., Any], dict[str, Any]], None]:
    """Serves an exercise over the connection with that descriptor: as a rank, or in a dialogue."""
    import socket

    connection = socket.socket(fileno=int(number))
    wires: list[Any] = []

    def serve(function: Any, step: dict[str, Any]) -> None:
        if any("dialogue" in case for case in step["cases"]):
            from gpulab.checks import dialogue_member

            dialogue_member.serve(connection, function, step["exercise"])
            return
        from gpulab.subjects.distributed.wired import Wire

        wires[:] = wires or [Wire(connection)]
        serve_exercise(wires[0], function, step["exercise"])

    return serve


def about() -> dict[str, str]:
    """What the kernels are compiled with, and for which GPU."""
    from gpulab.simulator import compile, device

    return {"compiler": compile.compiler_version(), "gpu": str(device.current().gpu)}


def main(path: str, number: str = "") -> None:
    """Do the job; with the number of a descriptor as one of several ranks, or in a dialogue."""
    job = json.load(sys.stdin)
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from gpulab.checks.cells import Cells

    quiet = Config({"HistoryManager": {"enabled": False}})  # it would lock a database
    shell = InteractiveShell.instance(colors="nocolor", config=quiet)
    shell.showtraceback = shell.showsyntaxtraceback = lambda *args, **keywords: None
    shell.enable_gui = lambda gui=None: None  # %matplotlib asks for one
    cells = Cells(shell, job["patience"], job.get("cells", math.inf))
    record = Record(path)
    serve = serving(number) if number else None
    record.line("start", format=FORMAT, **({} if serve else about()))
    for step in job["steps"]:
        where = {key: step[key] for key in ("cell", "exercise") if key in step}
        record.line("at", **where)
        if "source" in step:
            attempt(record, where, partial(cells.run, step["cell"], step["source"]))
            continue
        if cells.notes:
            record.line("noted", notes=cells.notes, **where)
            cells.notes = []
        if serve:
            serve(shell.user_ns.get(step["function"]), step)
            continue
        if (function := shell.user_ns.get(step["function"])) is not None:
            work = partial(record_exercise, function, record, step)
        else:
            record.line("failed", kind="missing", error=step["function"], **where)
            continue
        attempt(record, where, work, job["patience"])
    record.line("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # threads and handlers that a learner left behind have no say
