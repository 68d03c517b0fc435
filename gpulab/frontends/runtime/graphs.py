"""CUDA graphs: launches and copies that a stream records instead of carrying out, and that run later."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gpulab.frontends.driver import handle, named
from gpulab.frontends.driver.functions import nothing, put

from .errors import Refused

P, I = ctypes.c_void_p, ctypes.c_int
Work = Callable[[], int | None]  # an error code, or none
ACTIVE = 1  # cudaStreamCaptureStatusActive
NOT_CAPTURING = 901  # cudaErrorStreamCaptureInvalidated


@dataclass
class GraphCalls:
    """The runtime's functions about graphs. A graph is a list of work, in the order of its recording."""

    _streams: dict[int, list[Work]] = field(default_factory=dict)  # those that record
    _events: dict[int, list[Work]] = field(default_factory=dict)  # those of streams that record

    def records(self, stream: int) -> bool:
        """Whether a stream records."""
        return stream in self._streams

    def carry_out(self, stream: int, work: Work) -> int | None:
        """Do the work of a stream, or keep it for the graph that the stream records; its error code."""
        if not self.records(stream):
            return work()
        self._streams[stream].append(work)
        return None

    def event(self, event: int, stream: int) -> None:
        """An event was recorded: a stream that waits for it joins the recording."""
        self._events.pop(event, None)
        if stream in self._streams:
            self._events[event] = self._streams[stream]

    def wait(self, stream: int, event: int, *_: int) -> None:
        """``cudaStreamWaitEvent``."""
        if event in self._events:
            self._streams[stream] = self._events[event]

    def begin(self, stream: int, _: int) -> None:
        """``cudaStreamBeginCapture``. Raises Refused for the default stream, as CUDA does."""
        if not stream:
            raise Refused("the default stream cannot be captured: create one with cudaStreamCreate.", 900)
        self._streams[stream] = []

    def end(self, stream: int, where: int) -> None:
        """``cudaStreamEndCapture``: all streams that joined the recording end theirs."""
        if stream not in self._streams:
            raise Refused("the stream is not being captured.", NOT_CAPTURING)
        work = self._streams[stream]
        self._streams = {each: other for each, other in self._streams.items() if other is not work}
        self._events = {each: other for each, other in self._events.items() if other is not work}
        put(where, handle(work))

    def status(self, stream: int, where: int) -> None:
        """``cudaStreamIsCapturing``."""
        put(where, ACTIVE if stream in self._streams else 0, ctypes.c_int)

    def instantiate(self, where: int, graph: int, *_: int) -> None:
        """``cudaGraphInstantiate``."""
        put(where, handle(list(named(graph))))

    def update(self, executable: int, graph: int, result: int) -> None:
        """``cudaGraphExecUpdate``: 0 as the result means that it succeeded."""
        named(executable)[:] = named(graph)
        put(result, 0, ctypes.c_int)

    def launch(self, executable: int, stream: int) -> int:
        """``cudaGraphLaunch``: the first error code of its work, or 0."""
        return next((code for code in (work() for work in list(named(executable))) if code), 0)

    def answers(self) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
        """(name, what answers it, types of its arguments) of each function."""
        yield "cudaStreamBeginCapture", self.begin, (P, I)
        yield "cudaStreamEndCapture", self.end, (P, P)
        yield "cudaStreamIsCapturing", self.status, (P, P)
        yield "cudaStreamWaitEvent", self.wait, (P, P, I)
        yield "cudaGraphInstantiate", self.instantiate, (P, P, ctypes.c_uint64)
        yield "cudaGraphInstantiateWithFlags", self.instantiate, (P, P, ctypes.c_uint64)
        yield "cudaGraphExecUpdate", self.update, (P, P, P)
        yield "cudaGraphLaunch", self.launch, (P, P)
        yield "cudaGraphUpload", nothing, (P, P)
        yield "cudaGraphDestroy", nothing, (P,)
        yield "cudaGraphExecDestroy", nothing, (P,)
