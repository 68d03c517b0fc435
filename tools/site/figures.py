"""Figures in the kernel that runs a notebook: they draw no secret line."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape, unescape
from typing import Any

from matplotlib.text import Text

from gpulab.plot.moving import Moving

from .masks import Mask


def hide(secrets: Iterable[str]) -> None:
    """No figure has one of these lines: matplotlib draws none, and none is in the record of a figure that
    moves. In pixels, or deflated, nobody could find them any more."""
    mask, draw, make = Mask(secrets), Text.set_text, Moving.__init__

    def set_text(self: Text, words: Any) -> None:
        draw(self, mask.hide(words) if isinstance(words, str) else words)

    def begin(self: Moving, scene: str, record: dict[str, Any], picture: str, caption: str) -> None:
        make(self, scene, hidden(record, mask), mask.hide(picture), mask.hide(caption))

    Text.set_text = set_text
    Moving.__init__ = begin  # type: ignore[method-assign]


def hidden(record: Any, mask: Mask) -> Any:
    """A record of JSON's types without the secret lines in any of its texts."""
    if isinstance(record, str):  # escaped, as the mask reads texts: there a line ends at no "<"
        return unescape(mask.hide(escape(record, quote=False)))
    if isinstance(record, dict):
        return {name: hidden(value, mask) for name, value in record.items()}
    return [hidden(value, mask) for value in record] if isinstance(record, list | tuple) else record
