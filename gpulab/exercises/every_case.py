"""Goes through the cases of an exercise, whatever its evidence: how many are right, and where it fails
first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from . import messages
from .spec import Case, Exercise


class Failure(Protocol):
    """What is wrong at a case; `stopped` where the function came to no result, so later cases are not
    tried."""

    @property
    def case(self) -> Case: ...

    @property
    def stopped(self) -> bool: ...


F = TypeVar("F", bound=Failure)


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
    for case in exercise.cases:
        found = at(case)
        if found is None:
            right += 1
            continue
        failures.append(found)
        if found.stopped:
            break
    return Walk(right, tuple(failures), len(exercise.cases))
