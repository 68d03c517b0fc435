"""Figures in the kernel that runs a notebook: they draw no secret line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matplotlib.text import Text

from .masks import Mask


def hide(secrets: Iterable[str]) -> None:
    """matplotlib draws none of these lines: in a figure's pixels nobody could find them any more."""
    mask, draw = Mask(secrets), Text.set_text

    def set_text(self: Text, words: Any) -> None:
        draw(self, mask.hide(words) if isinstance(words, str) else words)

    Text.set_text = set_text
