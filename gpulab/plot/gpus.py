"""GPUs side by side: a panel for each figure of their data sheets."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.simulator.hardware import Comparison, Figure, compare

from . import style
from .panels import panels

# Rows of the comparison → the unit that its numbers are drawn in, and how much that is.
DRAWN = {
    "float32 peak": ("TFLOP/s", 1e12),
    "float16 tensor, dense": ("TFLOP/s", 1e12),
    "float8 tensor, dense": ("TFLOP/s", 1e12),
    "DRAM bandwidth, peak": ("GB/s", 1e9),
    "L2": ("MiB", 2**20),
    "power": ("W", 1),
}


def gpus(comparison: Comparison) -> style.Picture:
    """Draw what `gpulab.hardware.compare` compares, one panel per figure, each on a scale of its own.

    A figure that a data sheet lacks is left out for all, and the caption says so. Raises NothingToDraw where
    nothing is left.
    """
    names = [gpu.name for gpu in comparison.gpus]
    counts: dict[str, dict[str, float]] = {}
    leaders: dict[str, list[str]] = {}
    lacking = []
    for label, cells in comparison.rows():
        if label not in DRAWN:
            continue
        figures, short = [cell for cell in cells if isinstance(cell, Figure)], label.partition(",")[0]
        if not figures or len(figures) < len(names):
            lacking.append(short)
            continue
        unit, scale = DRAWN[label]
        values = [float(figure) / scale for figure in figures]
        counts[f"{label}\n{unit}"] = dict(zip(names, values, strict=True))
        first = [name for name, value in zip(names, values, strict=True) if value == max(values)]
        leaders.setdefault(_listed(first), []).append(short)
    said = "; ".join(f"in {_listed(of)}: {who}" for who, of in leaders.items())
    left = f" Left out, because not all data sheets state it: {_listed(lacking)}." if lacking else ""
    return panels(counts, f"Highest {said}.{left}")


def _listed(words: Sequence[str]) -> str:
    """The words with commas, and the last one with "and"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def sample() -> style.Picture:
    """Four generations for the data centre."""
    return gpus(compare("V100", "A100", "H100", "B200"))


if __name__ == "__main__":
    style.demo(sample)
