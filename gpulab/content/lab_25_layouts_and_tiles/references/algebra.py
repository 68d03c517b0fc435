"""Expected results of lab 25, part A."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from gpulab.checks.spec import Sizes, WrongAnswer

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]
Layout = Sequence[Sequence[int]]
Modes = list[tuple[int, int]]

BANKS = 128  # bytes after which they repeat


def coalesce(layout: Layout) -> Modes:
    kept: Modes = []
    for size, stride in layout:
        if size == 1:
            continue
        if kept and kept[-1][0] * kept[-1][1] == stride:
            kept[-1] = kept[-1][0] * size, kept[-1][1]
        else:
            kept.append((size, stride))
    return kept or [(1, 0)]


def compose(a: Layout, size: int, stride: int) -> Modes:
    found: Modes = []
    for length, step in a:
        if stride >= length:
            stride //= length
            continue
        taken = min(length // stride, size)
        found.append((taken, step * stride))
        size, stride = size // taken, 1
        if size == 1:
            break
    return found


def complement(tile: Layout, n: int) -> Modes:
    found, end = Modes(), 1
    for stride, size in sorted((stride, size) for size, stride in tile if size > 1):
        if stride > end:
            found.append((stride // end, end))
        end = size * stride
    if n > end:
        found.append((n // end, end))
    return found or [(1, 0)]


def divide(a: Layout, size: int, stride: int) -> list[Modes]:
    rest = complement([(size, stride)], prod(length for length, _ in a))
    outer = [mode for tile in rest for mode in compose(a, *tile)]
    return [coalesce(compose(a, size, stride)), coalesce(outer)]


def swizzled(address: int, bits: int, base: int, shift: int) -> int:
    """`bits` bits of the address from bit `base` on, each exchanged (XOR) with the one `shift` higher."""
    mask = ((1 << bits) - 1) << base
    return address ^ (address >> shift & mask)


def wavefronts(addresses: Sequence[int], access: int) -> int:
    """Passes that lanes need which access these addresses, of `access` bytes each."""
    words: dict[int, set[int]] = {}
    for address in addresses:
        for word in range(address // 4, (address + access) // 4):
            words.setdefault(word % 32, set()).add(word)
    return max(map(len, words.values()))


def swizzle(answer: Any, row: int, access: int) -> dict[str, float]:
    if not isinstance(answer, list) or len(answer) != 3 or any(type(x) is not int for x in answer):
        raise WrongAnswer("the answer is three whole numbers: bits, base and shift.")
    bits, base, shift = answer
    if not (0 <= bits <= 16 and 0 <= base <= 16 and 0 <= shift <= 16):
        raise WrongAnswer("bits, base and shift are from 0 to 16.")
    lanes = BANKS // access
    rows = 2 * lanes * max(1, BANKS // row)
    places = [[swizzled(r * row + c, bits, base, shift) for c in range(row)] for r in range(rows)]
    if len({place for line in places for place in line}) < rows * row:
        raise WrongAnswer("two bytes of the tile come to the same address: source and target bits overlap.")
    if any(line[c + 1] != line[c] + 1 for line in places for c in range(row - 1) if (c + 1) % access):
        raise WrongAnswer(f"the {access} bytes of one access no longer lie together.")
    down = [
        [places[r + i][c] for i in range(lanes)] for r in range(0, rows, lanes) for c in range(0, row, access)
    ]
    flat = [place for line in places for place in line[::access]]
    along = [flat[i : i + lanes] for i in range(0, len(flat), lanes)]
    needed = (min(BANKS, row) // access).bit_length() - 1
    return {
        "conflicts": max(wavefronts(each, access) for each in (*down, *along)) - 1,
        "spare bits": max(0, bits - needed),
    }


def copy(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"y": inputs["x"]}


def transpose(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"y": inputs["x"].T}


def slow(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"y": 2 * inputs["x"]}


REFERENCES: dict[str, Callable[..., Any]] = {
    "layout.coalesce": coalesce,
    "layout.compose": compose,
    "layout.complement": complement,
    "layout.divide": divide,
    "layout.swizzle": swizzle,
    "layout.copy": copy,
    "layout.transpose": transpose,
    "layout.slow": slow,
}
