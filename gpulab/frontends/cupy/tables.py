"""Tables of names as text."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """Names between blanks, in order."""
    return tuple(text.split())
