"""Budgets of the exercises on pipelines and tensor cores in labs 23 to 25."""

from __future__ import annotations

from collections.abc import Callable

from gpulab.checks.builders import count
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


def lanes_budget(points: float, part: float = 0.25) -> Budget:
    """So little that threads cannot have multiplied, whatever was asked of the tensor cores beside that.

    The float32 lanes need a multiply-add for each product of two numbers, and an instruction of a warp is
    32 of them. This budget comes first: where it is missed, the products that later ones count were for show.
    """
    return Budget(
        "instructions",
        lambda sizes: part * count(sizes, "m") * count(sizes, "n") * count(sizes, "k") / 32,
        points,
        "instructions",
        why=f"{'half' if part == 0.5 else 'a quarter'} of what the float32 lanes would need at least",
        advice="That is {times} × as many. Which line multiplies number by number? The tensor cores should.",
    )
