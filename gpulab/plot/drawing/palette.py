"""The colours of a drawing on light and on dark paper, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

from gpulab.plot import style


@dataclass(frozen=True)
class Paper:
    """A background and what is legible on it; `share` is how much of a colour a filled cell takes."""

    paper: str
    ink: str
    soft: str
    rule: str
    frame: str
    share: float


LIGHT = Paper(paper="#ffffff", ink="#1f2328", soft="#59636e", rule="#8c959f", frame="#d1d9e0", share=0.28)
DARK = Paper(paper="#1b1f24", ink="#e6edf3", soft="#a8b3bd", rule="#6e7681", frame="#3d444d", share=0.5)

TONES = {
    "read": style.DEEP,
    "write": style.AMBER,
    "good": style.LEAF,
    "wait": style.ROSE,
    "bad": style.ALARM,
    "plain": style.INK,
}


def mixed(colour: str, share: float, paper: str) -> str:
    """`share` of a colour on a paper: ``mixed("#000000", 0.5, "#ffffff")`` is ``"#808080"``."""
    pairs = zip(_channels(colour), _channels(paper), strict=True)
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in pairs)


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))


def _rules(on: Paper) -> str:
    found = [
        f".card{{fill:{on.paper};stroke:{on.frame}}}",
        f"text{{fill:{on.ink}}}.soft{{fill:{on.soft}}}",
        f".line{{stroke:{on.soft}}}.head{{fill:{on.soft}}}.axis{{stroke:{on.rule}}}",
        f".off{{stroke:{on.rule}}}.dot{{fill:{on.ink};stroke:{on.ink}}}.hollow{{stroke:{on.soft}}}",
    ]
    for name, colour in TONES.items():
        strength = on.share / 2 if name == "plain" else on.share
        fill = mixed(colour, strength, on.paper)
        edge = on.rule if name == "plain" else mixed(colour, 0.8, on.ink)
        line = on.soft if name == "plain" else mixed(colour, 0.75, on.ink)
        found.append(f".{name}{{fill:{fill};stroke:{edge}}}.{name}-line{{stroke:{line}}}")
        found.append(f".{name}-head{{fill:{line}}}")
    return "".join(found)


def css() -> str:
    """The style sheet of every drawing."""
    return (
        "text{font:15px system-ui,-apple-system,'Segoe UI',sans-serif}.middle{text-anchor:middle}"
        ".end{text-anchor:end}.small{font-size:13px}.tiny{font-size:11px}.strong{font-weight:600}"
        ".mono{font-family:ui-monospace,SFMono-Regular,Menlo,monospace;white-space:pre;font-size:14px}"
        "path,.off{fill:none;stroke-width:1.5}.off{stroke-dasharray:4 3}.head,[class$=-head]{stroke:none}"
        f"{_rules(LIGHT)}@media(prefers-color-scheme:dark){{{_rules(DARK)}}}"
    )
