"""The calls that the lanes of a chunk have open, as a record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray


@dataclass
class OpenCalls:
    """Of each lane, (B, T): how many calls are open, and where the running function's frame is in local
    memory. `levels` has the registers that the callers saved, by depth and slot."""

    depth: Array
    frame: Array
    levels: list[dict[int, Array]] = field(default_factory=list)

    def contents(self) -> Iterator[Array]:
        """All that decides how lanes go on when they return."""
        yield self.depth
        for level in self.levels:
            yield from level.values()
