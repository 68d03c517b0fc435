"""Budgets of the exercises on pipelines in labs 23 and 24."""

from __future__ import annotations

from collections.abc import Callable

from gpulab.checks.spec import EVERY, Budget, Sizes


def roles_apart(points: float) -> Budget:
    """No warp both brings data from global memory and writes results there."""
    return Budget(
        "mixed_warps",
        0,
        points,
        "warps that load and write",
        why="each warp has one role",
        advice="One warp brings tiles, another one writes results. How do tiles get from one to the other?",
        case=EVERY,
    )


def phases_budget(slots: int, turns: Callable[[Sizes], int], points: float) -> Budget:
    """⌈turns / slots⌉ phases of the mbarrier that has most: all slots of a ring are used, in turn.

    No fewer, because a kernel that hands over without mbarriers has none.
    """
    return Budget(
        "mbarrier_phases",
        lambda sizes: -(-turns(sizes) // slots),
        points,
        "phases of an mbarrier",
        sense="==",
        naive=turns,
        why=f"{slots} slots, used in turn",
        advice=f"Tile k is in slot k % {slots}. How many tiles does each pair of mbarriers serve?",
        case=EVERY,
    )
