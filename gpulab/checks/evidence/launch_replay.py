"""Runs recorded launches on contents that did not exist when they were recorded.

A record is turned back into something that a check can examine: an object that launches what was recorded
when it is called. So the judge says what the check says, at other sizes on other contents.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpulab.checks import cases, compare
from gpulab.checks.launched import Launched
from gpulab.checks.on_host import MOST_CONSTANT, MOST_UPLOADED, constant_bytes
from gpulab.checks.refusals import Broken, Refused
from gpulab.checks.run import reference_device
from gpulab.checks.spec import Case
from gpulab.foundation.errors import Message
from gpulab.foundation.strict import clean
from gpulab.simulator import device as devices
from gpulab.simulator import simt
from gpulab.simulator.compile import CompiledKernel

from .launch_records import CaseTrace, Kernel, RecordedLaunch, Upload

OTHER_BUFFERS = "the arrays recorded at {case} are not those of the exercise"
OTHER_SHAPE = "the launch recorded at {case} is not the one of the exercise: grid {grid}, block {block}"
OTHER_GPU = "`{kernel}` was compiled for compute capability {cc}; exercises are judged on {gpu}"
TOO_MANY_UPLOADS = (
    "uploads {size:,} bytes from the host at {case}; "
    "at most {limit:,} are allowed, so a kernel must compute it"
)
TOO_MANY_CONSTANTS = (
    "`{kernel}` brings {size:,} bytes of constants; "
    "at most {limit:,} are allowed, so a kernel must compute it"
)
UNDECIDED = (
    "the result at {case} depends on what stood in memory before the run: "
    "{array}[{index}] was right once and is {got} the next time. "
    "Is every element written, and nothing read before it is written?"
)


@dataclass(frozen=True)
class Recorded(Launched):
    """An answer whose launches were `recorded`, by case: what runs at a case is the record of it."""

    recorded: Mapping[str, CaseTrace] = field(default_factory=dict)

    def at(self, case: Case) -> Replayed:
        garbage = cases.garbage_of(self.contents, case)
        return Replayed(self.fn, clean(case.name), self.recorded[case.name], garbage)


@dataclass
class Replayed:
    """Launches what was recorded at a case, with the arrays that it is called with in place of the handles.

    `fn` gives messages the learner's name of the function. `garbage` draws what is in buffers of the
    submission's own before the launches.
    """

    fn: Callable[..., Any]
    case: str
    record: CaseTrace
    garbage: np.random.Generator | None = None
    shape: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        self.__name__ = self.py_func.__name__

    @property
    def py_func(self) -> Callable[..., Any]:
        """The function of the kernel, as numba calls it."""
        return self.fn

    def __getitem__(self, configuration: tuple[Any, ...]) -> Replayed:
        self.shape = configuration
        return self

    def __call__(self, *values: Any) -> None:
        try:
            self._run(values)
        except (Message, simt.SimulationError):
            raise
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(frame.filename).name}, line {frame.lineno}"
            raise Broken(f"{type(error).__name__}: {error} ({where})") from error

    def _run(self, values: tuple[Any, ...]) -> None:
        record, case = self.record, self.case
        device = devices.current()
        allocations = [
            device.memory.find(v.__cuda_array_interface__["data"][0]) or device.allocate(0)
            for v in values
            if hasattr(v, "__cuda_array_interface__")
        ]
        if record.buffers[: len(allocations)] != tuple(a.nbytes for a in allocations):
            raise Refused(OTHER_BUFFERS.format(case=case))
        if record.uploaded > MOST_UPLOADED:
            raise Refused(TOO_MANY_UPLOADS.format(size=record.uploaded, case=case, limit=MOST_UPLOADED))
        if self.shape is not None:
            grid, block, _, shared = self.shape
            check_shape((grid, block, shared), record, case)
        device.memory.modules.clear()  # no variable of a module outlives a run
        scratch = [device.allocate(nbytes) for nbytes in record.buffers[len(allocations) :]]
        for each in scratch:
            if self.garbage is not None:
                each.data[:] = cases.random_bytes(self.garbage, each.nbytes)
        allocations += scratch
        try:
            for event in record.events:
                if isinstance(event, RecordedLaunch):
                    self._launch(device, event, allocations)
                else:
                    fill(allocations[event.buffer].data, event)
        finally:
            for each in scratch:
                device.free(each)

    def _launch(
        self, device: devices.SimulatedDevice, launch: RecordedLaunch, allocations: list[simt.Allocation]
    ) -> None:
        arguments = bytearray(launch.arguments)
        for at, buffer, offset in launch.pointers:
            arguments[at : at + 8] = (allocations[buffer].address + offset).to_bytes(8, "little")
        labels = tuple(
            simt.ArrayLabel(
                x.name, allocations[x.buffer].address + x.offset, x.shape, x.strides, x.dtype, x.itemsize
            )
            for x in launch.labels
        )
        device.launch(
            compiled(launch.kernel, device),
            launch.grid,
            launch.block,
            bytes(arguments),
            shared_bytes=launch.shared_bytes,
            pointers=tuple(at for at, _, _ in launch.pointers),
            arrays=labels,
            cluster=launch.cluster,
            scratch=launch.scratch,
        )


def check_shape(asked: tuple[Any, Any, int], record: CaseTrace, case: str) -> None:
    """One launch in the shape that the exercise asks for: (grid, block, bytes of dynamic shared memory).

    Raises Refused.
    """
    grid, block, shared = asked
    wanted = (*map(_three, (grid, block)), shared)
    for launch in record.launches:
        if (launch.grid, launch.block, launch.shared_bytes) != wanted or len(record.events) > 1:
            raise Refused(OTHER_SHAPE.format(case=case, grid=launch.grid, block=launch.block))


def fill(target: np.ndarray, upload: Upload) -> None:
    """Write what the host wrote."""
    target[:] = upload.fill if upload.fill is not None else np.frombuffer(upload.data, np.uint8)


def compiled(kernel: Kernel, device: devices.SimulatedDevice) -> CompiledKernel:
    """The kernel for the device, after the judge's rules on it."""
    if kernel.cc != device.cc:
        name = clean(kernel.name, 60)
        raise Refused(OTHER_GPU.format(kernel=name, cc="{}.{}".format(*kernel.cc), gpu=device.gpu))
    plain = CompiledKernel(kernel.name, kernel.entry, kernel.ptx, kernel.cc, "", kernel.max_registers)
    size = constant_bytes(device.program(plain))
    if size > MOST_CONSTANT:
        name = clean(kernel.name, 60)
        raise Refused(TOO_MANY_CONSTANTS.format(kernel=name, size=size, limit=MOST_CONSTANT))
    return CompiledKernel(
        clean(kernel.name, 60),
        kernel.entry,
        kernel.ptx,
        kernel.cc,
        clean(kernel.compiler, 100),
        kernel.max_registers,
    )


def _three(size: Any) -> tuple[int, int, int]:
    items = tuple(size) if isinstance(size, tuple | list) else (size,)
    x, y, z = (*(int(n) for n in items), 1, 1)[:3]
    return x, y, z


def undecided(answer: Recorded) -> str:
    """Where a result is wrong that is right in a replay over other garbage; empty where all are right."""
    with reference_device(answer.exercise.gpu):
        for case in answer.exercise.cases:
            outcome = answer.run(case)
            if outcome.trouble:
                return outcome.trouble[0].text
            wrong = answer.first_mismatch(case, outcome)
            if wrong is not None:
                index = ", ".join(map(str, wrong.first))
                got = compare.value_words(wrong.got[wrong.first])
                return UNDECIDED.format(case=case.name, array=wrong.array, index=index, got=got)
    return ""
