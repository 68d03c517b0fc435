"""Which blocks stand for all of a launch that is too large to run whole, and how far off they may be.

The grid is cut into stretches of neighbouring blocks, because neighbours share sectors and rows. The first
stretch always runs, because it finds the caches empty, and stands for itself alone. Of the others a few are
drawn at random; together they stand for the rest, by their number of blocks.

The standard error is the jackknife's: how much an answer changes when one of the drawn stretches is left
out (B. Efron, The Jackknife, the Bootstrap and Other Resampling Plans, SIAM 1982, chapter 3), smaller by the
share of the grid that was drawn. It is that of chance alone: what all stretches get wrong together, because
the caches do not see the blocks between them, is not in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

DRAWN = 8  # stretches beside the first

Array = np.ndarray


@dataclass(frozen=True)
class Sample:
    """Those of `blocks` blocks that run: linear indices, one array for each stretch; `of` is how many
    stretches the whole grid has."""

    blocks: int
    stretches: tuple[Array, ...]
    of: int

    @property
    def simulated(self) -> int:
        """Blocks that run."""
        return sum(map(len, self.stretches))

    @property
    def whole(self) -> bool:
        """Whether all blocks run, so that nothing is estimated."""
        return self.simulated == self.blocks

    def weights(self, without: int | None = None) -> Array:
        """How often each stretch counts in an estimate for the whole grid; `without` leaves one out."""
        first, *others = map(len, self.stretches)
        kept = [0 if number == without else size for number, size in enumerate(others, 1)]
        each = (self.blocks - first) / sum(kept) if sum(kept) else 0.0
        return np.array([1.0, *(each if size else 0.0 for size in kept)])

    def error(self, estimate: Callable[[Array], float]) -> float:
        """The standard error of what `estimate` makes of weights; 0 where all blocks ran."""
        drawn = len(self.stretches) - 1
        if self.whole or drawn < 2:
            return 0.0
        values = np.array([estimate(self.weights(without)) for without in range(1, drawn + 1)])
        spread = float(((values - values.mean()) ** 2).sum()) * (drawn - 1) / drawn
        return float(np.sqrt(spread * (1 - drawn / (self.of - 1))))


def whole(blocks: int) -> Sample:
    """All blocks, in one stretch."""
    return Sample(blocks, (np.arange(blocks),), 1)


def draw(blocks: int, most: int, seed: int = 0) -> Sample:
    """About `most` of the blocks, but never fewer than one stretch of one block beside each drawn one; all
    of them where there are no more. Raises ValueError for fewer than 1."""
    if most < 1:
        raise ValueError(f"sample= is how many blocks of a launch to simulate, at least 1; it got {most}")
    if blocks <= max(most, DRAWN + 1):
        return whole(blocks)
    size = max(1, most // (DRAWN + 1))
    of = -(-blocks // size)
    chosen = 1 + np.sort(np.random.default_rng(seed).choice(of - 1, size=DRAWN, replace=False))
    stretches = (np.arange(n * size, min((n + 1) * size, blocks)) for n in (0, *chosen))
    return Sample(blocks, tuple(stretches), of)
