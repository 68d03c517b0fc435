"""The few marks that first frames are drawn with. They stand on a card of their own, light or dark as the
reader's system is, because an image cannot know the page's colours."""

from __future__ import annotations

from html import escape

from . import meanings

WIDTH = 560  # one column: on a phone its text is still 9 pixels high
_STYLE = (
    "svg{%s--ink:#1f2328;--soft:#59636e;--paper:#fff;--share:22%%;--rule:#8c959f}"
    "@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--soft:#9da7b1;--paper:#1b1f24;--share:45%%;"
    "--rule:#6e7681}}text{fill:var(--ink);font:13px system-ui,sans-serif}"
    ".mono{font-family:ui-monospace,monospace;white-space:pre}"
    ".small{font-size:10px}.soft{fill:var(--soft)}.strong{font-weight:600}.middle{text-anchor:middle}.end{text-anchor:end}"
    ".earlier{fill:var(--ink);fill-opacity:.09;stroke:var(--rule);stroke-opacity:.5}"
    ".paper{fill:var(--paper)}.cell{fill:none;stroke:var(--rule)}.line{fill:var(--ink);fill-opacity:.1}"
    ".read{fill:color-mix(in srgb,var(--read) var(--share),var(--paper));stroke:none}"
    ".under{fill:color-mix(in srgb,var(--read) 66%%,var(--ink))}"
    ".byte{fill:color-mix(in srgb,var(--read) 85%%,var(--ink))}"
    ".write{fill:color-mix(in srgb,var(--write) 40%%,var(--paper));stroke:var(--write);stroke-width:2.5}"
    ".active{fill:var(--ink);stroke:var(--ink)}.inactive{fill:none;stroke:var(--soft)}"
    ".wire{stroke:color-mix(in srgb,var(--read) 66%%,var(--ink));fill:none}"
    ".barrier{fill:var(--barrier);stroke:var(--barrier)}.finished{fill:var(--soft);fill-opacity:.4;stroke:none}"
)


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" class="{kind}"/>'


def lane(x: float, y: float, kind: str, radius: float = 5) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{kind}"/>'


def wire(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="wire"/>'


def page(parts: list[str], height: float) -> str:
    """The marks on a card of `WIDTH` × `height` pixels."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:g}"'
        f' viewBox="0 0 {WIDTH} {height:g}">'
        f"<style>{_STYLE % meanings.css()}</style>{box(0, 0, WIDTH, height, 'paper')}{''.join(parts)}</svg>"
    )
