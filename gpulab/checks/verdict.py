"""What a check found, as numbers and sentences, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from gpulab.foundation.display import Card, Heading, Note, Piece, Row, Shown, Span, points

from . import messages
from .parts import Detail, Part
from .spec import Exercise

FORMAT = 1  # of `to_dict`


@dataclass(frozen=True, repr=False)
class Verdict(Shown):
    """The outcome of a check. `attempt` counts checks of this exercise; `notes` stand at the foot.

    `device` and `compiler` name what the counts hold for, for example ``A100 simulated`` and ``NVVM 13.5``.
    """

    exercise: str
    parts: tuple[Part, ...]
    attempt: int = 0
    notes: tuple[str, ...] = ()
    device: str = ""
    compiler: str = ""

    @property
    def points(self) -> float:
        """Points got."""
        return round(sum(part.points for part in self.parts), 6)

    @property
    def of(self) -> float:
        """Points there are."""
        return sum(part.of for part in self.parts)

    @property
    def passed(self) -> bool:
        """All parts in full."""
        return all(part.state == "pass" for part in self.parts)

    @property
    def right(self) -> bool:
        """The result is right, whatever it costs."""
        return self.parts[0].state == "pass"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `from_dict` makes an equal verdict of it, without what
        only its notebook can show."""
        parts = [
            {f.name: getattr(part, f.name) for f in fields(part)}
            | {"details": [{"text": d.text, "line": d.line} for d in part.details if d.lasts]}
            for part in self.parts
        ]
        return {
            "format": FORMAT,
            "exercise": self.exercise,
            "points": self.points,
            "of": self.of,
            "passed": self.passed,
            "attempt": self.attempt,
            "parts": parts,
            "notes": list(self.notes),
            "device": self.device,
            "compiler": self.compiler,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Verdict:
        """The inverse of `to_dict`. Raises ValueError for another format."""
        if data.get("format") != FORMAT:
            raise ValueError(f"this is no verdict of format {FORMAT}: {data.get('format')!r}")
        return cls(
            exercise=data["exercise"],
            parts=tuple(Part.from_dict(part) for part in data["parts"]),
            attempt=data["attempt"],
            notes=tuple(data["notes"]),
            device=data["device"],
            compiler=data["compiler"],
        )

    def card(self) -> Card:
        style = "good" if self.passed else "strong"
        pieces: list[Piece] = [
            Heading(Span(self.exercise, "strong"), Span(messages.points_of(self.points, self.of), style))
        ]
        for part in self.parts:
            right = "" if part.state == "wait" else points(part.points)
            pieces.append(Row(part.label, part.summary, right, part.state))
            pieces += [detail.piece() for detail in part.details]
        pieces += [Note(Span(note, "dim")) for note in self.notes]
        return Card(tuple(pieces))


def no_points(exercise: Exercise, summary: str, details: tuple[Detail, ...]) -> tuple[Part, ...]:
    """A verdict without points: the result is not right, and the budgets wait for it."""
    right = Part("right", "fail", 0.0, exercise.correct_points, summary, details)
    return (right, *waiting(exercise))


def waiting(exercise: Exercise) -> tuple[Part, ...]:
    """The budgets of a result that is not right."""
    why = messages.not_looked_at(messages.until_right())
    return tuple(Part(b.label, "wait", 0.0, b.points, why, metric=b.metric) for b in exercise.budgets)
