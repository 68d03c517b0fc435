"""Lab 22, project C: kinds of cases are public, their seeds are the judge's own."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_22_capstones.serving import EXERCISES

CASES: dict[str, tuple[Case, ...]] = {exercise.name: exercise.cases for exercise in EXERCISES}
