"""``clusterlaunchcontrol``: a block takes over the work of a cluster that has not begun.

The answer to a request is 16 bytes in shared memory, which arrive as a bulk copy does. PTX leaves their
layout open. Here they are the coordinates of the cluster's first block, and a word that is 1 if that cluster
will not begin.
"""

from __future__ import annotations

import numpy as np

from gpulab.simulator.ptx import Vector

from .bulk_copies import at_barrier, check_shared, multicast, send_values, senders, shared_address, window
from .executable import Step
from .opcodes import Opcode
from .operands import Decoder
from .run import Run
from .steps import Builder, adapter, one_result
from .types import B128, I32

Array = np.ndarray

ANSWER = 16  # bytes
AXES = ("x", "y", "z")


def _answers(run: Run, count: int) -> Array:
    """The answers to `count` requests, (count, 4) int32."""
    found = np.zeros((count, 4), np.int32)
    for request in found:
        blocks = run.frame.supply.take(run.cluster_size)
        if blocks.size:
            request[:3] = np.unravel_index(int(blocks[0]), run.frame.grid[::-1])[::-1]
            request[3] = 1
    return found


def _request(decoder: Decoder, op: Opcode, index: int) -> Step:
    target, barrier = op.instruction.operands
    place, bar = shared_address(decoder, target), shared_address(decoder, barrier)
    to_all = "multicast::cluster::all" in op.instruction.parts

    def step(run: Run) -> None:
        who = senders(run, index)
        answers = _answers(run, who.row.size)
        to, ending = window(who, place(run)), at_barrier(who, bar(run))
        check_shared(who, to, ANSWER, ANSWER, "asks for an answer")
        if to_all:
            everybody = np.full(who.row.size, (1 << run.cluster_size) - 1)
            copy, to, ending = multicast(who, to, ending, everybody)
            who, answers = who.take(copy), answers[copy]
        send_values(who, to, ending, answers, I32)

    return step


def _words(answer: Array) -> Array:
    """16 bytes → four int32, (…, 4)."""
    return np.ascontiguousarray(answer).view(np.int32).reshape(*answer.shape, 4)


def _question(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``query_cancel``: whether a cluster will not begin, or where its first block would have been."""
    destination, answer = op.instruction.operands
    source = decoder.source(answer, B128)
    what = op.instruction.parts[2]
    if what == "is_canceled":
        return one_result(lambda x: _words(x)[..., 3] != 0, [source], decoder.destination(destination), None)
    if isinstance(destination, Vector):
        slots = [decoder.destination(item) for item in destination.items]

        def step(run: Run) -> None:
            words = _words(source.value(run.registers))
            run.hand_out(slots, [words[..., axis] for axis in range(len(slots))])

        return step
    axis = AXES.index(what.rpartition("::")[2])
    slot = decoder.destination(destination)
    return one_result(lambda x: _words(x)[..., axis], [source], slot, adapter(decoder, slot, I32))


KINDS: dict[str, Builder] = {"try_cancel": _request, "query_cancel": _question}


def _control(decoder: Decoder, op: Opcode, index: int) -> Step | None:
    build = KINDS.get(op.instruction.parts[1])
    if build is None:
        raise decoder.unsupported(op)
    return build(decoder, op, index)


BUILDERS: dict[str, Builder] = {"clusterlaunchcontrol": _control}
