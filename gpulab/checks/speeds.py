"""Which exercises are timed where an instructor has a GPU (`grade LAB --gpu`), and against what.

Speed is the time of the lab's own solution over that of the submission, both on the same GPU in the same run,
and the lower end of its interval counts. By default it costs nothing: the feedback tells it. A course that
wants points to hang on it sets `costs` in this table, and so says it to its learners with the exercise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .spec import Case, Number, Sizes


@dataclass(frozen=True)
class Speed:
    """What is asked of one exercise's measured time.

    At a speed of `ratio` or more nothing is lost, at `slow` or less `costs` points are, and between them a
    share of these, on a logarithmic scale as for budgets. `cases` are large enough to fill a GPU, awkward
    ones among them; speeds of several are combined as their geometric mean. `least_bytes` is what every
    solution must move to or from the chip, `least_flops` the operations that it must do, if those could
    bound it, in `dtype`: no time below what a data sheet allows for them is believed.
    """

    cases: tuple[Case, ...]
    least_bytes: Callable[[Sizes], Number]
    least_flops: Callable[[Sizes], Number] | None = None
    dtype: str = "float32"
    ratio: float = 0.8
    slow: float = 0.4
    costs: float = 0.0

    def lost(self, speed: float) -> float:
        """Points that a speed costs."""
        if speed >= self.ratio or not self.costs:
            return 0.0
        if speed <= self.slow:
            return self.costs
        return self.costs * math.log(self.ratio / speed) / math.log(self.ratio / self.slow)


def _matrix(rows: int, cols: int) -> Case:
    return Case(f"{rows:,} × {cols:,}", {"rows": rows, "cols": cols})


# Each matrix is 100 MB: more than the second-level cache of all but the largest GPUs. Both sizes are awkward.
MATRICES = (_matrix(5003, 4999), _matrix(3001, 8329))


def _read_and_written(sizes: Sizes) -> int:
    """Bytes of a float32 matrix that is read once, and of another that is written once."""
    return 2 * 4 * int(sizes["rows"]) * int(sizes["cols"])


SPEEDS: dict[str, Speed] = {
    "memory.transpose": Speed(MATRICES, _read_and_written),
    "memory.padded": Speed(MATRICES, _read_and_written),
    "memory.blur": Speed(MATRICES, _read_and_written),
}
