"""Why a result is wrong: which elements, which thread and line wrote them, or why none did."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from gpulab.simulator import device as devices
from gpulab.simulator.observe.uninitialised import Uninitialised
from gpulab.simulator.observe.writers import Writers
from gpulab.simulator.simt.errors import source_text, thread_words

from . import messages
from .compare import Mismatch, index_words, pair_words, where
from .launched import Launched
from .parts import Detail
from .spec import Case

NEAR = 100  # times the tolerance: of a result this close, the message says by how much it misses


def wrong_result(
    mismatch: Mismatch, writers: Writers | None, given_shape: bool, cause: tuple[Detail, ...]
) -> tuple[Detail, ...]:
    """What to say about wrong elements of an output.

    `writers` watched the run, if somebody did. With `given_shape` the launch is the exercise's, not the
    learner's: it is never at fault where it has a thread for each element. `cause` is what `unwritten` found.
    """
    name, first = mismatch.array, mismatch.first
    flat = _flat(first, mismatch.wrong.shape)
    writer = writers.of(name, flat) if writers else None
    unwritten = writers is not None and writer is None
    got = mismatch.got[first]
    words = pair_words(got, _as_shown(mismatch, first))
    sentence = messages.element(index_words(name, first), *words, unwritten)
    error, allowed = mismatch.relative
    if error < NEAR * allowed:
        sentence += f" ({messages.relative_error(error, allowed)})"
    if mismatch.count > 1:
        sentence += f" · {messages.more_elements(mismatch.count - 1, where(mismatch.wrong))}"
    details = [Detail(sentence)]
    if mismatch.right:
        details.append(Detail(messages.right_outputs(mismatch.right)))
    if writers is not None and writer is None:
        alike = mismatch.wrong & ~writers.written(name).reshape(mismatch.wrong.shape)
        details.append(
            Detail(messages.nobody_wrote(int(alike.sum()) > 1, _coverage(alike, writers, given_shape)))
        )
    elif writer is not None:
        line = writer.location.line if writer.location else 0
        details.append(Detail(messages.written_by(str(writer), line)))
        details += source(writer.location)
        if (kind := _odd(got)) and not _odd(mismatch.expected[first]):
            details += cause or (Detail(messages.not_a_number_inside(kind)),)
    return tuple(details)


def unwritten(answer: Launched, case: Case, mismatch: Mismatch) -> tuple[Detail, ...]:
    """Where a NaN in an output comes from, if some thread read what nobody had written."""
    if _odd(mismatch.got[mismatch.first]) != "nan" or _odd(mismatch.expected[mismatch.first]):
        return ()
    watchers: list[Uninitialised] = []

    def watch(launch: devices.Launch) -> Uninitialised:
        watchers.append(Uninitialised())
        return watchers[-1]

    answer.run(case, devices.current().observed(watch))
    read = next((read for watcher in watchers for read in watcher.findings), None)
    if read is None:
        return ()
    line = read.location.line if read.location else 0
    words = messages.read_before_written(read.what, thread_words(read.thread, read.block), line)
    return (Detail(words), *source(read.location))


def changed_input(
    name: str, before: np.ndarray, after: np.ndarray, writers: Writers | None
) -> tuple[Detail, ...]:
    """What to say about an input that is not as it was."""
    changed = before.view(np.uint8).reshape(*before.shape, -1) != after.view(np.uint8).reshape(
        *after.shape, -1
    )
    places = changed.any(axis=-1)
    first = tuple(int(i) for i in np.argwhere(places)[0])
    writer = writers.of(name, _flat(first, before.shape)) if writers else None
    line = writer.location.line if writer and writer.location else 0
    words = messages.input_changed(
        name, int(places.sum()), index_words(name, first), str(writer) if writer else "", line
    )
    return (Detail(words), *(source(writer.location) if writer else ()))


def source(location: Any) -> tuple[Detail, ...]:
    """The text of a source line as a detail, where it is to be had."""
    text = source_text(location)
    return (Detail(text, location.line),) if text else ()


def _as_shown(mismatch: Mismatch, index: tuple[int, ...]) -> Any:
    """The expected element in the type of the result: 3, not 3.0, in an array of integers."""
    expected = mismatch.expected[index]
    if mismatch.got.dtype.kind in "iub" and float(expected).is_integer():
        return int(expected)
    return expected.astype(mismatch.got.dtype) if mismatch.got.dtype.kind == "f" else expected


def _flat(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    return int(np.ravel_multi_index(index, shape)) if shape else 0


def _odd(value: Any) -> str:
    number = float(np.real(value))
    return "nan" if math.isnan(number) else "inf" if math.isinf(number) else ""


def _coverage(unwritten: np.ndarray, writers: Writers, given_shape: bool) -> str:
    """Why nobody wrote these elements, as far as the shape of the launches explains it."""
    shapes = {(launch.grid, launch.block) for launch in writers.launches}
    if len(shapes) != 1:
        return ""
    grid, block = next(iter(shapes))
    extents = [g * b for g, b in zip(grid, block, strict=True)]
    if math.prod(extents) >= unwritten.size and (given_shape or unwritten.ndim == 1):
        return messages.guarded_away()
    if unwritten.ndim == 1:
        threads = math.prod(extents)
        first = int(np.flatnonzero(unwritten)[0])
        return messages.grid_has(threads, unwritten.size) if first == threads else ""
    if unwritten.ndim == 2:
        for axis, word in enumerate(("row", "column")):
            touched = np.flatnonzero(unwritten.any(axis=1 - axis))
            first, total = int(touched[0]), unwritten.shape[axis]
            if first in extents and int(touched[-1]) == total - 1:
                return messages.grid_covers(first, total, word)
        if all(
            extent >= size for extent, size in zip(sorted(extents[:2]), sorted(unwritten.shape), strict=True)
        ):
            return messages.guarded_away()
    return ""


def nothing_written(writers: Writers, outputs: Iterable[str]) -> bool:
    """No thread wrote to any of the outputs."""
    return not any(writers.written(name).any() for name in outputs if name in writers.ranges)


def without_output(writers: Writers, outputs: list[str], name: str, given_shape: bool) -> str:
    """Why no output was touched; empty where one was, or where the threads of a given launch could write.

    `name` is the learner's function: the kernel itself with `given_shape`, else it launches kernels.
    """
    if not nothing_written(writers, outputs):
        return ""
    if any(launch.stores for launch in writers.launches):
        return "" if given_shape else messages.output_unused(outputs, len(writers.launches))
    kernels = list(dict.fromkeys(launch.kernel for launch in writers.launches))
    return messages.not_written(name) if given_shape else messages.writes_nothing(kernels)
