"""Elements of the home page: each carries its styles, because notebooks that nobody has run yet lose style
sheets."""

from __future__ import annotations

import base64
import re
from html import escape

RULE = "rgba(128,128,128,0.45)"
ACCENT = "#0064a4"
DONE = "#1f8f4e"
FONT = (
    "font-family:var(--jp-ui-font-family,system-ui,sans-serif);line-height:1.45;color:inherit;text-align:left"
)


def element(tag: str, css: str, *children: str, **attributes: str) -> str:
    """One element; `children` are HTML already. An attribute ``data_lab`` is written ``data-lab``."""
    said = "".join(f' {name.replace("_", "-")}="{escape(value)}"' for name, value in attributes.items())
    style = f' style="{css}"' if css else ""
    return f"<{tag}{said}{style}>{''.join(children)}</{tag}>"


def words(text: str) -> str:
    """A text as HTML, with what stands between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def image(svg: str, alt: str, css: str = "max-width:100%") -> str:
    """An SVG file as an image that needs no other file."""
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}" style="{css}">'


def ring(share: float, words: str) -> str:
    """A circle of which `share` (0 to 1) is done, around a few letters."""
    length = 2 * 3.1416 * 19
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="42" height="42" viewBox="0 0 42 42"'
        ' fill="none" stroke-width="4">'
        '<circle cx="21" cy="21" r="19" stroke="#808080" stroke-opacity=".3"/><circle cx="21"'
        f' cy="21" r="19" stroke="{DONE}"'
        f' stroke-dasharray="{share * length:.1f} {length:.1f}" transform="rotate(-90 21 21)"/></svg>'
    )
    cell = "grid-row:1;grid-column:1"
    label = element("span", f"{cell};font-size:13px;font-weight:600", words)
    css = "display:grid;place-items:center;flex:none;width:42px;height:42px"
    return element("span", css, image(svg, "", cell), label)


def badge(words: str) -> str:
    """A few letters in a circle."""
    css = f"display:grid;place-items:center;flex:none;width:42px;height:42px;border:1px solid {RULE}"
    css += ";border-radius:50%"
    return element("span", f"{css};font-size:13px;font-weight:600;box-sizing:border-box", words)
