"""What lanes keep while they are in functions that they called: registers of the callers, and frames of local
memory. Only kernels with such functions have a stack (`inline`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .errors import StackOverflow
from .open_calls import OpenCalls
from .run import Run, fresh

Array = np.ndarray

CALL_BYTES = 8  # that no open call can do without: the address to return to


def stack_of(run: Run) -> OpenCalls:
    """The chunk's stack, made when it is first needed."""
    if run.stack is None:
        bottom = np.full(run.shape, run.program.frames_at, np.int64)
        run.stack = OpenCalls(np.zeros(run.shape, np.int32), bottom)
    return run.stack


def push(run: Run, index: int, callee: str, saved: Sequence[int], frame_bytes: int) -> None:
    """The group calls `callee`: save these registers, and leave a frame of so many bytes behind."""
    stack, lanes = stack_of(run), run.mask()
    most = run.frame.stack_bytes // CALL_BYTES
    if int(stack.depth.max()) >= most and (full := lanes & (stack.depth >= most)).any():
        raise StackOverflow(
            **run.blame(index, full),
            what=f"called {callee} with {most:,} calls open already, one inside the other: its stack of "
            f"{run.frame.stack_bytes:,} bytes is full.",
            advice="Does the recursion end for every thread? If it does, ask for a larger stack before the "
            "launch: cudaDeviceSetLimit(cudaLimitStackSize, bytes). "
            f"Each open call takes at least {CALL_BYTES} bytes.",
        )
    for depth, part in _by_depth(run, stack):
        while len(stack.levels) <= depth:
            stack.levels.append({})
        level = stack.levels[depth]
        for slot in saved:
            value, before = run.registers[slot], level.get(slot)
            level[slot] = value if before is None or part is None else np.where(part, value, before)
    stack.depth[lanes] += 1
    stack.frame[lanes] += frame_bytes


def pop(run: Run, saved: Sequence[int], frame_bytes: int) -> None:
    """The group is back from a call: it has the saved registers and its frame again."""
    stack, lanes = stack_of(run), run.mask()
    stack.depth[lanes] -= 1
    stack.frame[lanes] -= frame_bytes
    if not saved:
        return
    parts = list(_by_depth(run, stack))
    for slot in saved:
        value = stack.levels[parts[0][0]][slot]
        for depth, part in parts[1:]:
            value = np.where(part, stack.levels[depth][slot], value)  # type: ignore[arg-type]
        run.put(slot, value)


def frame_for(run: Run, nbytes: int) -> Array:
    """Where the group's new frames of `nbytes` begin in local memory, which grows to hold them."""
    frame = stack_of(run).frame
    chosen = frame[run.mask()]
    low, high = int(chosen.min()), int(chosen.max())
    if high + nbytes > run.local_bytes:
        run.local_bytes = max(2 * run.local_bytes, high + nbytes)
        before, run.local = run.local, fresh(run.frame.garbage, *run.shape, run.local_bytes)
        run.local[..., : before.shape[-1]] = before
    return np.full((1, 1), low) if low == high else frame.copy()


def _by_depth(run: Run, stack: OpenCalls) -> Iterator[tuple[int, Array | None]]:
    """The group's lanes, apart where they have different numbers of calls open."""
    lanes = run.mask()
    depths = stack.depth[lanes]
    if (depths == depths[0]).all():
        yield int(depths[0]), run.lanes
        return
    for depth in np.unique(depths):
        yield int(depth), lanes & (stack.depth == depth)
