"""Runs a command in a process group of its own, which ends with it: by its end, Ctrl-C, or out of time."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GRACE = 5.0  # seconds between the request to end and the end


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it wrote; `code` is None where it ran out of time."""

    code: int | None
    output: str

    @property
    def last(self) -> str:
        """The last line that it wrote."""
        return next((line.strip() for line in reversed(self.output.splitlines()) if line.strip()), "")


def run(command: Sequence[str], patience: float, environment: Mapping[str, str] | None = None) -> Ended:
    """Run a command from the root of the clone; its output and errors are one text.

    Whatever ends the wait ends all processes of the command.
    """
    return run_all([command], patience, environment)[0]


def run_all(
    commands: Iterable[Sequence[str]], patience: float, environment: Mapping[str, str] | None = None
) -> list[Ended]:
    """Run several commands at the same time, as `run` does one."""
    processes: list[subprocess.Popen[str]] = []
    deadline = time.monotonic() + patience
    try:
        for command in commands:
            processes.append(_start(command, environment))
        return [_wait(process, deadline) for process in processes]
    except BaseException:
        for process in processes:
            _end(process)
        raise


def _start(command: Sequence[str], environment: Mapping[str, str] | None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _wait(process: subprocess.Popen[str], deadline: float) -> Ended:
    try:
        output, _ = process.communicate(timeout=max(deadline - time.monotonic(), 0))
        return Ended(process.returncode, output)
    except subprocess.TimeoutExpired:
        return Ended(None, _end(process))


def _end(process: subprocess.Popen[str]) -> str:
    """End all processes of a command and return what they wrote; nothing where that has been read before."""
    if process.stdout is None or process.stdout.closed:
        return ""
    for by in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, by)
        except ProcessLookupError:
            break
        try:
            return process.communicate(timeout=GRACE)[0]
        except subprocess.TimeoutExpired:
            continue
    return process.communicate()[0]
