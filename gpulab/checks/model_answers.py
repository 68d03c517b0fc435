"""`gpulab.model_answer`: for people who study alone, an answer to compare their own with, once they wrote it.

The answers are no part of gpulab. ``python -m grading answers`` writes them into one file, which whoever
gives the
course hands to those who are not graded; it lies beside ``progress.json``.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from gpulab.foundation.display import Card, Heading, Note, Shown, Span
from gpulab.foundation.errors import Message

from . import progress

FILE = "model_answers.json"
FEWEST_WORDS = 15
STUB = "YOUR ANSWER HERE"


class NoModelAnswer(Message, LookupError):
    """There is no answer to show, or not yet; the message says why and what to do."""


@dataclass(frozen=True, repr=False)
class ModelAnswer(Shown):
    """What a good answer says. `question` is the cell's name."""

    question: str
    text: str

    def card(self) -> Card:
        paragraphs = [Note(part.replace("**", "")) for part in self.text.split("\n\n") if part.strip()]
        ask = "Does yours name the same cause, and a count of your own that proves it?"
        return Card(
            (Heading(Span("An answer to compare yours with", "strong")), *paragraphs, Note(Span(ask, "dim")))
        )


def model_answer(question: str = "") -> ModelAnswer:
    """The model answer of the written question in this notebook; `question` names one of several.

    It is shown once the notebook, as it was saved last, has an answer of yours. Raises NoModelAnswer.

    >>> try:
    ...     gpulab.model_answer()
    ... except LookupError as error:
    ...     print(str(error)[:13])
    model answers
    """
    answers = _answers()
    mine = _written()
    names = [name for name in mine if name in answers]
    if question and question not in names:
        raise NoModelAnswer(
            f"this notebook has no question {question!r}; it has {', '.join(names) or 'none'}"
        )
    if not names:
        raise NoModelAnswer("this notebook has no written question with a model answer")
    name = question or names[0]
    if STUB in mine[name] or len(mine[name].split()) < FEWEST_WORDS:
        raise NoModelAnswer(
            f"write your own answer first: at least {FEWEST_WORDS} words in its cell, then save the"
            " notebook (Ctrl+S)"
        )
    return ModelAnswer(name, answers[name])


def _answers() -> dict[str, str]:
    path = progress.place().with_name(FILE)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NoModelAnswer(
            "model answers are for people who study alone and come separately: ask whoever gives"
            f" your course for {FILE}"
            f" and put it into {path.parent}"
        ) from None
    except (OSError, ValueError) as error:
        raise NoModelAnswer(f"{path} cannot be read ({error}); get it once more") from None
    if not isinstance(found, dict):
        raise NoModelAnswer(f"{path} is no file of model answers; get it once more")
    return {str(name): str(text) for name, text in found.items()}


def _written() -> dict[str, str]:
    """The written answers of the notebook that runs here, by the names of their cells."""
    path = Path(os.environ.get("JPY_SESSION_NAME", ""))
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return {
            str(cell["metadata"]["nbgrader"]["grade_id"]): "".join(cell["source"])
            for cell in cells
            if cell["cell_type"] == "markdown" and cell["metadata"].get("nbgrader", {}).get("solution")
        }
    except (OSError, ValueError, KeyError, TypeError):
        raise NoModelAnswer(
            "nobody can tell which notebook this is: open it with `make lab`, and save it"
        ) from None
