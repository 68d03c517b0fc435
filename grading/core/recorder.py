"""Runs inside the sandbox, alone: a learner's cells, then each exercise's function on the judge's cases.

Reads a job from standard input and writes one file, a line of JSON per fact, as it goes: what was recorded
before a crash or a limit is kept. Nothing of this process is believed: a forged record is only another
submission, replayed on contents that were not here. So this script defends nothing; the sandbox does.

A job is {"patience": seconds, "cells": seconds, "steps": […]}: so long may each step take, and all cells
together. A step is a cell, {"cell": id, "source": text}, or an exercise,
{"exercise": name, "function": name, "evidence": kind, "cases": […]}. What stands in a case is the kind's own:
see the classes in `gpulab.checks.evidence`.

An exercise of a live kind, for several ranks or with a function that asks back, is not recorded: this script
runs once more in one or more sandboxes, with the number of a descriptor as its second argument. Behind that
is the judge, who asks.
"""

from __future__ import annotations

import contextlib
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
