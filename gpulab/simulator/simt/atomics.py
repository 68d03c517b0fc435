"""Atomic operations in a fixed order — block, warp, lane — so that every run gives the same sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .floats import maximum, minimum

Array = np.ndarray


def _increment(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


def _exchange(old: Array, value: Array) -> Array:
    return np.broadcast_to(value, old.shape)


def _compare_and_swap(old: Array, expected: Array, value: Array) -> Array:
    return np.where(old == expected, value, old)


INTEGER: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "inc": _increment,
    "dec": _decrement,
    "exch": _exchange,
    "cas": _compare_and_swap,
}
FLOAT: dict[str, Callable[..., Array]] = {"add": np.add, "min": minimum, "max": maximum, "exch": _exchange}


# Many operations on one word at once: from its content (1,) and operands (n,) to n + 1 contents, one by one.
CHAINS: dict[Callable[..., Array], Callable[..., Array]] = {
    _exchange: lambda start, value: np.concatenate((start, value)),
}


def function(name: str, dtype: np.dtype) -> Callable[..., Array] | None:
    """What the atomic `name` makes of (old, operands…) for values of `dtype`."""
    return (FLOAT if dtype.kind == "f" else INTEGER).get(name)


def apply(run: Callable[..., Array], memory: Array, index: Array, operands: tuple[Array, ...]) -> Array:
    """Apply `run` at memory[index] once for each entry, in order; returns the old values, shape (n,).

    `memory` is 1-D and changed in place; `index` (n,) int64; operands (n,) of memory's dtype.
    """
    if len(index) == 1 or (index.min() == index.max() and len(index) > 1):
        return _one_address(run, memory, int(index[0]), operands)
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    if len(starts) == len(index):
        old = memory[index]
        memory[index] = run(old, *operands)
        return old
    sizes = np.diff(np.append(starts, len(index)))
    old = np.empty(len(index), memory.dtype)
    if len(starts) <= sizes.max():
        for start, size in zip(starts, sizes, strict=True):
            group = order[start : start + size]
            old[group] = _one_address(run, memory, int(ordered[start]), tuple(o[group] for o in operands))
        return old
    rank = np.empty(len(index), np.int64)
    rank[order] = np.arange(len(index)) - np.repeat(starts, sizes)
    by_rank = np.argsort(rank, kind="stable")
    first = 0
    for stop in np.cumsum(np.bincount(rank)):
        turn = by_rank[first:stop]
        old[turn] = memory[index[turn]]
        memory[index[turn]] = run(old[turn], *(o[turn] for o in operands))
        first = stop
    return old


def _one_address(run: Callable[..., Array], memory: Array, place: int, operands: tuple[Array, ...]) -> Array:
    start = memory[place : place + 1]
    if len(operands) == 1 and isinstance(run, np.ufunc):
        chain = run.accumulate(np.concatenate((start, operands[0])), dtype=memory.dtype)
    elif run in CHAINS:
        chain = CHAINS[run](start, *operands)
    elif run is _compare_and_swap:
        return _swap_chain(memory, place, *operands)
    else:
        chain = np.empty(len(operands[0]) + 1, memory.dtype)
        chain[0] = start[0]
        for i in range(len(operands[0])):
            chain[i + 1 : i + 2] = run(chain[i : i + 1], *(o[i : i + 1] for o in operands))
    memory[place] = chain[-1]
    return chain[:-1]


def _swap_chain(memory: Array, place: int, expected: Array, value: Array) -> Array:
    """Compare-and-swap of many lanes on one word: jump from one success to the next instead of lane by
    lane."""
    old = np.empty(len(expected), memory.dtype)
    current, first = memory[place], 0
    while first < len(expected):
        hits = np.flatnonzero(expected[first:] == current)
        stop = first + int(hits[0]) if len(hits) else len(expected)
        old[first:stop] = current
        if stop < len(expected):
            old[stop] = current
            current = value[stop]
            stop += 1
        first = stop
    memory[place] = current
    return old
