"""``mbarrier``: barriers in shared memory, at which a thread arrives at one time and waits at another.

`mbarrier_words` says what its 64 bits hold. Copies that signal an mbarrier arrive when somebody looks at it:
a ``cp.async.mbarrier.arrive`` arrives when somebody looks whether the phase is over, and its copies with it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpulab.simulator.ptx import Immediate, Register

from . import accesses, tensor_tasks, transfers
from .async_copies import copies_of, deliver
from .clusters import locate
from .copies import Arrival
from .errors import WrongBarrier
from .executable import Step
from .mbarrier_words import LARGEST, NONE, PENDING, after, first_word, parity, pending
from .memory import SHARED_WINDOW
from .opcodes import Opcode
from .operands import Decoder
from .run import Run, Wait
from .steps import Builder, space_of
from .types import I64, U32

Array = np.ndarray

# ---- instructions --------------------------------------------------------------------------------


def _place(decoder: Decoder, op: Opcode, operand: int) -> Callable[[Run], Array]:
    """Where the mbarrier of each lane is, as an address of shared memory."""
    space = space_of(op)
    address = decoder.address(op.instruction.operands[operand])
    start = SHARED_WINDOW if space == "generic" else 0
    return lambda run: address(run.registers) - start


def _read(run: Run, index: int, address: Array) -> Array:
    """What is there. Raises WrongBarrier where that is no mbarrier."""
    word = accesses.peek_shared(run, index, address, I64)
    bad = np.isin(word, NONE)
    if (bad & run.mask()).any():
        raise WrongBarrier(
            **run.blame(index, bad),
            what="uses an mbarrier that is not initialised, or for no arrivals.",
            advice="One thread initialises it, for at least 1 arrival; all others come after a barrier "
            "of the block.",
        )
    return word


def _init(decoder: Decoder, op: Opcode, index: int) -> Step:
    """For no arrivals it is none, which is told when it is used: cuTile makes such, and leaves them alone."""
    place, count = _place(decoder, op, 0), decoder.source(op.instruction.operands[1], U32)

    def step(run: Run) -> None:
        given = count.value(run.registers).astype(np.int64)
        wrong = (given < 0) | (given > LARGEST)
        if (wrong & run.mask()).any():
            raise WrongBarrier(
                **run.blame(index, wrong),
                what="initialises an mbarrier for a number of arrivals that cannot be.",
                advice=f"An mbarrier takes 1 to {LARGEST} arrivals in each phase.",
            )
        accesses.store(run, index, "shared", place(run), [first_word(given)])

    return step


def _destroy(decoder: Decoder, op: Opcode, index: int) -> Step:
    place = _place(decoder, op, 0)

    def step(run: Run) -> None:
        address = place(run)
        _read(run, index, address)
        accesses.store(run, index, "shared", address, [np.zeros((1, 1), np.int64)])

    return step


def _arrival(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``arrive``, ``arrive_drop``, ``expect_tx``, ``complete_tx`` and what is combined of them."""
    what, announces = op.instruction.parts[1], "expect_tx" in op.instruction.parts
    operands = op.instruction.operands
    first = int(isinstance(operands[0], Register))
    place = _place(decoder, op, first)
    given = operands[first + 1] if len(operands) > first + 1 else Immediate(1)
    number = decoder.source(given, U32)
    slot = decoder.destination(operands[0]) if first else None
    one, none = np.ones((1, 1), np.int64), np.zeros((1, 1), np.int64)

    def step(run: Run) -> None:
        many = number.value(run.registers).astype(np.int64)
        if what == "complete_tx":
            count, announce = none, -many
        elif announces:
            count, announce = (none if what == "expect_tx" else one), many
        else:
            count, announce = many, none
        drop = count if what == "arrive_drop" else none
        old = _apply(run, index, place(run), count, drop, announce)
        if slot is not None:
            run.put(slot, old)

    return step


def _apply(run: Run, index: int, address: Array, count: Array, drop: Array, announce: Array) -> Array:
    """Arrive for the lanes of the group; the words that each found (B, T)."""
    _read(run, index, address)
    old = accesses.atomic(run, index, "shared", address, after, I64, (count, drop, announce), True)
    assert old is not None
    late = pending(old) < count
    if (late & run.mask()).any():
        raise WrongBarrier(
            **run.blame(index, late),
            what="arrives at an mbarrier once more than its phase expects.",
            advice="Wait for the phase to end before arriving for the next one, or expect more arrivals.",
        )
    if run.on_arrive:
        offset, rows = locate(run, index, address)
        for hear in run.on_arrive:
            hear(index, offset, parity(old), run.lanes, run.chunk, rows)
    return old


