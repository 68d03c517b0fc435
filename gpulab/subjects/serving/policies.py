"""Policies to compare with: the ways of batching that services began with."""

from __future__ import annotations

from collections.abc import Callable

from .engine import Decision, State


def static(state: State) -> Decision:
    """A batch from the front of the queue when the one before is through, and nobody joins it."""
    return Decision() if state.running else Decision(admit=_front(state, state.machine.slots))


def dynamic(size: int, patience: float) -> Callable[[State], Decision]:
    """Static batches that wait for `size` requests, or until the first has waited for `patience` seconds."""

    def decide(state: State) -> Decision:
        if state.running or not state.waiting:
            return Decision()
        until = state.waiting[0].arrival + patience
        if len(state.waiting) < size and state.now < until:
            return Decision(sleep=until)
        return Decision(admit=_front(state, min(size, state.machine.slots)))

    return decide


def _front(state: State, count: int) -> tuple[int, ...]:
    """Requests from the front of the queue for whose longest outputs there is room, in order."""
    free, found = state.free_blocks, []
    for seen in state.waiting[:count]:
        free -= state.machine.blocks_for(seen.prompt + seen.most)
        if free < 0:
            break
        found.append(seen.number)
    return tuple(found)
