"""What the threads of a block or cluster know of each other by mbarriers: what comes before what they do."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

Barrier = tuple[int, int]  # the block that has it, and its address there

PHASES = 2  # whose arrivals are kept for each mbarrier: the one that runs and the one before


class Clocks:
    """Times of a block or cluster of `lanes` threads. ``before[b, a]``: what thread a did up to this time
    comes before all that thread b does from now on; -1 for nothing. What moves the bulk copies of each block
    counts as one more thread."""

    def __init__(self, lanes: int) -> None:
        self.before = np.full((lanes, lanes), -1, np.int32)
        # By the mbarrier's block and address, and by parity: what the arrivals know.
        self._phases: dict[Barrier, list[Array | None]] = {}
        self._running: dict[Barrier, int] = {}  # the parity of the last arrival

    def arrive(self, address: Barrier, parity: int, threads: Array, now: int) -> None:
        """`threads` arrive at an mbarrier, in the phase of `parity`, at time `now`."""
        phases = self._phases.setdefault(address, [None] * PHASES)
        known = phases[parity]
        if known is None or self._running.get(address) != parity:
            known = np.full(len(self.before), -1, np.int32)
        self._running[address] = parity
        phases[parity] = np.maximum(known, self._known(threads, now))

    def see(self, address: Barrier, parity: int, threads: Array) -> None:
        """`threads` see that a phase is over: all that came before its arrivals comes before them."""
        known = self._phases.get(address, [None] * PHASES)[parity]
        if known is not None:
            self.before[threads] = np.maximum(self.before[threads], known)

    def meet(self, threads: Array, now: int) -> None:
        """`threads` wait for each other, as at ``syncwarp``: each knows what the others do."""
        self.before[threads] = self._known(threads, now)

    def _known(self, threads: Array, now: int) -> Array:
        known: Array = self.before[threads].max(axis=0)
        known[threads] = now
        return known
