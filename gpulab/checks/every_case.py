"""Goes through the cases of an exercise, whatever its evidence: how many are right, where it fails first,
and the parts of the verdict that follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from gpulab.foundation import underway

from . import messages
from .parts import Detail, Part, Unwritten
from .run import name_of
from .spec import Case, Exercise
from .verdict import no_points


class Failed(Protocol):
    """What is wrong at a case; `stopped` where the function came to no result, so later cases are not
    tried."""

    @property
    def case(self) -> Case: ...

    @property
    def stopped(self) -> bool: ...


F = TypeVar("F", bound=Failed)


@dataclass(frozen=True)
class Walk(Generic[F]):
    """How many of `total` cases are right, and the failures of those that were tried, in order."""

    right: int
    failures: tuple[F, ...]
    total: int

    @property
    def first(self) -> F | None:
        """The first failure; None if all cases are right."""
        return self.failures[0] if self.failures else None

    def summary(self, what: str = "size") -> str:
        """How many cases are right and where the first failed, in half a line; `what` is what a case is
        called."""
        first = self.failures[0]
        said = messages.stopped_at if first.stopped else messages.first_wrong
        return said(self.right, self.total, first.case.name, what)


def walk(exercise: Exercise, at: Callable[[Case], F | None]) -> Walk[F]:
    """Tries the cases in order with `at`, which says what is wrong at one."""
    right = 0
    failures: list[F] = []
    with underway.work(f"checking {exercise.name}", len(exercise.cases), "case") as work:
        for case in exercise.cases:
            found = at(case)
            work.done += 1
            if found is None:
                right += 1
                continue
            failures.append(found)
            if found.stopped:
                break
    return Walk(right, tuple(failures), len(exercise.cases))


@dataclass(frozen=True)
class Failure:
    """What is wrong at one case, in words.

    `stopped` where the function came to no result that could be compared; `silent` where all it gave is None.
    """

    case: Case
    details: tuple[Detail, ...]
    stopped: bool = False
    silent: bool = False


def parts(
    exercise: Exercise,
    fn: Any,
    at: Callable[[Case], Failure | None],
    rest: Callable[[], tuple[Part, ...]],
    what: str = "size",
) -> tuple[Part, ...]:
    """All parts: what `at` says of each case, and, once all are right, the `rest`: the budgets.

    `what` is what a case is called.
    """
    found = walk(exercise, at)
    if found.first is None:
        of = exercise.correct_points
        summary = messages.all_right([case.name for case in exercise.cases], what)
        return (Part("right", "pass", of, of, summary), *rest())
    details = found.first.details
    if not found.right and all(failure.silent for failure in found.failures):  # None is never right there
        details = (Detail(messages.returns_nothing(name_of(fn))),)
    unwritten = isinstance(details[0], Unwritten)
    return no_points(exercise, messages.no_result() if unwritten else found.summary(what), details)
