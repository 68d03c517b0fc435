"""Records launches inside the sandbox: the device is asked to note what it would run, and runs nothing."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from gpulab.checks import launching, messages
from gpulab.checks.refusals import Refused
from gpulab.frontends.cuda.host import device_array
from gpulab.frontends.cupy.memory import using_allocator
from gpulab.simulator import device as devices


class Tracer:
    """Stands at the device's door while an exercise is recorded: notes launches and uploads, runs nothing."""

    def __init__(self, record: Any, allocations: list[Any], names: list[str], fixed: set[int]):
        self.record = record
        self.buffers = allocations  # kept, so that no address is used twice
        self.names = names
        self.fixed = fixed  # buffers that the host may not write
        self.events: list[dict[str, Any]] = []
        self.written: dict[int, Any] = {}  # by the host, since the last launch
        self.used: set[int] = set()

    def name(self, index: int) -> str:
        return self.names[index] if index < len(self.names) else "an array of yours"

    def number(self, allocation: Any) -> int:
        """The number of a buffer; a new one gets the next."""
        for index, known in enumerate(self.buffers):
            if known is allocation:
                return index
        self.buffers.append(allocation)
        return len(self.buffers) - 1

    def host_access(self, device: Any, allocation: Any, writes: bool) -> None:
        """The host wants to see or change device memory."""
        index = self.number(allocation)
        if not writes:
            raise Refused(messages.read_on_host(self.name(index)))
        if index in self.fixed:
            raise Refused(
                f"your code writes to the input `{self.name(index)}` from the host; inputs stay as they are"
            )
        if index in self.used:
            raise Refused(
                f"your code writes to `{self.name(index)}` from the host between launches; "
                "let kernels do the work, or write before the first launch"
            )
        self.written[index] = allocation

    def launch(self, device: Any, launch: Any) -> None:
        """Note a launch, and before it what the host wrote."""
        self._note_uploads()
        kernel = launch.kernel
        if kernel.digest not in self.record.kernels:
            self.record.kernels.add(kernel.digest)
            self.record.line(
                "kernel", digest=kernel.digest, name=kernel.name, entry=kernel.entry, ptx=kernel.ptx,
                cc=kernel.cc, max_registers=kernel.max_registers, compiler=kernel.compiler,
            )  # fmt: skip
        arguments, pointers = bytearray(launch.arguments), []
        for at in launch.pointers:
            allocation = device.memory.find(int.from_bytes(arguments[at : at + 8], "little"))
            if allocation is not None:
                offset = int.from_bytes(arguments[at : at + 8], "little") - allocation.address
                pointers.append([at, self.number(allocation), offset])
                arguments[at : at + 8] = bytes(8)
        self.used.update(buffer for _, buffer, _ in pointers)
        self.events.append(
            {
                "kernel": kernel.digest,
                "grid": launch.grid,
                "block": launch.block,
                "shared_bytes": launch.shared_bytes,
                "arguments": arguments.hex(),
                "pointers": pointers,
                "labels": [self._label(device, label) for label in launch.arrays],
            }
        )

    def _label(self, device: Any, label: Any) -> dict[str, Any]:
        allocation = device.memory.find(label.address)
        return {
            "name": label.name,
            "buffer": self.number(allocation),
            "offset": label.address - allocation.address,
            "shape": label.shape,
            "strides": label.strides,
            "dtype": label.dtype,
            "itemsize": label.itemsize,
        }

    def _note_uploads(self) -> None:
        for index, allocation in self.written.items():
            data = allocation.data.tobytes()
            same = bool(data) and data == data[:1] * len(data)
            what = {"fill": data[0]} if same else {"data": base64.b64encode(data).decode()}
            self.events.append({"buffer": index, **what})
        self.written.clear()


def trace_case(function: Any, record: Any, exercise: str, case: dict[str, Any]) -> None:
    """Call the function on handles of the case's arrays."""
    device = devices.current()
    values: list[Any] = []
    allocations: list[Any] = []
    names: list[str] = []
    fixed: set[int] = set()
    for argument in case["arguments"]:
        if "scalar" in argument:
            value = np.dtype(argument["dtype"]).type(argument["value"])
            values.append(launching.scalar(value, case["face"]))
            continue
        if argument["role"] == "in":
            fixed.add(len(names))
        handle = device_array(tuple(argument["shape"]), argument["dtype"])
        values.append(launching.given(handle, case["face"]))
        names.append(argument["array"])
        allocations.append(device.memory.allocations[-1])
    tracer = Tracer(record, allocations, names, fixed)
    if "launch" in case:
        grid, block, shared = case["launch"]
        if not launching.is_kernel(function):
            name = getattr(function, "__name__", "this")
            raise Refused(messages.not_a_kernel(name, case["face"]))
    # CuPy's pool would make one buffer of arrays that live one after the other.
    with device.executed_by(tracer), using_allocator(None):
        if "launch" in case:
            launching.launch(function, tuple(grid), tuple(block), shared, values)
        else:
            function(*values)
    record.line(
        "case",
        exercise=exercise,
        case=case["name"],
        buffers=[allocation.nbytes for allocation in tracer.buffers],
        events=tracer.events,
    )
