"""Warpgroups: four warps of a block, whose first has a number divisible by four, run ``wgmma`` together."""

from __future__ import annotations

import numpy as np

from . import branching
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
    if lanes is None and number not in run.at_warp and run.shape[1] % THREADS == 0:
        run.lanes = None
        return True
    branching.join(run.at_warp, number, lanes)
    here = run.full(run.at_warp[number])
    complete = np.zeros(run.shape, bool)
    width = run.shape[1] // THREADS * THREADS
    whole = by_warpgroup(run, here).all(axis=-1)
    complete[:, :width] = whole.repeat(THREADS, axis=-1)
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


def by_warpgroup(run: Run, x: Array) -> Array:
    """(b, t) → (b, G, 128), without warps that are in no warpgroup."""
    count = run.shape[1] // THREADS
    wide = np.broadcast_to(x, (x.shape[0], run.shape[1]))
    return wide[:, : count * THREADS].reshape(x.shape[0], count, THREADS)
