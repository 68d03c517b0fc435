"""The labs in order, each a link with what it needs and a ring that says how much of it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from gpulab.foundation.display import Card, Heading, Note, Piece, Row, Shown, Span

from . import catalogue, html
from .catalogue import Lab
from .progress import progress

Address = Callable[[str], str]


def in_jupyter(page: str) -> str:
    """Where a notebook is, seen from the home page."""
    return f"{page}.ipynb"


@dataclass(frozen=True, repr=False)
class LabMap(Shown):
    """All labs in their stages, or those of one `path` in order. `shares` are what is done, by lab
    number; none
    where nobody's progress is shown."""

    shares: dict[str, float]
    path: str = ""

    def card(self) -> Card:
        pieces: list[Piece] = []
        if self.path:
            chosen = next(p for p in catalogue.paths() if p.name == self.path)
            pieces += [Heading(Span(chosen.name, "strong"), f"{chosen.hours:g} hours"), Note(chosen.words)]
            pieces += [self._row(catalogue.labs()[key]) for key in chosen.labs]
            return Card(tuple(pieces))
        for stage in catalogue.stages():
            pieces.append(Heading(Span(stage.name, "strong"), _hours(stage.labs)))
            pieces += [self._row(catalogue.labs()[key]) for key in stage.labs]
        return Card(tuple(pieces))

    def _row(self, lab: Lab) -> Row:
        share = self.shares.get(lab.number, 0.0)
        mark = "pass" if share == 1 else "part" if share else "wait"
        after = f" · after {', '.join(lab.needs)}" if lab.needs else ""
        return Row(lab.key, f"{lab.title}{after}", lab.time, mark)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.card().text(), "text/html": self.html()}

    def html(self, address: Address = in_jupyter) -> str:
        """The map as HTML; `address` turns a notebook's path into a link, or into nothing where there is
        none."""
        if self.path:
            return html.element("div", html.FONT, self._path_html(address))
        rows = [self._stage_html(stage, address) for stage in catalogue.stages()]
        css = f"{html.FONT};display:grid;gap:1.1rem;max-width:68rem;margin:.6rem 0"
        return html.element("div", css, *rows, **{"class": "gpulab-map"})

    def _stage_html(self, stage: catalogue.Stage, address: Address) -> str:
        head = html.element(
            "div",
            "display:flex;gap:.7rem;align-items:baseline;margin-bottom:.45rem",
            html.element("strong", "font-size:15px", escape(stage.name)),
            html.element("span", "font-size:13px;opacity:.8", _hours(stage.labs)),
        )
        cards = [self._card_html(catalogue.labs()[key], address) for key in stage.labs]
        css = "display:grid;gap:.6rem;grid-template-columns:repeat(auto-fill,minmax(205px,1fr))"
        return html.element("div", "", head, html.element("div", css, *cards))

    def _card_html(self, lab: Lab, address: Address) -> str:
        pages = [where for page in lab.pages if (where := address(page))]
        link = "color:inherit;font-weight:600;text-decoration:underline;text-underline-offset:2px"
        title = html.element("a", link, escape(lab.title), href=pages[0]) if pages else escape(lab.title)
        more = "".join(
            " · " + html.element("a", link, part.upper(), href=where)
            for part, where in zip(lab.parts[1:], pages[1:], strict=False)
        )
        after = f" · after {', '.join(lab.needs)}" if lab.needs else ""
        words = html.element(
            "div",
            "min-width:0",
            html.element("div", "font-size:14px", title, more),
            html.element("div", "font-size:12.5px;opacity:.8", f"{lab.time}{after}"),
        )
        css = (
            f"display:flex;gap:.65rem;align-items:center;min-width:0;padding:.5rem .6rem;border-radius:8px;"
            f"border:1px solid {html.RULE}"
        )
        ring = html.ring(self.shares.get(lab.number, 0.0), lab.key) if self.shares else html.badge(lab.key)
        return html.element("div", css, ring, words, **{"class": f"gpulab-lab gpulab-lab-{lab.number}"})

    def _path_html(self, address: Address) -> str:
        path = next(p for p in catalogue.paths() if p.name == self.path)
        chips = []
        for key in path.labs:
            lab = catalogue.labs()[key]
            words = f"<b>{lab.key}</b>&ensp;{escape(lab.title)}"
            css = f"display:inline-block;padding:.25rem .6rem;border:1px solid {html.RULE};border-radius:99px"
            css += ";color:inherit;font-size:13px;text-decoration:none"
            where = address(lab.pages[0])
            chips.append(
                html.element("a", css, words, href=where) if where else html.element("span", css, words)
            )
        arrow = html.element("span", "opacity:.7;font-size:13px", "→")
        steps = arrow.join(html.element("span", "", chip) for chip in chips)
        head = html.element(
            "div",
            "margin-bottom:.5rem;font-size:14px",
            f"<b>{escape(path.name)}</b> · {path.hours:g} hours. {escape(path.words)}",
        )
        row = html.element("div", "display:flex;flex-wrap:wrap;gap:.45rem;align-items:center", steps)
        return html.element("div", "max-width:68rem;margin:.6rem 0", head, row, **{"class": "gpulab-path"})


def _hours(keys: tuple[str, ...]) -> str:
    return f"{sum(catalogue.labs()[key].hours for key in keys):g} hours"


def lab_map(path: str = "") -> LabMap:
    """All labs in order with links and progress, or the labs of one path: ``lab_map("The short one")``.

    Raises ValueError for a path that does not exist.
    """
    known = [p.name for p in catalogue.paths()]
    if path and path not in known:
        raise ValueError(f"there is no path {path!r}; paths are {', '.join(known)}")
    return LabMap({lab.number: lab.share for lab in progress().labs}, path)
