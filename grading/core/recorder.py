"""Runs inside the sandbox, alone: a learner's cells, then each exercise's function on the judge's cases.

Reads a job from standard input and writes one file, a line of JSON per fact, as it goes: what was recorded
before a crash or a limit is kept. Nothing of this process is believed: a forged record is only another
submission, replayed on contents that were not here. So this script defends nothing; the sandbox does.

A job is {"patience": seconds, "cells": seconds, "steps": […]}: so long may each step take, and all cells
together. A step is a cell, {"cell": id, "source": text}, or an exercise,
{"exercise": name, "function": name, "evidence": kind, "cases": […]}. What stands in a case is the kind's own:
see the classes in `gpulab.checks.evidence`.

Another job is {"patience": seconds, "link": […], "cc": capability or None}. It has the lines of a record that
hold kernels, for NVIDIA's linker, which such PTX can crash. See `link`.

An exercise of a live kind, for several ranks or with a function that asks back, is not recorded: this script
runs once more in one or more sandboxes, with the number of a descriptor as its second argument. Behind that
is the judge, who asks.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

FORMAT = 1
LARGEST_LINE = 32 << 20  # bytes; a longer one would cost all exercises their verdict


class Record:
    """The file that comes out."""

    def __init__(self, path: str):
        self.descriptor = os.open(path, os.O_WRONLY)
        self.kernels: set[str] = set()  # digests of those that are in the file

    def line(self, line: str, /, **facts: Any) -> None:
        """Add one fact."""
        text = json.dumps({"line": line, **facts}, default=int, separators=(",", ":"))
        if len(text) > LARGEST_LINE:
            from gpulab.checks.refusals import Refused

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


def record_exercise(function: Callable[..., Any], record: Record, step: dict[str, Any]) -> None:
    """All cases of one exercise, as its kind of evidence is recorded; of a live kind nothing is."""
    from gpulab.checks.evidence import KINDS

    kind = KINDS[step["evidence"]]
    for case in [] if kind.live else step["cases"]:
        kind.record(function, record, step["exercise"], case)


def serving(number: str) -> Callable[[Callable[..., Any], dict[str, Any]], None]:
    """Serves exercises of live kinds over the connection with that descriptor."""
    import socket

    from gpulab.checks.evidence import KINDS

    connection = socket.socket(fileno=int(number))
    servers: dict[str, Callable[[Any, str], None]] = {}

    def serve(function: Any, step: dict[str, Any]) -> None:
        kind = step["evidence"]
        if kind not in servers:
            servers[kind] = KINDS[kind].serving(connection)
        servers[kind](function, step["exercise"])

    return serve


def link(record: Record, job: dict[str, Any]) -> None:
    """Link each kernel, and write a line with its "key" and its "resources", or "why" there are none.

    If the job names a compute capability, there is "code" for it in place of "resources". One child links all
    kernels. If a kernel crashes it, or takes longer than the job's patience, only that kernel has no result,
    because another child links those after it.
    """
    kernels = list(asked_to_link(job))
    while kernels:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                for key, work in kernels:
                    signal.setitimer(signal.ITIMER_PROF, job["patience"])  # its signal ends the process
                    facts = work()
                    signal.setitimer(signal.ITIMER_PROF, 0)
                    record.line("linked", key=key, **facts)
                    os.write(writing, b".")
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(writing)
        with os.fdopen(reading, "rb") as progress:
            done = len(progress.read(len(kernels)))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if done < len(kernels):
            how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            slow = code == -signal.SIGPROF
            why = f"was stopped after {job['patience']:g} s" if slow else f"crashed ({how})"
            record.line("linked", key=kernels[done][0], why=f"ptxas {why} on the PTX")
        kernels = kernels[done + 1 :]


def asked_to_link(job: dict[str, Any]) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """The kernels of a job by their keys, each with the call that links it. What is no kernel is left out."""
    import base64
    from dataclasses import asdict

    from gpulab.checks.evidence.launch_records import Kernel, read_kernel
    from gpulab.simulator.compile import CompileError, ptxas

    def linked(kernel: Kernel) -> dict[str, Any]:
        try:
            if cc:
                code = ptxas.link(kernel.ptx, cc, kernel.max_registers)[1]
                return {"code": base64.b64encode(code).decode()}
            used = ptxas.resources(kernel.ptx, kernel.cc, kernel.entry, kernel.max_registers)
            return {"resources": asdict(used)}
        except CompileError as error:
            return {"why": error.why}

    cc = tuple(job["cc"]) if job["cc"] else None
    for line in job["link"]:
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            kernel = read_kernel(json.loads(line))
            entry = "" if cc else kernel.entry
            key = ptxas.link_key(kernel.ptx, cc or kernel.cc, entry, kernel.max_registers)
            yield key, partial(linked, kernel)


def about() -> dict[str, str]:
    """What the kernels are compiled with, and for which GPU."""
    from gpulab.simulator import compile, device

    return {"compiler": compile.compiler_version(), "gpu": str(device.current().gpu)}


def main(path: str, number: str = "") -> None:
    """Do the job; with the number of a descriptor as one of several ranks, or in a dialogue."""
    job, record = json.load(sys.stdin), Record(path)
    if "link" in job:
        link(record, job)
        return
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from gpulab.checks.cells import Cells

    quiet = Config({"HistoryManager": {"enabled": False}})  # it would lock a database
    shell = InteractiveShell.instance(colors="nocolor", config=quiet)
    shell.showtraceback = shell.showsyntaxtraceback = lambda *args, **keywords: None
    shell.enable_gui = lambda gui=None: None  # %matplotlib asks for one
    cells = Cells(shell, job["patience"], job.get("cells", math.inf))
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
