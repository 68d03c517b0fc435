"""What more processors bring: the laws of Amdahl and Gustafson for several serial shares.

G. Amdahl, "Validity of the single processor approach to achieving large scale computing capabilities", AFIPS
1967; J. Gustafson, "Reevaluating Amdahl's law", Communications of the ACM 31 (5), 1988.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from . import style
from .lines import lines


def speedup(serial: Sequence[float], most: int = 1024, ax: Axes | None = None) -> style.Picture:
    """Draw Amdahl's speed-up up to `most` processors for each serial share, and Gustafson's for the first.

    Raises NothingToDraw without a share, ValueError for one outside 0 … 1.
    """
    if not serial:
        raise style.NothingToDraw("there is nothing to draw: no serial share was given")
    if wrong := [s for s in serial if not 0 <= s <= 1]:
        raise ValueError(f"a serial share lies between 0 and 1; got {wrong[0]}")
    powers = [2**k for k in range(most.bit_length()) if 2**k <= most]
    first = serial[0]
    laws = {f"Gustafson, {first:.0%} serial": [(n, first + (1 - first) * n) for n in powers]}
    laws |= {f"Amdahl, {s:.0%} serial": [(n, 1 / (s + (1 - s) / n)) for n in powers] for s in serial}
    ends = ", ".join(f"{style.number(float(f'{c[-1][1]:.3g}'))} with {name}" for name, c in laws.items())
    return lines(
        laws, "processors", "speed-up", f"At {powers[-1]:,} processors the speed-up is {ends}.", ax,
        log_x=True, log_y=True,
    )  # fmt: skip


def sample() -> style.Picture:
    """Three serial shares."""
    return speedup([0.01, 0.05, 0.2])


if __name__ == "__main__":
    style.demo(sample)
