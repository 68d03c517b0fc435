"""What launches cost where no clock runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpulab.simulator import device as devices
from gpulab.simulator.observe import Counters


def counted(run: Callable[[], Any]) -> tuple[int, int]:
    """(bytes of global memory, warp instructions) of what `run` launches."""
    counters: list[Counters] = []

    def watch(_: Any) -> Counters:
        counters.append(Counters())
        return counters[-1]

    with devices.current().observed(watch):
        run()
    counts = [c.counts for c in counters if c.counts is not None]
    return 32 * sum(c.total("sectors", space="global") for c in counts), sum(c.total("warps") for c in counts)
