"""GPUs side by side: a panel for each figure of their data sheets."""

from __future__ import annotations

from gpulab.hardware import Comparison, Figure, compare

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

    A figure that a data sheet lacks is left out for all. Raises NothingToDraw where nothing is left.
    """
    names = [gpu.name for gpu in comparison.gpus]
    counts: dict[str, dict[str, float]] = {}
    leaders: dict[str, list[str]] = {}
    for label, cells in comparison.rows():
        figures = [cell for cell in cells if isinstance(cell, Figure)]
        if label in DRAWN and len(figures) == len(names) > 0:
            unit, scale = DRAWN[label]
            values = [float(figure) / scale for figure in figures]
            counts[f"{label}\n{unit}"] = dict(zip(names, values, strict=True))
            first = [name for name, value in zip(names, values, strict=True) if value == max(values)]
            leaders.setdefault(" and ".join(first), []).append(label)
    said = "; ".join(f"{who} in {' and '.join(of)}" for who, of in leaders.items())
    return panels(counts, f"Highest: {said}.")


def sample() -> style.Picture:
    """Four generations for the data centre."""
    return gpus(compare("V100", "A100", "H100", "B200"))


if __name__ == "__main__":
    style.demo(sample)
