"""The kernels of the validation compiled, and their launches, as data: what a machine with a GPU needs.

So the machine code that is measured is the one that is counted here, whatever compiler the other machine has,
if any. The arrays are not in the file: they are drawn from seeds, the same everywhere.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpulab.foundation.errors import Message
from gpulab.simulator import device as devices
from gpulab.simulator.compile import compiler_version, ptxas
from gpulab.simulator.compile.cuda_c import cuda_c_module
from gpulab.simulator.hardware import GPU
from gpulab.simulator.simt import Allocation

from .case import FOLDER, Array, Variant
from .compiled import compiling_for, digest

FORMAT = 1
CLOCK = "ticks"  # the kernel of clock.cu
Traces = dict[str, Any]


class UnreadableTraces(Message):
    """A file that is no file of launch traces, or an old one."""


class _Recorder:
    """In place of who carries launches out: keeps them."""

    def __init__(self) -> None:
        self.launches: list[devices.Launch] = []

    def launch(self, device: devices.SimulatedDevice, launch: devices.Launch) -> None:
        self.launches.append(launch)

    def host_access(self, device: devices.SimulatedDevice, allocation: Allocation, writes: bool) -> None:
        pass


def record(wanted: Iterable[Variant], gpu: GPU) -> Traces:
    """Compile kernels for a GPU and note how each is launched, at all its sizes. Raises CompileError."""
    module = cuda_c_module((FOLDER / "clock.cu").read_text(encoding="utf-8"), gpu.cc, "clock")
    return {
        "format": FORMAT,
        "sheet": gpu.name,
        "compilers": compiler_version(),
        "clock": _packed(ptxas.link(module.ptx, gpu.cc)[1]),
        "kernels": {variant.key: _traced(variant, gpu) for variant in wanted},
    }


def _traced(variant: Variant, gpu: GPU) -> dict[str, Any]:
    launches = {}
    for size in variant.kernel.sizes:
        launch, places = recorded(variant, size, gpu)
        launches[str(size)] = {
            "grid": launch.grid,
            "block": launch.block,
            "shared": launch.shared_bytes,
            "arguments": launch.arguments.hex(),
            "places": places,
        }
    kernel = launch.kernel
    return {
        "entry": kernel.entry,
        "digest": digest(kernel),
        "compiler": kernel.compiler,
        "code": _packed(ptxas.link(kernel.ptx, gpu.cc, kernel.max_registers)[1]),
        "launches": launches,
    }


def recorded(variant: Variant, size: int, gpu: GPU) -> tuple[devices.Launch, list[tuple[int, int]]]:
    """A launch, and where in its parameters the address of which argument is."""
    case, recorder = variant.kernel.case(size), _Recorder()
    with compiling_for(gpu) as device:
        run, given = variant.prepared(case)
        with device.executed_by(recorder):
            run(*given)
        (launch,) = recorder.launches
        numbers = {
            array.__cuda_array_interface__["data"][0]: number
            for number, array in enumerate(given)
            if hasattr(array, "__cuda_array_interface__")
        }
        addresses = {p: int.from_bytes(launch.arguments[p : p + 8], "little") for p in launch.pointers}
        return launch, [(place, numbers[at]) for place, at in addresses.items() if at in numbers]


def _packed(code: bytes) -> str:
    return base64.b64encode(zlib.compress(code, 9)).decode()


def code_of(packed: str) -> bytes:
    """Machine code as it is in the file."""
    return zlib.decompress(base64.b64decode(packed))


def arguments_of(launch: Mapping[str, Any], addresses: Mapping[int, int]) -> Array:
    """The parameters of a launch, with the addresses of arrays by the number of the argument."""
    packed = bytearray.fromhex(launch["arguments"])
    for place, number in launch["places"]:
        packed[place : place + 8] = addresses[number].to_bytes(8, "little")
    return np.frombuffer(bytes(packed), np.uint8).copy()


def save(path: Path, traces: Traces) -> None:
    """Write a file of launch traces."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(traces), encoding="utf-8")


def load(path: Path) -> Traces:
    """Read one. Raises UnreadableTraces."""
    try:
        traces = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UnreadableTraces(
            f"{path} cannot be read: {error}. `python -m validation compile` writes it."
        ) from None
    if traces.get("format") != FORMAT:
        raise UnreadableTraces(f"{path} holds no launch traces of format {FORMAT}: compile again.")
    return traces
