"""The labs as a picture, with what each needs and what has been done."""

from __future__ import annotations

import gpulab.plot.lab_map as figure
from gpulab.plot.style import Picture

from . import catalogue
from .progress import progress


def lab_map(path: str = "") -> Picture:
    """Draw the labs from left to right, each after those that it needs; `path` names one to be marked.

    Raises ValueError for a path that does not exist.
    """
    known = {p.name: p for p in catalogue.paths()}
    if path and path not in known:
        raise ValueError(f"there is no path {path!r}; paths are {', '.join(known)}")
    shares = {lab.number: lab.share for lab in progress().labs}
    chosen = known[path].labs if path else ()
    nodes = [
        figure.Node(lab.key, lab.title, lab.hours, lab.needs, shares[lab.number], lab.key in chosen)
        for lab in catalogue.labs().values()
    ]
    if path:
        caption = f"{path}, {known[path].hours:g} hours. {known[path].words}"
    else:
        hours = sum(lab.hours for lab in catalogue.labs().values())
        caption = (
            f"All labs, {hours:g} hours. A line leads from a lab to one that needs it; the bar in a box is"
            " what you have passed."
        )
    return figure.lab_map(nodes, caption)
