"""Both ends of a call of a function that keeps its body: ``call.push`` and ``call.pop``, made by `inline`."""

from __future__ import annotations

import numpy as np

from gpulab.foundation.cpp_names import readable
from gpulab.simulator.ptx import Immediate

from . import stacks
from .errors import NoFunction
from .executable import Step
from .inline import Kept, Site
from .opcodes import Opcode
from .operands import Decoder
from .run import Run
from .types import I64

Array = np.ndarray


def site_of(decoder: Decoder, op: Opcode) -> Site:
    """The site that one end of a call belongs to."""
    number = op.instruction.operands[1]
    assert isinstance(number, Immediate)
    return decoder.body.sites[int(number.value)]


def push(decoder: Decoder, op: Opcode, index: int) -> Step:
    site = site_of(decoder, op)
    saved = [decoder.slot(name) for name in site.saved]
    moves = [move for given in site.given for move in given]
    slots = [decoder.slot(move.target) for move in moves]
    pairs = [(s, decoder.source(m.source, decoder.dtypes[s])) for s, m in zip(slots, moves, strict=True)]
    backs = [decoder.slot(kept.back) for kept in site.callees]
    here = np.full((1, 1), site.number, np.int32)
    places = [(decoder.slot(n), at) for kept in site.callees for n, at in kept.places.items()]
    room = max((kept.frame_bytes for kept in site.callees), default=0)
    left = _frame_bytes(site.caller)
    name = " or ".join(readable(kept.function.name) for kept in site.callees)
    choose = _chooser(decoder, site, index) if site.pointer else None

    def step(run: Run) -> None:
        if choose is not None:
            choose(run)
        given = [(slot, source.value(run.registers)) for slot, source in pairs]
        stacks.push(run, index, name, saved, left)
        for slot, value in given:
            run.put(slot, value)
        for slot in backs:
            run.put(slot, here)
        if places:
            frame = stacks.frame_for(run, room)
            for slot, at in places:
                run.put(slot, frame + at)

    return step


def pop(decoder: Decoder, op: Opcode, index: int) -> Step:
    site = site_of(decoder, op)
    saved = [decoder.slot(name) for name in site.saved]
    slots = [decoder.slot(move.target) for move in site.results]
    pairs = [
        (s, decoder.source(m.source, decoder.dtypes[s])) for s, m in zip(slots, site.results, strict=True)
    ]
    left = _frame_bytes(site.caller)

    def step(run: Run) -> None:
        stacks.pop(run, saved, left)
        for slot, source in pairs:
            run.put(slot, source.value(run.registers))

    return step


def _frame_bytes(caller: Kept | None) -> int:
    """Of the caller's own frame, in whole pieces of 16 bytes; a kernel's variables are in none."""
    return 0 if caller is None else (caller.frame_bytes + 15) // 16 * 16


def _chooser(decoder: Decoder, site: Site, index: int) -> Step:
    """Writes which of the callees each lane's pointer means."""
    pointer = decoder.slot(site.pointer)
    target = decoder.slot(site.target)
    addresses = [decoder.symbol(kept.function.name, 0) for kept in site.callees]

    def choose(run: Run) -> None:
        address = run.registers[pointer].astype(I64)
        chosen = np.full(address.shape, -1, np.int32)
        for number, slot in enumerate(addresses):
            chosen = np.where(address == run.registers[slot], np.int32(number), chosen)
        lost = chosen < 0
        if lost.any() and (run.mask() & lost).any():
            raise _no_function(run, index, address, lost)
        run.put(target, chosen)

    return choose


def _no_function(run: Run, index: int, address: Array, lost: Array) -> NoFunction:
    row, lane = np.argwhere(run.mask() & lost)[0]
    value = int(np.broadcast_to(address, run.shape)[row, lane])
    what = "a null pointer" if value == 0 else f"address 0x{value & (1 << 64) - 1:x}"
    return NoFunction(
        **run.blame(index, lost),
        what=f"called {what}, which is no function of the device with these parameters.",
        advice="A kernel can call only addresses that were taken on the device: the host's address of a "
        "__device__ function is another. An object with virtual functions must be made in a kernel.",
    )
