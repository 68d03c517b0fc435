"""`gpulab.show`: pictures of what a kernel does to memory, from the record of the run that was counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.analysis.profile import Launch, Report
from gpulab.analysis.profile.onto_simulator import arrays_there, onto_simulator
from gpulab.analysis.profile.to_run import misuse
from gpulab.analysis.profile.watch import NothingLaunched, Watch
from gpulab.foundation.errors import Message
from gpulab.simulator import device as devices
from gpulab.simulator.observe.recorder import Pass, Request
from gpulab.simulator.observe.warp_passes import LinePass, WarpPasses
from gpulab.simulator.observe.writers import NOBODY, Range, Writers

from . import cases, messages, patterns, registry
from .budgets import case_of
from .diagnose import nothing_written
from .evidence import LaunchTrace
from .run import name_of, reference_device
from .run import run as run_case
from .spec import Array, Case, Exercise

if TYPE_CHECKING:
    from gpulab.plot import Picture

DRAWN = 40 * 40  # elements of an array that are still told apart in a figure
KERNELS = 3  # drawn of one report
VIEWS = ("accesses", "banks", "lanes", "threads", "divergence")


class CannotShow(Message):
    """There is no picture of this; the message says what can be shown."""


def pictures(what: Any, *args: Any, view: str = "", line: int | None = None) -> list[Picture]:
    """The pictures of a report, of ``kernel[grid, block]`` with arguments, of an exercise with a function.

    `view` asks for one kind: ``accesses`` (sectors of the costliest load and store), ``banks`` (shared
    memory), ``lanes`` (which lanes of the first warp run and which wait), ``divergence`` (how many lanes of
    each warp take part; not for a report), ``threads`` (which thread wrote which element; not for a report).
    By default it shows those that have something to show. With `line` they are of that source line alone,
    every access of it with a picture, and ``threads`` are those that touched an element there. Raises
    CannotShow.
    """
    if view not in ("", *VIEWS):
        raise CannotShow(messages.unknown_view(view, registry.closest(str(view), VIEWS) or VIEWS))
    if line is not None and (isinstance(line, bool) or not isinstance(line, int) or line < 1):
        raise CannotShow(messages.no_line(line))
    if hasattr(what, "py_func"):
        raise CannotShow(misuse("show", what))
    wish = Wish(view, line)
    if isinstance(what, Report):
        if view in ("threads", "divergence"):
            raise CannotShow(messages.not_of_a_report(view))
        found = list(_of_report(what, wish))
    elif isinstance(what, str):
        found = list(_of_exercise(what, args, wish))
    elif callable(what):
        found = list(_of_call(what, args, wish))
    else:
        raise CannotShow(messages.cannot_show(type(what).__name__))
    if not found:
        raise CannotShow(messages.nothing_to_show(view))
    return found


def save(pictures: Sequence[Picture], path: str | Path) -> None:
    """Write pictures to files: one each as PNG, or all of them into a page. Raises CannotShow."""
    path = Path(path)
    if path.suffix in (".html", ".htm"):
        inside = "".join(f"<figure>{p.html()}</figure>" for p in pictures)
        path.write_text(f"<!doctype html><meta charset=utf-8>{inside}", encoding="utf-8")
    elif path.suffix == ".png":
        for number, picture in enumerate(pictures, 1):
            picture.save(path if number == 1 else path.with_stem(f"{path.stem}-{number}"))
    else:
        raise CannotShow(messages.no_kind_of_file(path.name))


@dataclass(frozen=True)
class Wish:
    """What is to be drawn: one of `VIEWS` or empty, of one source line or of all."""

    view: str
    line: int | None

    def __contains__(self, view: str) -> bool:
        """Whether it asks for that view, or for no special one."""
        return self.view in ("", view)


def _of_exercise(name: str, args: tuple[Any, ...], wish: Wish) -> Iterator[Picture]:
    """The writers of each element at the largest size that can be drawn; all else at the counted size."""
    exercise = registry.find(name)
    evidence = exercise.evidence
    if not isinstance(evidence, LaunchTrace) or len(args) != 1 or not callable(args[0]):
        raise CannotShow(messages.show_exercise(name))
    fn = onto_simulator(args[0]) if devices.uses_gpu() else args[0]
    small = _drawable(exercise, evidence)
    counted = case_of(exercise, exercise.budgets[0]) if exercise.budgets else small
    if "threads" in wish:
        yield from _titled(small, _of_case(exercise, evidence, small, fn, Wish("threads", wish.line)))
    if wish.view != "threads":
        yield from _titled(counted, _of_case(exercise, evidence, counted, fn, wish))


def _titled(case: Case, pictures: Iterator[Picture]) -> Iterator[Picture]:
    """The pictures, with the size in their captions."""
    for picture in pictures:
        picture.say_first(messages.at_case(case.name))
        yield picture


def _of_case(
    exercise: Exercise, evidence: LaunchTrace, case: Case, fn: Callable[..., Any], wish: Wish
) -> Iterator[Picture]:
    """The pictures of an exercise at one case: which thread wrote what, or what its report draws."""
    with reference_device(exercise.gpu) as device:
        watch, writers, passes = Watch(device), Writers(line=wish.line), _Passes()
        with device.observed(passes.of):
            shape = evidence.shape(case.sizes) if evidence.shape is not None else None
            made = cases.arguments(exercise, case)
            outcome = run_case(fn, made, shape, evidence.face, watch.standing(), writers)
        if outcome.trouble:
            raise CannotShow("\n".join(detail.text for detail in outcome.trouble))
        if not watch.launches:
            raise NothingLaunched(messages.no_launch(name_of(fn)))
        report = watch.report(name_of(fn))
    outputs = {a.name: a.value for a in outcome.before if a.role in ("out", "inout")}
    touched = any(writers.written(name).any() for name in outputs)
    if wish.line is None and any(a.size for a in outputs.values()) and nothing_written(writers, outputs):
        raise CannotShow(messages.write_first(name_of(fn)))
    if wish.view != "threads":
        yield from _of_report(report, wish, passes)
        return
    drawn = {name: array for name, array in outputs.items() if 0 < array.size <= DRAWN}
    larger = any(array.size > 1 for array in drawn.values())  # beside them a single square tells nothing
    for name, array in drawn.items():
        if (array.size > 1 or not larger) and (touched or wish.line is None):
            yield from _threads(writers, name, array.shape)


def _drawable(exercise: Exercise, evidence: LaunchTrace) -> Case:
    """The case with the most elements among those small enough to draw; the smallest if none is."""
    sizes = [
        (
            sum(
                int(np.prod(a.shape))
                for a in evidence.arguments(c.sizes)
                if isinstance(a, Array) and a.role != "in"
            ),
            c,
        )
        for c in exercise.cases
    ]
    small = [(size, case) for size, case in sizes if 0 < size <= DRAWN]
    return max(small, key=lambda s: s[0])[1] if small else min(sizes, key=lambda s: s[0])[1]


def _of_call(run: Callable[..., Any], args: tuple[Any, ...], wish: Wish) -> Iterator[Picture]:
    """A launch, or host code that launches."""
    watch, writers, passes = Watch(devices.current()), Writers(line=wish.line), _Passes()
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
    observed = watch.device.observed
    with arrays_there(args) as there, watch.standing(), observed(watched), observed(passes.of):
        run(*there)
    if not watch.launches:
        raise NothingLaunched(messages.no_launch(name_of(run)))
    if "threads" in wish:
        for name, shape in shapes.items():
            if writers.written(name).any():
                yield from _threads(writers, name, shape)
    yield from _of_report(watch.report(), wish, passes)


class _Passes:
    """What warps ran in the first launch of each kernel."""

    def __init__(self) -> None:
        self.by_kernel: dict[str, WarpPasses] = {}

    def of(self, launch: devices.Launch) -> WarpPasses | None:
        """The observer of a launch, if it needs one."""
        name = launch.kernel.name
        return None if name in self.by_kernel else self.by_kernel.setdefault(name, WarpPasses())


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


def _of_report(report: Report, wish: Wish, passes: _Passes | None = None) -> Iterator[Picture]:
    """The first launch of each kernel."""
    first: dict[str, Launch] = {}
    for launch in report.launches:
        first.setdefault(launch.kernel, launch)
    launches = list(first.values())
    if wish.line is not None:
        launches = [launch for launch in launches if _has_line(launch, wish, passes)]
        if not launches:
            raise CannotShow(_why_not(list(first.values()), wish, passes))
    for launch in launches[:KERNELS]:
        warps = passes.by_kernel.get(launch.kernel) if passes is not None else None
        yield from _of_launch(report, launch, wish, warps)


def _of_launch(report: Report, launch: Launch, wish: Wish, warps: WarpPasses | None) -> Iterator[Picture]:
    from gpulab import plot

    requests = [r for r in launch.recording.requests if wish.line in (None, r.line)]
    if "accesses" in wish:
        for found in _chosen((r for r in requests if r.space == "global"), wish):
            yield plot.accesses(_drawn(found, launch.kernel))
    if "banks" in wish:
        for found in _chosen((r for r in requests if r.space == "shared"), wish):
            yield plot.bank_grid(_drawn(found, launch.kernel))
    waits = len({p.lanes for p in launch.recording.passes}) > 1 and bool(report["divergent_branches"])
    if wish.view == "lanes" or (not wish.view and waits and wish.line is None):
        yield from _lanes(launch, wish, warps)
    if wish.view == "divergence" and warps is not None:
        label = f"line {wish.line}" if wish.line else ""
        drawn = [[_line_pass(p) for p in passes] for passes in warps.warps]
        yield plot.warp_lanes(drawn, kernel=launch.kernel, label=label)


def _lanes(launch: Launch, wish: Wish, warps: WarpPasses | None) -> Iterator[Picture]:
    """The lanes of the first warp."""
    from gpulab import plot

    if wish.line is not None and warps is not None and warps.warps:
        drawn = [_line_pass(p) for p in warps.warps[0]]
        yield plot.divergence(drawn, kernel=launch.kernel, label=f"line {wish.line}")
    elif launch.recording.passes:
        drawn = [plot.Pass(_label(p), p.lanes, p.instructions) for p in launch.recording.passes]
        yield plot.divergence(drawn, kernel=launch.kernel)


def _line_pass(p: LinePass) -> Any:
    from gpulab import plot

    return plot.Pass(f"line {p.line}" if p.line else "", p.lanes, p.instructions)


def _chosen(requests: Iterable[Request], wish: Wish) -> Iterator[Request]:
    """Of all lines the costliest load, store and atomic operation (one of them for shared memory, unless only
    its banks are asked for); of one line the costliest of each instruction."""
    requests = list(requests)
    if wish.line is not None:
        groups = [[r for r in requests if r.index == i] for i in dict.fromkeys(r.index for r in requests)]
    elif wish.view != "banks" and any(r.space == "shared" for r in requests):
        groups = [requests]
    else:
        kinds = (("load",), ("store",), ("atomic", "reduction"))
        groups = [[r for r in requests if r.kind in names] for names in kinds]
    seen: set[tuple[Any, ...]] = set()
    for group in groups:
        found = _costliest(group)
        if found is None:
            continue
        looks = (found.kind, found.size, found.array and found.array.name, found.addresses)
        if looks not in seen:  # an unrolled loop has many instructions that touch the same
            seen.add(looks)
            yield found


def _has_line(launch: Launch, wish: Wish, passes: _Passes | None) -> bool:
    return wish.line in _lines(launch, wish.view, passes)


def _lines(launch: Launch, view: str, passes: _Passes | None) -> list[int]:
    """The source lines of a launch that have something to show."""
    if view in ("lanes", "divergence"):
        its = passes.by_kernel.get(launch.kernel) if passes is not None else None
        found = {p.line for warp in its.warps for p in warp} if its else set()
        return sorted(found | {line for p in launch.recording.passes for line in p.lines} - {0})
    spaces = {"accesses": ("global",), "banks": ("shared",), "": ("global", "shared"), "threads": ("global",)}
    return sorted({r.line for r in launch.recording.requests if r.space in spaces[view]} - {0})


def _why_not(launches: list[Launch], wish: Wish, passes: _Passes | None) -> str:
    """What to say of a line that has nothing to show."""
    kernel = launches[0].kernel if len(launches) == 1 else "the kernels"
    lines = sorted({line for launch in launches for line in _lines(launch, wish.view, passes)})
    assert wish.line is not None
    return messages.nothing_at_line(kernel, wish.line, wish.view, lines)


def _costliest(requests: Iterable[Request]) -> Request | None:
    """The worst request; of equal ones that of most lanes and bytes: a tile, not the mbarrier beside it."""
    found = sorted(requests, key=lambda r: (-len(r.lanes), -r.size))
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
