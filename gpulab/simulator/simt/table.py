"""Which builder makes the step of which instruction."""

from __future__ import annotations

from gpulab.simulator.ptx import reads

from . import (
    async_copies,
    bulk_copies,
    cluster_steps,
    launch_control,
    matrix_steps,
    mbarriers,
    register_steps,
    small_matrix_steps,
    steps,
    tensor_copies,
    tensor_core_steps,
    texture_steps,
    warpgroup_steps,
)
from .executable import Step
from .opcodes import Opcode
from .operands import Decoder
from .steps import Builder


def _copy(decoder: Decoder, op: Opcode, index: int) -> Step | None:
    """All that begins with ``cp``: a thread's own copies, their arrival at mbarriers, and bulk copies."""
    if "tensor" in op.modifiers:
        return tensor_copies.tensor(decoder, op, index)
    if "bulk" in op.modifiers:
        return bulk_copies.bulk(decoder, op, index)
    arrives = "mbarrier" in op.modifiers and "arrive" in op.modifiers
    build = mbarriers.arrive_with_copies if arrives else async_copies.copy
    return build(decoder, op, index)


def _asynchronous(build: Builder) -> Builder:
    """The builder of ``st`` or ``red``, which may also send what it writes to another block."""

    def either(decoder: Decoder, op: Opcode, index: int) -> Step | None:
        chosen = cluster_steps.asynchronous if cluster_steps.is_asynchronous(op) else build
        return chosen(decoder, op, index)

    return either


BUILDERS: dict[str, Builder] = {
    **steps.BUILDERS,
    **matrix_steps.BUILDERS,
    **small_matrix_steps.BUILDERS,
    **mbarriers.BUILDERS,
    **cluster_steps.BUILDERS,
    **launch_control.BUILDERS,
    **warpgroup_steps.BUILDERS,
    **register_steps.BUILDERS,
    **tensor_core_steps.BUILDERS,
    **texture_steps.BUILDERS,
    "cp": _copy,
    "st": _asynchronous(steps.BUILDERS["st"]),
    "red": _asynchronous(steps.BUILDERS["red"]),
    "tensormap": tensor_copies.tensormap,
}

CUBES = texture_steps.CUBES
# What needs a newer machine model, and what to do instead: by the beginning of the opcode.
ADVICE = {
    "tex.cube": CUBES,
    "tex.acube": CUBES,
    "multimem": "The simulator knows one GPU and no switch between several: use one.",
}


def advice_for(parts: tuple[str, ...]) -> str:
    """What to do instead of an instruction that cannot run; empty for all others."""
    return next((ADVICE[key] for n in (1, 2, 3) if (key := ".".join(parts[:n])) in ADVICE), "")


def check(decoder: Decoder, op: Opcode) -> None:
    """Raise UnsupportedInstruction, with advice, for what needs a newer machine model."""
    if advice := advice_for(op.instruction.parts):
        raise decoder.unsupported(op, advice)


def make_step(decoder: Decoder, op: Opcode, index: int) -> Step | None:
    """The step of one instruction; None for hints, which need none."""
    step = BUILDERS.get(op.name, steps.arithmetic)(decoder, op, index)
    if step is not None and op.name == "mov" and not decoder.accumulators.isdisjoint(reads(op.instruction)):
        step = warpgroup_steps.carry(decoder, op, step)
    if step is None or op.instruction.guard is None:
        return step
    return steps.guarded(decoder, op.instruction, index, step)
