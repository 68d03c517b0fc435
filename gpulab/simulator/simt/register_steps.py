"""``setmaxnreg``: a warp gives registers back to its block's pool, or takes more from it.

Nothing that is computed depends on it. But a warp that takes more waits until there are enough, so a
kernel that asks for more than its block has never ends; the waiting itself is in `warpgroup_meetings`.
"""

from __future__ import annotations

import numpy as np

from .errors import WrongRegisters
from .executable import Step
from .opcodes import Opcode
from .operands import Decoder
from .run import Run
from .warpgroup_meetings import pool_of, takes, wanted
from .warps import WARP

FEWEST, MOST, UNIT = 24, 256, 8  # registers of a thread that setmaxnreg can ask for


def change(decoder: Decoder, op: Opcode, index: int) -> Step:
    """The step of ``setmaxnreg``. Raises UnsupportedInstruction for a number that cannot be."""
    count = wanted(op.instruction)
    if not FEWEST <= count <= MOST or count % UNIT:
        raise decoder.unsupported(
            op, f"It takes a multiple of {UNIT} registers from {FEWEST} to {MOST}, and not {count}."
        )
    grows = takes(op.instruction)

    def step(run: Run) -> None:
        if run.frame.allotted is None:
            return
        pool = pool_of(run)
        here = run.by_warp(run.mask()).any(axis=-1)
        wrong = here & ((pool.held > count) if grows else (pool.held < count))
        if wrong.any():
            held = int(pool.held[wrong][0])
            raise WrongRegisters(
                **run.blame(index, wrong.repeat(WARP, axis=1)),
                what=f"{'takes' if grows else 'gives back'} registers to have {count}, but has {held}.",
                advice="setmaxnreg.dec must name fewer registers than a thread has, and .inc more. ptxas "
                "decides how many it has at first; .maxnreg and __launch_bounds__ limit them.",
            )
        pool.free = pool.free + np.where(here, pool.held - count, 0).sum(axis=1)
        pool.held = np.where(here, count, pool.held)
        run.freed = run.freed or not grows

    return step


BUILDERS = {"setmaxnreg": change}
