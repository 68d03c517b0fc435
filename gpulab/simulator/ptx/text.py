"""What every rule of the parser stands on: blanks, names, and the one place that makes errors."""

from __future__ import annotations

import re

from .ir import PtxError

NAME = r"[A-Za-z_$%][\w$]*"

_BLANKS = re.compile(r"\s*")
_NAME = re.compile(NAME, re.ASCII)
_COMMENT_OR_STRING = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/|/\*', re.DOTALL)
_WORD_OR_CHARACTER = re.compile(r"[\w$%.]+|\S")
_NOT_NEWLINE = re.compile(r"[^\n]")
_INLINE_ASSEMBLY = re.compile(
    r"^[ \t]*// begin inline asm$.*?^[ \t]*// end inline asm$", re.DOTALL | re.MULTILINE
)
_LOCATION_LINE = re.compile(r"^[ \t]*\.loc\b[^\n]*", re.MULTILINE)


def error_at(source: str, position: int, message: str) -> PtxError:
    """The error to raise for what stands at `position`; it carries that line's number and text."""
    start = source.rfind("\n", 0, position) + 1
    end = source.find("\n", position)
    text = source[start : end if end >= 0 else len(source)]
    return PtxError(message, source.count("\n", 0, start) + 1, text)


def blank_comments(source: str) -> str:
    """`source` with spaces in place of comments, so that positions and line numbers stay what they were.

    Raises PtxError for a comment without an end.
    """
    return _COMMENT_OR_STRING.sub(_blank_unless_string, source)


def blank_locations_of_assembly(source: str) -> str:
    """`source` with spaces in place of each ``.loc`` within inline assembly; its marks are comments.

    LLVM numbers the lines of the assembly's text on from the source line that holds it, as if each were the
    next line of the source; Triton's loads are such texts. The ``.loc`` before the assembly says where it is.
    """
    return _INLINE_ASSEMBLY.sub(
        lambda block: _LOCATION_LINE.sub(lambda line: " " * len(line.group()), block.group()), source
    )


def _blank_unless_string(match: re.Match[str]) -> str:
    found = match.group()
    if found == "/*":
        raise error_at(match.string, match.start(), "this comment is never closed")
    return found if found[0] == '"' else _NOT_NEWLINE.sub(" ", found)


def skip_blanks(source: str, position: int) -> int:
    match = _BLANKS.match(source, position)
    return match.end() if match else position


def skip_character(source: str, position: int, character: str) -> int:
    """The position after `character` and the blanks around it; PtxError where something else stands."""
    position = skip_blanks(source, position)
    if not source.startswith(character, position):
        raise error_at(source, position, f"expected `{character}` but found {found_at(source, position)}")
    return skip_blanks(source, position + len(character))


def skip_past(source: str, position: int, character: str) -> int:
    """The position after the next `character`, wherever it is. Raises PtxError where none is left."""
    end = source.find(character, position)
    if end < 0:
        raise error_at(source, position, f"expected a `{character}` after this")
    return end + len(character)


def parse_name(source: str, position: int) -> tuple[int, str]:
    match = _NAME.match(source, position)
    if match is None:
        raise error_at(source, position, f"expected a name but found {found_at(source, position)}")
    return match.end(), match.group()


def found_at(source: str, position: int) -> str:
    """The word or character at `position`, quoted for a message."""
    match = _WORD_OR_CHARACTER.match(source, position)
    return f"`{match.group()[:60]}`" if match else "nothing more"
