"""A check does not wait for ever: a learner's Python that never ends is stopped, and its line is named."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS = 60.0  # of the processor, not of the clock: a busy machine stops nobody


class NoEnd(Exception):
    """The function was still running after `seconds` of the processor's time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no end after {seconds:g} s")
        self.seconds = seconds


@contextmanager
def limited(seconds: float | None = None) -> Iterator[None]:
    """Raises NoEnd, in the line that runs then, if what is inside takes longer than `seconds`.

    None is `SECONDS`. Without signals (on Windows, or outside of the main thread) nothing is limited. NoEnd
    is raised once more every second, in case a bare ``except`` of the learner's catches it.
    """
    limit = SECONDS if seconds is None else seconds
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise NoEnd(limit)

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
