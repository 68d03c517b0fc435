"""The course's front: what it is, one button, and the map."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from gpulab.checks import progress as records
from gpulab.checks import registry
from gpulab.foundation.display import Card, Heading, Note, Shown, Span
from gpulab.plot.drawing import code, column, flow, page, titled, wires

from . import catalogue, html

PROMISE = "See what your code does to a GPU"
WORDS = (
    "You write kernels in Python, CUDA C++ and Triton, then train and serve real models. NVIDIA's"
    " own compiler"
    " translates every kernel, and a simulator runs it and counts each access. You need no GPU, and"
    " with one the"
    " same cells run on it."
)
HERO = (
    "A kernel of five lines. Eight lanes of a warp that read neighbouring elements touch 2 sectors"
    " of 32 bytes."
    " If they read a column instead, each touches a sector of its own, and 8 sectors are moved."
)


def hero() -> str:
    """The picture on the home page, as SVG."""
    kernel = code(
        [
            "@cuda.jit",
            "def double(a, out):",
            "    i = cuda.grid(1)",
            "    if i < a.size:",
            "        out[i] = 2 * a[i]",
        ],
        lit=4,
        size=13,
    )
    access = wires(
        8, [[0]] * 4 + [[1]] * 4, "rr", width=230, depth=46, above="01234567", below=["32 bytes"] * 2
    )
    strided = wires(8, [[i] for i in range(8)], "xxxxxxxx", width=230, depth=30)
    pictures = column(titled("neighbours: 2 sectors", access), titled("a column: 8 sectors", strided), gap=16)
    return page(flow(kernel, pictures, length=40), HERO)


@dataclass(frozen=True, repr=False)
class Home(Shown):
    """`labs` and `exercises` are how many there are; `last` is where a learner was: a title and a page."""

    labs: int
    exercises: int
    last: tuple[str, str] = ("", "")

    def card(self) -> Card:
        start = catalogue.labs()["00"].pages[0]
        where, page_ = self.last
        go_on = f"Continue where you were: {where}, `{page_}`" if where else f"Start with `{start}.ipynb`"
        return Card((Heading(Span(PROMISE, "strong"), f"{self.labs} labs"), Note(WORDS), Note(go_on)))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.card().text(), "text/html": self.html()}

    def html(self) -> str:
        """The front as HTML."""
        start = f"{catalogue.labs()['00'].pages[0]}.ipynb"
        button = (
            "display:inline-block;padding:.6rem"
            f" 1.5rem;border-radius:8px;background:{html.ACCENT};color:#fff;"
            "font-size:17px;font-weight:600;text-decoration:none"
        )
        quiet = "color:inherit;font-size:15px;text-decoration:underline;text-underline-offset:3px"
        where, last = self.last
        go_on = html.element("a", quiet, f"Continue: {escape(where)}", href=last) if where else ""
        first = html.element("a", button, "Start", href=start, **{"class": "gpulab-start"})
        held = html.element("span", "", go_on, **{"class": "gpulab-continue"})
        numbers = f"{self.labs} labs · {self.exercises} exercises with checks · no GPU needed"
        words = html.element(
            "div",
            "flex:1 1 300px;min-width:0",
            html.element("div", "font-size:30px;line-height:1.15;font-weight:700;margin:0 0 .6rem", PROMISE),
            html.element("p", "font-size:15px;margin:0 0 1rem;max-width:34rem", WORDS),
            html.element(
                "div",
                "display:flex;flex-wrap:wrap;gap:1.1rem;align-items:center;margin-bottom:.8rem",
                first,
                held,
            ),
            html.element("div", "font-size:13px;opacity:.8", numbers),
        )
        picture = html.element("div", "flex:1 1 380px;min-width:0", html.image(hero(), HERO))
        css = f"{html.FONT};display:flex;flex-wrap:wrap;gap:1.6rem;align-items:center"
        css += ";max-width:68rem;margin:.4rem 0"
        return html.element("div", css, words, picture, **{"class": "gpulab-home"})


def home() -> Home:
    """The front of the course, with a link to where you were."""
    number, name = records.recent()
    known = {lab.number: lab for lab in reversed(catalogue.labs().values())}
    last = ("", "")
    if number in known:
        lab = known[number]
        last = (f"lab {number}, {lab.title}", name or f"{lab.pages[0]}.ipynb")
    return Home(len(known), len(registry.exercises()), last)
