"""Ten questions, and where to begin."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from gpulab.foundation.display import Card, Heading, Note, Piece, Row, Shown, Span
from gpulab.foundation.errors import Message

from . import catalogue, html

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

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        shown = super()._repr_mimebundle_(include, exclude)
        return shown if self.answers else shown | {"text/html": self.html()}

    def html(self) -> str:
        """The questions to be clicked: every choice opens what is to say about it."""
        asked = [_question_html(number, q) for number, q in enumerate(catalogue.questions(), 1)]
        css = f"{html.FONT};display:grid;gap:1rem;max-width:46rem;margin:.6rem 0;font-size:14px"
        return html.element("div", css, *asked, **{"class": "gpulab-quiz"})

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


def _question_html(number: int, q: catalogue.Question) -> str:
    lab = catalogue.labs()[q.lab]
    link = html.element(
        "a", "color:inherit", f"Lab {lab.key}, {escape(lab.title)}", href=f"{lab.pages[0]}.ipynb"
    )
    box = f"border:1px solid {html.RULE};border-radius:7px;padding:.35rem .7rem;margin:.3rem 0"
    choices = []
    for letter, choice in zip(LETTERS, q.choices, strict=True):
        if letter == LETTERS[q.right]:
            said = f"<b>✔ Right.</b> {html.words(q.reason)}"
        else:
            said = f"<b>✘ Not this one.</b> {link} teaches what is behind it. Try another answer."
        summary = html.element("summary", "cursor:pointer", f"{letter})&ensp;{html.words(choice)}")
        choices.append(
            html.element("details", box, summary, html.element("div", "margin:.3rem 0 .2rem", said))
        )
    head = html.element("div", "font-weight:600", f"{number}. {html.words(q.question)}")
    return html.element("div", "", head, *choices)


def quiz(answers: str = "") -> Quiz:
    """The questions; with ten letters the result and the lab to begin with. Raises NotAnswers."""
    given = "".join(answers.lower().split())
    if given and (len(given) != len(catalogue.questions()) or set(given) - {*LETTERS, UNSURE}):
        raise NotAnswers(
            f"'{answers}' does not answer ten questions: give ten of a, b, c and -, such as 'ab-cabcab-'"
        )
    return Quiz(given)
