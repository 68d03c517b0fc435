"""`gpulab.predict` and `gpulab.recap`: numbers written down before a run, beside its own; ungraded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from gpulab.foundation.display import Card, Heading, Note, Piece, Row, Shown, Span
from gpulab.foundation.errors import Message

from . import messages, progress, registry
from .spec import Prediction

TOLERANCE = 1e-9  # relative, where the lab states none


class UnknownPrediction(Message, LookupError):
    """No lab asks that question; the message names the closest."""


class NotAPrediction(Message, ValueError):
    """What was to be written down is no number."""


@dataclass(frozen=True, repr=False)
class Guess(Shown):
    """One prediction: the number written down, and the measured one when it is known (None before)."""

    name: str
    value: float | None
    measured: float | None = None
    question: str = ""
    unit: str = ""
    tolerance: float = 0.0
    reason: str = ""
    note: str = ""

    @property
    def right(self) -> bool | None:
        """Within the tolerance; None while one of the two numbers is missing."""
        if self.value is None or self.measured is None:
            return None
        near = max(self.tolerance, TOLERANCE) * abs(self.measured)
        return abs(self.value - self.measured) <= near

    def row(self) -> Row:
        """The question and both numbers."""
        mine = messages.quantity(_short(self.value), self.unit)
        real = messages.quantity(_short(self.measured), self.unit)
        if self.measured is None:
            words, mark = messages.write_a_number() if self.value is None else messages.noted(mine), "wait"
        elif self.value is None:
            words, mark = messages.not_predicted(real), "wait"
        elif self.right:
            words, mark = messages.prediction_right(mine, real), "pass"
        else:
            words, mark = messages.prediction_off(mine, real), "part"
        return Row(self.name, f"{self.question}\n{words}" if self.question else words, mark=mark)

    def card(self) -> Card:
        pieces: list[Piece] = [self.row()]
        if self.right is False and self.reason:
            pieces.append(Note(self.reason, inset=True))
        if self.note:
            pieces.append(Note(Span(self.note, "dim")))
        return Card(tuple(pieces))


def predict(name: str, value: Any = None, *, measured: float | None = None) -> Guess:
    """Write a number down before the run: ``gpulab.predict("memory.sectors", 32)``.

    Later ``gpulab.predict("memory.sectors", measured=report["global_load_sectors_per_request"])`` sets the
    run's own number beside it; where the lab knows the answer it answers at once. The number is kept with
    the progress and never graded; once the run's number is known, the one written down before it stays.
    ``...`` stands for a number still to be written. Raises UnknownPrediction for a question that no lab asks,
    NotAPrediction for what is no finite number.
    """
    known = registry.predictions()
    if name not in known:
        raise UnknownPrediction(messages.unknown_prediction(name, registry.closest(name, known)))
    if value is ...:
        value = None
    for given in (value, measured):
        if given is not None and not _is_number(given):
            raise NotAPrediction(messages.not_a_prediction(name, given))
    asked = known[name]
    with progress.change() as data:
        mine = data["predictions"].setdefault(name, {})
        late = value is not None and "value" in mine and "measured" in mine and mine["value"] != float(value)
        if value is not None and not late:
            mine["value"] = float(value)
        if measured is None and asked.answer is not None and value is not None:
            measured = float(asked.answer)
        if measured is not None:
            mine["measured"] = float(measured)
    note = "" if progress.saved() else messages.not_saved(str(progress.place()))
    if late:
        note = messages.first_counts(messages.quantity(_short(mine["value"]), asked.unit))
        mine = {**mine, "value": value}
    return _guess(name, mine, asked, note)


@dataclass(frozen=True, repr=False)
class Recap(Shown):
    """All predictions of a lab beside what came out."""

    lab: str
    guesses: tuple[Guess, ...]

    def card(self) -> Card:
        known = [guess for guess in self.guesses if guess.right is not None]
        right = messages.predictions_right(sum(bool(g.right) for g in known), len(known)) if known else ""
        pieces: list[Piece] = [Heading(Span(messages.recap_heading(self.lab), "strong"), right)]
        if not self.guesses:
            pieces.append(Note(messages.nothing_predicted(self.lab)))
        for guess in self.guesses:
            pieces.append(guess.row())
            if guess.right is False and guess.reason:
                pieces.append(Note(guess.reason, inset=True))
        return Card(tuple(pieces))


def recap(lab: str) -> Recap:
    """Your predictions in one lab, beside what the runs said.

    `lab` is the number of a lab (``"03"``) or the first part of the predictions' names (``"memory"``).

    >>> comparison = gpulab.recap("03")
    """
    records: dict[str, Any] = progress.load()["predictions"]
    known = registry.predictions()
    names = [p.name for p in known.values() if registry.lab_number(p.lab) == registry.lab_number(lab)]
    topics = {e.name.partition(".")[0] for e in registry.of_lab(lab)} | {str(lab)}
    names += [n for n in records if n not in names and n.partition(".")[0] in topics]
    found = tuple(_guess(n, records.get(n, {}), known.get(n)) for n in names if n in records)
    return Recap(registry.lab_number(lab), found)


def _guess(name: str, record: dict[str, Any], asked: Prediction | None, note: str = "") -> Guess:
    value, measured = record.get("value"), record.get("measured")
    if asked is None:
        return Guess(name, value, measured, note=note)
    return Guess(name, value, measured, asked.question, asked.unit, asked.tolerance, asked.reason, note)


def _is_number(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Real) and math.isfinite(value)


def _short(value: float | None) -> float | int | None:
    return int(value) if value is not None and float(value).is_integer() else value
