"""A network of hosts and switches, with the hosts of one half marked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import cos, pi, sin

from matplotlib.axes import Axes

from . import style

Place = tuple[float, float]


def network(
    hosts: Sequence[str],
    links: Sequence[tuple[str, str, float]],
    caption: str,
    half: Collection[str] = (),
    ax: Axes | None = None,
    *,
    title: str = "",
) -> style.Picture:
    """Draw hosts as squares and switches above them, by their distance from the hosts; hosts alone stand in
    a circle. A link is (node, node, rate), drawn the thicker the higher its rate. Hosts of `half` are filled
    and marked with a cross. The caption says in one sentence what to see. Raises NothingToDraw without a
    link.
    """
    if not links:
        raise style.NothingToDraw("there is nothing to draw: the network has no link")
    places = _places(hosts, links)
    tall = max(y for _, y in places.values())
    ax, given = style.begin(ax, max(3.2, min(7.6, 0.62 * len(hosts))), 1.3 + 0.8 * tall)
    style.bare(ax)
    fastest = max(rate for _, _, rate in links)
    drawn: dict[frozenset[str], int] = {}
    for a, b, rate in links:
        between = frozenset((a, b))
        drawn[between] = drawn.get(between, 0) + 1
        shift = 0.12 * (drawn[between] - 1)  # several cables between the same two stand side by side
        (x, y), (u, v) = places[a], places[b]
        ax.plot(
            (x + shift, u + shift), (y, v), color=style.INK, linewidth=0.6 + 1.6 * rate / fastest, zorder=1
        )
    for node, (x, y) in places.items():
        host, marked = node in hosts, node in half
        ax.plot(
            x, y, "s" if host else "o", markersize=11, zorder=2, markeredgecolor=style.INK,
            color=style.AMBER if marked else style.DEEP if host else style.LEAF,
        )  # fmt: skip
        if marked:
            ax.plot(x, y, "x", markersize=6, color="black", zorder=3)
    _write_kinds(ax, hosts, places)
    ax.margins(0.08, 0.16)
    if title:
        ax.set_title(title, loc="left", fontsize=style.TEXT, color=style.INK)
    return style.finish(ax, caption, given)


def _places(hosts: Sequence[str], links: Sequence[tuple[str, str, float]]) -> dict[str, Place]:
    neighbours: dict[str, list[str]] = {host: [] for host in hosts}
    for a, b, _ in links:
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    if len(neighbours) == len(hosts):
        turn = 2 * pi / len(hosts)
        wide = len(hosts) / 6
        return {
            host: (wide * cos(pi / 2 - i * turn), 1 + sin(pi / 2 - i * turn)) for i, host in enumerate(hosts)
        }
    levels = [list(hosts)]
    seen = set(hosts)
    while levels[-1]:
        found = dict.fromkeys(n for node in levels[-1] for n in neighbours[node] if n not in seen)
        # Switches of one kind stand together: those of a node beside those between nodes.
        levels.append(sorted(found, key=lambda node: node.split()[0]))
        seen |= set(found)
    width = max(len(level) for level in levels)
    return {
        node: (width * (i + 0.5) / len(level), float(height))
        for height, level in enumerate(levels)
        for i, node in enumerate(level)
    }


def _write_kinds(ax: Axes, hosts: Sequence[str], places: dict[str, Place]) -> None:
    """Write what stands on a level at its left end, and each kind of switch once."""
    if all(node in hosts for node in places):
        return
    left = min(x for x, _ in places.values())
    levels: dict[float, list[str]] = {}
    for node, (_, y) in places.items():
        kind = "host" if node in hosts else node.split()[0]
        if kind not in levels.setdefault(y, []):
            levels[y].append(kind)
    for y, kinds in levels.items():
        ax.annotate(
            "\n".join(kinds), (left, y), xytext=(-14, 0), textcoords="offset points", ha="right", va="center",
            fontsize=8, color=style.INK,
        )  # fmt: skip


def sample() -> style.Picture:
    """Two leaves and two spines, cut between the leaves."""
    hosts = [f"h{i}" for i in range(8)]
    links = [(host, f"leaf {i // 4}", 50.0) for i, host in enumerate(hosts)]
    links += [(f"leaf {leaf}", f"spine {spine}", 50.0) for leaf in range(2) for spine in range(2)]
    return network(
        hosts, links, "Two links of 50 GB/s each way join the half with crosses to the other.", hosts[:4]
    )


if __name__ == "__main__":
    style.demo(sample)
