"""Commands as a person can paste them, and guesses at what a misspelt name was meant to be."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

SEARCHED = os.environ.get(
    "PATH", os.defpath
)  # as the shell has it: nbgrader's commands need another one later


def ours(*words: object) -> str:
    """A command of ours, such as ``.venv/bin/python -m grading grade 04``, to be typed where this process is.

    Words are taken as they are, so that one may hold several options.
    """
    return " ".join([program("python", Path(sys.executable)), "-m grading", *map(str, words)])


def program(name: str, path: Path) -> str:
    """How to type a program: by its name where the shell finds this very one, else by the shorter path."""
    found = shutil.which(name, path=SEARCHED)
    if found and Path(found).absolute() == path.absolute():
        return name
    near = os.path.relpath(path)
    return shlex.quote(str(path) if near.startswith(os.pardir) and path.is_absolute() else near)


def closest(word: str, known: Iterable[str]) -> str:
    """The name that a misspelt one may stand for: the only one that begins so, or one that is spelt alike.

    A number names its lab, so ``4`` and ``04b`` are near to ``04_memory_hierarchy``.
    """
    names = {name.casefold(): name for name in sorted(known)}
    wanted, number = word.casefold(), re.match(r"(\d+)(?:[a-z]?$|_)", word)
    of_number = [name for name in names if number and name.partition("_")[0] == number[1].zfill(2)]
    begins = [name for name in names if wanted and name.startswith(wanted)]
    near = difflib.get_close_matches(wanted, names, 1)
    for only in (of_number, begins, near):
        if len(only) == 1:
            return names[only[0]]
    return ""


def guess(word: str, known: Iterable[str]) -> str:
    """`` (did you mean NAME?)``, for a message about a name that nobody knows; or nothing."""
    near = closest(word, known)
    return f" (did you mean {near}?)" if near else ""


class Parser(argparse.ArgumentParser):
    """A command line that asks whether another word was meant."""

    def error(self, message: str) -> NoReturn:
        """Says what is wrong, the closest of what there is, and how the command is used."""
        if found := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            message += guess(found[1], re.findall(r"[\w-]+", found[2]))
        elif (found := re.match(r"unrecognized arguments: (--[\w-]+)", message)) is not None:
            known = set(_options(self))
            message += guess(found[1], known) if found[1] not in known else ""
        super().error(message)


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The long options of a parser and of its commands."""
    for action in parser._actions:
        yield from (option for option in action.option_strings if option.startswith("--"))
        for command in action.choices.values() if isinstance(action.choices, dict) else ():
            yield from _options(command)
