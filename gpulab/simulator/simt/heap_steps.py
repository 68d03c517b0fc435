"""``malloc`` and ``free`` in a kernel: lane after lane, in the order of blocks and threads."""

from __future__ import annotations

import numpy as np

from gpulab.simulator.ptx import Arguments, Register

from .errors import WrongFree
from .executable import Step
from .heap import Heap
from .opcodes import Opcode
from .operands import Decoder
from .run import Run
from .types import I64

Array = np.ndarray


def malloc(decoder: Decoder, op: Opcode, index: int) -> Step:
    results, size = op.instruction.operands
    assert isinstance(results, Arguments)
    (result,) = results.items
    assert isinstance(result, Register)
    slot, source = decoder.slot(result.name), decoder.source(size, I64)

    def step(run: Run) -> None:
        heap = Heap(run.memory, run.frame.heap_bytes)
        sizes = np.broadcast_to(source.value(run.registers), run.shape)
        found = np.zeros(run.shape, np.int64)
        lanes = run.mask()
        found[lanes] = [heap.take(nbytes) for nbytes in sizes[lanes].view(np.uint64).tolist()]
        run.changed()
        run.put(slot, found)

    return step


def free(decoder: Decoder, op: Opcode, index: int) -> Step:
    source = decoder.source(op.instruction.operands[0], I64)

    def step(run: Run) -> None:
        heap = Heap(run.memory, run.frame.heap_bytes)
        addresses = np.broadcast_to(source.value(run.registers), run.shape)
        for row, lane in np.argwhere(run.mask()):
            address = int(addresses[row, lane])
            if address and (wrong := heap.give_back(address)):
                here = np.zeros(run.shape, bool)
                here[row, lane] = True
                raise WrongFree(
                    **run.blame(index, here),
                    what=f"freed 0x{address:x}, but {wrong}.",
                    advice="Each block that malloc() or new gave in a kernel is freed once, by one thread. "
                    "Memory of cudaMalloc is freed by the host.",
                )
        run.changed()

    return step
