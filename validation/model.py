"""What the simulator says of a kernel: its counts, its machine instructions, its modelled time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gpulab.analysis.machine.executed import of_kernel
from gpulab.analysis.machine.modelled import caches_of, of_launches
from gpulab.analysis.machine.watching import watched
from gpulab.analysis.profile.watch import Watch
from gpulab.simulator import hardware
from gpulab.simulator.hardware import GPU, Figure

from .case import Variant, wrong
from .compiled import compiling_for, digest
from .metrics import TABLE, Ours

SEEN = hardware.Source("the clock that a measurement of this validation saw", "gpulab", 2026)


class WrongResult(AssertionError):
    """A kernel computed something else than NumPy."""


def model(
    variant: Variant, size: int, gpu: GPU, clocks: tuple[float | None, float | None] = (None, None)
) -> dict[str, Any]:
    """What the simulator says of one launch, JSON-able: ``counts`` by the names of `metrics.TABLE`,
    ``seconds`` and ``kernel_seconds`` at the clocks of the two measurements, the longest term of the time.

    `clocks` are those at which the two were measured, in Hz; the boost clock where that is not known. Raises
    WrongResult.
    """
    with compiling_for(gpu) as device:
        case = variant.kernel.case(size)
        launch, given = variant.prepared(case)
        watch = Watch(device)
        with watch.standing():
            launches = watched("model", launch, given, {}, caches=lambda one: caches_of(gpu, one))
        time, alone = (of_launches(_at(gpu, clock), launches) for clock in clocks)
        if said := wrong(case, given):
            raise WrongResult(f"{variant.key} at {size}: {said}")
        (seen,) = watch.seen
        kernel = seen.launch.kernel
        ours = Ours(watch.report(), of_kernel(kernel, [seen.counts], gpu.cc), time)
    counts = {row.name: row.ours(ours) for row in TABLE}
    return {
        "digest": digest(kernel),
        "compiler": kernel.compiler,
        "counts": {name: value for name, value in counts.items() if value is not None},
        "seconds": time.seconds,
        "kernel_seconds": alone.seconds,
        "start": time.parts["launch"],
        "bound": time.bound.name,
    }


def _at(gpu: GPU, clock: float | None) -> GPU:
    """The GPU at a clock that it was seen at."""
    return gpu if clock is None else replace(gpu, boost_clock=Figure(clock, "Hz", SEEN))


def _clocks(measured: Mapping[str, Any]) -> tuple[float | None, float | None]:
    return measured.get("seconds", {}).get("clock"), measured.get("counters", {}).get("clock")


def model_all(
    wanted: Iterable[tuple[Variant, int]],
    gpu: GPU,
    tell: Any = lambda text: None,
    measured: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
) -> dict[str, dict[str, dict[str, Any]]]:
    """`model` of several launches, by key and size as text, at the clocks at which they were measured."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for variant, size in wanted:
        tell(f"{variant.key} at {size:,}")
        there = (measured or {}).get(variant.key, {}).get(str(size), {})
        found.setdefault(variant.key, {})[str(size)] = model(variant, size, gpu, _clocks(there))
    return found
