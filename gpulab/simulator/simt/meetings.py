"""Where lanes wait for each other: block barriers and the ``*.sync`` operations of a warp.

A meeting reads its inputs from the registers of the lanes that came, computes once for all of them, and
writes the results back. The lanes may have come through different instructions of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpulab.simulator.ptx import Immediate

from . import warps
from .opcodes import Opcode
from .operands import Decoder, targets_of
from .program import Meeting
from .types import BOOL, DTYPES, I32, U32

Array = np.ndarray


def make_meeting(decoder: Decoder, op: Opcode) -> Meeting:
    """The meeting that an instruction stands for."""
    if op.instruction.guard is not None:
        raise decoder.unsupported(op, "It stands under a predicate.")
    if op.name == "barrier" and "cluster" in op.modifiers:
        return Meeting("cluster", decoder.source(Immediate(0), I32), waits="wait" in op.modifiers)
    if op.name in ("bar", "barrier") and "warp" not in op.modifiers:
        return _barrier(decoder, op)
    build = WARP[op.name]
    return build(decoder, op)


def _barrier(decoder: Decoder, op: Opcode) -> Meeting:
    operands = list(op.instruction.operands)
    if "red" not in op.modifiers:
        number, *count = operands or [Immediate(0)]
        return Meeting(
            "barrier",
            decoder.source(number, I32),
            count=decoder.source(count[0], I32) if count else None,
            waits="arrive" not in op.modifiers,
        )
    destination, number, *count, predicate = operands
    slot = decoder.destination(destination)
    how = next(m for m in ("popc", "and", "or") if m in op.modifiers)

    def combine(value: Array, members: Array) -> list[Array]:
        if how == "popc":
            return [(value & members).sum(axis=1, keepdims=True, dtype=np.int32)]
        if how == "or":
            return [(value & members).any(axis=1, keepdims=True)]
        return [(value | ~members).all(axis=1, keepdims=True)]

    return Meeting(
        "barrier",
        decoder.source(number, I32),
        (decoder.source(predicate, BOOL),),
        (slot,),
        combine,
        decoder.source(count[0], I32) if count else None,
    )


def _shuffle(decoder: Decoder, op: Opcode) -> Meeting:
    destination, a, b, c, members = op.instruction.operands
    targets = targets_of(destination)
    mode = next((m for m in ("up", "down", "bfly", "idx") if m in op.modifiers), None)
    if mode is None or "sync" not in op.modifiers:
        raise decoder.unsupported(op)

    def exchange(value: Array, lane: Array, clamp: Array, _: Array) -> list[Array]:
        return list(warps.shuffle(mode, value, lane, clamp))[: len(targets)]

    outputs = tuple(map(decoder.destination, targets))
    inputs = (decoder.source(a, I32), decoder.source(b, I32), decoder.source(c, I32))

    def sources(value: Array, lane: Array, clamp: Array) -> Array:
        return warps.source_lanes(mode, lane, clamp)[0]

    mask = decoder.source(members, U32)
    return Meeting(f"shfl.{mode}", mask, inputs, outputs, exchange, sources=sources)


def _vote(decoder: Decoder, op: Opcode) -> Meeting:
    destination, predicate, members = op.instruction.operands
    mode = next((m for m in ("all", "any", "uni", "ballot") if m in op.modifiers), None)
    if mode is None or "sync" not in op.modifiers:
        raise decoder.unsupported(op)
    slot = decoder.destination(destination)
    return Meeting(
        f"vote.{mode}",
        decoder.source(members, U32),
        (decoder.source(predicate, BOOL),),
        (slot,),
        lambda value, who: [warps.vote(mode, value, who)],
    )


def _match(decoder: Decoder, op: Opcode) -> Meeting:
    destination, value, members = op.instruction.operands
    source = decoder.source(value, DTYPES[op.type])
    mask = decoder.source(members, U32)
    if "any" in op.modifiers:
        slot = decoder.destination(destination)
        return Meeting("match.any", mask, (source,), (slot,), lambda x, who: [warps.match_any(x, who)])
    targets = targets_of(destination)
    outputs = tuple(map(decoder.destination, targets))
    return Meeting(
        "match.all", mask, (source,), outputs, lambda x, who: list(warps.match_all(x, who))[: len(targets)]
    )


def _reduce(decoder: Decoder, op: Opcode) -> Meeting:
    destination, value, members = op.instruction.operands
    name = next((m for m in warps.REDUCTIONS if m in op.modifiers), None)
    dtype = DTYPES.get(op.type)
    if (
        name is None
        or dtype is None
        or (dtype.kind == "f" and (name not in ("min", "max") or op.type != "f32"))
    ):
        raise decoder.unsupported(op)
    slot = decoder.destination(destination)
    if dtype.kind == "f":
        how = "abs" in op.modifiers, "NaN" in op.modifiers
        return Meeting(
            f"redux.{name}.f32",
            decoder.source(members, U32),
            (decoder.source(value, dtype),),
            (slot,),
            lambda x, who: [warps.reduce_floats(name, x, who, *how)],
        )
    return Meeting(
        f"redux.{name}",
        decoder.source(members, U32),
        (decoder.source(value, dtype),),
        (slot,),
        lambda x, who: [warps.reduce(name, x, who)],
    )


def _elect(decoder: Decoder, op: Opcode) -> Meeting:
    destination, members = op.instruction.operands
    targets = targets_of(destination)
    outputs = tuple(map(decoder.destination, targets))

    def choose(who: Array) -> list[Array]:
        leader = who.argmax(axis=-1)[..., None].astype(np.int32)
        return [leader, leader == warps.LANE][: len(targets)]

    return Meeting("elect", decoder.source(members, U32), (), outputs, choose)


def _warp_barrier(decoder: Decoder, op: Opcode) -> Meeting:
    return Meeting("bar.warp", decoder.source(op.instruction.operands[0], U32))


WARP: dict[str, Callable[[Decoder, Opcode], Meeting]] = {
    "shfl": _shuffle,
    "vote": _vote,
    "match": _match,
    "redux": _reduce,
    "elect": _elect,
    "bar": _warp_barrier,
    "barrier": _warp_barrier,
}
