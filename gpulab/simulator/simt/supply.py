"""The blocks of a launch that have not begun, in the order of their turns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass
class Supply:
    """`blocks` are linear indices (None: all, as they are numbered) and `count` says how many there are. From
    the front, `begun` of them have begun or will never begin, because another block took over their work.
    """

    count: int
    blocks: Array | None
    backwards: bool
    begun: int = 0

    @property
    def left(self) -> int:
        """How many have not begun."""
        return self.count - self.begun

    def take(self, size: int) -> Array:
        """Linear indices of the next blocks, up to `size` of them, which now begin."""
        turns = np.arange(self.begun, min(self.begun + size, self.count))
        self.begun += turns.size
        if self.backwards:  # those that run together stay in order: lanes come backwards themselves
            turns = self.count - 1 - turns[::-1]
        return turns if self.blocks is None else self.blocks[turns]
