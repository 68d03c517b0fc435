"""Streams and events. On the simulated device all work is done when a call returns; they only keep order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gpulab.foundation.errors import Message

NO_CLOCK = (
    "the simulated device has no clock: the time that the simulator takes says nothing about a GPU. "
    "gpulab.profile(kernel[grid, block], …) counts what the kernel asks of the GPU."
)


class NoClock(Message, RuntimeError):
    """A time was asked for where none can be measured."""


class Stream:
    """A queue of work that is always empty: what was enqueued is done already."""

    def __init__(self, handle: int = 0):
        self.handle = handle

    def __int__(self) -> int:
        return self.handle

    def synchronize(self) -> None:
        """Wait for nothing."""

    @contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        """The stream, synchronised at the end."""
        yield self

    def add_callback(self, callback: Callable[[Stream, int, Any], None], arg: Any = None) -> None:
        """Call ``callback(stream, status, arg)`` now: all work before it is done."""
        callback(self, 0, arg)

    async def async_done(self) -> Stream:
        """Done."""
        return self

    def __repr__(self) -> str:
        return f"<simulated stream {self.handle}>" if self.handle else "<simulated default stream>"


class Event:
    """A mark in a stream. It orders work, but measures no time."""

    def __init__(self, timing: bool = True):
        self.timing = timing
        self.recorded = False

    def record(self, stream: Stream | int = 0) -> None:
        """Put the mark into the stream."""
        self.recorded = True

    def query(self) -> bool:
        """Whether all work before the mark is done: always."""
        return True

    def synchronize(self) -> None:
        """Wait for nothing."""

    def wait(self, stream: Stream | int = 0) -> None:
        """Let the stream wait for nothing."""

    def elapsed_time(self, evtend: Event) -> float:
        """Raises NoClock: simulated events cannot measure."""
        raise NoClock(f"event.elapsed_time(): {NO_CLOCK}")
