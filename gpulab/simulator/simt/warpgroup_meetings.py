"""Warpgroups: four warps of a block, whose first has a number divisible by four, run ``wgmma`` together.

So they do ``setmaxnreg``, at which they wait for registers, too.
"""

from __future__ import annotations

import numpy as np

from gpulab.simulator.ptx import Immediate, Instruction

from . import branching
from .program import Segment
from .register_pools import RegisterPool
from .run import Run
from .warpgroup_matrices import THREADS

Array = np.ndarray

ADVICE = (
    f"A warpgroup is four whole warps, {THREADS} threads in a row: all of them must reach the same wgmma. "
    f"Launch blocks of a multiple of {THREADS} threads, and branch for whole warpgroups only."
)


def come(run: Run, number: int, lanes: Array | None) -> bool:
    """Lanes come to a segment of ``wgmma`` instructions, where those without their warpgroup wait.

    The group becomes the lanes whose warpgroup is complete; whether there are any.
    """
    instruction = run.program.instructions[run.program.segments[number].first]
    waits = takes(instruction)
    if lanes is None and number not in run.at_warp and run.shape[1] % THREADS == 0 and not waits:
        run.lanes = None
        return True
    branching.join(run.at_warp, number, lanes)
    here = run.full(run.at_warp[number])
    complete = lanes_of(run, affordable(run, instruction, by_warpgroup(run, here).all(axis=-1)))
    if not complete.any():
        return False
    rest = here & ~complete
    if rest.any():
        run.at_warp[number] = rest
    else:
        del run.at_warp[number]
    everybody = run.alive is None and not run.ready and not run.at_barrier and not run.at_warp
    run.lanes = None if everybody and complete.all() else complete
    run.protected = 0 if run.lanes is None else run.needed()
    return True


def try_again(run: Run) -> None:
    """Warpgroups that wait for registers come once more, because some have been given back."""
    run.freed = False
    for number in [n for n in run.at_warp if run.program.segments[n].kind == "warpgroup"]:
        branching.add(run, number, run.at_warp.pop(number))


def missing(run: Run, segment: Segment) -> tuple[str, str]:
    """What the lanes that wait at a segment wait for, and what to do about it."""
    instruction = run.program.instructions[segment.first]
    whole = by_warpgroup(run, run.mask()).all(axis=-1)
    if not (takes(instruction) and whole.any()):
        return "threads that never come to it", ADVICE
    pool = pool_of(run)
    block, _ = np.argwhere(whole)[0]
    more = wanted(instruction) - int(pool.held[block][whole[block]][0])
    return (
        f"{more} more registers for each of its threads, but only {int(pool.free[block])} were given back",
        "All warpgroups of a block share the registers that ptxas allotted to it: some must give back "
        "(setmaxnreg.dec) what others take (setmaxnreg.inc).",
    )


def by_warpgroup(run: Run, x: Array) -> Array:
    """(b, t) → (b, G, 128), without warps that are in no warpgroup."""
    count = run.shape[1] // THREADS
    wide = np.broadcast_to(x, (x.shape[0], run.shape[1]))
    return wide[:, : count * THREADS].reshape(x.shape[0], count, THREADS)


def lanes_of(run: Run, warpgroups: Array) -> Array:
    """(B, G) → (B, T)."""
    lanes = np.zeros(run.shape, bool)
    lanes[:, : warpgroups.shape[1] * THREADS] = warpgroups.repeat(THREADS, axis=1)
    return lanes


# ---- registers -----------------------------------------------------------------------------------


def takes(instruction: Instruction) -> bool:
    """Whether an instruction asks for more registers, and waits for them."""
    return instruction.parts[:2] == ("setmaxnreg", "inc")


def wanted(instruction: Instruction) -> int:
    """How many registers each thread is to have after ``setmaxnreg``."""
    (count,) = instruction.operands
    assert isinstance(count, Immediate)
    return int(count.value)


def pool_of(run: Run) -> RegisterPool:
    """The registers of a chunk's blocks, all with their warpgroups as long as nobody gives any back."""
    if run.pool is None:
        assert run.frame.allotted is not None
        shape = run.shape[0], run.shape[1] // THREADS
        run.pool = RegisterPool(np.full(shape, run.frame.allotted), np.zeros(shape[0], np.int64))
    return run.pool


def affordable(run: Run, instruction: Instruction, warpgroups: Array) -> Array:
    """Those of `warpgroups` (B, G) for which there are registers enough, in order of their numbers."""
    if run.frame.allotted is None or not takes(instruction):
        return warpgroups
    pool = pool_of(run)
    more = np.where(warpgroups, np.maximum(wanted(instruction) - pool.held, 0), 0)
    return warpgroups & (np.cumsum(more, axis=1) <= pool.free[:, None])
