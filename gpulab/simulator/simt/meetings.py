"""Where lanes wait for each other: block barriers and the ``*.sync`` operations of a warp.

A meeting reads its inputs from the registers of the lanes that came, computes once for all of them, and
writes the results back. The lanes may have come through different instructions of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpulab.simulator.ptx import Immediate, Operand, Pair

from . import warps
from .errors import UnsupportedInstruction
from .operations import Opcode
from .types import BOOL, DTYPES, I32, U32

if TYPE_CHECKING:
    from .program import _Decoder
    from .run import Run

Array = np.ndarray
Getter = tuple[int, Callable | None]


@dataclass(frozen=True, slots=True)
class Meeting:
    """`key` tells which meetings may join; `mask` is the operand with the members of a warp, or a barrier's
    number.

    `compute(inputs…, members)` works on arrays of shape (B, W, 32) for a warp, (B, T) for a block, and
    returns one array for each of `outputs` (register slot, dtype of the result).
    """

    key: str
    mask: Getter
    inputs: tuple[Getter, ...] = ()
    outputs: tuple[tuple[int | None, np.dtype], ...] = ()
    compute: Callable | None = None
    count: Getter | None = None  # barriers: how many threads take part, where it is not all
    waits: bool = True  # barriers: False where threads only say that they have come
    sources: Callable | None = None  # shuffles: from the inputs to the lane that each lane reads

    def given(self, run: Run) -> list[Array]:
        return [value_of(run, source) for source in self.inputs]

    def hand_out(self, run: Run, results: list[Array]) -> None:
        for (slot, _), result in zip(self.outputs, results, strict=True):
            if slot is not None:
                dtype = run.program.dtypes[slot]
                if result.dtype != dtype:
                    same = result.dtype.itemsize == dtype.itemsize and dtype.kind != "b"
                    result = result.view(dtype) if same else result.astype(dtype)
                run.put(slot, result)


def targets_of(destination: Operand) -> list[Operand]:
    """The one or two registers of a destination."""
    return [destination.first, destination.second] if isinstance(destination, Pair) else [destination]


def value_of(run: Run, source: Getter) -> Array:
    """What a register holds, as the meeting sees it."""
    slot, view = source
    value = run.registers[slot]
    return value if view is None else view(value)


def make_meeting(decoder: _Decoder, op: Opcode, index: int) -> Meeting:
    """The meeting that an instruction stands for."""
    if op.instruction.guard is not None:
        raise _unknown(decoder, op, "It stands under a predicate.")
    if op.name in ("bar", "barrier") and "warp" not in op.modifiers:
        return _barrier(decoder, op)
    build = WARP[op.name]
    return build(decoder, op)


def _unknown(decoder: _Decoder, op: Opcode, hint: str = "") -> UnsupportedInstruction:
    instruction = op.instruction
    return UnsupportedInstruction(
        instruction.opcode, decoder.display_name, instruction.location, instruction.line, hint
    )


def _barrier(decoder: _Decoder, op: Opcode) -> Meeting:
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
        ((slot, I32 if how == "popc" else BOOL),),
        combine,
        decoder.source(count[0], I32) if count else None,
    )


def _shuffle(decoder: _Decoder, op: Opcode) -> Meeting:
    destination, a, b, c, members = op.instruction.operands
    targets = targets_of(destination)
    mode = next((m for m in ("up", "down", "bfly", "idx") if m in op.modifiers), None)
    if mode is None or "sync" not in op.modifiers:
        raise _unknown(decoder, op)

    def exchange(value: Array, lane: Array, clamp: Array, _: Array) -> list[Array]:
        return list(warps.shuffle(mode, value, lane, clamp))[: len(targets)]

    slots = [decoder.destination(t) for t in targets]
    inputs = (decoder.source(a, I32), decoder.source(b, I32), decoder.source(c, I32))
    outputs = tuple(zip(slots, (I32, BOOL), strict=False))

    def sources(value: Array, lane: Array, clamp: Array) -> Array:
        return warps.source_lanes(mode, lane, clamp)[0]

    mask = decoder.source(members, U32)
    return Meeting(f"shfl.{mode}", mask, inputs, outputs, exchange, sources=sources)


def _vote(decoder: _Decoder, op: Opcode) -> Meeting:
    destination, predicate, members = op.instruction.operands
    mode = next((m for m in ("all", "any", "uni", "ballot") if m in op.modifiers), None)
    if mode is None or "sync" not in op.modifiers:
        raise _unknown(decoder, op)
    slot = decoder.destination(destination)
    kind = U32 if mode == "ballot" else BOOL
    return Meeting(
        f"vote.{mode}",
        decoder.source(members, U32),
        (decoder.source(predicate, BOOL),),
        ((slot, kind),),
        lambda value, who: [warps.vote(mode, value, who)],
    )


def _match(decoder: _Decoder, op: Opcode) -> Meeting:
    destination, value, members = op.instruction.operands
    source = decoder.source(value, DTYPES[op.type])
    mask = decoder.source(members, U32)
    if "any" in op.modifiers:
        slot = decoder.destination(destination)
        return Meeting("match.any", mask, (source,), ((slot, U32),), lambda x, who: [warps.match_any(x, who)])
    targets = targets_of(destination)
    outputs = tuple(zip([decoder.destination(t) for t in targets], (U32, BOOL), strict=False))
    return Meeting(
        "match.all", mask, (source,), outputs, lambda x, who: list(warps.match_all(x, who))[: len(targets)]
    )


def _reduce(decoder: _Decoder, op: Opcode) -> Meeting:
    destination, value, members = op.instruction.operands
    name = next((m for m in warps.REDUCTIONS if m in op.modifiers), None)
    dtype = DTYPES.get(op.type)
    if name is None or dtype is None or dtype.kind == "f":
        raise _unknown(decoder, op)
    slot = decoder.destination(destination)
    return Meeting(
        f"redux.{name}",
        decoder.source(members, U32),
        (decoder.source(value, dtype),),
        ((slot, dtype),),
        lambda x, who: [warps.reduce(name, x, who)],
    )


def _elect(decoder: _Decoder, op: Opcode) -> Meeting:
    destination, members = op.instruction.operands
    targets = targets_of(destination)
    outputs = tuple(zip([decoder.destination(t) for t in targets], (I32, BOOL), strict=False))

    def choose(who: Array) -> list[Array]:
        leader = who.argmax(axis=-1)[..., None].astype(np.int32)
        return [leader, leader == warps.LANE][: len(targets)]

    return Meeting("elect", decoder.source(members, U32), (), outputs, choose)


def _warp_barrier(decoder: _Decoder, op: Opcode) -> Meeting:
    return Meeting("bar.warp", decoder.source(op.instruction.operands[0], U32))


WARP: dict[str, Callable[[_Decoder, Opcode], Meeting]] = {
    "shfl": _shuffle,
    "vote": _vote,
    "match": _match,
    "redux": _reduce,
    "elect": _elect,
    "bar": _warp_barrier,
    "barrier": _warp_barrier,
}
