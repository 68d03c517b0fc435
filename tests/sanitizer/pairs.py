"""What a pair of the corpus is: one kernel, wrong and mended, and what gpulab.sanitize must say of it.

A kernel's text holds both twins: `mended` (in CUDA C the macro MENDED) is a constant of the compiler, so
the mend is the only difference. Comments mark the lines of the finding: ``# first`` and ``# second`` in the
order of the program's run, or ``# here`` for one line.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MARK = re.compile(r"(?:#|//) ((?:first|second|here)(?:, second)?)\s*$")


@dataclass(frozen=True)
class Pair:
    """`kind` is the class of the expected finding, `""` where nothing is wrong; `says` must occur in it.

    `kernel(mended)` makes the kernel; `arguments()` its arguments; `lines` are those of the finding.
    """

    name: str
    kind: str
    says: str
    kernel: Callable[[bool], Any]
    grid: Any
    block: Any
    arguments: Callable[[], tuple[Any, ...]]
    shared: int
    lines: tuple[int, ...]
    language: str = "numba"

    def launch(self, mended: bool) -> Any:
        """The kernel with the shape of its launch."""
        return self.kernel(mended)[self.grid, self.block, 0, self.shared]


def marked_lines(text: str, first_line: int = 1) -> tuple[int, ...]:
    """The lines with marks, in the order in which the program runs through them."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), first_line):
        if match := MARK.search(line):
            for mark in match.group(1).split(", "):
                assert mark not in found, f"two lines are marked {mark}"
                found[mark] = number
    return tuple(found[mark] for mark in ("first", "second", "here") if mark in found)


class Corpus(list[Pair]):
    """The pairs of one file."""

    def pair(
        self,
        kind: str,
        arguments: Callable[[], tuple[Any, ...]],
        *,
        grid: Any = 1,
        block: Any = 64,
        shared: int = 0,
        says: str = "",
    ) -> Callable[[Callable[[bool], Any]], Callable[[bool], Any]]:
        """Add the pair whose kernel the decorated function makes; its name says what is wrong."""

        def add(make: Callable[[bool], Any]) -> Callable[[bool], Any]:
            text, start = inspect.getsourcelines(make)
            lines = marked_lines("".join(text), start)
            name = make.__name__.replace("_", " ")
            self.append(Pair(name, kind, says, make, grid, block, arguments, shared, lines))
            return make

        return add

    def harmless(
        self, arguments: Callable[[], tuple[Any, ...]], **shape: Any
    ) -> Callable[[Callable[[bool], Any]], Callable[[bool], Any]]:
        """Add a kernel that looks wrong and is right."""
        return self.pair("", arguments, **shape)
