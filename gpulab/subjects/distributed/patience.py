"""How long ranks have had, on a machine where others work, too.

A limit by the clock on the wall fails ranks that are right but wait for a processor. A limit by processor
time alone never ends ranks that sleep for ever. So each interval counts as what the ranks did with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

PACE = 0.05  # seconds between two looks at the processes; a network asks for each message
BUSY = 10  # times more by the clock on the wall than the ranks are charged, at most
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Patience:
    """A clock for the processes of some ranks: call it for the seconds that they have had.

    While at least one of them computes or could compute, an interval counts as the processor time of the one
    that got most of it; while all of them wait, as the time on the wall. Every interval counts as a tenth of
    the time on the wall at least. Where the system does not say what a process does, only the wall counts.
    """

    def __init__(self, processes: Sequence[int]) -> None:
        self._processes = tuple(processes)
        self._had = 0.0
        self._at = time.monotonic()
        self._used = [_processor_seconds(pid) for pid in self._processes]

    def __call__(self) -> float:
        now = time.monotonic()
        passed = now - self._at
        if passed < PACE:
            return self._had
        self._at = now
        used = [_processor_seconds(pid) for pid in self._processes]
        most = max((n - b for n, b in zip(used, self._used, strict=True)), default=0.0)
        self._used = used
        if any(map(_can_compute, self._processes)):
            self._had += min(max(most, passed / BUSY), passed)
        else:
            self._had += passed
        return self._had


def _fields(stat: Path) -> list[str]:
    """What the system says of a process or thread behind its name: its state, then numbers."""
    try:
        return stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:  # it has ended, or this is no Linux
        return []


def _processor_seconds(pid: int) -> float:
    fields = _fields(Path(f"/proc/{pid}/stat"))
    return (int(fields[11]) + int(fields[12])) / _TICKS if len(fields) > 12 else 0.0


def _can_compute(pid: int) -> bool:
    """Whether one of its threads has a processor, or waits for one or for the disk."""
    return any(_fields(stat)[:1] in (["R"], ["D"]) for stat in Path(f"/proc/{pid}/task").glob("*/stat"))
