"""Stands at the door of the device and counts the launches that go through."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpulab.foundation.errors import Message
from gpulab.simulator import device as devices
from gpulab.simulator.hardware import occupancy, roofline
from gpulab.simulator.observe import Counters, Counts, Pipelines
from gpulab.simulator.observe.recorder import Recorder
from gpulab.simulator.simt import Observer
from gpulab.simulator.simt.errors import source_text

from .ledger import ledger
from .matrix import matrix_dtype
from .metrics import value
from .onto_simulator import arrays_there, onto_simulator
from .report import Launch, Occupancy, Report, Roofline
from .tally import Place, Tally, total
from .tensors import TensorReport, tensor_report


class Stopwatch(Observer):
    """The time between the start and the end of a launch, in seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def start(self, program: object, grid: Any, block: Any) -> None:
        self.seconds = -time.perf_counter()

    def end(self) -> None:
        self.seconds += time.perf_counter()


@dataclass(frozen=True)
class Seen:
    """One launch and the observers that watched it."""

    launch: devices.Launch
    counters: Counters
    recorder: Recorder
    stopwatch: Stopwatch
    pipelines: Pipelines

    @property
    def counts(self) -> Counts:
        """What was counted; available once the launch has ended."""
        assert self.counters.counts is not None, f"{self.launch.kernel.name} did not come to its end"
        return self.counters.counts


@dataclass
class Watch:
    """What went through the door of a device: launches and their observers, in order."""

    device: devices.SimulatedDevice
    seen: list[Seen] = field(default_factory=list)

    @property
    def launches(self) -> list[devices.Launch]:
        """The launches as the device got them."""
        return [seen.launch for seen in self.seen]

    def _counted(self, launch: devices.Launch) -> Counters:
        """The door asks for one observer after the other: the counters come first and bring the others."""
        recorder = Recorder(limit=2, arrays=launch.arrays)
        self.seen.append(Seen(launch, Counters(), recorder, Stopwatch(), Pipelines()))
        return self.seen[-1].counters

    def _recorded(self, launch: devices.Launch) -> Recorder:
        return self.seen[-1].recorder

    def _timed(self, launch: devices.Launch) -> Stopwatch:
        return self.seen[-1].stopwatch

    def _followed(self, launch: devices.Launch) -> Pipelines:
        return self.seen[-1].pipelines

    @contextmanager
    def standing(self) -> Iterator[None]:
        """While it is entered, every launch on the device is counted, recorded and timed."""
        observed = self.device.observed
        with (
            observed(self._counted),
            observed(self._recorded),
            observed(self._timed),
            observed(self._followed),
        ):
            yield

    def report(self, name: str = "") -> Report:
        """The report of all launches; `name` is the kernel's if it is not given."""
        launches = tuple(self._launch(seen) for seen in self.seen)
        texts: dict[Place, str] = {}
        for seen in self.seen:
            for instruction in seen.counts.instructions:
                if (place := instruction.location) and (place.file, place.line) not in texts:
                    texts[place.file, place.line] = source_text(place)
        kernels = list(dict.fromkeys(launch.kernel for launch in launches))
        return Report(
            name=name or ", ".join(kernels),
            launches=launches,
            gpu=self.device.gpu.name,
            compiler=", ".join(dict.fromkeys(launch.kernel.compiler for launch in self.launches)),
            device="simulated",
            texts=texts,
            roofline=self._roofline(total(launch.tally for launch in launches)),
        )

    def _launch(self, seen: Seen) -> Launch:
        launch = seen.launch
        used = self.device.resources(launch.kernel)
        shared = used.shared_bytes + launch.shared_bytes
        threads = launch.threads_per_block
        cluster = math.prod(launch.cluster or self.device.program(launch.kernel).cluster or (1,))
        held = occupancy(self.device.gpu, threads, used.registers, shared, cluster)
        together = held.active_clusters
        clusters = "" if together is None else f"{together:,} clusters of {cluster} at once"
        return Launch(
            kernel=launch.kernel.name,
            grid=launch.grid,
            block=launch.block,
            tally=Tally.of(seen.counts),
            most_loaded=seen.counts.most_loaded,
            most_asked=seen.counts.most_asked,
            most_handed=seen.counts.most_handed,
            pipeline=seen.pipelines.counts,
            seconds=seen.stopwatch.seconds,
            shared_bytes=shared,
            registers=used.registers,
            spill_bytes=used.spill_bytes,
            occupancy=Occupancy(held.active_warps, held.max_warps, " and ".join(held.limited_by), clusters),
            recording=seen.recorder.recording,
        )

    def _roofline(self, tally: Tally) -> Roofline | None:
        intensity = value("arithmetic_intensity", tally, {})
        if not intensity:
            return None
        dtype, tensor = self._arithmetic()
        roof = roofline(self.device.gpu, dtype, tensor=tensor)
        return Roofline(
            intensity, dtype, roof.ridge, roof.attainable(intensity), roof.bound(intensity), tensor
        )

    def _arithmetic(self) -> tuple[str, bool]:
        """The dtype of most floating-point operations, and whether the tensor cores do them; float32 on the
        lanes by default, and where the GPU's tensor cores have no rate for the dtype."""
        flops: dict[tuple[str, bool], float] = {("float32", False): 0.0}
        for seen in self.seen:
            each = seen.counts.table["flops"]
            for i in np.flatnonzero(each).tolist():
                instruction = seen.counts.instructions[i]
                matrix = matrix_dtype(instruction)
                if matrix is not None and matrix in self.device.gpu.tensor_fma:
                    by = (matrix, True)
                else:
                    by = ("float64" if "f64" in instruction.parts else "float32", False)
                flops[by] = flops.get(by, 0.0) + float(each[i])
        return max(flops, key=lambda by: flops[by])


class NothingLaunched(Message):
    """Host code that was to be profiled launched no kernel."""


def profile(run: Any, *args: Any, **named: Any) -> Report | TensorReport:
    """Run ``run(*args, **named)`` and report what its launches did.

    `run` is a kernel with its launch shape, ``kernel[grid, block]``, or host code that launches kernels;
    then the report holds all launches and their totals. Counts and times are the simulator's, also where
    there is a GPU. Code that launches no kernel but computes with PyTorch gets the ledger of its tensor
    operations. Raises NothingLaunched when there was neither, and whatever the code raises.

    >>> @cuda.jit
    ... def fill(out):
    ...     i = cuda.grid(1)
    ...     if i < out.size:
    ...         out[i] = 1
    >>> report = gpulab.profile(fill[4, 32], np.zeros(100, np.float32))
    >>> report["global_store_bytes"]
    400
    """
    if not callable(run):
        got = "None: the launch has run already" if run is None else type(run).__name__
        raise NothingLaunched(
            "pass the kernel with its launch shape, and its arguments behind a comma: "
            f"`gpulab.profile(kernel[blocks, threads], a, out)`. It got {got}."
        )
    if devices.uses_gpu():
        run = onto_simulator(run)
    watch = Watch(devices.current())
    book = ledger() if "torch" in sys.modules else None
    with arrays_there(args) as there, watch.standing(), book or nullcontext():
        run(*there, **named)
    name = getattr(run, "__name__", "")
    if not watch.launches and book is not None and book.entries:
        return tensor_report(run, book)
    if not watch.launches:
        raise NothingLaunched(f"`{name or repr(run)}` launched no kernel, so there is nothing to report.")
    return watch.report(name if len(watch.launches) > 1 else "")
