"""`cupy.cuda.Stream` and `Event`. Simulated work is done when a call returns: they only keep order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from gpulab.frontends.cuda.streams import NoClock

from .graphs import Capture, CaptureError, Graph

NO_CLOCK = (
    "the simulated device has no clock: the time that the simulator takes says nothing about a GPU. "
    "gpulab.profile(kernel, grid, block, args) counts what the kernel asks of the GPU."
)

_handles = count(3)  # CUDA keeps 1 and 2 for the two default streams
_current: list[Stream] = []


class Stream:
    """A queue of work that is always empty: what was enqueued is done already."""

    null: Stream
    ptds: Stream

    def __init__(
        self,
        null: bool = False,
        non_blocking: bool = False,
        ptds: bool = False,
        priority: int | None = None,
    ):
        self.ptr = 0 if null else 2 if ptds else next(_handles)
        self.null_stream, self.non_blocking, self.priority = null, non_blocking, priority or 0
        self.device_id = 0
        self._capture: Capture | None = None

    def __enter__(self) -> Stream:
        _current.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _current.pop()

    def use(self) -> Stream:
        """Make it the current stream."""
        _current[-1:] = [self]
        return self

    @property
    def done(self) -> bool:
        """Whether all work is done: always."""
        return True

    @property
    def is_capturing(self) -> bool:
        """Whether launches are noted for a graph, and not run."""
        return self._capture is not None

    def begin_capture(self, mode: int | None = None) -> None:
        """From now on note launches into this stream instead of running them. Raises CaptureError."""
        if self.ptr in (0, 1, 2):
            raise CaptureError("a default stream cannot capture: create one, cupy.cuda.Stream().")
        if self._capture is not None:
            raise CaptureError("this stream captures already: end_capture() first.")
        self._capture = Capture(lambda: get_current_stream() is self)
        self._capture.begin()

    def end_capture(self) -> Graph:
        """The graph of what was launched since `begin_capture`. Raises CaptureError."""
        if self._capture is None:
            raise CaptureError("this stream does not capture: begin_capture() first.")
        capture, self._capture = self._capture, None
        return capture.end()

    def synchronize(self) -> None:
        """Wait for nothing."""

    def record(self, event: Event | None = None) -> Event:
        """Put a mark into the stream."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let the stream wait for a mark, which has come already."""

    def add_callback(self, callback: Callable[[Stream, int, Any], None], arg: Any) -> None:
        """Call ``callback(stream, error, arg)`` now: all work before it is done."""
        callback(self, 0, arg)

    def launch_host_func(self, callback: Callable[[Any], None], arg: Any) -> None:
        """Call ``callback(arg)`` now."""
        callback(arg)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return hash((Stream, self.ptr))

    def __repr__(self) -> str:
        return f"<Stream {self.ptr} (device {self.device_id})>"


class ExternalStream(Stream):
    """A stream of another library."""

    def __init__(self, ptr: int, device_id: int = -1):
        super().__init__()
        self.ptr = ptr


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)


def get_current_stream(device_id: int = -1) -> Stream:
    """The stream that was entered last; the null stream otherwise."""
    return _current[-1] if _current else Stream.null


class Event:
    """A mark in a stream. It orders work, but measures no time."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False):
        self.ptr = next(_handles)

    @property
    def done(self) -> bool:
        """Whether all work before the mark is done: always."""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark into the stream."""

    def synchronize(self) -> None:
        """Wait for nothing."""

    def __repr__(self) -> str:
        return f"<Event {self.ptr}>"


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Raises NoClock: simulated events cannot measure."""
    raise NoClock(f"cupy.cuda.get_elapsed_time(): {NO_CLOCK}")
