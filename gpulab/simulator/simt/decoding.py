"""A parsed kernel decoded into a program: calls inlined, operands numbered, blocks cut into segments where
lanes may have to wait, instructions turned into steps. It happens once per kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from gpulab.simulator.ptx import Instruction, Module, Special, reads, writes

from . import call_steps, stretches, table
from .executable import Executable, Step
from .inline import FRAMES, Body
from .meetings import make_meeting
from .opcodes import JUMPS, MEETING, WARPGROUP, looks, opcode
from .operands import CLOCKS, Decoder
from .operations import flops
from .program import (
    Branch,
    End,
    Kind,
    Meeting,
    ParameterSlot,
    Segment,
    SharedSlot,
    SpecialSlot,
    Stop,
    SymbolSlot,
    Table,
    Target,
    successors,
)
from .types import I32


class Piece(NamedTuple):
    """Instructions first … stop-1 of the body, which will be a segment. Its last one is `final`."""

    first: int
    stop: int
    kind: Kind
    final: Instruction | None


def load(
    module: Module,
    entry: str | None = None,
    display_name: str = "",
    stops: Collection[int] | None = None,
) -> Executable:
    """Decode kernel `entry` of `module` into an executable; `entry` may be left out if there is only one
    kernel.

    `display_name` is the name that messages use. With `stops`, a segment begins at the instructions on these
    lines of the PTX text, and no register is ever left with garbage, so that an observer can look at a
    thread's registers there. Raises `UnsupportedInstruction` for an instruction that the simulator does not
    know, KeyError for an unknown entry.

    >>> module = gpulab.simulator.ptx.parse(
    ...     ".version 8.0 .target sm_80 .address_size 64 .visible .entry stop() { ret; }"
    ... )
    >>> load(module).name
    'stop'
    """
    name = entry or module.entries[0]
    decoder = Decoder(module, name, display_name or name)
    instructions, prefixes, pieces, blocks = _cut_up(decoder.body, stops or ())
    readers = stretches.readers(decoder, instructions) if stops is None else None
    decoded = [_decode(decoder, instructions, piece, readers) for piece in pieces]
    ends: list[End] = [*range(1, len(pieces)), Stop.EXIT]
    for (_, last), targets in zip(blocks, decoder.body.successors, strict=True):
        ends[last] = _end(decoder, pieces[last].final, [blocks[block].first for block in targets])
        if ends[last] == last and not decoded[last].steps:
            ends[last] = Stop.ENDLESS
    lives = _live(decoder, instructions, pieces, ends)
    if stops is not None:
        lives = [(1 << len(decoder.dtypes)) - 1] * len(pieces)
    segments = tuple(
        Segment(
            piece.first,
            piece.stop,
            piece.kind,
            end,
            live,
            any(map(looks, instructions[piece.first : piece.stop])),
            found.meeting,
            end is Stop.EXIT and piece.kind == "plain" and not found.steps,
        )
        for piece, end, live, found in zip(pieces, ends, lives, decoded, strict=True)
    )
    return Executable(
        name=decoder.entry,
        display_name=decoder.display_name,
        module=module,
        instructions=tuple(instructions),
        segments=segments,
        first=blocks[decoder.body.entry].first,
        dtypes=decoder.dtypes,
        constants=decoder.constant_values,
        specials=[SpecialSlot(slot, name) for name, slot in decoder.specials.items()],
        symbols=[SymbolSlot(slot, name, offset) for (name, offset), slot in decoder.symbol_slots.items()],
        shared_slots=[SharedSlot(slot, offset) for offset, slot in decoder.shared_slots.items()],
        parameter_slots=[
            ParameterSlot(slot, offset, dtype) for (offset, dtype), slot in decoder.parameter_slots.items()
        ],
        parameters=decoder.parameters,
        parameter_bytes=sum(decoder.parameters[-1][1:]) if decoder.parameters else 0,
        shared_bytes=decoder.shared.nbytes,
        local_bytes=decoder.local.nbytes,
        shared_variables=decoder.shared.variables,
        dynamic_shared=decoder.shared.dynamic,
        contended=any("cas" in i.parts for i in instructions if i.parts[0] == "atom"),
        flops=tuple(map(flops, instructions)),
        timed=any(
            isinstance(o, Special) and o.name.startswith(CLOCKS) for i in instructions for o in i.operands
        ),
        ordered=any(segment.looks for segment in segments),
        reallocates=any(i.parts[0] == "setmaxnreg" for i in instructions),
        slots=decoder.slots,
        frames_at=decoder.local.offsets.get(FRAMES, 0),
        local_variables=decoder.local.offsets,
        prefixes=tuple(prefixes),
        cluster=_cluster(module.functions[name].directives),
        steps=tuple(tuple(found.steps) for found in decoded),
    )


def _cluster(directives: Mapping[str, tuple[int, ...]]) -> tuple[int, int, int] | None:
    """The shape of the cluster that a kernel was compiled for (``.reqnctapercluster``)."""
    x, y, z = (*directives.get("reqnctapercluster", ()), 1, 1, 1)[:3]
    return (x, y, z) if "reqnctapercluster" in directives else None


class Decoded(NamedTuple):
    """What a piece does: steps of its own, or a meeting."""

    steps: list[Step]
    meeting: Meeting | None


def _decode(
    decoder: Decoder, instructions: list[Instruction], piece: Piece, readers: dict[int, list[int]] | None
) -> Decoded:
    """`readers` are the instructions that read each register; None if every register must be right."""
    steps: list[tuple[int, Step]] = []
    meeting = None
    for index in range(piece.first, piece.stop):
        op = opcode(instructions[index])
        if op.name in JUMPS:
            continue
        table.check(decoder, op)
        if op.name in MEETING:
            meeting = make_meeting(decoder, op)
        elif (step := table.make_step(decoder, op, index)) is not None:
            steps.append((index, step))
    if readers is None:
        return Decoded([step for _, step in steps], meeting)
    return Decoded(stretches.fuse(decoder, instructions, steps, readers), meeting)


# ---- segments ------------------------------------------------------------------------------------


class Pieces(NamedTuple):
    """The pieces in which a block of the body begins and ends."""

    first: int
    last: int


class CutBody(NamedTuple):
    """A body in a row: its instructions, the prefix of each, the pieces, and those of each block."""

    instructions: list[Instruction]
    prefixes: list[str]
    pieces: list[Piece]
    blocks: list[Pieces]


def _cut_up(body: Body, stops: Collection[int]) -> CutBody:
    cut = CutBody([], [], [], [])
    for block, prefix in zip(body.blocks, body.prefixes, strict=True):
        begin = len(cut.pieces)
        for piece in _cut(block, stops):
            first = len(cut.instructions)
            cut.pieces.append(Piece(first, first + len(piece), _kind(piece), piece[-1] if piece else None))
            cut.instructions.extend(piece)
            cut.prefixes.extend([prefix] * len(piece))
        cut.blocks.append(Pieces(begin, len(cut.pieces) - 1))
    return cut


def _cut(block: list[Instruction], stops: Collection[int]) -> Iterable[list[Instruction]]:
    """Cut before and after every instruction at which lanes meet, before and after those of a warpgroup, and
    before those on the lines `stops`."""
    piece: list[Instruction] = []
    for instruction in block:
        if piece and (instruction.line in stops or _goes_apart(piece[0], instruction)):
            yield piece
            piece = []
        if instruction.parts[0] in MEETING:
            if piece:
                yield piece
            yield [instruction]
            piece = []
        else:
            piece.append(instruction)
    if piece or not block or block[-1].parts[0] in MEETING:
        yield piece


def _is_of_warpgroup(instruction: Instruction) -> bool:
    return instruction.parts[0] in WARPGROUP


def _goes_apart(first: Instruction, instruction: Instruction) -> bool:
    """Whether an instruction begins another piece than the one that begins with `first`."""
    names = [i.parts[0] if _is_of_warpgroup(i) else "" for i in (first, instruction)]
    return names[0] != names[1] or names[1] == "setmaxnreg"


def _kind(piece: list[Instruction]) -> Kind:
    if piece and _is_of_warpgroup(piece[0]):
        return "warpgroup"
    if not piece or piece[0].parts[0] not in MEETING:
        return "plain"
    if piece[0].parts[:2] == ("barrier", "cluster"):
        return "cluster"
    if piece[0].parts[0] in ("bar", "barrier"):
        return "warp" if "warp" in piece[0].parts else "barrier"
    return "warp"


def _end(decoder: Decoder, final: Instruction | None, targets: list[int]) -> End:
    """Where the lanes of a block go when they have run its last instruction, `final`."""
    first: Target = targets[0] if targets else Stop.EXIT
    if final is not None and final.opcode == "call.push":
        pointer = call_steps.site_of(decoder, opcode(final))
        return Table(decoder.slot(pointer.target), tuple(targets)) if pointer.pointer else first
    if final is None or final.parts[0] not in JUMPS:
        return first
    kind = final.parts[0]
    if kind == "brx":
        return Table(decoder.source(final.operands[0], I32).slot, tuple(targets))
    stop = Stop.TRAP if kind == "trap" else Stop.EXIT
    if final.guard is None:
        return targets[0] if kind == "bra" else stop
    guard = decoder.slot(final.guard.name)
    if kind == "bra":
        other = targets[1] if len(targets) > 1 else Stop.EXIT
        return Branch(guard, final.guard_negated, targets[0], other)
    return Branch(guard, final.guard_negated, stop, first)


def _live(
    decoder: Decoder, instructions: list[Instruction], pieces: list[Piece], ends: list[End]
) -> list[int]:
    """Backward data flow over segments; bit r of each result belongs to register slot r."""
    uses, kills = [], []
    for piece in pieces:
        used = killed = 0
        for index in range(piece.first, piece.stop):
            instruction = instructions[index]
            waits = instruction.parts[:2] == ("wgmma", "wait_group")  # until then accumulators are in use
            for name in decoder.accumulators if waits else reads(instruction):
                bit = 1 << decoder.slot(name)
                if not killed & bit:
                    used |= bit
            if instruction.guard is None:
                for name in writes(instruction):
                    killed |= 1 << decoder.slot(name)
            else:
                for name in writes(instruction):  # lanes without the guard keep the old value
                    if not killed & (1 << decoder.slot(name)):
                        used |= 1 << decoder.slot(name)
        uses.append(used)
        kills.append(killed)
    followers = [successors(end) for end in ends]
    lives = [0] * len(pieces)
    changed = True
    while changed:
        changed = False
        for number in range(len(pieces) - 1, -1, -1):
            after = 0
            for target in followers[number]:
                after |= lives[target]
            live = uses[number] | (after & ~kills[number])
            if live != lives[number]:
                lives[number] = live
                changed = True
    return lives
