"""Runs inside the sandbox, alone: a learner's cells, then each exercise's function on the judge's cases.

Reads a job from standard input and writes one file, a line of JSON per fact, as it goes: what was recorded
before a crash or a limit is kept. Nothing of this process is believed: a forged record is only another
submission, replayed on contents that were not here. So this script defends nothing; the sandbox does.

A job is {"patience": seconds, "steps": […]}. A step is a cell, {"cell": id, "source": text}, or an exercise,
{"exercise": name, "function": name, "evidence": kind, "cases": […]}. What stands in a case is the kind's own:
see the classes in `gpulab.checks.evidence`.

An exercise of a live kind, for several ranks or with a function that asks back, is not recorded: this script
runs once more in one or more sandboxes, with the number of a descriptor as its second argument. Behind that
is the judge, who asks.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

FORMAT = 1


class Impatient(BaseException):
    """One cell or exercise took longer than its share. No Exception: `except Exception` lets it pass."""


class Record:
    """The file that comes out."""

    def __init__(self, path: str):
        self.descriptor = os.open(path, os.O_WRONLY)
        self.kernels: set[str] = set()  # digests of those that are in the file

    def line(self, line: str, /, **facts: Any) -> None:
        """Add one fact."""
        text = json.dumps({"line": line, **facts}, default=_plain, separators=(",", ":"))
        data = memoryview(text.encode() + b"\n")
        while data:
            data = data[os.write(self.descriptor, data) :]


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's, for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset, range)):
        return list(value)
    raise TypeError(
        f"an answer may hold numbers, strings, lists and dictionaries, not {type(value).__name__}"
    )


@contextlib.contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Raise `Impatient` in the body when it takes too long."""

    def lose_it(number: int, frame: object) -> None:
        raise Impatient

    signal.signal(signal.SIGALRM, lose_it)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


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


def attempt(record: Record, seconds: float, facts: dict[str, Any], body: Callable[[], None]) -> None:
    """Run `body`; whatever it raises becomes a line of the record and ends nothing else."""
    try:
        with patience(seconds):
            body()
    except Impatient:
        record.line("failed", kind="stopped", error=f"stopped after {seconds:.0f} s", **facts)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        with contextlib.suppress(Exception):
            record.line("failed", kind=type(error).__name__, error=said(error), **facts)


def run_cell(shell: Any, step: dict[str, Any]) -> None:
    """One cell, as a notebook would run it; its error is raised here."""
    shell.gpulab_cell = step["cell"]  # the file name of the cell's code, in errors and in PTX
    result = shell.run_cell(step["source"], store_history=False)
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        raise error


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

    quiet = Config({"HistoryManager": {"enabled": False}})  # it would lock a database
    shell = InteractiveShell.instance(colors="nocolor", config=quiet)
    shell.showtraceback = shell.showsyntaxtraceback = lambda *args, **keywords: None
    shell.enable_gui = lambda gui=None: None  # %matplotlib asks for one
    shell.compile.get_code_name = lambda raw, code, number: f"<cell {shell.gpulab_cell}>"
    record = Record(path)
    serve = serving(number) if number else None
    record.line("start", format=FORMAT, **({} if serve else about()))
    for step in job["steps"]:
        where = {key: step[key] for key in ("cell", "exercise") if key in step}
        record.line("at", **where)
        if "source" in step:
            work = partial(run_cell, shell, step)
        elif serve:
            serve(shell.user_ns.get(step["function"]), step)
            continue
        elif (function := shell.user_ns.get(step["function"])) is not None:
            work = partial(record_exercise, function, record, step)
        else:
            record.line("failed", kind="missing", error=step["function"], **where)
            continue
        attempt(record, job["patience"], where, work)
    record.line("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # threads and handlers that a learner left behind have no say
