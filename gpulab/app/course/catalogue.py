"""The labs, the paths through them, the quiz and the glossary, as records."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Lab:
    """A lab, or one of its notebooks where these need different things.

    `key` is its number, with a letter for one notebook: ``04``, ``06a``. `notebook` is the file's name
    without its ending, or the folder's where it stands for several, whose letters are in `parts`. `needs` are
    keys of labs to do before. Nobody needs more than four hours for one of its `sittings`.
    """

    key: str
    title: str
    notebook: str
    hours: float
    needs: tuple[str, ...]
    parts: tuple[str, ...] = ()
    sittings: int = 1

    @property
    def number(self) -> str:
        """The lab's number, without the letter."""
        return self.key[:2]

    @property
    def folder(self) -> str:
        """The folder of its notebooks, below ``labs/``."""
        return re.sub(r"_(?:[abc]|landscape)$", "", self.notebook)

    @property
    def time(self) -> str:
        """How long it takes, and in how many sittings."""
        return f"{self.hours:g} h" + (f" in {self.sittings} sittings" if self.sittings > 1 else "")

    @property
    def pages(self) -> tuple[str, ...]:
        """Its notebooks, in order: ``04_memory_hierarchy/04_memory_hierarchy``, without the ending."""
        names = [f"{self.notebook}_{part}" for part in self.parts] or [self.notebook]
        return tuple(f"{self.folder}/{name}" for name in names)


@dataclass(frozen=True)
class Path:
    """A way through the course: keys of labs, in order."""

    name: str
    words: str
    labs: tuple[str, ...]

    @property
    def hours(self) -> float:
        return sum(labs()[key].hours for key in self.labs)


@dataclass(frozen=True)
class Stage:
    """Labs about one subject, in the order in which they can be done."""

    name: str
    labs: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """A question with choices; `right` is the index of the right one, `lab` the key of the lab that teaches
    it."""

    lab: str
    question: str
    choices: tuple[str, ...]
    right: int
    reason: str


@dataclass(frozen=True)
class Term:
    """A word of the course, what it means, and the number of the lab that introduces it."""

    name: str
    lab: str
    means: str


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))


@cache
def labs() -> dict[str, Lab]:
    """All labs by key, in order."""
    return {
        key: Lab(
            key,
            row["title"],
            row["notebook"],
            row["hours"],
            tuple(row["needs"]),
            tuple(row.get("parts", ())),
            row.get("sittings", 1),
        )
        for key, row in _read("labs.toml")["labs"].items()
    }


@cache
def paths() -> tuple[Path, ...]:
    """The paths, in the order in which the home page shows them."""
    rows = _read("labs.toml")["paths"]
    return tuple(Path(name, row["words"], tuple(row["labs"])) for name, row in rows.items())


@cache
def stages() -> tuple[Stage, ...]:
    """The rows of the course's map, in order."""
    return tuple(Stage(name, tuple(keys)) for name, keys in _read("labs.toml")["stages"].items())


@cache
def questions() -> tuple[Question, ...]:
    """The ten questions, in the order of their labs."""
    rows = _read("quiz.toml")["questions"]
    return tuple(
        Question(r["lab"], r["question"], tuple(r["choices"]), r["right"], r["reason"]) for r in rows
    )


@cache
def terms() -> dict[str, Term]:
    """The glossary by term, in alphabetical order."""
    return {n: Term(n, row["lab"], row["means"]) for n, row in _read("glossary.toml")["terms"].items()}
