"""CUDA graphs: launches that are noted once, without running, and then replayed together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from gpulab.foundation.errors import Message
from gpulab.simulator import device as devices
from gpulab.simulator.device import Launch
from gpulab.simulator.simt import Allocation


class CaptureError(Message, RuntimeError):
    """What cannot be captured into a graph, or a capture that was not begun."""


class Graph:
    """What a capture noted. `launch` runs its kernels in their order, on the memory that they were given."""

    def __init__(self, launches: tuple[Launch, ...]):
        self._launches = launches

    def launch(self, stream: Any = None) -> None:
        """Replay everything: for the host one call, whatever the number of kernels."""
        for each in self._launches:
            devices.current().launch(
                each.kernel,
                each.grid,
                each.block,
                each.arguments,
                shared_bytes=each.shared_bytes,
                pointers=each.pointers,
                arrays=each.arrays,
                cluster=each.cluster,
                scratch=each.scratch,
            )

    def upload(self, stream: Any = None) -> None:
        """Without effect: there is nothing to prepare."""

    def __repr__(self) -> str:
        count = len(self._launches)
        return f"<Graph of {count} kernel{'' if count == 1 else 's'}>"


class Capture:
    """Stands at the device's door while a stream captures; what other streams do passes through.

    `active` says whether the current stream is the one that captures.
    """

    def __init__(self, active: Callable[[], bool]) -> None:
        self.launches: list[Launch] = []
        self._active = active
        self._standing = ExitStack()

    def begin(self) -> None:
        self._standing.enter_context(devices.current().executed_by(self))

    def end(self) -> Graph:
        self._standing.close()
        return Graph(tuple(self.launches))

    def launch(self, device: devices.SimulatedDevice, launch: Launch) -> None:
        """Note a launch; nothing runs."""
        if self._active():
            self.launches.append(launch)
        else:
            device.behind(self).launch(device, launch)

    def host_access(self, device: devices.SimulatedDevice, allocation: Allocation, writes: bool) -> None:
        """Raises CaptureError: nothing has run, so there is nothing to read and nothing to add to."""
        if not self._active():
            device.behind(self).host_access(device, allocation, writes)
            return
        does = "writes to" if writes else "reads"
        raise CaptureError(
            f"cudaErrorStreamCaptureUnsupported: the host {does} device memory while a stream captures, when "
            "nothing runs. Do it before begin_capture() or after the graph's launch(). (On the simulated "
            "device array functions run on the host, too: capture kernels.)"
        )
