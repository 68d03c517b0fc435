"""Lab 22, project C: kinds of cases are public, their seeds are the judge's own."""

from __future__ import annotations

from gpulab.exercises.lab_22_serving import EXERCISES
from gpulab.exercises.spec import Case

CASES: dict[str, tuple[Case, ...]] = {exercise.name: exercise.cases for exercise in EXERCISES}
