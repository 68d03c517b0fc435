"""A thing to show is a `Card`: a few kinds of pieces, laid out as text and as HTML with the same words.

A class that subclasses `Shown` and has a `card()` shows itself in a terminal, in a notebook and through rich.
In the words of a piece, `` `backticks` `` mark code.
"""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

WIDTH = 88  # columns of plain text
INDENT = 2


@dataclass(frozen=True)
class Span:
    """Words in one style (a key of `STYLES`)."""

    text: str
    style: str = ""


Words = str | Span | tuple[str | Span, ...]


@dataclass(frozen=True)
class Style:
    rich: str
    css: str


def _tone(colour: str) -> str:
    """A mid-tone drawn towards the page's own ink, so that it reads on a light and on a dark page.

    The plain colour stands before it for readers of saved notebooks that take no mixture.
    """
    return f"color:{colour};color:color-mix(in srgb,{colour} 80%,currentcolor);font-weight:600"


# A mark or a word always says the same as the colour.
STYLES = {
    "": Style("", ""),
    "strong": Style("bold", "font-weight:600"),
    "good": Style("green", _tone("#1f8f4e")),
    "bad": Style("red", _tone("#d93f4c")),
    "partly": Style("yellow", _tone("#b27a00")),
    "dim": Style("dim", "opacity:.7"),
    "code": Style(
        "cyan",
        "font-family:var(--jp-code-font-family,ui-monospace,monospace);font-size:.95em;white-space:pre-wrap",
    ),
}

MARKS = {
    "pass": Span("✔", "good"),
    "part": Span("◐", "partly"),
    "fail": Span("✘", "bad"),
    "wait": Span("○", "dim"),
}


@dataclass(frozen=True)
class Heading:
    """The first line: what it is about, and at the right edge the sum of it."""

    left: Words
    right: Words = ""


@dataclass(frozen=True)
class Row:
    """A label, what is to say about it, a number at the right edge; `mark` is a key of `MARKS` or empty."""

    label: Words
    body: Words
    right: Words = ""
    mark: str = ""


@dataclass(frozen=True)
class Note:
    """A paragraph; `inset` puts it under the row before."""

    text: Words
    inset: bool = False


@dataclass(frozen=True)
class Code:
    """A line of the learner's source under the row before."""

    line: int
    text: str


@dataclass(frozen=True)
class Block:
    """Lines whose layout counts, such as source lines beside each other, under the row before. Those with a
    │ are never wrapped."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A figure, as HTML that was made to be shown. Text leaves it out: the words around it say the same."""

    html: str


@dataclass(frozen=True)
class Table:
    """Columns with names; `left` holds the columns that are text, the others are numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[Words, ...], ...]
    left: frozenset[int] = frozenset({0})


@dataclass(frozen=True)
class Bar:
    """A line of the learner's source with a bar: `share` (0 to 1) of all that `words` says, and their
    number."""

    line: str
    text: str
    share: float
    words: str
    bad: bool = False


@dataclass(frozen=True)
class Drawn:
    """An SVG image in the HTML layout, and in the text layout nothing: what it shows, other pieces say."""

    svg: str
    alt: str


Piece = Heading | Row | Note | Code | Block | Picture | Table | Bar | Drawn


@dataclass(frozen=True)
class Card:
    """Pieces from top to bottom."""

    pieces: tuple[Piece, ...]

    def lines(self, width: int = WIDTH) -> list[list[Span]]:
        """The text layout: lines of spans, at most `width` columns where the words allow it."""
        return list(_Layout(self, width).lines())

    def text(self, width: int = WIDTH) -> str:
        """Plain text; no line ends in blanks."""
        return "\n".join("".join(span.text for span in line).rstrip() for line in self.lines(width))

    def html(self) -> str:
        """HTML that inherits the notebook's colours; every string is escaped."""
        rows = [p for p in self.pieces if isinstance(p, Row)]
        label = max((len(plain(row.label)) for row in rows), default=0)
        marked = any(row.mark for row in rows)
        content = "".join(_html_piece(piece, label, marked) for piece in self.pieces)
        return f'<div class="gpulab-card" style="{_CARD_CSS}">{content}</div>'


@singledispatch
def card_of(shown: Shown) -> Card:
    """What is shown of a record whose module knows nothing of how it is shown: another one registers that."""
    raise NotImplementedError(f"nobody has registered how a {type(shown).__name__} is shown")


