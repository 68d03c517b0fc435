"""``mbarrier``: barriers in shared memory, at which a thread arrives at one time and waits at another.

PTX leaves it open what the 64 bits hold. Ours, from the lowest: 20 bits for the arrivals expected of each
phase, 20 for those that this phase still lacks, 22 for the bytes that are announced and have not come
(signed), and the phase's parity. The state that an arrival returns is the word as it was before.

A ``cp.async.mbarrier.arrive`` arrives when somebody looks whether the phase is over, and its copies with it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpulab.simulator.ptx import Immediate, Register

from . import accesses, atomics
from .async_copies import copies_of, deliver
from .copies import Arrival
from .errors import WrongBarrier
from .executable import Step
from .memory import SHARED_WINDOW
from .opcodes import Opcode
from .operands import Decoder
from .run import Run
from .steps import Builder, space_of
from .types import I64, U32

Array = np.ndarray

COUNT_BITS, BYTES_BITS = 20, 22
COUNT = (1 << COUNT_BITS) - 1
PENDING, BYTES, PARITY = COUNT_BITS, 2 * COUNT_BITS, 2 * COUNT_BITS + BYTES_BITS
LARGEST = COUNT  # of arrivals, as PTX limits it
NONE = (0, -1)  # words that are no mbarrier: destroyed, and shared memory that nobody has written

OUTSIDE_CLUSTER = "The simulator knows no clusters of blocks: compile for a capability from 8.0 to 8.9."


def expected(word: Array) -> Array:
    """Arrivals that each phase takes."""
    return word & COUNT


def pending(word: Array) -> Array:
    """Arrivals that this phase still lacks."""
    return word >> PENDING & COUNT


def parity(word: Array) -> Array:
    """0 or 1: of the phase that is not over yet."""
    return word >> PARITY & 1


def after(old: Array, count: Array, drop: Array, announce: Array) -> Array:
    """The word after `count` arrivals, of which `drop` are for good, and `announce` more bytes to come."""
    will, lacks = expected(old) - drop, pending(old) - count
    coming = ((old << (64 - PARITY)) >> (64 - BYTES_BITS)) + announce
    over = (lacks == 0) & (coming == 0)
    return _word(will, np.where(over, will, lacks), coming, parity(old) ^ over)


def in_turn(start: Array, count: Array, drop: Array, announce: Array) -> Array:
    """The words before each of several arrivals at one mbarrier, and after the last, shape (n + 1,)."""
    if (count < 1).any() or count.sum() > pending(start)[0]:  # may end a phase in between
        words = [start]
        for each in zip(count[:, None], drop[:, None], announce[:, None], strict=True):
            words.append(after(words[-1], *each))
        return np.concatenate(words)
    sums = [np.cumsum(x) for x in (count, drop, announce)]
    so_far = [np.concatenate(([0], x[:-1])) for x in sums]
    before = after(start, *so_far)
    return np.append(before, after(start, *(x[-1:] for x in sums)))


atomics.CHAINS[after] = in_turn


def _word(will: Array, lacks: Array, coming: Array, phase: Array) -> Array:
    mask = (1 << BYTES_BITS) - 1
    return (will | lacks << PENDING | (coming & mask) << BYTES | phase << PARITY).astype(np.int64)


def first_word(count: Array) -> Array:
    """The word of a new mbarrier for `count` arrivals in each phase."""
    zero = np.zeros_like(count)
    return _word(count, count, zero, zero)


# ---- instructions --------------------------------------------------------------------------------


def _place(decoder: Decoder, op: Opcode, operand: int) -> Callable[[Run], Array]:
    """Where the mbarrier of each lane is, as an offset into shared memory."""
    if "shared::cluster" in op.instruction.parts and not _is_own(op):
        raise decoder.unsupported(op, OUTSIDE_CLUSTER)
    space = space_of(op)
    address = decoder.address(op.instruction.operands[operand])
    start = SHARED_WINDOW if space == "generic" else 0
    return lambda run: address(run.registers) - start


def _is_own(op: Opcode) -> bool:
    """Whether only the block's own mbarrier can be meant: one of another block returns no state."""
    first = op.instruction.operands[0]
    return isinstance(first, Register) and first.name != "_"


def _read(run: Run, index: int, address: Array) -> Array:
    """What is there. Raises WrongBarrier where that is no mbarrier."""
    (word,) = accesses.load_shared(run, index, address, I64, 1)
    bad = np.isin(word, NONE)
    if (bad & run.mask()).any():
        raise WrongBarrier(
            **run.blame(index, bad),
            what="uses an mbarrier that is not initialised.",
            advice="One thread initialises it; all others come after a barrier of the block.",
        )
    return word


def _init(decoder: Decoder, op: Opcode, index: int) -> Step:
    place, count = _place(decoder, op, 0), decoder.source(op.instruction.operands[1], U32)

    def step(run: Run) -> None:
        given = count.value(run.registers).astype(np.int64)
        wrong = (given < 1) | (given > LARGEST)
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
    for hear in run.on_arrive:
        hear(index, address, parity(old), run.lanes, run.chunk)
    return old


def _wait(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``test_wait`` and ``try_wait``, which looks no longer than the other here."""
    destination, _, phase, *_ = op.instruction.operands
    place, slot = _place(decoder, op, 1), decoder.destination(destination)
    by_parity = "parity" in op.instruction.parts
    asked = decoder.source(phase, U32 if by_parity else I64)

    def step(run: Run) -> None:
        address = place(run)
        _copies_arrive(run, address)
        word = _read(run, index, address)
        if run.on_access:
            accesses.tell(run, index, "shared", "load", address, 8, [word])
        given = asked.value(run.registers).astype(np.int64)
        wanted = given & 1 if by_parity else parity(given)
        over = parity(word) != wanted
        run.looked(in_vain=bool((~over & run.mask()).any()))
        if run.on_pass:
            passed = np.broadcast_to(over & run.mask(), run.shape)
            for hear in run.on_pass if passed.any() else ():
                hear(index, address, wanted, passed, run.chunk)
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


def _copies_arrive(run: Run, address: Array) -> None:
    """What was to arrive at the mbarriers that the group looks at is there now."""
    if run.copies is None or not run.copies.arrivals:
        return
    row, lane = np.nonzero(run.mask())
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
