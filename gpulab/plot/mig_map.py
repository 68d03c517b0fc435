"""Which memory slices of which GPU the instances of a MIG plan take: a row for each GPU."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from matplotlib.axes import Axes

from . import style


def mig_map(
    instances: Sequence[tuple[int, int, int, str]],
    caption: str,
    ax: Axes | None = None,
    *,
    slices: int = 8,
    row: str = "GPU",
    column: str = "memory slice",
    colour: Callable[[str], Hashable] = str,
    border: int | None = None,
) -> style.Picture:
    """Draw instances (GPU, first memory slice, memory slices, name), one colour for each `colour(name)`.

    Dashed cells are memory slices that nobody has. `row` and `column` name what is cut into what, where it is
    not a GPU. `border` draws a line in front of that slice of all GPUs. The caption says in one sentence what
    to see. Raises NothingToDraw without an instance.
    """
    if not instances:
        raise style.NothingToDraw("there is nothing to draw: no instance was placed")
    gpus = 1 + max(gpu for gpu, *_ in instances)
    kinds = list(dict.fromkeys(colour(name) for name in sorted({name for *_, name in instances})))
    ax, given = style.begin(ax, 7.2, 0.9 + 0.4 * gpus)
    taken = {(gpu, start + i) for gpu, start, size, _ in instances for i in range(size)}
    for gpu in range(gpus):
        for place in range(slices):
            if (gpu, place) not in taken:
                style.cell(ax, place, gpu - 0.36, width=1, height=0.72, dashed=True)
    for gpu, start, size, name in instances:
        fill = style.SERIES[kinds.index(colour(name)) % len(style.SERIES)]
        style.cell(ax, start, gpu - 0.36, name, fill, width=size, height=0.72, size=8)
    if border is not None:
        ax.axvline(border, color=style.INK, linewidth=2.5)
    ax.set_xlim(0, slices + 0.02)
    ax.set_ylim(gpus - 0.5, -0.5)
    ax.set_xticks([i + 0.5 for i in range(slices)], [str(i) for i in range(slices)])
    ax.set_yticks(range(gpus), [f"{row} {gpu}" for gpu in range(gpus)])
    ax.tick_params(axis="both", length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xlabel(column, color=style.INK)
    return style.finish(ax, caption, given)


def sample() -> style.Picture:
    """Two GPUs; the second cannot take another instance of three compute slices."""
    plan = [(0, 0, 4, "4g.40gb"), (0, 4, 4, "3g.40gb"), (1, 0, 4, "3g.40gb"), (1, 4, 2, "2g.20gb")]
    return mig_map(plan, "The second GPU has two memory slices left, where no 3g.40gb may start.")


if __name__ == "__main__":
    style.demo(sample)