class Shown:
    """Base of what shows itself: a subclass has its own `card()`, or one is registered in `card_of`."""

    _shown_in = 0  # the notebook's cell, by its execution count, that has shown it with `present`

    def card(self) -> Card:
        return card_of(self)

    def __str__(self) -> str:
        return self.card().text()

    def __repr__(self) -> str:
        return str(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        for line in self.card().lines(min(options.max_width, 100)):
            yield Text.assemble(*((span.text, STYLES[span.style].rich) for span in line))

    def _repr_html_(self) -> str:
        return self.card().html()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        card = self.card()
        return {"text/plain": card.text(), "text/html": card.html()}

    def _ipython_display_(self) -> None:
        """Nothing where this cell has shown it already and merely ends in it."""
        shell = notebook()
        if shell is None or self._shown_in != shell.execution_count:
            from IPython.display import display

            display(self._repr_mimebundle_(), raw=True)


def notebook() -> Any:
    """IPython's shell, in a notebook or a terminal; None where Python runs without it."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None


def present(thing: Any) -> None:
    """Show a thing now, wherever in a cell the call is: as HTML in a notebook, as text elsewhere.

    What is `Shown` is not shown again by the same cell.
    """
    shell = notebook()
    if shell is None:
        print(thing)
        return
    from IPython.display import display

    display(thing)
    if isinstance(thing, Shown):
        object.__setattr__(thing, "_shown_in", shell.execution_count)  # records are frozen


# ---------------------------------------------------------------- words


def spans(words: Words, ticks: bool = True) -> list[Span]:
    """Words as spans.

    `` `code` `` in plain strings becomes a span of its own and keeps its ticks if `ticks`.
    """
    if isinstance(words, tuple):
        return [span for part in words for span in spans(part, ticks)]
    if isinstance(words, Span):
        return [words] if words.text else []
    parts = re.split(r"(`[^`]+`)", words)
    return [
        Span(text if ticks or not i % 2 else text[1:-1], "code" if i % 2 else "")
        for i, text in enumerate(parts)
        if text
    ]


def plain(words: Words) -> str:
    """The characters of words in the text layout."""
    return "".join(span.text for span in spans(words))


def number(value: float | int | None, unit: str = "") -> str:
    """A number as people read it: ``49,152 B``, ``4.0``, ``0.0012``, ``–`` for None.

    Integers keep all digits; other numbers show three significant ones, at least one behind the point.
    """
    if value is None:
        return "–"
    if isinstance(value, int) or (abs(value) >= 1000 and float(value).is_integer()):
        text = f"{int(value):,}"
    elif value != value or abs(value) == float("inf"):
        text = str(value)
    elif value == 0 or abs(value) >= 100:
        text = f"{value:,.1f}"
    elif abs(value) >= 0.001:
        text = f"{value:.3g}" if abs(value) < 1 else f"{value:.{1 if abs(value) >= 10 else 2}f}"
        whole, _, decimals = text.partition(".")
        text = f"{whole}.{decimals.rstrip('0') or '0'}"
    else:
        text = f"{value:.2e}"
    return f"{text} {unit}" if unit and unit != "%" else f"{text} %" if unit else text


def points(value: float) -> str:
    """Points with as many decimals as they need, at most two: ``2.0``, ``0``, ``1.25``."""
    if value == 0:
        return "0"
    text = f"{value:.2f}"
    return text[:-1] if text.endswith("0") else text


# ---------------------------------------------------------------- text


HELD = "\u00a0"  # a blank at which no line is broken; the text layout turns it into a plain one


def together(text: str) -> str:
    """`text` as one word, where a line has room for it."""
    return text.replace(" ", HELD)


def _wrap(words: Words, width: int) -> list[list[Span]]:
    """Break words at blanks so that no line is longer than `width`; a single long word stays whole.

    Blanks at the start of a paragraph are kept, those at a break are dropped.
    """
    lines: list[list[Span]] = [[]]
    used, fresh = 0, True  # fresh: the line starts a paragraph
    for span in spans(words):
        for token in re.findall(rf"\n|[\S{HELD}]+|[^\S\n{HELD}]+", span.text):
            if token == "\n":
                lines.append([])
                used, fresh = 0, True
            elif token.isspace() and not used and not fresh:
                continue
            elif used and not token.isspace() and used + len(token) > width:
                lines.append([Span(token, span.style)])
                used, fresh = len(token), False
            else:
                lines[-1].append(Span(token, span.style))
                used += len(token)
    for line in lines:
        while line and line[-1].text.isspace():
            line.pop()
    return [[Span(part.text.replace(HELD, " "), part.style) for part in line] for line in lines]


def _length(line: Iterable[Span]) -> int:
    return sum(len(span.text) for span in line)


@dataclass
class _Layout:
    card: Card
    width: int

    def lines(self) -> Iterator[list[Span]]:
        rows = [p for p in self.card.pieces if isinstance(p, Row)]
        marked = any(row.mark for row in rows)
        label = max((len(plain(row.label)) for row in rows), default=0) + 2
        for piece in self.card.pieces:
            match piece:
                case Heading():
                    yield from self._spread([], spans(piece.left), spans(piece.right))
                case Row():
                    start = [MARKS.get(piece.mark, Span(" ")), Span(" ")] if marked else []
                    head = spans(piece.label)
                    start += [*head, Span(" " * (label - _length(head)))]
                    yield from self._spread(start, spans(piece.body), spans(piece.right))
                case Note():
                    indent = INDENT if piece.inset else 0
                    for line in _wrap(piece.text, self.width - indent):
                        yield [Span(" " * indent), *line]
                case Code():
                    yield [Span(" " * INDENT), Span(f"line {piece.line}   ", "dim"), Span(piece.text, "code")]
                case Block():
                    for text in piece.text.splitlines():
                        yield [Span(" " * INDENT), *spans(text)]
                case Picture():
                    pass
                case Table():
                    yield from self._table(piece)
                case Bar():
                    yield from self._spread(
                        [], [Span(f"{piece.line:>4}  "), Span(piece.text, "code")], _bar_text(piece)
                    )

    def _spread(self, start: list[Span], body: list[Span], right: list[Span]) -> Iterator[list[Span]]:
        """Start, then the body wrapped between it and what stands at the right edge of the first line."""
        margin = _length(start)
        room = max(self.width - margin - (_length(right) + 2 if right else 0), 24)
        first, *rest = _wrap(tuple(body), room)
        gap = self.width - margin - _length(first) - _length(right)
        yield [*start, *first, Span(" " * max(gap, 2)), *right] if right else [*start, *first]
        for line in rest:
            yield [Span(" " * margin), *line]

    def _table(self, table: Table) -> Iterator[list[Span]]:
        grid = [tuple((Span(name, "dim"),) for name in table.header), *table.rows]
        widths = [max(len(plain(row[i])) for row in grid) for i in range(len(table.header))]
        for row in grid:
            line: list[Span] = []
            for i, cell in enumerate(row):
                blank = Span(" " * (widths[i] - len(plain(cell))))
                line += [*spans(cell), blank] if i in table.left else [blank, *spans(cell)]
                line.append(Span("  "))
            yield line


def _bar_text(bar: Bar) -> list[Span]:
    blocks = round(12 * bar.share)
    return [
        Span("█" * blocks + " " * (12 - blocks), "bad" if bar.bad else ""),
        Span(f"  {bar.words:<16}", "dim"),
    ]


# ---------------------------------------------------------------- HTML

_CARD_CSS = (
    "display:grid;gap:.2em;max-width:60em;margin:.4em 0;padding:.6em .9em;"
    "border:1px solid var(--jp-border-color2,rgba(128,128,128,.4));border-radius:4px;color:inherit;"
    "font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:var(--jp-ui-font-size1,13px);"
    "line-height:1.45;font-variant-numeric:tabular-nums;text-align:left"
)
_TABLE_CSS = (
    "border-collapse:collapse;margin:0;white-space:pre;overflow-wrap:normal;color:inherit;font-size:inherit"
)
_RIGHT = "text-align:right;white-space:pre"


def _html_words(words: Words) -> str:
    def one(span: Span) -> str:
        text = escape(span.text)
        if span.style == "code":
            return f'<code style="{STYLES["code"].css};background:none;color:inherit;padding:0">{text}</code>'
        css = STYLES[span.style].css
        return f'<span style="{css}">{text}</span>' if css else text

    return "".join(one(span) for span in spans(words, ticks=False))


def _cell(content: str, css: str = "") -> str:
    style = f"min-width:0;white-space:pre-wrap;overflow-wrap:anywhere;{css}"
    return f'<div style="{style.rstrip(";")}">{content}</div>'


def _line(*cells: str, css: str = "") -> str:
    """Cells beside one another, and below one another where there is no room."""
    style = f"display:flex;flex-wrap:wrap;gap:0 .9em;align-items:baseline;min-width:0;{css}"
    return f'<div style="{style.rstrip(";")}">{"".join(cells)}</div>'


def _html_piece(piece: Piece, label: int, marked: bool) -> str:
    """One piece; the labels of all rows have `label` characters at most, and some rows have a mark."""
    inset = "padding-left:1.9em" if marked else "padding-left:.9em"
    match piece:
        case Heading():
            right = _cell(_html_words(piece.right), f"{_RIGHT};margin-left:auto")
            return _line(_cell(_html_words(piece.left)), right)
        case Row():
            mark = _cell(_html_words(MARKS.get(piece.mark, "")), "flex:0 0 1em") if marked else ""
            name = _cell(_html_words(piece.label), f"flex:0 0 {min(label, 28) + 0.5}ch") if label else ""
            right = _cell(_html_words(piece.right), f"{_RIGHT};flex:none") if piece.right else ""
            body = _cell(_html_words(piece.body), "flex:1 1 0")
            rest = _line(body, right, css="flex:1 1 15em;flex-wrap:nowrap")
            return _line(mark, _line(name, rest, css="flex:1 1 0"), css="flex-wrap:nowrap")
        case Note():
            return _cell(_html_words(piece.text), inset if piece.inset else "")
        case Code():
            line = _html_words(Span(f"line {piece.line}", "dim"))
            return _cell(f"{line} &nbsp; {_html_words(Span(piece.text, 'code'))}", inset)
        case Block():
            lines = "".join(_html_line(line) for line in piece.text.splitlines())
            return _cell(lines, f"{STYLES['code'].css};overflow-x:auto;{inset}")
        case Picture():
            return _cell(piece.html, "white-space:normal")
        case Table():
            return _cell(_html_table(piece), "overflow-x:auto")
        case Bar():
            return _html_bar(piece)
        case Drawn():
            data = b64encode(piece.svg.encode()).decode()
            source = f"data:image/svg+xml;base64,{data}"
            image = f'<img alt="{escape(piece.alt)}" src="{source}" style="max-width:100%">'
            return f'<div style="margin:.4em 0">{image}</div>'


def _html_bar(bar: Bar) -> str:
    colour = f"color-mix(in srgb,{'#d55e00' if bar.bad else '#0064a4'} 78%,currentcolor)"
    full = f"width:{100 * bar.share:.0f}%;height:.75em;background:{colour};border-radius:2px"
    track = "flex:0 0 7em;background:rgba(128,128,128,0.25);border-radius:2px"
    code = _html_words((Span(f"{bar.line}  ", "dim"), Span(bar.text, "code")))
    words = _cell(_html_words(Span(bar.words, "dim")), "flex:0 0 11em")
    shown = f'<div style="{track}"><div style="{full}"></div></div>{words}'
    return _line(_cell(code, "flex:1 1 16em"), _line(shown, css="flex:0 1 19em;flex-wrap:nowrap"))


def _html_line(text: str) -> str:
    """A line of a block: source lines stay as they are, sentences may be wrapped."""
    css = ' style="white-space:pre;overflow-wrap:normal"' if "│" in text else ""
    return f"<div{css}>{_html_words(text) or '&#8203;'}</div>"


def _html_table(table: Table) -> str:
    def cell(tag: str, content: str, i: int) -> str:
        side = "left" if i in table.left else "right"
        return f'<{tag} style="text-align:{side};padding:.1em .9em .1em 0;background:none">{content}</{tag}>'

    head = "".join(cell("th", _html_words(Span(name, "dim")), i) for i, name in enumerate(table.header))
    rows = ("".join(cell("td", _html_words(c), i) for i, c in enumerate(row)) for row in table.rows)
    plain_row = '<tr style="background:none">'  # notebooks stripe their tables
    body = "".join(f"{plain_row}{cells}</tr>" for cells in rows)
    return f'<table style="{_TABLE_CSS}"><thead>{plain_row}{head}</tr></thead><tbody>{body}</tbody></table>'
