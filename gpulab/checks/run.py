"""Runs a learner's code at one case on the simulated device, and turns whatever goes wrong into sentences."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpulab.foundation.errors import Message, speech
from gpulab.foundation.strict import uncontrolled
from gpulab.frontends.cuda.arrays import DeviceArray
from gpulab.frontends.cuda.transfers import to_device
from gpulab.frontends.cupy.memory import using_allocator
from gpulab.simulator import device as devices
from gpulab.simulator.compile import CompileError
from gpulab.simulator.device.simulated import Simulator
from gpulab.simulator.hardware import find as find_gpu
from gpulab.simulator.observe.writers import Range, Writers
from gpulab.simulator.simt import Allocation, SimulationError
from gpulab.simulator.simt.errors import KernelFault, StillRunning

from . import launching, messages, patience
from .cases import Argument
from .on_host import Rules
from .parts import Detail, Unwritten
from .spec import GPU, Face, Shape

LIMIT = 400_000  # instructions of one chunk of blocks: many times what an exercise needs, and a few seconds

Arrays = Mapping[str, DeviceArray]


@dataclass(frozen=True)
class Outcome:
    """One run. `after` holds the arrays as they were left, by name; `launches` is how many kernels ran.

    `trouble` says why the run stopped early, in sentences and source lines; empty when it did not. `fault` is
    what the kernel did, if that was the reason.
    """

    before: tuple[Argument, ...]
    after: dict[str, np.ndarray] = field(default_factory=dict)
    launches: int = 0
    trouble: tuple[Detail, ...] = ()
    fault: KernelFault | None = None


@contextlib.contextmanager
def reference_device(gpu: str = GPU) -> Iterator[devices.SimulatedDevice]:
    """The simulated device as the GPU that counts are taken on, whichever the learner has chosen.

    `gpu` is that of the exercise. Raises hardware.UnknownGPU.
    """
    device = devices.current()
    chosen = device.gpu
    device.gpu = find_gpu(gpu)
    try:
        yield device
    finally:
        device.gpu = chosen


def run(
    fn: Callable[..., Any],
    before: tuple[Argument, ...],
    shape: Shape | None = None,
    face: Face = "cuda",
    around: contextlib.AbstractContextManager[Any] | None = None,
    writers: Writers | None = None,
    garbage: np.random.Generator | None = None,
) -> Outcome:
    """Run `fn` on the arguments `before`: as a kernel in that shape, or as host code where there is none.

    `around` is entered for the run alone, with the device's memory already filled: observers and schedules go
    there. `writers` watches all arrays; `garbage` is that of `simt.launch`. KeyboardInterrupt passes through;
    everything else becomes `trouble`.
    """
    device = devices.current()
    arrays = {a.name: to_device(a.value) for a in before if a.role != "scalar"}
    given = [
        launching.given(arrays[a.name], face) if a.name in arrays else launching.scalar(a.value, face)
        for a in before
    ]
    count = _Count()
    hands_off = _HandsOff(device, before, arrays)
    if writers is not None:
        writers.watch({n: Range(a.address, a.size, a.dtype.itemsize) for n, a in arrays.items()})
    try:
        with (
            around or contextlib.nullcontext(),
            device.observed(count),
            device.observed(lambda launch: writers),
            device.using(limit=LIMIT, garbage=garbage),
            device.executed_by(hands_off),
            using_allocator(None),
        ):
            if shape is None:
                with patience.limited():
                    fn(*given)
            elif 0 not in shape.grid:  # a grid of nothing is nothing to do
                launching.launch(fn, shape.grid, shape.block, shape.shared_bytes, given)
    except Exception as error:
        fault = error if isinstance(error, KernelFault) else None
        return Outcome(before, launches=count.launches, trouble=explain(error, fn), fault=fault)
    after = {name: array.copy_to_host() for name, array in arrays.items()}
    return Outcome(before, after, count.launches)


class _Count:
    """Counts launches; observes nothing."""

    def __init__(self) -> None:
        self.launches = 0

    def __call__(self, launch: devices.Launch) -> None:
        self.launches += 1


class _HandsOff(Simulator):
    """The simulator, where host code keeps to the rules that it has while the judge records."""

    def __init__(self, device: devices.SimulatedDevice, before: tuple[Argument, ...], arrays: Arrays) -> None:
        places = {name: device.memory.find(array.address) for name, array in arrays.items()}
        known = [(place, name) for name, place in places.items() if place is not None]
        inputs = {argument.name for argument in before if argument.role == "in"}
        self._rules = Rules(
            [place for place, _ in known],
            [name for _, name in known],
            {number for number, (_, name) in enumerate(known) if name in inputs},
        )

    def host_access(self, device: devices.SimulatedDevice, allocation: Allocation, writes: bool) -> None:
        self._rules.host_access(allocation, writes)

    def launch(self, device: devices.SimulatedDevice, launch: devices.Launch) -> None:
        for _ in self._rules.uploads():
            pass
        self._rules.launch(device, launch)
        super().launch(device, launch)


# ---------------------------------------------------------------- what went wrong, in words


def explain(error: Exception, fn: Callable[..., Any]) -> tuple[Detail, ...]:
    """An exception as sentences. Errors of ours say all themselves; others get the learner's line."""
    if isinstance(error, StillRunning):
        return Detail(str(error)), Detail(messages.or_everything())
    if isinstance(error, CompileError) and error.text.startswith("raise NotImplementedError"):
        # The function itself, or a Triton kernel that it launches.
        kind = Unwritten if error.kernel == name_of(fn) else Detail
        return (kind(messages.empty(error.kernel)),)
    if isinstance(error, Message | SimulationError):
        return (Detail(str(error)),)
    if words := speech(error):
        return (Detail(words),)
    if isinstance(error, NotImplementedError):
        return (Unwritten(messages.empty(name_of(fn))),)
    if isinstance(error, TypeError) and _is_ours(error) and f"{name_of(fn)}() " in str(error):
        return (Detail(messages.other_parameters(str(error))),)
    file, line = _last_line(error, fn)
    if isinstance(error, patience.NoEnd):
        text = linecache.getline(file, line).strip() if line else ""
        source = (Detail(text, line),) if text else ()
        return (Detail(messages.no_end(error.seconds, line)), *source, Detail(messages.which_loop()))
    if not line and _is_ours(error):
        return (Detail(messages.ours(type(error).__name__, str(error))),)
    said = uncontrolled(error).strip().splitlines()
    first = " ".join(
        said[:2] if said and said[0].endswith(":") else said[:1]
    )  # the list that a colon announces
    if type(error) is KeyError and error.args:
        first = messages.no_such_key(error.args[0])
    details = [Detail(messages.raised(type(error).__name__, first, line))]
    if line and (text := linecache.getline(file, line).strip()):
        details.append(Detail(text, line))
    return tuple(details)


def _last_line(error: BaseException, fn: Callable[..., Any]) -> tuple[str, int]:
    """The innermost line of the learner's code that an exception came through; ("", 0) for none."""
    code = getattr(inspect.unwrap(python_function(fn)), "__code__", None)
    mine = code.co_filename if code else ""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == mine and mine]
    return (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)


def _is_ours(error: BaseException) -> bool:
    """It was raised inside gpulab, where nothing should be."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.startswith(str(Path(__file__).parents[1]))


def python_function(fn: Any) -> Any:
    """The Python function of a kernel; other callables as they are."""
    return getattr(fn, "py_func", fn)


def name_of(fn: Any) -> str:
    """What the learner calls the function."""
    return str(getattr(python_function(fn), "__name__", type(fn).__name__))
