"""Warpgroups: four warps of a block, whose first has a number divisible by four, run ``wgmma`` together.

Warps also wait here for registers, at ``setmaxnreg``. The manual wants all four warps of a warpgroup to run
it, but Triton lets a single one run it where it changes nothing, so here each warp does on its own.
"""

from __future__ import annotations

import numpy as np

from gpulab.simulator.ptx import Immediate, Instruction

from . import branching
from .program import Segment
from .register_pools import RegisterPool
from .run import Run
from .warpgroup_matrices import THREADS
from .warps import WARP

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
    passes_registers = instruction.parts[0] == "setmaxnreg"
    whole = run.shape[1] % THREADS == 0 or passes_registers
    if lanes is None and number not in run.at_warp and whole and not takes(instruction):
        run.lanes = None
        return True
    branching.join(run.at_warp, number, lanes)
    here = run.full(run.at_warp[number])
    if passes_registers:
        complete = affordable(run, instruction, here)
    else:
        complete = lanes_of(run, np.asarray(by_warpgroup(run, here).all(axis=-1)))
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
    """Warps that wait for registers come once more, because some have been given back."""
    run.freed = False
    for number in [n for n in run.at_warp if run.program.segments[n].kind == "warpgroup"]:
        branching.add(run, number, run.at_warp.pop(number))


def missing(run: Run, segment: Segment) -> tuple[str, str]:
    """What the lanes that wait at a segment wait for, and what to do about it."""
    instruction = run.program.instructions[segment.first]
    if not takes(instruction):
        return "threads that never come to it", ADVICE
    pool = pool_of(run)
    block, warp = np.argwhere(run.by_warp(run.mask()).any(axis=-1))[0]
    more = wanted(instruction) - int(pool.held[block, warp])
    free = int(pool.free[block])
    return (
        f"{more} more registers for each thread of its warp, but of those that came back {free} are left",
        "All warps of a block share the registers that ptxas allotted to it: some must give back "
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
    """The registers of a chunk's blocks, all with their warps as long as nobody gives any back."""
    if run.pool is None:
        assert run.frame.allotted is not None
        shape = run.shape[0], run.shape[1] // WARP
        run.pool = RegisterPool(np.full(shape, run.frame.allotted), np.zeros(shape[0], np.int64))
    return run.pool


def affordable(run: Run, instruction: Instruction, lanes: Array) -> Array:
    """Those of `lanes` (B, T) for whose warps there are registers enough, in the order of the warps."""
    if run.frame.allotted is None or not takes(instruction):
        return lanes
    pool = pool_of(run)
    warps = run.by_warp(lanes).any(axis=-1)
    more = np.where(warps, np.maximum(wanted(instruction) - pool.held, 0), 0)
    fits = warps & (np.cumsum(more, axis=1) <= pool.free[:, None])
    return lanes & fits.repeat(WARP, axis=1)
