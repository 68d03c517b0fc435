"""Accesses that no memory takes, in words: which element of which array, by the names of the source."""

from __future__ import annotations

from typing import NotRequired, TypedDict

import numpy as np

from .errors import ArrayLabel, Misaligned, OutOfBounds, Outside, indexed_names, indexes_axes
from .memory import GUARD, HEAP_PIECE
from .run import Run

Array = np.ndarray


class Told(TypedDict):
    """The words of a fault."""

    what: str
    advice: str
    outside: NotRequired[Outside]


def first(run: Run, bad: Array) -> tuple[int, int]:
    """(block row, lane) of the first lane of the group in `bad`."""
    chosen = np.broadcast_to(bad, run.shape)
    if run.lanes is not None:
        chosen = chosen & run.lanes
    row, lane = np.unravel_index(int(chosen.argmax()), run.shape)
    return int(row), int(lane)


def fault_misaligned(run: Run, index: int, space: str, address: Array, size: int) -> None:
    bad = (address & (size - 1)) != 0
    place = first(run, bad)
    offset = int(np.broadcast_to(address, run.shape)[place])
    raise Misaligned(
        **run.blame(index, bad),
        what=f"used {size} bytes at {space} address {offset:#x}, which is no multiple of {size}.",
        advice=f"Accesses of {size} bytes must start at a multiple of {size} bytes.",
    )


def fault_outside(run: Run, index: int, address: Array, size: int, did: str) -> None:
    wide = np.broadcast_to(address, run.shape)
    bad = np.array([not _holds(run, int(a), size, did) for a in wide.reshape(-1)]).reshape(run.shape)
    row, lane = first(run, bad)
    raise OutOfBounds(**run.blame(index, bad), **_describe(run, index, int(wide[row, lane]), size, did))


def check_heap(
    run: Run, index: int, offset: Array, size: int, book: Array, writing: bool, lanes: Array | None = None
) -> None:
    """Raise OutOfBounds where a lane reaches a piece of the kernels' heap that belongs to no block."""
    pieces = offset // HEAP_PIECE
    bad = (book[pieces] <= 0) | (book[(offset + (size - 1)) // HEAP_PIECE] <= 0)
    if lanes is not None:
        bad &= lanes
    if not bad.any() or not (run.mask() & bad).any():
        return
    freed = book[np.broadcast_to(pieces, run.shape)[first(run, bad)]] < 0
    did = "wrote" if writing else "read"
    raise OutOfBounds(
        **run.blame(index, bad),
        what=f"{did} {size} bytes of the heap that belong to no block of malloc() or new"
        + (": they were freed." if freed else "."),
        advice="Was the block freed before, or is it smaller than the index needs? "
        f"Blocks are told apart by pieces of {HEAP_PIECE} bytes.",
    )


def _holds(run: Run, address: int, size: int, did: str) -> bool:
    allocation = run.memory.find(address)
    if allocation is None or (did == "wrote" and not allocation.writable):
        return False
    return address + size <= allocation.address + allocation.nbytes


def _describe(run: Run, index: int, address: int, size: int, did: str) -> Told:
    """What was touched, in the learner's names: array, index, size."""
    if abs(address) < GUARD:
        return {
            "what": f"{did} address {address:#x}: a null pointer.",
            "advice": "Did an empty or missing array reach the kernel?",
        }
    label = _nearest_label(run.arrays, address)
    if label is None:
        return _describe_unlabelled(run, index, address, size, did)
    what = f"{label.name}[{', '.join(map(str, label.index_of(address)))}]"
    advice = _kept_inside(run)
    if address < label.address:
        advice = "The index is negative. Did a product overflow, or a difference fall below 0?"
    elif address < label.address + label.extent:
        what = f"{size} bytes at {what}"
        advice = f"Do all {size} bytes lie inside the array?"
    if len(label.shape) == 1:
        has = f"{label.name} has {_elements(label.shape[0])} ({label.dtype})."
    else:
        has = f"{label.name} is {' × '.join(map(str, label.shape))} ({label.dtype})."
        advice += (
            "\nThe index is worked out from the address, and behind the end of a row comes the"
            "\nnext row: your line may have named the place by a column too many"
        )
        by_axes = indexes_axes(run.program.instructions[index].location)
        advice += ", or by a\nnegative index, which counts from the end." if by_axes else "."
    told: Told = {"what": f"{did} {what}; {has}", "advice": advice}
    index_there = label.index_of(address)
    if any(not 0 <= i < n for i, n in zip(index_there, label.shape, strict=True)):
        told["outside"] = Outside(label.name, label.shape, index_there, did)
    return told


def _describe_unlabelled(run: Run, index: int, address: int, size: int, did: str) -> Told:
    """As `_describe`, for memory that is no argument: constants and variables of the module, or nothing."""
    nearest = run.memory.nearest(address)
    offset = address - nearest.address if nearest else 0
    if nearest is None or not nearest.name or not 0 <= offset < nearest.nbytes + GUARD:
        return {
            "what": f"{did} {size} bytes at {address:#x}, which belongs to no array.",
            "advice": "Was the array freed, does an index run far beyond it, or did a product overflow?",
        }
    kind = "global" if nearest.writable else "constant"
    if did == "wrote" and not nearest.writable and offset < nearest.nbytes:
        return {"what": "wrote to a constant array.", "advice": "A kernel can only read constant memory."}
    return {
        "what": f"{did} {_element(run, index, kind, offset, nearest.nbytes, size)}",
        "advice": _kept_inside(run),
    }


def _kept_inside(run: Run) -> str:
    return f"Does a {run.frame.guard} keep every index inside the array?"


def _nearest_label(labels: tuple[ArrayLabel, ...], address: int) -> ArrayLabel | None:
    near = [l for l in labels if l.address - GUARD <= address < l.address + l.extent + GUARD]
    return min(
        near, key=lambda l: max(l.address - address, address - (l.address + l.extent), 0), default=None
    )


def shared_element(run: Run, index: int, offset: int, limit: int, size: int) -> str:
    """An element of the shared array before `offset`: whose index ran over, most likely."""
    places = run.program.shared_variables.values()
    start, nbytes = max((p for p in places if p[0] <= offset), default=(0, 0))
    return _element(run, index, "shared", offset - start, nbytes or limit - start, size)


def outside_shared(run: Run, index: int, offset: int, limit: int, size: int, did: str) -> Outside | None:
    """The same as data, where the source line names the array."""
    names = indexed_names(run.program.instructions[index].location) - {label.name for label in run.arrays}
    places = run.program.shared_variables.values()
    start, nbytes = max((p for p in places if p[0] <= offset), default=(0, 0))
    if len(names) != 1:
        return None
    return Outside(names.pop(), ((nbytes or limit - start) // size,), ((offset - start) // size,), did)


def _element(run: Run, index: int, kind: str, offset: int, nbytes: int, size: int) -> str:
    """``element 32 of the shared array s, which has 32 elements of 4 bytes.``, by its name in the source."""
    names = indexed_names(run.program.instructions[index].location) - {label.name for label in run.arrays}
    array = f"the {kind} array {names.pop()}" if len(names) == 1 else f"a {kind} array"
    return f"element {offset // size} of {array}, which has {_elements(nbytes // size)} of {size} bytes."


def _elements(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"
