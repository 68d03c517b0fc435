"""`gpulab.appeal`: ask for a second look at a grade. It writes a file that the course's instructor can read.

The file is TOML: who asks, about which lab and exercise, and why. Nothing is sent: a learner hands the file
in as the course says.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from gpulab.app.course import catalogue
from gpulab.checks import registry
from gpulab.foundation.display import Card, Heading, Note, Shown, Span
from gpulab.foundation.errors import Message

STUDENT = re.compile(r"[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,63}")
LAB = re.compile(r"(\d+)(?:[a-z]|_\w*)?")  # 4, 04, 02a, 04_memory_hierarchy
LONGEST = 2_000  # characters of a reason: an instructor is shown no more
USER = (
    "JUPYTERHUB_USER"  # an environment variable: on a JupyterHub, the name by which nbgrader knows a learner
)


class CannotAppeal(Message, ValueError):
    """Something that an instructor needs is missing; the message says what to write."""


@dataclass(frozen=True, repr=False)
class Appeal(Shown):
    """A request that was written. `exercise` is empty where it is about a whole lab."""

    path: Path
    student: str
    lab: str
    exercise: str
    replaced: bool

    def card(self) -> Card:
        wrote = f"{'replaced' if self.replaced else 'wrote'} {self.path}"
        told = "Nothing was sent. Hand this file in as your course says; a person reads it."
        about = self.exercise or f"lab {self.lab}"
        return Card((Heading(Span(about, "strong"), self.student), Note(wrote), Note(Span(told, "dim"))))


def appeal(about: str, why: str, student: str = "", folder: Path | str = ".") -> Appeal:
    """Write a request for a second look at a grade into a folder.

    `about` is an exercise, or the number of a lab, which includes its written answers. `why` says in at most
    2,000 characters what was judged wrongly. `student` is the name by which the course knows you; on a
    JupyterHub it may be left out. The request is written into `folder` and replaces an earlier one about the
    same. Raises UnknownExercise, CannotAppeal for a lab that there is not, too, and OSError.

    >>> request = gpulab.appeal("start.double", "My kernel writes all 31 elements: see line 4.", "ada")
    """
    about = about.strip()
    if lab := LAB.fullmatch(about):
        about = _number(lab[1])
    exercise = None if lab else registry.find(about)
    student, why = (student or os.environ.get(USER, "")).strip(), why.strip()
    if not student:
        raise CannotAppeal(
            'who asks? Add the name by which your course knows you: student="ada", or --as ada'
        )
    if not STUDENT.fullmatch(student):
        raise CannotAppeal(f"{student!r} is no name of a student: letters, digits and . _ @ -, at most 64")
    if not why:
        raise CannotAppeal(
            "why was it judged wrongly? Write a sentence, with the line or the case that you mean"
        )
    if len(why) > LONGEST:
        raise CannotAppeal(f"the reason has {len(why):,} characters; at most {LONGEST:,} are read")
    said = {
        "student": student,
        "lab": exercise.lab if exercise else about,
        "exercise": exercise.name if exercise else "",
        "why": why,
    }
    path = Path(folder) / f"appeal-{student}-{about}.toml"
    replaced = path.exists()
    path.write_text("".join(f"{key} = {_quoted(text)}\n" for key, text in said.items()), encoding="utf-8")
    return Appeal(path, student, said["lab"], said["exercise"], replaced)


def _number(said: str) -> str:
    """A lab's number as the course writes it."""
    numbers = sorted({lab.number for lab in catalogue.labs().values()})
    if (number := said.zfill(2)) not in numbers:
        raise CannotAppeal(f"there is no lab {said}; labs are {', '.join(numbers)}")
    return number


def _quoted(text: str) -> str:
    """A string of TOML, which is one of JSON but for two things: delete is escaped, and halves of a character
    are none."""
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")
