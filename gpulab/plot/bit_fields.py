"""The bits of numbers in several formats, coloured by field, the exponents below each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from . import style

FIELDS = (("sign", style.ALARM), ("exponent", style.AMBER), ("mantissa", style.DEEP))


@dataclass(frozen=True)
class Bits:
    """A code of a format: `sign`, `exponent` and `mantissa` say how many bits each field has."""

    name: str
    code: int
    sign: int
    exponent: int
    mantissa: int
    value: str = ""


def bit_fields(rows: Sequence[Bits], ax: Axes | None = None) -> style.Picture:
    """Draw one code a row, a cell a bit. Exponents end in the same column, so that widths can be compared.

    Raises NothingToDraw without a row.
    """
    if not rows:
        raise style.NothingToDraw("there is nothing to draw: no code was given")
    left = max(row.sign + row.exponent for row in rows)
    right = max(row.mantissa for row in rows)
    ax, given = style.begin(ax, style.CELL * (left + right + 14), style.CELL * 1.3 * len(rows) + 0.9)
    ax.set_aspect("equal")
    for line, row in enumerate(rows):
        widths = (row.sign, row.exponent, row.mantissa)
        bits = f"{row.code:0{sum(widths)}b}"
        x = left - row.sign - row.exponent
        y = 1.3 * line
        ax.annotate(row.name, (-0.4, y + 0.5), ha="right", va="center", fontsize=style.TEXT, color=style.INK)
        for (_, colour), width in zip(FIELDS, widths, strict=True):
            for _ in range(width):
                style.cell(ax, x, y, bits[0], colour)
                bits = bits[1:]
                x += 1
        ax.annotate(
            row.value, (x + 0.4, y + 0.5), ha="left", va="center", fontsize=style.TEXT, color=style.INK
        )
    widest = max(rows, key=lambda row: row.exponent + row.mantissa)
    middles = (left - widest.exponent - 0.5, left - widest.exponent / 2, left + widest.mantissa / 2)
    for (name, colour), middle, width in zip(
        FIELDS, middles, (widest.sign, widest.exponent, widest.mantissa), strict=True
    ):
        if width:
            side = "right" if name == "sign" else "center"
            ax.annotate(
                name, (middle + 0.5 * (side == "right"), -0.4), ha=side, va="center",
                fontsize=style.TEXT, color=style.INK if colour != style.ALARM else style.ALARM,
            )  # fmt: skip
    ax.set_xlim(-6, left + right + 8)
    ax.set_ylim(1.3 * len(rows), -1.0)
    style.bare(ax)
    said = "; ".join(
        f"{row.name} has {row.sign} + {row.exponent} + {row.mantissa} bits"
        + (f", {row.value}" if row.value else "")
        for row in rows
    )
    return style.finish(ax, f"Sign, exponent and mantissa: {said}.", given)


def sample() -> style.Picture:
    """0.1 in three formats."""
    return bit_fields(
        [
            Bits("FP32", 0x3DCCCCCD, 1, 8, 23, "0.1"),
            Bits("FP16", 0x2E66, 1, 5, 10, "0.09998"),
            Bits("BF16", 0x3DCD, 1, 8, 7, "0.1001"),
        ]
    )


if __name__ == "__main__":
    style.demo(sample)
