"""Labs from left to right, each after those that it needs."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path

from . import style

WIDTH, HEIGHT = 1.04, 0.62  # of a box, in inches
STEP, ROW, LANE = 1.36, 0.8, 0.22  # from box to box; the height of a line that passes


@dataclass(frozen=True)
class Node:
    """A lab; `needs` are keys of others, `done` is a share from 0 to 1."""

    key: str
    title: str
    hours: float
    needs: tuple[str, ...]
    done: float = 0.0
    marked: bool = False


def columns(nodes: Sequence[Node]) -> dict[str, int]:
    """How far to the right each lab stands: one further than all that it needs."""
    by_key = {node.key: node for node in nodes}
    found: dict[str, int] = {}

    def column(key: str) -> int:
        if key not in found:
            found[key] = 1 + max((column(need) for need in by_key[key].needs), default=-1)
        return found[key]

    for node in nodes:
        column(node.key)
    return found


def direct(nodes: Sequence[Node]) -> list[tuple[str, str]]:
    """The pairs (needed, needing) that no longer way through other labs already says."""
    by_key = {node.key: node for node in nodes}

    def all_needs(key: str) -> set[str]:
        return set(by_key[key].needs).union(*(all_needs(need) for need in by_key[key].needs))

    return [
        (need, node.key)
        for node in nodes
        for need in node.needs
        if not any(need in all_needs(other) for other in node.needs)
    ]


Place = tuple[float, float]
Item = tuple[str, int]  # a lab's box at its column, or a lab's line on its way through another one


def _layout(nodes: Sequence[Node]) -> dict[Item, Place]:
    """The lower left corner of each box, and where a line passes a column."""
    at = columns(nodes)
    comes_from: dict[Item, list[Item]] = {(node.key, at[node.key]): [] for node in nodes}
    for need, key in direct(nodes):
        way = [(need, column) for column in range(at[need], at[key])]
        for before, after in pairwise([*way, (key, at[key])]):
            sources = comes_from.setdefault(after, [])
            sources += [] if before in sources else [before]
    found: dict[Item, Place] = {}
    for column in range(max(at.values()) + 1):
        here = [item for item in comes_from if item[1] == column]

        def wish(item: Item) -> float:
            middles = [_middle(found, source, at) for source in comes_from[item]]
            return -sum(middles) / len(middles) if middles else 0.0

        here.sort(key=wish)
        heights = [ROW if at[key] == column else LANE for key, _ in here]
        y = sum(heights) / 2
        for item, height in zip(here, heights, strict=True):
            y -= height
            found[item] = (column * STEP, y)
    return found


def _middle(places: Mapping[Item, Place], item: Item, at: Mapping[str, int]) -> float:
    return places[item][1] + (HEIGHT / 2 if at[item[0]] == item[1] else LANE / 2)


def lab_map(nodes: Sequence[Node], caption: str, ax: Axes | None = None) -> style.Picture:
    """Draw a box for each lab and a line from each to those that need it.

    Raises NothingToDraw without a lab.
    """
    if not nodes:
        raise style.NothingToDraw("there is nothing to draw: no lab was given")
    at, layout = columns(nodes), _layout(nodes)
    places = {node.key: layout[node.key, at[node.key]] for node in nodes}
    low, high = min(y for _, y in layout.values()), max(y for _, y in layout.values()) + HEIGHT
    wide = max(x for x, _ in places.values()) + WIDTH
    ax, given = style.begin(ax, wide + 0.3, high - low + 0.4)
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.set_xlim(-0.08, wide + 0.08)
    ax.set_ylim(low - 0.1, high + 0.1)
    path = {node.key for node in nodes if node.marked}
    for need, key in direct(nodes):
        x, y = places[need]
        points = [(x + WIDTH, y + HEIGHT / 2)]
        for column in range(at[need] + 1, at[key]):
            middle = _middle(layout, (need, column), at)
            points += [(column * STEP, middle), (column * STEP + WIDTH, middle)]
        x, y = places[key]
        _line(ax, [*points, (x, y + HEIGHT / 2)], strong={need, key} <= path)
    for node in nodes:
        _box(ax, places[node.key], node, faint=bool(path) and not node.marked)
    return style.finish(ax, caption, given)


def _line(ax: Axes, points: Sequence[Place], strong: bool) -> None:
    """Bends between the columns, straight through them."""
    bend = (STEP - WIDTH) / 2
    vertices, codes = [points[0]], [Path.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(points):
        vertices += [(x0 + bend, y0), (x1 - bend, y1), (x1, y1)]
        codes += [Path.CURVE4] * 3
    colour, width = (style.DEEP, 1.8) if strong else (style.FAINT, 1.0)
    patch = PathPatch(Path(vertices, codes), fill=False, edgecolor=colour, linewidth=width, zorder=1)
    ax.add_patch(patch)


def _box(ax: Axes, place: tuple[float, float], node: Node, faint: bool) -> None:
    x, y = place
    shape = "round,pad=0,rounding_size=0.06"
    colour = style.FAINT if faint else style.INK
    box = FancyBboxPatch(
        (x, y), WIDTH, HEIGHT, boxstyle=shape, facecolor="none", edgecolor=colour, linewidth=1.2, zorder=3
    )
    ax.add_patch(box)
    if node.done:
        bar = FancyBboxPatch(
            (x, y),
            WIDTH * node.done,
            0.09,
            boxstyle="square,pad=0",
            facecolor=style.LEAF,
            edgecolor="none",
            zorder=4,
        )
        bar.set_clip_path(box)
        ax.add_patch(bar)
    ax.text(
        x + 0.06, y + HEIGHT - 0.06, node.key, va="top", color=colour, fontsize=8, fontweight="bold", zorder=5
    )
    ax.text(
        x + WIDTH - 0.06,
        y + HEIGHT - 0.06,
        f"{node.hours:g} h",
        va="top",
        ha="right",
        color=colour,
        fontsize=7,
        zorder=5,
    )
    title = textwrap.fill(node.title, 14, break_long_words=False)
    ax.text(x + 0.06, y + HEIGHT - 0.21, title, va="top", color=colour, fontsize=7, linespacing=1.0, zorder=5)