def _wait(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``test_wait`` and ``try_wait``, which looks no longer than the other here."""
    destination, _, phase, *_ = op.instruction.operands
    place, slot = _place(decoder, op, 1), decoder.destination(destination)
    by_parity = "parity" in op.instruction.parts
    asked = decoder.source(phase, U32 if by_parity else I64)

    def step(run: Run) -> None:
        address = place(run)
        given = asked.value(run.registers).astype(np.int64)
        wanted = given & 1 if by_parity else parity(given)
        over = parity(_read(run, index, address)) != wanted
        # Who sees a phase over, if only by a wrong parity, does not bring copies about.
        waiting = run.mask() & ~over
        if waiting.any() and _copies_arrive(run, index, address, waiting):
            over = parity(_read(run, index, address)) != wanted
        if run.on_access:
            accesses.load(run, index, "shared", address, I64, 1)
        vain = ~over & run.mask()
        run.looked(in_vain=bool(vain.any()))
        if vain.any():
            offset, rows = locate(run, index, address)
            shaped = (np.broadcast_to(x, run.shape) for x in (offset, rows, wanted))
            run.waits[index] = Wait(vain, *shaped)
        if run.on_pass:
            passed = np.broadcast_to(over & run.mask(), run.shape)
            offset, rows = locate(run, index, address)
            for hear in run.on_pass if passed.any() else ():
                hear(index, offset, wanted, passed, run.chunk, rows)
        if slot is not None:
            run.put(slot, over)

    return step


def _pending_count(decoder: Decoder, op: Opcode, index: int) -> Step:
    destination, state = op.instruction.operands
    slot, source = decoder.destination(destination), decoder.source(state, I64)

    def step(run: Run) -> None:
        if slot is not None:
            run.put(slot, pending(source.value(run.registers)).astype(np.int32))

    return step


# ---- copies that arrive --------------------------------------------------------------------------


def arrive_with_copies(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``cp.async.mbarrier.arrive``: when the thread's copies are there it arrives, once more than it would
    have (so that the count stays as it was) unless it says ``noinc``."""
    place, more = _place(decoder, op, 0), "noinc" not in op.instruction.parts

    def step(run: Run) -> None:
        address, lanes = place(run), np.array(run.mask())
        _read(run, index, address)
        if more:
            one = np.full((1, 1), 1 << PENDING)
            accesses.atomic(run, index, "shared", address, np.add, I64, (one,), False)
        copies = copies_of(run)
        copies.arrivals.append(Arrival(index, np.array(address), lanes, list(copies.pending)))

    return step


def _copies_arrive(run: Run, index: int, address: Array, lanes: Array) -> bool:
    """What was to arrive at the mbarriers that `lanes` wait at is there now. False if there was nothing."""
    sent = run.copies is not None and run.copies.arrivals
    if not sent and run.flights is None and run.tensor_work is None:
        return False
    row, lane = np.nonzero(lanes)
    offset, owner = (np.broadcast_to(x, run.shape)[row, lane] for x in locate(run, index, address))
    tensor_tasks.look(run, owner, offset)
    transfers.look(run, index, owner, offset)
    if run.copies is None or not sent:
        return True
    looked = np.unique(_key(row, np.broadcast_to(address, run.shape)[row, lane]))
    one, none = np.ones((1, 1), np.int64), np.zeros((1, 1), np.int64)
    for arrival in run.copies.arrivals:
        rows = np.broadcast_to(np.arange(run.shape[0])[:, None], run.shape)
        now = arrival.lanes & np.isin(_key(rows, np.broadcast_to(arrival.address, run.shape)), looked)
        if not now.any():
            continue
        with run.only(now):
            deliver(run, arrival.copies, now)
            _apply(run, arrival.index, arrival.address, one, none, none)
        arrival.lanes = arrival.lanes & ~now
    run.copies.arrivals = [arrival for arrival in run.copies.arrivals if arrival.lanes.any()]
    return True


def _key(row: Array, address: Array) -> Array:
    return row.astype(np.int64) << 32 | address


# ---- the table -----------------------------------------------------------------------------------

KINDS: dict[str, Builder] = {
    "init": _init,
    "inval": _destroy,
    "arrive": _arrival,
    "arrive_drop": _arrival,
    "expect_tx": _arrival,
    "complete_tx": _arrival,
    "test_wait": _wait,
    "try_wait": _wait,
    "pending_count": _pending_count,
}


def _mbarrier(decoder: Decoder, op: Opcode, index: int) -> Step | None:
    build = KINDS.get(op.instruction.parts[1])
    if build is None:
        raise decoder.unsupported(op)
    return build(decoder, op, index)


BUILDERS = {"mbarrier": _mbarrier}
