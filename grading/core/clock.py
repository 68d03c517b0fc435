"""How long what a submission computes live may still take, while its processes start and run cells, too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Clock:
    """Runs out at `until`, of `time.monotonic`. Waiting for cells is free for up to `cells` seconds."""

    until: float
    cells: float

    @property
    def left(self) -> float:
        """Seconds until it has run out; none or less when it has."""
        return self.until - time.monotonic()

    @contextmanager
    def waiting(self) -> Iterator[float]:
        """While others run cells; yields for how many seconds one may wait."""
        began = time.monotonic()
        try:
            yield max(self.left, 0.0) + self.cells
        finally:
            free = min(time.monotonic() - began, self.cells)
            self.cells -= free
            self.until += free
