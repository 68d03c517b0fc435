"""A device without a GPU and a clock that only it moves: kernels run in the simulator, time is counted."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpulab.simulator import hardware, simt
from gpulab.simulator.compile import CompiledKernel
from gpulab.simulator.device.simulated import SimulatedDevice
from gpulab.simulator.observe import Counters
from grading.gpu_stage.child import Player
from grading.gpu_stage.program import Program
from grading.gpu_stage.protocol import Arrays, Turn

SECTOR = 1e-5  # seconds that a sector takes here
PAIR = 2e-6  # seconds of two events with nothing between them
FLUSH = 1e-4


class SimulatedGpu:
    """What `gpu_stage.child.Player` needs of a device, on the simulator; machine code is PTX."""

    def __init__(self, chance: Callable[[], float] = lambda: 1.0) -> None:
        self.device = SimulatedDevice(hardware.find("A100"))
        self.now = 0.0
        self.chance = chance  # a factor on the time of a launch
        self.loaded: list[bytes] = []
        self.calls: list[str] = []

    def clock(self) -> float:
        return self.now

    def about(self) -> dict[str, Any]:
        return {"name": "A100", "cc": [8, 0], "l2_bytes": 0, "driver": 0, "place": ""}

    def allocate(self, nbytes: int) -> int:
        return self.device.memory.allocate(nbytes, fill=None).address

    def _at(self, address: int) -> np.ndarray:
        found = self.device.memory.find(address)
        assert found is not None
        found.written = True
        return found.data

    def write(self, address: int, data: bytes) -> None:
        self._at(address)[: len(data)] = np.frombuffer(data, np.uint8)

    def read(self, address: int, nbytes: int) -> bytes:
        return self._at(address)[:nbytes].tobytes()

    def fill(self, address: int, value: int, nbytes: int) -> None:
        self._at(address)[:nbytes] = value

    def start_filling(self, address: int, value: int, nbytes: int) -> None:
        self.calls.append("flush")
        self.now += FLUSH

    def load(self, code: bytes) -> bytes:
        self.loaded.append(code)
        self.device.memory.modules.clear()
        return code

    def unload(self, module: bytes) -> None:
        self.loaded.remove(module)

    def function(self, module: bytes, entry: str, shared_bytes: int) -> CompiledKernel:
        return CompiledKernel("kernel", entry, module.decode(), (8, 0), "")

    def launch(self, function: Any, grid: Any, block: Any, shared_bytes: int, arguments: bytes) -> None:
        self.calls.append("launch")
        counters: list[Counters] = []

        def observer(launch: Any) -> simt.Observer:
            counters.append(Counters())
            return counters[-1]

        with self.device.observed(observer):
            self.device.launch(function, tuple(grid), tuple(block), arguments, shared_bytes=shared_bytes)
        self.now += SECTOR * counters[0].counts.total("sectors", space="global") * self.chance()

    def event(self) -> list[float]:
        return [0.0]

    def record(self, event: list[float]) -> None:
        self.calls.append("event")
        event[0] = self.now
        self.now += PAIR

    def elapsed(self, first: list[float], second: list[float]) -> float:
        return second[0] - first[0]

    def wait(self) -> None:
        self.calls.append("wait")

    def forget_persisting(self) -> None:
        self.calls.append("forget")


class _Side:
    def __init__(self, program: Program, gpu: SimulatedGpu, given: list[Arrays]) -> None:
        self.player = Player(gpu, program.head, program.codes, gpu.clock)
        self.given = given

    def run(self, arrays: Arrays) -> Turn:
        self.given.append([a.copy() for a in arrays])
        seconds, left = self.player.run([a.tobytes() for a in arrays])
        after = [np.frombuffer(d, a.dtype).reshape(a.shape) for d, a in zip(left, arrays, strict=True)]
        return Turn(seconds["seconds"], seconds["flush"], seconds["waited"], after)


@dataclass
class SimulatedTimer:
    """A device for the stage. `busy` is how many use it, `most` how many did at once at any time; `given` is
    all that its processes were given."""

    name: str = "A100"
    driver: str = "simulated"
    cc: None = None
    chance: Callable[[], float] = lambda: 1.0
    timed: int = 0
    busy: int = 0
    most: int = 0
    given: list[Arrays] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._lock:
            self.timed += 1
            self.busy += 1
            self.most = max(self.most, self.busy)
            yield
            self.busy -= 1

    @contextmanager
    def side(self, program: Program, seconds: float) -> Iterator[_Side]:
        assert all(re.search(rb"\.entry", code) for code in program.codes)
        yield _Side(program, SimulatedGpu(self.chance), self.given)
