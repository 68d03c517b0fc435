"""A figure that moves, as HTML that needs nothing else."""

from __future__ import annotations

import base64
import json
import zlib
from html import escape
from pathlib import Path
from typing import Any

from . import bundle

PLAIN = (
    40_000  # characters of a record that are written as they are, so that a diff of a notebook can be read
)
WEIGHT = 200_000  # bytes that a figure may weigh


class Moving:
    """A figure that shows itself in a notebook: `scene` names the renderer, `record` is what it draws, and
    `picture` is the first frame, an SVG. `caption` says what it shows: the alt text and the text form."""

    def __init__(self, scene: str, record: dict[str, Any], picture: str, caption: str):
        self.scene, self.record, self.picture, self.caption = scene, record, picture, caption

    def html(self, script: str | None = None) -> str:
        """The figure. With `script`, the address of a file that holds `bundle.script` of its scene, it does
        not carry the script itself: a site has it once."""
        tag = bundle.tag(self.scene)
        image = base64.b64encode(self.picture.encode()).decode()
        code = bundle.script(self.scene) if script is None else ""
        source = f' src="{escape(script)}"' if script is not None else ""
        return (
            f'<{tag} data-scene="{escape(self.scene)}" data-lm-suppress-shortcuts="true"'
            ' style="display:block">'
            f'<img alt="{escape(self.caption)}" style="max-width:100%"'
            f' src="data:image/svg+xml;base64,{image}">'
            f"{_inlined(self.record)}</{tag}>"
            f'<script type="module"{source}>{code}</script>'
        )

    @property
    def weight(self) -> int:
        """Bytes of the HTML, script and first frame included."""
        return len(self.html().encode())

    def save(self, path: str | Path) -> None:
        """Write a page of its own (``.html``) or the first frame (``.svg``); raises ValueError for others."""
        path = Path(path)
        if path.suffix == ".svg":
            path.write_text(self.picture, encoding="utf-8")
        elif path.suffix in (".html", ".htm"):
            title = escape(self.caption)
            head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
            head += '<meta name="viewport" content="width=device-width">'
            head += '<meta name="color-scheme" content="light dark">'
            path.write_text(f"{head}<body>{self.html()}</body></html>", encoding="utf-8")
        else:
            raise ValueError(f"{path.name!r} names no kind of file that a figure can be; write .html or .svg")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.caption, "text/html": self.html()}

    def __repr__(self) -> str:
        return self.caption


class Figured:
    """Base of records: one that a cell ends in shows its figure."""

    def figure(self) -> Moving:
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.figure()._repr_mimebundle_()


def _inlined(record: dict[str, Any]) -> str:
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
    if len(text) <= PLAIN:
        safe = text.replace("<", "\\u003c")  # nothing in a learner's source ends our element
        return f'<script type="application/json">{safe}</script>'
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return f'<script type="application/json" data-packed="deflate">{packed}</script>'
