"""Ridge points: how many operations a byte has to bring, by GPU and dtype."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from gpulab.simulator import hardware
from gpulab.simulator.hardware import GPU

from . import style

MARKERS = ("o", "s", "D", "^")


def ridges(gpus: Sequence[GPU | str], dtypes: Sequence[str], ax: Axes | None = None) -> style.Picture:
    """Draw one row per GPU with a mark for each dtype at its ridge, in FLOP per byte of DRAM traffic.

    A GPU without a rate for a dtype has no mark for it. float32 and float64 are the ordinary lanes', others
    the tensor cores', dense. Raises NothingToDraw without a mark, UnknownGPU.
    """
    found = {
        gpu.name: {dtype: hardware.roofline(gpu, dtype).ridge for dtype in dtypes if _has(gpu, dtype)}
        for gpu in map(hardware.find, gpus)
    }
    values = [ridge for row in found.values() for ridge in row.values()]
    if not values:
        raise style.NothingToDraw(f"none of these GPUs has a rate for {' or '.join(dtypes) or 'no dtype'}")
    ax, given = style.begin(ax, 7.2, 1.1 + 0.4 * len(found))
    ax.set_xscale("log")
    for row, (_, marks) in enumerate(found.items()):
        if marks:
            ax.plot([min(marks.values()), max(marks.values())], [row, row], color=style.FAINT, linewidth=3)
        for dtype, ridge in marks.items():
            index = list(dtypes).index(dtype)
            ax.plot(
                ridge, row, marker=MARKERS[index % len(MARKERS)], markersize=8,
                color=style.SERIES[index % len(style.SERIES)], linestyle="",
            )  # fmt: skip
            ax.annotate(
                f"{ridge:.3g}", (ridge, row), xytext=(0, 6), textcoords="offset points", ha="center",
                fontsize=8, color=style.INK,
            )  # fmt: skip
    for dtype in dtypes:  # its name above the first row that has it
        first = next((row for row, marks in enumerate(found.values()) if dtype in marks), None)
        if first is not None:
            ridge = list(found.values())[first][dtype]
            ax.annotate(
                dtype, (ridge, first), xytext=(0, 16), textcoords="offset points", ha="center",
                fontsize=style.TEXT, color=style.INK, fontweight="bold",
            )  # fmt: skip
    ax.set_yticks(range(len(found)), list(found))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(len(found) - 0.5, -1)
    ax.set_xlim(min(values) / 1.6, max(values) * 1.6)
    ax.xaxis.set_major_formatter(lambda value, _: style.number(value))
    ax.set_xlabel("ridge, FLOP per byte of DRAM traffic", color=style.INK)
    lowest, highest = min(values), max(values)
    where = {ridge: f"{dtype} on {name}" for name, row in found.items() for dtype, ridge in row.items()}
    return style.finish(
        ax,
        f"A byte has to bring from {lowest:.3g} FLOP ({where[lowest]}) to {highest:.3g} ({where[highest]}) "
        "before arithmetic is the limit.",
        given,
    )


def _has(gpu: GPU, dtype: str) -> bool:
    return dtype in ("float32", "float64", "int32") or dtype in gpu.tensor_fma


def sample() -> style.Picture:
    """Four generations."""
    return ridges(["V100", "A100", "H100", "B200"], ["float64", "float32", "float16", "float8"])


if __name__ == "__main__":
    style.demo(sample)
