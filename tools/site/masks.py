"""What a solution's output may not tell: the solution's own lines, which reports and figures quote."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

SHORTEST = 6  # characters: `else:` says nothing
ENOUGH = 30  # so much of a longer line is recognised where a report cuts it off
HIDDEN = "⋯"


def secret_lines(solution: str, released: str) -> set[str]:
    """The lines of a notebook with solutions that the released one does not have.

    Words alone, such as `continue`, are no secret.
    """
    known = {line.strip() for line in released.splitlines()}
    lines = {line.strip() for line in solution.splitlines()} - known
    return {line for line in lines if len(line) >= SHORTEST and re.search(r"\W", line)}


class Mask:
    """Hides lines wherever they stand in a text, as they are or escaped for HTML."""

    def __init__(self, lines: Iterable[str]) -> None:
        forms = {form for line in lines for form in (line, escape(line), escape(line, quote=False))}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        patterns = [
            re.escape(form[:ENOUGH]) + (r"[^<\n]*" if form[ENOUGH:] else "") for form in longest_first
        ]
        self._pattern = re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)") if patterns else None

    def hide(self, text: str) -> str:
        return self._pattern.sub(HIDDEN, text) if self._pattern else text
