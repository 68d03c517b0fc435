"""An answer that launches kernels: how it runs on the simulated device, and whether that went well."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpulab.simulator.observe.writers import Writers

from . import cases
from .compare import Mismatch
from .results import first_mismatch
from .run import Outcome, name_of, run
from .spec import Answer, Case, Face, Shape, Sizes


@dataclass(frozen=True)
class Launched(Answer):
    """An answer, and what its exercise says of launches; see `evidence.LaunchTrace` for the fields.

    The judge has a subclass, whose `at` gives what was recorded of the function.
    """

    shape: Callable[[Sizes], Shape] | None = None
    face: Face = "cuda"
    race_case: str | None = None

    @property
    def name(self) -> str:
        """What the learner calls the function."""
        return name_of(self.fn)

    def at(self, case: Case) -> Callable[..., Any]:
        """What is called at a case."""
        found: Callable[..., Any] = self.fn
        return found

    def run(
        self,
        case: Case,
        around: contextlib.AbstractContextManager[Any] | None = None,
        writers: Writers | None = None,
    ) -> Outcome:
        """Run it at a case; see `run.run`."""
        shape = self.shape(case.sizes) if self.shape is not None else None
        garbage = cases.garbage_of(self.contents, case)
        return run(self.at(case), cases.of(self, case), shape, self.face, around, writers, garbage)

    def first_mismatch(self, case: Case, outcome: Outcome) -> Mismatch | None:
        """The first output of a run that is wrong; see `results.first_mismatch`."""
        return first_mismatch(self.exercise, case, outcome, self.reference)
