"""Who sends to whom, round after round: one line for each rank, one column for each round."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from . import style

LANE = 0.17  # inches between two arrows of a round
ROW = 0.34  # inches between two ranks

Sent = tuple[int, int, float]  # from, to, size


def messages(
    rounds: Sequence[Sequence[Sent]], ranks: int, unit: str = "", ax: Axes | None = None
) -> style.Picture:
    """Draw the messages of each round as arrows between the lines of ranks, wider where they are larger.

    A message is (from, to, size); `unit` names the sizes in the caption, ``shares`` for example; without it
    sizes are not told. Raises NothingToDraw without a message.
    """
    if not any(rounds):
        raise style.NothingToDraw("there is nothing to draw: no message is sent")
    lanes = [_lanes(sent) for sent in rounds]
    widths = [max([2, *(lane + 1 for lane in of)]) + 1 for of in lanes]
    ax, given = style.begin(ax, max(4.6, 1.2 + LANE * sum(widths)), 0.9 + ROW * ranks)
    largest = max(size for sent in rounds for _, _, size in sent)
    start = 0.0
    for number, (sent, places, width) in enumerate(zip(rounds, lanes, widths, strict=True), 1):
        used = max([0, *places]) + 1
        left = start + (width - used + 1) / 2
        for (a, b, size), lane in zip(sent, places, strict=True):
            x = left + lane
            strength = 0.9 + 2.6 * size / largest
            ax.annotate(
                "", (x, b), (x, a),
                arrowprops={"arrowstyle": "-|>", "color": style.DEEP if b > a else style.AMBER, "shrinkA": 0,
                            "shrinkB": 0, "linewidth": strength, "mutation_scale": 7 + 2 * strength},
            )  # fmt: skip
            ax.plot([x], [a], "o", color=style.INK, markersize=3)
        ax.axvline(start + width, color=style.FAINT, linewidth=0.8)
        ax.annotate(
            str(number), (start + width / 2, -0.85), ha="center", fontsize=style.TEXT, color=style.INK,
            annotation_clip=False,
        )  # fmt: skip
        start += width
    for rank in range(ranks):
        ax.axhline(rank, color=style.FAINT, linewidth=0.8, zorder=0)
    ax.annotate(
        "round", (-0.4, -0.85), ha="right", fontsize=style.TEXT, color=style.INK, annotation_clip=False
    )
    ax.set_xlim(0, start)
    ax.set_ylim(ranks - 0.5, -0.6)
    ax.set_xticks([])
    ax.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)])
    ax.tick_params(axis="y", length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    count = sum(map(len, rounds))
    said = (
        f"{style.plural(count, 'message')} in {style.plural(len(rounds), 'round')}, from the sender's line "
    )
    said += "to the receiver's: blue to a higher rank, amber to a lower one"
    if len({size for sent in rounds for *_, size in sent}) > 1:
        said += "; the more is sent, the wider"
    if unit:
        sizes = [max(size for *_, size in sent) if sent else 0 for sent in rounds]
        said += f"; the largest of each round, in {unit}: {', '.join(map(style.number, sizes))}"
    return style.finish(ax, f"{said}.", given)


def _lanes(sent: Sequence[Sent]) -> list[int]:
    """For each message the first lane in which no other one lies over it."""
    lanes: list[list[tuple[int, int]]] = []
    places = []
    for a, b, _ in sent:
        low, high = min(a, b), max(a, b)
        free = (
            n for n, taken in enumerate(lanes) if all(high < other[0] or other[1] < low for other in taken)
        )
        place = next(free, len(lanes))
        if place == len(lanes):
            lanes.append([])
        lanes[place].append((low, high))
        places.append(place)
    return places


def sample() -> style.Picture:
    """A reduce-scatter among four ranks by halves."""
    return messages(
        [[(0, 2, 2), (2, 0, 2), (1, 3, 2), (3, 1, 2)], [(0, 1, 1), (1, 0, 1), (2, 3, 1)]], 4, "shares"
    )


if __name__ == "__main__":
    style.demo(sample)
