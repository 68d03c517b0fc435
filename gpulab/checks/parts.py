"""The parts of a verdict: what earned points, or did not, and the sentences about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gpulab.foundation.display import Block, Code, Note, Piece

State = Literal["pass", "part", "fail", "wait"]


@dataclass(frozen=True)
class Detail:
    """A sentence under a part; with `line`, a line of the learner's source instead."""

    text: str
    line: int = 0

    def piece(self) -> Piece:
        """How it is shown."""
        if self.line:
            return Code(self.line, self.text)
        return Block(self.text) if "\n" in self.text else Note(self.text, inset=True)


class Unwritten(Detail):
    """Says that a function is still as the lab left it. Such a check is no attempt."""


@dataclass(frozen=True)
class Part:
    """One thing that gives points: being right, or a budget.

    `state`: ``pass`` (all points), ``part`` (some), ``fail`` (none), ``wait`` (not looked at yet).
    `summary` is the half line behind the label, `details` say what to look at. For a budget `metric`, `case`,
    `measured`, `budget` and `naive` hold the numbers; `measured` is None where there was nothing to count.
    """

    label: str
    state: State
    points: float
    of: float
    summary: str
    details: tuple[Detail, ...] = ()
    metric: str = ""
    case: str = ""
    measured: float | None = None
    budget: float | None = None
    naive: float | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Part:
        """From the part of a verdict's `to_dict`."""
        return cls(**(dict(data) | {"details": tuple(Detail(**d) for d in data["details"])}))
