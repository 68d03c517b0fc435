"""Which tiles of a result are computed at the same time, and which by nobody, for several orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import style

NUMBERS = 12  # a grid of at most so many columns has the number of its program in each tile


def tile_order(
    orders: Mapping[str, Sequence[tuple[int, int]]], shape: tuple[int, int], wave: int, caption: str
) -> style.Picture:
    """Draw, for each order, the tiles of a result of `shape` (rows, columns of tiles).

    An order lists the tile (row, column) of each program. Each `wave` programs in a row have one colour; in
    wide grids tiles of the first wave have a dot, in others each tile has its program's number. Tiles that no
    program computes are hatched, programs outside the result are left out. The caption says in one sentence
    what to see. Raises NothingToDraw without an order.
    """
    if not orders:
        raise style.NothingToDraw("there is nothing to draw: no order was given")
    rows, columns = shape
    size = len(orders) * max(2.4, columns * style.CELL + 0.7), rows * style.CELL + 1.3
    axes = style.axes(*size, 1, len(orders), squeeze=False)[0]
    for ax, (name, order) in zip(axes, orders.items(), strict=True):
        style.bare(ax)
        program = {tile: number for number, tile in enumerate(order)}
        for row in range(rows):
            for column in range(columns):
                number = program.get((row, column))
                if number is None:
                    style.cell(ax, column, row, wrong=True)
                    continue
                text = str(number) if columns <= NUMBERS else ""
                turn, place = divmod(number // wave, len(style.SERIES))
                fill = style.SERIES[
                    (turn + place) % len(style.SERIES)
                ]  # so that waves above each other differ
                style.cell(ax, column, row, text, fill, size=6)
                if number < wave and columns > NUMBERS:
                    style.cell(ax, column + 0.35, row + 0.35, fill="white", width=0.3, height=0.3)
        ax.set_title(name, color=style.INK, fontsize=style.TEXT, loc="left")
        ax.set_xlim(-0.1, columns + 0.1)
        ax.set_ylim(rows + 0.1, -0.1)
        ax.set_aspect("equal")
    return style.finish(axes[0], caption, False)


def sample() -> style.Picture:
    """Sixteen tiles in two orders, of which the second leaves two out."""
    return tile_order(
        {
            "row after row": [(m, n) for m in range(4) for n in range(4)],
            "pairs of rows, torn": [(2 * g + p % 2, p // 2) for g in range(2) for p in range(7)],
        },
        (4, 4),
        4,
        "Colours are waves of four programs; two tiles (hatched) are computed by nobody.",
    )


if __name__ == "__main__":
    style.demo(sample)
