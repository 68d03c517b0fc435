"""`gpulab.watch`: step through the thread at which the last failed check went wrong.

Nothing is traced before it is asked for, so a failed check takes no longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gpulab.foundation.errors import Message
from gpulab.frontends.cuda.transfers import to_device

from . import cases, launching, messages
from .evidence.launch_trace import LaunchTrace, launch_trace_of
from .parts import Part, Watched
from .run import name_of, reference_device
from .spec import Answer

if TYPE_CHECKING:
    from gpulab.analysis.tracer import Trace

_last: list[tuple[Answer, Watched]] = []  # one at most: the last failed check of this process


class NothingToWatch(Message):
    """No check has failed at a thread; the message says so."""


def remember(answer: Answer, parts: Iterable[Part]) -> None:
    """Keep what a check of this notebook found: where it failed, or nothing."""
    _last.clear()
    found = next((d.watched for part in parts for d in part.details if d.watched is not None), None)
    if found is not None and isinstance(answer.exercise.evidence, LaunchTrace):
        _last.append((answer, found))


def watch() -> Trace:
    """Step through the threads at which the last failed check went wrong, on the arrays of that check.

    A notebook shows a figure to step through, a terminal a table. Raises NothingToWatch where the last check
    did not fail at a thread, and CannotTrace where its kernel cannot be stepped through.

    >>> gpulab.check("start.double", double)  # doctest: +SKIP
    >>> gpulab.watch()  # doctest: +SKIP
    """
    from gpulab.analysis.tracer import trace

    if not _last:
        raise NothingToWatch(messages.nothing_to_watch())
    answer, watched = _last[0]
    launched = launch_trace_of(answer.exercise).simulated(answer)
    case = next(case for case in answer.exercise.cases if case.name == watched.case)
    with reference_device(answer.exercise.gpu):
        arguments = cases.of(launched, case)
        given = [
            launching.scalar(a.value, launched.face)
            if a.role == "scalar"
            else launching.given(to_device(a.value), launched.face)
            for a in arguments
        ]
        shape = launched.shape(case.sizes) if launched.shape is not None else None

        def again(*arrays: Any) -> None:
            if shape is None:
                launched.fn(*arrays)
            else:
                launching.launch(launched.fn, shape.grid, shape.block, shape.shared_bytes, list(arrays))

        again.__name__ = name_of(launched.fn)
        return trace(again, *given, threads=list(watched.threads), launch=watched.launch)
