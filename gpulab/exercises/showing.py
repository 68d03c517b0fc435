"""`gpulab.show`: pictures of what a kernel does to memory, from the record of the run that was counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab import device as devices
from gpulab.messages import Message
from gpulab.observe.recorder import Pass, Request
from gpulab.observe.writers import NOBODY, Range, Writers
from gpulab.profile import Launch, Report
from gpulab.profile.onto_simulator import arrays_there, onto_simulator
from gpulab.profile.watch import NothingLaunched, Watch

from . import cases, messages, patterns, registry
from .budgets import case_of
from .diagnose import nothing_written
from .run import name_of, reference_device
from .run import run as run_case
from .spec import Array, Case, Exercise

if TYPE_CHECKING:
    from gpulab.plot import Picture

DRAWN = 40 * 40  # elements of an array that are still told apart in a figure
KERNELS = 3  # drawn of one report
VIEWS = ("accesses", "banks", "lanes", "threads")


class CannotShow(Message):
    """There is no picture of this; the message says what can be shown."""


def pictures(what: Any, *args: Any, view: str = "") -> list[Picture]:
    """The pictures of a report, of ``kernel[grid, block]`` with arguments, of an exercise with a function.

    `view` asks for one kind: ``accesses`` (sectors of the costliest load and store), ``banks`` (shared
    memory), ``lanes`` (who runs and who waits), ``threads`` (which thread wrote which element; not for a
    report). By default those that have something to tell. Raises CannotShow.
    """
    if view and view not in VIEWS:
        raise CannotShow(messages.unknown_view(view, registry.closest(view, VIEWS) or VIEWS))
    if isinstance(what, Report):
        found = list(_of_report(what, view))
    elif isinstance(what, str):
        found = list(_of_exercise(what, args, view))
    elif callable(what):
        found = list(_of_call(what, args, view))
    else:
        raise CannotShow(messages.cannot_show(type(what).__name__))
    if not found:
        raise CannotShow(messages.nothing_to_show(view))
    return found


def _of_exercise(name: str, args: tuple, view: str) -> Iterator[Picture]:
    """Who wrote what at the largest size that can still be drawn; all else at the size that is counted."""
    exercise = registry.find(name)
    if exercise.evidence != "launch trace" or len(args) != 1 or not callable(args[0]):
        raise CannotShow(messages.show_exercise(name))
    fn = onto_simulator(args[0]) if devices.uses_gpu() else args[0]
    small = _drawable(exercise)
    counted = case_of(exercise, exercise.budgets[0]) if exercise.budgets else small
    if view in ("", "threads"):
        yield from _titled(small, _of_case(exercise, small, fn, threads=True))
    if view != "threads":
        yield from _titled(counted, _of_case(exercise, counted, fn, view))


def _titled(case: Case, pictures: Iterator[Picture]) -> Iterator[Picture]:
    """The pictures, with the size in their captions."""
    for picture in pictures:
        picture.say_first(messages.at_case(case.name))
        yield picture


def _of_case(
    exercise: Exercise, case: Case, fn: Callable[..., Any], view: str = "", threads: bool = False
) -> Iterator[Picture]:
    """An exercise at a case: who wrote what, or what the report draws."""
    with reference_device() as device:
        watch, writers = Watch(device), Writers()
        outcome = run_case(exercise, case, fn, cases.arguments(exercise, case), watch.standing(), writers)
        if outcome.trouble:
            raise CannotShow("\n".join(detail.text for detail in outcome.trouble))
        if not watch.launches:
            raise NothingLaunched(messages.no_launch(name_of(fn)))
        report = watch.report(name_of(fn))
    outputs = {a.name: a.value for a in outcome.before if a.role in ("out", "inout")}
    if any(array.size for array in outputs.values()) and nothing_written(writers, outputs):
        raise CannotShow(messages.write_first(name_of(fn)))
    if not threads:
        yield from _of_report(report, view)
        return
    for name, array in outputs.items():
        if 0 < array.size <= DRAWN:
            yield from _threads(writers, name, array.shape)


def _drawable(exercise: Exercise) -> Case:
    """The case with the most elements among those small enough to draw; the smallest if none is."""
    assert exercise.arguments is not None
    sizes = [
        (
            sum(
                int(np.prod(a.shape))
                for a in exercise.arguments(c.sizes)
                if isinstance(a, Array) and a.role != "in"
            ),
            c,
        )
        for c in exercise.cases
    ]
    small = [(size, case) for size, case in sizes if 0 < size <= DRAWN]
    return max(small, key=lambda s: s[0])[1] if small else min(sizes, key=lambda s: s[0])[1]


def _of_call(run: Callable[..., Any], args: tuple, view: str) -> Iterator[Picture]:
    """A launch, or host code that launches."""
    watch, writers = Watch(devices.current()), Writers()
    shapes: dict[str, tuple[int, ...]] = {}

    def watched(launch: devices.Launch) -> Writers:
        for label in launch.arrays:
            size = int(np.prod(label.shape, dtype=np.int64))
            if label.name not in shapes and 0 < size <= DRAWN and label.extent == size * label.itemsize:
                shapes[label.name] = label.shape
                writers.watch({label.name: Range(label.address, size, label.itemsize)})
        return writers

    if devices.uses_gpu():
        run = onto_simulator(run)
    with arrays_there(args) as there, watch.standing(), watch.device.observed(watched):
        run(*there)
    if not watch.launches:
        raise NothingLaunched(messages.no_launch(name_of(run)))
    if view in ("", "threads"):
        for name, shape in shapes.items():
            if writers.written(name).any():
                yield from _threads(writers, name, shape)
    yield from _of_report(watch.report(), view)


def _threads(writers: Writers, name: str, shape: tuple[int, ...]) -> Iterator[Picture]:
    """Which thread wrote which element. Arrays of three and more axes have no such picture."""
    from gpulab import plot

    if len(shape) not in (1, 2):
        return
    block, thread = (a.reshape(shape) for a in writers.threads(name))
    started = sum(_threads_of(launch.grid) * _threads_of(launch.block) for launch in writers.launches)
    writing = len({(b, t) for b, t in zip(block.flat, thread.flat, strict=True) if b != NOBODY})
    outside = started - writing if len(writers.launches) == 1 else 0
    yield plot.grid_map(plot.Coverage(block, thread, writers.times(name).reshape(shape), outside, name))


def _threads_of(extent: Iterable[int]) -> int:
    return int(np.prod(list(extent)))


def _of_report(report: Report, view: str) -> Iterator[Picture]:
    """The first launch of each kernel."""
    first: dict[str, Launch] = {}
    for launch in report.launches:
        first.setdefault(launch.kernel, launch)
    for launch in list(first.values())[:KERNELS]:
        yield from _of_launch(report, launch, view)


def _of_launch(report: Report, launch: Launch, view: str) -> Iterator[Picture]:
    from gpulab import plot

    requests = launch.recording.requests
    if view in ("", "accesses"):
        for kinds in (("load",), ("store",), ("atomic", "reduction")):
            found = _costliest(r for r in requests if r.space == "global" and r.kind in kinds)
            if found is not None:
                yield plot.accesses(_drawn(found, launch.kernel))
    shared = _costliest(r for r in requests if r.space == "shared")
    if view in ("", "banks") and shared is not None:
        yield plot.bank_grid(_drawn(shared, launch.kernel))
    waits = len({p.lanes for p in launch.recording.passes}) > 1 and bool(report["divergent_branches"])
    if launch.recording.passes and (view == "lanes" or (not view and waits)):
        yield plot.divergence(
            [plot.Pass(_label(p), p.lanes, p.instructions) for p in launch.recording.passes],
            kernel=launch.kernel,
        )


def _costliest(requests: Iterable[Request]) -> Request | None:
    """The worst request, and of equal ones the first with all 32 lanes."""
    found = sorted(requests, key=lambda r: -len(r.lanes))
    return patterns.worst(found)


def _drawn(request: Request, kernel: str) -> Any:
    """The request as figures take it."""
    from gpulab import plot

    first = request.asked[0]
    label = request.array
    return plot.Request(
        addresses=[first if a is None else a for a in request.addresses],
        active=[a is not None for a in request.addresses],
        size=request.size,
        space=request.space,
        kind=request.kind,
        array=label.name if label else "",
        base=label.address if label else 0,
        line=request.line or None,
        text=request.text,
        kernel=kernel,
    )


def _label(p: Pass) -> str:
    if not p.lines:
        return ""
    low, high = min(p.lines), max(p.lines)
    return f"line {low}" if low == high else f"lines {low}–{high}"
