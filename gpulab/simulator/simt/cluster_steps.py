"""Instructions that reach the shared memory of other blocks: ``mapa``, ``getctarank``, ``st.async`` and
``red.async``. Ordinary loads, stores and atomics need no steps of their own for it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpulab.simulator.ptx import Register, Vector

from . import accesses, atomics
from .bulk_copies import at_barrier, check_shared, send_values, senders, shared_address, window
from .executable import Step
from .opcodes import Opcode
from .operands import Decoder
from .run import RANK_BIT, Run
from .steps import Builder, adapter, one_result
from .types import DTYPES, I64, SIGNED, size_of

Array = np.ndarray

RANKS = np.int64(0xFF << RANK_BIT)


def _map(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``mapa``: the address of the same place in the shared memory of another block of the cluster."""
    destination, address, rank = op.instruction.operands
    slot = decoder.destination(destination)
    sources = [decoder.source(address, I64), decoder.source(rank, I64)]
    return one_result(
        lambda x, to: (x & ~RANKS) | (to << RANK_BIT & RANKS), sources, slot, adapter(decoder, slot, I64)
    )


def _rank(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``getctarank``: whose shared memory an address is of."""
    destination, address = op.instruction.operands
    slot = decoder.destination(destination)
    return one_result(
        lambda x: (x & RANKS) >> RANK_BIT, [decoder.source(address, I64)], slot, adapter(decoder, slot, I64)
    )


def is_asynchronous(op: Opcode) -> bool:
    """Whether an mbarrier counts the bytes of a store or reduction (``st.async``, ``red.async``)."""
    return "async" in op.modifiers


def asynchronous(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``st.async`` and ``red.async``: what registers hold is sent to another block, as a bulk copy is."""
    target, value, barrier = op.instruction.operands
    items = value.items if isinstance(value, Vector) else (value,)
    size = size_of(op.type)
    function: Callable[..., Array] | None = None
    if op.name == "red":
        name = next((part for part in op.instruction.parts[1:] if part in atomics.INTEGER), "")
        dtype = DTYPES[op.type]
        function = atomics.function(name, dtype)
        if function is None:
            raise decoder.unsupported(op)
    else:
        first = items[0]
        known = decoder.dtypes[decoder.slot(first.name)] if isinstance(first, Register) else SIGNED[size]
        dtype = accesses.memory_dtype(known, size)
    sources = [decoder.source(item, dtype, canonical=True) for item in items]
    place, bar = shared_address(decoder, target), shared_address(decoder, barrier)

    def step(run: Run) -> None:
        who = senders(run, index)
        to, ending = window(who, place(run)), at_barrier(who, bar(run))
        nbytes = size * len(items)
        check_shared(who, to, nbytes, nbytes, "sent values")
        values = np.stack([who.of(source.value(run.registers)) for source in sources], axis=1)
        send_values(who, to, ending, values, dtype, function)

    return step


BUILDERS: dict[str, Builder] = {"mapa": _map, "getctarank": _rank}
