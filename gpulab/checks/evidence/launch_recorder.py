"""Records launches inside the sandbox: the device is asked to note what it would run, and runs nothing."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from gpulab.checks import launching, messages
from gpulab.checks.on_host import Rules
from gpulab.checks.refusals import Refused
from gpulab.checks.run import reference_device
from gpulab.frontends.cuda.host import device_array
from gpulab.frontends.cupy.memory import using_allocator
from gpulab.simulator import device as devices


class Tracer:
    """Stands at the device's door while an exercise is recorded: notes launches and uploads, runs nothing."""

    def __init__(self, record: Any, rules: Rules):
        self.record = record
        self.rules = rules  # which also number the buffers
        self.events: list[dict[str, Any]] = []

    def host_access(self, device: Any, allocation: Any, writes: bool) -> None:
        """The host wants to see or change device memory."""
        self.rules.host_access(allocation, writes)

    def launch(self, device: Any, launch: Any) -> None:
        """Note a launch, and before it what the host wrote."""
        for buffer, data in self.rules.uploads():
            filled = len(data) == 1
            what = {"fill": data[0]} if filled else {"data": base64.b64encode(data).decode()}
            self.events.append({"buffer": buffer, **what})
        kernel = launch.kernel
        if kernel.digest not in self.record.kernels:
            self.record.kernels.add(kernel.digest)
            self.record.line(
                "kernel", digest=kernel.digest, name=kernel.name, entry=kernel.entry, ptx=kernel.ptx,
                cc=kernel.cc, max_registers=kernel.max_registers, compiler=kernel.compiler,
            )  # fmt: skip
        arguments, pointers = bytearray(launch.arguments), self.rules.launch(device, launch)
        for at, _, _ in pointers:
            arguments[at : at + 8] = bytes(8)
        # What few launches have is left out of the others.
        more = {"cluster": launch.cluster, "scratch": launch.scratch}
        self.events.append(
            {
                "kernel": kernel.digest,
                "grid": launch.grid,
                "block": launch.block,
                "shared_bytes": launch.shared_bytes,
                "arguments": arguments.hex(),
                "pointers": pointers,
                "labels": [self._label(device, label) for label in launch.arrays],
                **{name: value for name, value in more.items() if value is not None},
            }
        )

    def _label(self, device: Any, label: Any) -> dict[str, Any]:
        allocation = device.memory.find(label.address)
        return {
            "name": label.name,
            "buffer": self.rules.number(allocation),
            "offset": label.address - allocation.address,
            "shape": label.shape,
            "strides": label.strides,
            "dtype": label.dtype,
            "itemsize": label.itemsize,
        }


def trace_case(function: Any, record: Any, exercise: str, case: dict[str, Any]) -> None:
    """Call the function on handles of the case's arrays, on the exercise's GPU."""
    with reference_device(case["gpu"]) as device:
        _trace(function, record, exercise, case, device)


def _trace(
    function: Any, record: Any, exercise: str, case: dict[str, Any], device: devices.SimulatedDevice
) -> None:
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
    rules = Rules(allocations, names, fixed)
    tracer = Tracer(record, rules)
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
        buffers=[allocation.nbytes for allocation in rules.buffers],
        events=tracer.events,
    )
