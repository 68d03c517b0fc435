"""The disposable process that holds a device: machine code and contents come in, times and results go out.

``python -m grading.gpu_stage.child INDEX``, over standard input and output. It never sees an expected result,
and nothing of it is believed but what the coordinator can check; it ends with its input.
"""

from __future__ import annotations

import json
import math
import os
import resource
import struct
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, BinaryIO, Protocol

EMPTY_PAIRS = 100  # of events with nothing between them, whose time is taken off
LEAST_FLUSH = 256 << 20  # bytes
QUEUED_MEANWHILE = 4  # launches that the host queues while a fast GPU writes that much, in some 60 µs
LARGEST_HEAD = 8 << 20
GARBAGE = 0xA5  # in memory that the submission allocated itself


class Device(Protocol):
    """What `driver.Driver` offers; a test has another."""

    def about(self) -> dict[str, Any]: ...
    def allocate(self, nbytes: int) -> int: ...
    def write(self, address: int, data: bytes) -> None: ...
    def read(self, address: int, nbytes: int) -> bytes: ...
    def fill(self, address: int, value: int, nbytes: int) -> None: ...
    def start_filling(self, address: int, value: int, nbytes: int) -> None: ...
    def load(self, code: bytes) -> Any: ...
    def unload(self, module: Any) -> None: ...
    def function(self, module: Any, entry: str, shared_bytes: int) -> Any: ...
    def launch(
        self, function: Any, grid: list[int], block: list[int], shared_bytes: int, arguments: bytes
    ) -> None: ...
    def event(self) -> Any: ...
    def record(self, event: Any) -> None: ...
    def elapsed(self, first: Any, second: Any) -> float: ...
    def wait(self) -> None: ...
    def forget_persisting(self) -> None: ...


class Player:
    """Runs one program (`gpu_stage.program`) again and again, each time as if it were the first."""

    def __init__(
        self,
        device: Device,
        head: dict[str, Any],
        codes: Sequence[bytes],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.device, self.head, self.codes, self.clock = device, head, codes, clock
        self.addresses = [device.allocate(nbytes) for nbytes in head["buffers"]]
        self.cleared = max(LEAST_FLUSH, 2 * device.about()["l2_bytes"])
        self.flushed = device.allocate(self.cleared)
        self.events = [device.event() for _ in range(3)]
        self.empty = self._empty_pair()

    def _empty_pair(self) -> float:
        first, second, _ = self.events
        found = []
        for _ in range(EMPTY_PAIRS):
            self.device.record(first)
            self.device.record(second)
            self.device.wait()
            found.append(self.device.elapsed(first, second))
        return median(found)

    def run(self, given: Sequence[bytes]) -> tuple[dict[str, float], list[bytes]]:
        """One turn: seconds (see `protocol.Turn`), and what stands in the given arrays afterwards."""
        device = self.device
        self._fill(given)
        modules = [device.load(code) for code in self.codes]  # anew: no variable outlives a turn
        try:
            launches = [self._prepared(launch, modules) for launch in self.head["launches"]]
            device.forget_persisting()
            device.wait()
            before, between, after = self.events
            began = self.clock()
            device.record(before)
            for _ in range(max(1, -(-len(launches) // QUEUED_MEANWHILE))):  # none waits for the host
                device.start_filling(self.flushed, 0, self.cleared)
            device.record(between)
            for launch in launches:
                device.launch(*launch)
            device.record(after)
            device.wait()
            waited = self.clock() - began
            seconds = device.elapsed(between, after) - self.empty
            flush = device.elapsed(before, between)
        finally:
            for module in modules:
                device.unload(module)
        left = [device.read(a, len(data)) for a, data in zip(self.addresses, given, strict=False)]
        return {"seconds": seconds, "flush": flush, "waited": waited}, left

    def _fill(self, given: Sequence[bytes]) -> None:
        """The exercise's arrays, garbage in those of the submission, and what its host code wrote.

        That came before any launch which uses the buffer, or the record would have been refused.
        """
        for address, data in zip(self.addresses, given, strict=False):
            self.device.write(address, data)
        for at in range(len(given), len(self.addresses)):
            self.device.fill(self.addresses[at], GARBAGE, self.head["buffers"][at])
        for upload in self.head["uploads"]:
            at = upload["buffer"]
            if "fill" in upload:
                self.device.fill(self.addresses[at], upload["fill"], self.head["buffers"][at])
            else:
                self.device.write(self.addresses[at], bytes.fromhex(upload["data"]))

    def _prepared(self, launch: dict[str, Any], modules: list[Any]) -> tuple[Any, ...]:
        shared = launch["shared_bytes"]
        function = self.device.function(modules[launch["kernel"]], launch["entry"], shared)
        arguments = bytearray.fromhex(launch["arguments"])
        for at, buffer, offset in launch["pointers"]:
            arguments[at : at + 8] = (self.addresses[buffer] + offset).to_bytes(8, "little")
        return function, launch["grid"], launch["block"], shared, bytes(arguments)


def say(stream: BinaryIO, head: dict[str, Any], parts: Sequence[bytes] = ()) -> None:
    """One message: a head of JSON, which tells how long the parts are, and the parts."""
    text = json.dumps({**head, "sizes": [len(part) for part in parts]}).encode()
    stream.write(struct.pack("<I", len(text)) + text)
    for part in parts:
        stream.write(part)
    stream.flush()


def hear(stream: BinaryIO, most: int | None = None) -> tuple[dict[str, Any], list[bytes]]:
    """The next message. Raises EOFError at the end, ValueError for none, or more than `most` bytes."""
    (length,) = struct.unpack("<I", _exactly(stream, 4))
    if length > LARGEST_HEAD:
        raise ValueError("a head too long")
    head = json.loads(_exactly(stream, length))
    sizes = head["sizes"] if isinstance(head, dict) and "sizes" in head else None
    if not isinstance(sizes, list) or not all(type(n) is int and n >= 0 for n in sizes):
        raise ValueError("a head without sizes")
    if most is not None and sum(sizes) > most:
        raise ValueError("more bytes than were asked for")
    return head, [_exactly(stream, n) for n in sizes]


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


def serve(device: Device, hearing: BinaryIO, saying: BinaryIO) -> None:
    """Tell of the device, take a program, then run it as often as contents come; until the input ends."""
    say(saying, device.about())
    try:
        head, codes = hear(hearing)
        player = Player(device, head, codes)
        say(saying, {"empty": player.empty})
        while True:
            _, given = hear(hearing)
            seconds, left = player.run(given)
            if not all(map(math.isfinite, seconds.values())):
                raise ValueError("no times")
            say(saying, {**seconds}, left)
    except EOFError:
        return


def main(index: str) -> None:
    """Serve one device. What goes wrong is told as ``{"failed": why}``."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    saying = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # kernels may print
    from grading.gpu_stage import driver

    try:
        if index == "count":
            say(saying, {"count": driver.count()})
        else:
            device = driver.Driver(int(index))
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # only now: the driver may need files to start
            serve(device, sys.stdin.buffer, saying)
    except driver.DriverError as error:
        say(saying, {"failed": str(error)})


if __name__ == "__main__":
    main(sys.argv[1])
