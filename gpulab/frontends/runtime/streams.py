"""Streams and events. All work is done when a call returns, so that nobody waits for anything."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gpulab.frontends.driver import handle
from gpulab.frontends.driver.functions import new, nothing, put

from .errors import Refused
from .graphs import GraphCalls

P, I = ctypes.c_void_p, ctypes.c_int
INVALID_HANDLE = 400


@dataclass
class StreamCalls:
    """The runtime's functions about streams and events. `now` gives the time of an event in ms."""

    graphs: GraphCalls
    now: Callable[[], float]
    _recorded: dict[int, float] = field(default_factory=dict)

    def new_event(self, where: int, *_: int) -> None:
        """``cudaEventCreate``."""
        put(where, handle(object()))

    def record(self, event: int, stream: int, *_: int) -> None:
        """``cudaEventRecord``."""
        self.graphs.event(event, stream)
        self._recorded[event] = self.now()

    def elapsed(self, where: int, start: int, stop: int) -> None:
        """``cudaEventElapsedTime``. Raises Refused for an event that was not recorded."""
        for event in (start, stop):
            if event not in self._recorded:
                raise Refused("an event was not recorded: call cudaEventRecord first.", INVALID_HANDLE)
        put(where, self._recorded[stop] - self._recorded[start], ctypes.c_float)  # type: ignore[arg-type]

    def host_function(self, stream: int, function: int, data: int) -> None:
        """``cudaLaunchHostFunc``: the function runs at once."""
        self.graphs.carry_out(stream, partial(ctypes.CFUNCTYPE(None, P)(function), data))

    def callback(self, stream: int | None, function: int, data: int | None, _: int) -> None:
        """``cudaStreamAddCallback``."""
        ctypes.CFUNCTYPE(None, P, I, P)(function)(stream, 0, data)

    def answers(self) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
        """(name, what answers it, types of its arguments) of each function."""
        yield "cudaStreamCreate", new, (P,)
        yield "cudaStreamCreateWithFlags", new, (P, I)
        yield "cudaStreamCreateWithPriority", new, (P, I, I)
        yield "cudaStreamDestroy", nothing, (P,)
        yield "cudaStreamSynchronize", nothing, (P,)
        yield "cudaStreamQuery", nothing, (P,)
        yield "cudaStreamAttachMemAsync", nothing, (P, P, ctypes.c_size_t, I)
        yield "cudaLaunchHostFunc", self.host_function, (P, P, P)
        yield "cudaStreamAddCallback", self.callback, (P, P, P, I)
        yield "cudaEventCreate", self.new_event, (P,)
        yield "cudaEventCreateWithFlags", self.new_event, (P, I)
        yield "cudaEventRecord", self.record, (P, P)
        yield "cudaEventRecordWithFlags", self.record, (P, P, I)
        yield "cudaEventSynchronize", nothing, (P,)
        yield "cudaEventQuery", nothing, (P,)
        yield "cudaEventDestroy", nothing, (P,)
        for name in ("cudaEventElapsedTime", "cudaEventElapsedTime_v2"):
            yield name, self.elapsed, (P, P, P)
