"""The clock of ranks: processor time while they compute, time on the wall while they sleep."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from gpulab.subjects.distributed.patience import BUSY, Patience

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="no /proc on this machine")
SPINS = "print(flush=True)\nwhile True: pass"
SLEEPS = "import time; print(flush=True); time.sleep(600)"


@contextmanager
def running(*programs: str) -> Iterator[Patience]:
    """Processes that have begun, and their clock."""
    started = [subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) for text in programs]
    try:
        for process in started:
            assert process.stdout is not None and process.stdout.readline()
        yield Patience([process.pid for process in started])
    finally:
        for process in started:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def over(clock: Callable[[], float], seconds: float) -> tuple[float, float]:
    """What the clock and the wall count while it is asked again and again."""
    began, first = time.monotonic(), clock()
    while time.monotonic() - began < seconds:
        time.sleep(0.05)
        last = clock()
    return last - first, time.monotonic() - began


def processor_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_ranks_that_all_sleep_are_charged_by_the_wall() -> None:
    with running(SLEEPS, SLEEPS) as clock:
        counted, wall = over(clock, 1.0)
    assert counted == pytest.approx(wall, abs=0.2)


def test_ranks_that_compute_are_charged_what_the_processor_gave_one_of_them() -> None:
    """However many others want the processor: eight that spin get an eighth each of what there is."""
    with running(*[SPINS] * 8) as clock:
        before = [processor_seconds(pid) for pid in clock._processes]
        counted, wall = over(clock, 2.0)
        most = max(processor_seconds(pid) - b for pid, b in zip(clock._processes, before, strict=True))
    cores = os.cpu_count() or 1
    assert counted <= wall
    if cores <= 2:  # then none of the eight had a core to itself
        assert counted < 0.8 * wall
    assert counted >= max(wall / BUSY, 0.5 * most)


def test_processes_that_have_ended_are_charged_by_the_wall() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    counted, wall = over(Patience([ended.pid]), 0.3)
    assert counted == pytest.approx(wall, abs=0.1)
