"""The marks that first frames are drawn with. They stand on a card of their own, light or dark as the
reader's system is, because an image cannot know the page's colours."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files

from . import meanings

WIDTH = 560  # one column: on a phone its text is still 9 pixels high
_INKS = (
    "svg{%s--ink:#1f2328;--soft:#59636e;--paper:#fff;--share:22%%;--rule:#8c959f}"
    "@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--soft:#9da7b1;--paper:#1b1f24;--share:45%%;"
    "--rule:#6e7681}}"
)


@cache
def _style() -> str:
    marks = files(__package__).joinpath("marks.css").read_text(encoding="utf-8")
    return _INKS % meanings.css() + marks.replace("\n", "")


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str, radius: float = 2) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" class="{kind}"/>'


def lane(x: float, y: float, kind: str, radius: float = 5) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{kind}"/>'


def wire(x1: float, y1: float, x2: float, y2: float) -> str:
    return path(f"M{x1:g} {y1:g}L{x2:g} {y2:g}", "wire")


def path(way: str, kind: str) -> str:
    return f'<path d="{way}" class="{kind}"/>'


def page(parts: list[str], height: float, width: float = WIDTH) -> str:
    """The marks on a card of that many pixels."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="marks" width="{width:g}" height="{height:g}"'
        f' viewBox="0 0 {width:g} {height:g}">'
        f"<style>{_style()}</style>{box(0, 0, width, height, 'paper', 8)}{''.join(parts)}</svg>"
    )
