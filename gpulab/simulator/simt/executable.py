"""A program and the steps that run it: what `simt.load` makes and `simt.launch` runs.

Steps are kept beside the program because they change a run, and a run knows its program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .program import Program
from .run import Run

Step = Callable[[Run], None]


@dataclass(slots=True)
class Executable(Program):
    """A kernel made ready to run. `steps` are those of each segment, in order."""

    steps: tuple[tuple[Step, ...], ...]
