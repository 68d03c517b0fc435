"""Ten questions, and where to begin."""

from __future__ import annotations

from dataclasses import dataclass

from gpulab.foundation.display import Card, Heading, Note, Piece, Row, Shown, Span
from gpulab.foundation.errors import Message

from . import catalogue

LETTERS = "abc"
UNSURE = "-"


class NotAnswers(Message, ValueError):
    """What was given are no answers; the message says what they look like."""


@dataclass(frozen=True, repr=False)
class Quiz(Shown):
    """The questions; once there are `answers`, what is right and the lab to begin with."""

    answers: str = ""

    @property
    def right(self) -> tuple[bool, ...]:
        """Which answers are right, by question."""
        asked = catalogue.questions()
        return tuple(
            given == LETTERS[q.right] for given, q in zip(self.answers, asked, strict=len(self.answers) > 0)
        )

    @property
    def to_do(self) -> tuple[str, ...]:
        """The keys of the labs that answer what was not known, in order."""
        asked = catalogue.questions()
        return tuple(dict.fromkeys(q.lab for q, ok in zip(asked, self.right, strict=True) if not ok))

    def card(self) -> Card:
        return Card(tuple(self._result() if self.answers else self._questions()))

    def _questions(self) -> list[Piece]:
        pieces: list[Piece] = [Heading(Span("Where to begin", "strong"), "10 questions, 10 minutes")]
        for number, q in enumerate(catalogue.questions(), 1):
            pieces.append(Row(f"{number}", q.question))
            pieces += [
                Row("", f"{letter})  {choice}") for letter, choice in zip(LETTERS, q.choices, strict=True)
            ]
        how = "Answer with ten letters, a minus for what you do not know: `gpulab.course.quiz('ab-cabcab-')`"
        return [*pieces, Note(how)]

    def _result(self) -> list[Piece]:
        asked = catalogue.questions()
        known = sum(self.right)
        pieces: list[Piece] = [Heading(Span("Where to begin", "strong"), f"{known} of {len(asked)} right")]
        for number, (q, given, ok) in enumerate(zip(asked, self.answers, self.right, strict=True), 1):
            if given == UNSURE:  # told by the lab, or after another try
                pieces.append(Row(f"{number}", Span("not answered", "dim"), f"lab {q.lab}", "wait"))
                continue
            answer = f"{LETTERS[q.right]})  {q.choices[q.right]}."
            wrong = "" if ok else f"Not {given}. "
            pieces.append(
                Row(f"{number}", f"{wrong}{answer} {q.reason}", f"lab {q.lab}", "pass" if ok else "fail")
            )
        return [*pieces, Note(self._advice())]

    def _advice(self) -> str:
        if not self.to_do:
            return "You know what these labs teach. Look at their open tasks, and take a capstone."
        first = catalogue.labs()[self.to_do[0]]
        if first.key == "03":
            return "Begin with lab 00, Start here; it takes an hour. Labs 03 and 04 follow."
        others = ", ".join(self.to_do[1:])
        return (
            f"Do lab 00, which shows the tools in an hour, then begin with lab {first.key}, {first.title}."
            + (f" Do not skip {others}." if others else "")
        )


def quiz(answers: str = "") -> Quiz:
    """The questions; with ten letters the result and the lab to begin with. Raises NotAnswers."""
    given = "".join(answers.lower().split())
    if given and (len(given) != len(catalogue.questions()) or set(given) - {*LETTERS, UNSURE}):
        raise NotAnswers(
            f"'{answers}' does not answer ten questions: give ten of a, b, c and -, such as 'ab-cabcab-'"
        )
    return Quiz(given)
