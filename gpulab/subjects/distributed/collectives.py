"""What collectives give to each rank, and which messages they need, by the algorithms of `costs`.

Contents are bytes here; only reductions look into them. A piece is what one rank has for one other.
All-reduce, reduce-scatter and all-gather go round a ring, broadcast and reduce along a binomial tree, gather,
scatter and all-to-all directly, and a barrier tells everybody in ⌈log2 p⌉ rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

NAMES = (
    "all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter",
    "barrier",
)  # fmt: skip
OPERATIONS = {"SUM": np.add, "AVG": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum}
TYPES = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool",
)  # fmt: skip


class CannotReduce(ValueError):
    """The operation or the type is none that is reduced here; the text names it."""


@dataclass(frozen=True)
class Message:
    """One message of a collective: in which round, from whom to whom (places in the group), bytes."""

    step: int
    sender: int
    receiver: int
    bytes: int


@dataclass(frozen=True)
class Contribution:
    """What one rank brings to a collective.

    `cuts` are the bytes of the pieces of `data`, one a rank, where the collective hands out pieces.
    """

    data: bytes
    cuts: tuple[int, ...] = ()

    @property
    def pieces(self) -> list[bytes]:
        ends = np.cumsum((0, *self.cuts)).tolist()
        return [self.data[a:b] for a, b in pairwise(ends)]


def results(
    name: str, given: list[Contribution], root: int = 0, operation: str = "SUM", dtype: str = "uint8"
) -> list[bytes]:
    """What each rank of the group gets. Raises CannotReduce, and ValueError for pieces that do not fit."""
    ranks = len(given)
    nothing = [b""] * ranks
    match name:
        case "all_reduce":
            return [reduced([g.data for g in given], operation, dtype)] * ranks
        case "reduce":
            nothing[root] = reduced([g.data for g in given], operation, dtype)
            return nothing
        case "broadcast":
            return [given[root].data] * ranks
        case "all_gather":
            return [b"".join(g.data for g in given)] * ranks
        case "gather":
            nothing[root] = b"".join(g.data for g in given)
            return nothing
        case "reduce_scatter":
            return [reduced([g.pieces[r] for g in given], operation, dtype) for r in range(ranks)]
        case "all_to_all":
            return [b"".join(g.pieces[r] for g in given) for r in range(ranks)]
        case "scatter":
            return given[root].pieces
        case "barrier":
            return nothing
    raise ValueError(f"there is no collective {name!r}")


def reduced(parts: list[bytes], operation: str, dtype: str) -> bytes:
    """The parts added (multiplied, …) element by element, in the order of ranks and in their own type."""
    if operation not in OPERATIONS or dtype not in TYPES:
        raise CannotReduce(f"{operation} of {dtype}")
    if len({len(part) for part in parts}) > 1:
        raise ValueError("parts of different sizes")
    values = [_numbers(part, dtype) for part in parts]
    if operation == "AVG" and values[0].dtype.kind != "f":
        raise CannotReduce(f"{operation} of {dtype}")
    with np.errstate(all="ignore"):
        total = values[0]
        for each in values[1:]:
            total = _rounded(OPERATIONS[operation](total, each), dtype)
        if operation == "AVG":
            total = _rounded(total / total.dtype.type(len(parts)), dtype)
    return _bytes(total, dtype)


def _numbers(data: bytes, dtype: str) -> np.ndarray:
    if dtype == "bfloat16":  # the upper half of a float32
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, dtype)


def _rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """bfloat16 is computed in float32; after each step it is rounded to the nearest, ties to even."""
    if dtype != "bfloat16":
        return values
    bits = values.astype(np.float32).view(np.uint32)
    up = bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)
    kept = np.where(np.isnan(values), bits | np.uint32(0x400000), up) & np.uint32(0xFFFF0000)
    return kept.astype(np.uint32).view(np.float32)


def _bytes(values: np.ndarray, dtype: str) -> bytes:
    return (
        (values.view(np.uint32) >> 16).astype(np.uint16).tobytes()
        if dtype == "bfloat16"
        else values.tobytes()
    )


# ---------------------------------------------------------------- messages


def messages(name: str, given: list[Contribution], root: int = 0, itemsize: int = 1) -> list[Message]:
    """The messages that a collective needs, of a group of one rank none."""
    ranks = len(given)
    if ranks == 1:
        return []
    match name:
        case "all_reduce":
            each, more = divmod(len(given[0].data) // itemsize, ranks)
            share = [(each + (rank < more)) * itemsize for rank in range(ranks)]
            there = _ring_reduce_scatter(share)
            return there + _later(_ring_all_gather(share), there)
        case "reduce_scatter":
            return _ring_reduce_scatter(list(given[0].cuts))
        case "all_gather":
            return _ring_all_gather([len(g.data) for g in given])
        case "broadcast":
            return _tree(ranks, root, len(given[root].data))
        case "reduce":
            down = _tree(ranks, root, len(given[root].data))
            last = max(m.step for m in down)
            return [Message(last - m.step, m.receiver, m.sender, m.bytes) for m in reversed(down)]
        case "gather":
            return [Message(0, r, root, len(given[r].data)) for r in range(ranks) if r != root]
        case "scatter":
            return [Message(0, root, r, given[root].cuts[r]) for r in range(ranks) if r != root]
        case "all_to_all":
            return [Message(0, a, b, given[a].cuts[b]) for a in range(ranks) for b in range(ranks) if a != b]
        case "barrier":
            rounds = (ranks - 1).bit_length()
            return [
                Message(step, r, (r + (1 << step)) % ranks, 0) for step in range(rounds) for r in range(ranks)
            ]
    raise ValueError(f"there is no collective {name!r}")


def _ring_reduce_scatter(share: list[int]) -> list[Message]:
    """`share[r]` are the bytes that rank r ends up with."""
    p = len(share)
    return [Message(s, r, (r + 1) % p, share[(r - s - 1) % p]) for s in range(p - 1) for r in range(p)]


def _ring_all_gather(share: list[int]) -> list[Message]:
    """`share[r]` are the bytes that rank r begins with."""
    p = len(share)
    return [Message(s, r, (r + 1) % p, share[(r - s) % p]) for s in range(p - 1) for r in range(p)]


def _later(then: list[Message], first: list[Message]) -> list[Message]:
    after = max(m.step for m in first) + 1
    return [Message(m.step + after, m.sender, m.receiver, m.bytes) for m in then]


def _tree(ranks: int, root: int, size: int) -> list[Message]:
    """In each round everybody who has it tells one more."""
    found: list[Message] = []
    for step in range((ranks - 1).bit_length()):
        have = 1 << step
        for place in range(min(have, ranks - have)):
            found.append(Message(step, (place + root) % ranks, (place + have + root) % ranks, size))
    return found


def steps(sent: list[Message]) -> int:
    """The rounds that the messages take."""
    return max((m.step for m in sent), default=-1) + 1


def itemsize(dtype: Any) -> int:
    """Bytes of one element. Raises CannotReduce for a type that is not in `TYPES`."""
    if dtype not in TYPES:
        raise CannotReduce(str(dtype)[:40])
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
