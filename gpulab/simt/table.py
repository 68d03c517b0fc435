"""Which builder makes the step of which instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import async_copies, matrix_steps, mbarriers, steps
from .meetings import make_meeting
from .operations import Opcode
from .program import MEETING, Segment, Step

if TYPE_CHECKING:
    from .program import _Decoder

BUILDERS = steps.BUILDERS | matrix_steps.BUILDERS | async_copies.BUILDERS | mbarriers.BUILDERS

# Families that need a newer machine model, and what to do instead.
ADVICE = {
    "wgmma": "Compile for a capability from 8.0 to 8.9: it has mma.sync instead.",
    "tcgen05": "Compile for a capability from 8.0 to 8.9: it has mma.sync instead.",
    "tex": "Textures are not simulated: read global memory.",
    "setmaxnreg": "Compile for a capability from 8.0 to 8.9.",
}


def make_step(decoder: _Decoder, op: Opcode, index: int, segment: Segment) -> Step | None:
    """The step of one instruction. None for those that need none (jumps, hints, and meetings, kept on the
    segment)."""
    if op.name in MEETING:
        segment.meet = make_meeting(decoder, op, index)
        return None
    if op.name in ADVICE:
        raise steps.unsupported(decoder, op, ADVICE[op.name])
    build = BUILDERS.get(op.name, steps.arithmetic)
    step = build(decoder, op, index)
    if step is None or op.instruction.guard is None:
        return step
    return steps.guarded(decoder, op.instruction, index, step)
