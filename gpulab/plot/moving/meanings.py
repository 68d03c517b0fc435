"""One meaning per colour, in every figure of the course; a shape or a word always says the same."""

from __future__ import annotations

from dataclasses import dataclass

from gpulab.plot import on_paper, style


@dataclass(frozen=True)
class Meaning:
    """A colour, the word in a legend, and the sign that says it without colour."""

    colour: str
    word: str
    sign: str


MEANINGS = {
    "read": Meaning(style.DEEP, "read in this step", "line below"),
    "write": Meaning(style.AMBER, "written in this step", "thick frame"),
    "earlier": Meaning(on_paper.INK, "touched earlier", "grey"),
    "active": Meaning(on_paper.INK, "active lane", "full circle"),
    "inactive": Meaning(on_paper.INK, "inactive lane", "hollow circle"),
    "barrier": Meaning(style.ROSE, "waits at a barrier", "square"),
    "finished": Meaning(on_paper.INK, "finished", "short line"),
    "wrong": Meaning(style.ALARM, "wrong", "marked corner"),
    "right": Meaning(style.LEAF, "right", "tick"),
}


def css() -> str:
    """The colours as custom properties: ``--read:#0064a4;--write:…``."""
    return "".join(f"--{name}:{meaning.colour};" for name, meaning in MEANINGS.items())
