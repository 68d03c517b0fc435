"""What each unit of an SM needs for the same work, kernel by kernel: the longest one is what binds."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from . import style

BAR = 0.19  # height of one unit's bar, of 1 for a kernel


def units(
    needs: Mapping[str, Mapping[str, float]], unit: str, ax: Axes | None = None, *, least: float | None = None
) -> style.Picture:
    """Draw for each kernel (keys of `needs`) one bar per unit of the SM, the longest one hatched.

    The values are in `unit`, for example ``cycles per 32 multiply-adds``. `least` is what no kernel can go
    below, a dashed line. Raises NothingToDraw without a kernel or for a kernel without a unit.
    """
    if empty := [name for name, units_of in needs.items() if not units_of] or (
        [] if needs else ["any kernel"]
    ):
        raise style.NothingToDraw(f"there is no unit's need to draw for {' and '.join(empty)}")
    rows = max(map(len, needs.values()))
    ax, given = style.begin(ax, 7.2, 1.0 + len(needs) * (0.2 + 0.2 * rows))
    highest = max(value for units_of in needs.values() for value in units_of.values())
    pitch = 0.12 + BAR * rows
    for place, units_of in enumerate(needs.values()):
        binding = max(units_of, key=units_of.__getitem__)
        for row, (name, value) in enumerate(units_of.items()):
            top, binds = place * pitch + row * BAR, name == binding
            fill = style.BAD if binds else style.GOOD
            style.cell(ax, 0, top, "", fill, width=value, height=0.8 * BAR, wrong=binds)
            ax.annotate(
                f"{name} {value:.2f}", (max(value, least or 0), top + 0.4 * BAR),
                xytext=(4, 0), textcoords="offset points", va="center", fontsize=8, color=style.INK,
                fontweight="bold" if binds else "normal",
            )  # fmt: skip
    ax.set_xlim(0, 1.35 * highest)
    ax.set_ylim(len(needs) * pitch, -0.3 if least is not None else -0.1)
    ax.set_yticks([(place + 0.5) * pitch - 0.06 for place in range(len(needs))], list(needs))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(unit, color=style.INK)
    if least is not None:
        ax.axvline(least, color=style.INK, linewidth=1.2, linestyle="--")
        ax.annotate(
            f"at least {style.number(least)}", (least, -0.29), xytext=(4, 0), textcoords="offset points",
            va="top", fontsize=8, color=style.INK,
        )  # fmt: skip
    return style.finish(ax, _told(needs, unit), given)


def _told(needs: Mapping[str, Mapping[str, float]], unit: str) -> str:
    said = []
    for kernel, units_of in needs.items():
        binding = max(units_of, key=units_of.__getitem__)
        said.append(f"{kernel} by {binding} ({units_of[binding]:.2f})")
    return f"What binds each kernel, in {unit}: {', '.join(said)}."


def sample() -> style.Picture:
    """Two made-up matrix products."""
    return units(
        {
            "tiled": {"float32 lanes": 0.5, "issue": 1.15, "shared memory": 2.06, "L2": 0.23},
            "blocked": {"float32 lanes": 0.5, "issue": 0.75, "shared memory": 0.28, "L2": 0.12},
        },
        "cycles per 32 multiply-adds",
        least=0.5,
    )


if __name__ == "__main__":
    style.demo(sample)
