"""The parts of a verdict: what earned points, or did not, and the sentences about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gpulab.foundation.display import Block, Code, Note, Picture, Piece

if TYPE_CHECKING:
    from gpulab.plot.moving import Moving

State = Literal["pass", "part", "fail", "wait"]


@dataclass(frozen=True)
class Watched:
    """Threads worth stepping through: (block, thread) as linear numbers, in which launch of which case."""

    case: str
    threads: tuple[tuple[int, int], ...]
    launch: int = 0


@dataclass(frozen=True)
class Detail:
    """A sentence under a part; with `line`, a line of the learner's source instead. With `picture` it is a
    figure, which a notebook shows and text leaves out; it is drawn when it is shown. `watched` are threads
    that the sentence offers to step through.
    """

    text: str
    line: int = 0
    picture: Callable[[], Moving | None] | None = field(default=None, compare=False, repr=False)
    watched: Watched | None = field(default=None, compare=False, repr=False)

    @property
    def lasts(self) -> bool:
        """Whether it says something outside of the notebook, too, in which the check was made."""
        return self.picture is None and self.watched is None

    def piece(self) -> Piece:
        """How it is shown."""
        if self.picture is not None:
            made = self.picture()
            return Picture(made.html() if made else "")
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
