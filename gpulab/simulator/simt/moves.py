"""Loads and stores of many lanes, compiled: one pass looks at all addresses and one moves the elements, with
no array of places between them.

Only accesses that are in order are made here. All others are left to `accesses`, which does the same with
NumPy and says what is wrong. Elements move as plain bits, so they are seen as unsigned integers of their
width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .compiled import kept

Array = np.ndarray

EVERYBODY = np.ones((1, 1), bool)  # the lanes of a group that is everybody
BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
OCTET = 8  # lanes that are served together if they want one element, or neighbours


class Window(NamedTuple):
    """Where addresses lead. For the lane in row b and column t, address `origin` is element b·`row` +
    t·`column` of `view`, and the lane may reach `nbytes` bytes from there on."""

    view: Array
    origin: int
    nbytes: int
    row: int = 0
    column: int = 0


def is_in_order(
    window: Window, address: Array, lanes: Array | None, shape: tuple[int, int], count: int
) -> bool:
    """Whether each lane of the group reaches `count` elements of the window and nothing else, and the arrays
    lie in memory as compiled code expects it."""
    who = EVERYBODY if lanes is None else lanes
    if not (address.flags.c_contiguous and who.flags.c_contiguous and window.view.flags.carray):
        return False
    size = window.view.itemsize * count
    return bool(_checks()(address, who, window.origin, window.nbytes - size, size, *shape))


def load(
    window: Window, address: Array, lanes: Array | None, shape: tuple[int, int], count: int
) -> list[Array]:
    """`count` neighbouring elements for each lane, in arrays of this shape, if the access is in order. Lanes
    outside the group get what is at the address of the first one inside it."""
    who = EVERYBODY if lanes is None else lanes
    gather, bits = _gathers(window.view.itemsize), BITS[window.view.itemsize]
    values = [np.empty(shape, window.view.dtype) for _ in range(count)]
    for i, value in enumerate(values):
        gather(address, who, *_way(window, i), window.view.view(bits), value.view(bits))
    return values


def store(
    window: Window, address: Array, lanes: Array | None, shape: tuple[int, int], values: Sequence[Array]
) -> None:
    """Write one element of each of `values` for each lane of the group, the last lane last, if the access is
    in order."""
    who = EVERYBODY if lanes is None else lanes
    scatter, bits = _scatters(window.view.itemsize), BITS[window.view.itemsize]
    for i, value in enumerate(values):
        new = np.ascontiguousarray(value).view(bits)
        scatter(address, who, *_way(window, i), *shape, new, window.view.view(bits))


def load_rows(view: Array, places: Array) -> Array:
    """``view.take(places, axis=1)``, for as many places as whole warps have."""
    bits = BITS[view.itemsize]
    values = np.empty((len(view), len(places)), view.dtype)
    _row_gathers(view.itemsize)(places, view.view(bits), values.view(bits))
    return values


def _way(window: Window, element: int) -> tuple[int, ...]:
    """How compiled code gets from an address to an element: the origin, how many bits an element has for its
    bytes, the first element, and the steps of rows and columns."""
    return window.origin, window.view.itemsize.bit_length() - 1, element, window.row, window.column


# ---- what is compiled ----------------------------------------------------------------------------
# Arrays have a row for each block and a column for each lane, or one that stands for all. Places are unsigned
# because a compiled index that may be negative costs a comparison.


def check(address: Any, lanes: Any, origin: int, limit: int, size: int, rows: int, columns: int) -> bool:
    """Whether no lane of the group is below 0, above the limit or between two places of its size."""
    together, most = 0, 0
    if lanes.size == 1 and lanes[0, 0]:
        flat = address.reshape(-1)
        for i in range(flat.size):
            offset = flat[i] - origin
            together |= offset
            most = max(most, offset)
        return together >= 0 and most <= limit and together & (size - 1) == 0
    found = False
    step, lane_step = np.uint64(address.shape[1] > 1), np.uint64(lanes.shape[1] > 1)
    for row in range(rows):
        own, on = address[min(row, len(address) - 1)], lanes[min(row, len(lanes) - 1)]
        for column in range(np.uint64(columns)):
            if on[column * lane_step]:
                offset = own[column * step] - origin
                together |= offset
                most = max(most, offset)
                found = True
    return found and together >= 0 and most <= limit and together & (size - 1) == 0


def gather(
    address: Any,
    lanes: Any,
    origin: int,
    shift: int,
    element: int,
    by_row: int,
    by_column: int,
    view: Any,
    out: Any,
) -> None:
    """Read an element for each lane; one outside the group has the address of the first one inside it."""
    rows, columns = out.shape
    step, lane_step = np.uint64(address.shape[1] > 1), np.uint64(lanes.shape[1] > 1)
    everybody, known, other = lanes.size == 1, False, 0
    for row in range(rows):
        own, on = address[min(row, len(address) - 1)], lanes[min(row, len(lanes) - 1)]
        for column in range(np.uint64(columns)):
            if not known and on[column * lane_step]:
                known, other = True, own[column * step]
        if known:
            break
    for row in range(rows):
        own, on = address[min(row, len(address) - 1)], lanes[min(row, len(lanes) - 1)]
        new, first = out[row], view[element + row * by_row :]
        if everybody and step == 1 and by_column == 0:
            for column in range(np.uint64(columns)):
                new[column] = first[np.uint64(own[column] - origin) >> np.uint64(shift)]
        else:
            for column in range(np.uint64(columns)):
                here = own[column * step] if on[column * lane_step] else other
                place = np.uint64(here - origin) >> np.uint64(shift)
                new[column] = first[place + column * np.uint64(by_column)]


def scatter(
    address: Any,
    lanes: Any,
    origin: int,
    shift: int,
    element: int,
    by_row: int,
    by_column: int,
    rows: int,
    columns: int,
    value: Any,
    view: Any,
) -> None:
    """Write an element for each lane of the group."""
    step, lane_step = np.uint64(address.shape[1] > 1), np.uint64(lanes.shape[1] > 1)
    value_step = np.uint64(value.shape[1] > 1)
    for row in range(rows):
        own, on = address[min(row, len(address) - 1)], lanes[min(row, len(lanes) - 1)]
        new, first = value[min(row, len(value) - 1)], view[element + row * by_row :]
        for column in range(np.uint64(columns)):
            if on[column * lane_step]:
                place = np.uint64(own[column * step] - origin) >> np.uint64(shift)
                first[place + column * np.uint64(by_column)] = new[column * value_step]


def gather_rows(places: Any, view: Any, out: Any) -> None:
    """Read the same places in every row. Neighbouring lanes mostly want one element, or neighbours: then they
    are served together."""
    octets = len(places) // OCTET
    kinds = np.empty(octets, np.int64)  # 0: all of them want one element; 1: each the next one; 2: neither
    for octet in range(octets):
        same = following = True
        for i in range(OCTET):
            apart = places[octet * OCTET + i] - places[octet * OCTET]
            same &= apart == 0
            following &= apart == i
        kinds[octet] = 0 if same else 1 if following else 2
    for row in range(len(out)):
        new, own = out[row], view[row]
        for octet in range(np.uint64(octets)):
            lane = octet * np.uint64(OCTET)
            first = np.uint64(places[lane])
            if kinds[octet] == 0:
                for i in range(OCTET):
                    new[lane + np.uint64(i)] = own[first]
            elif kinds[octet] == 1:
                for i in range(OCTET):
                    new[lane + np.uint64(i)] = own[first + np.uint64(i)]
            else:
                for i in range(OCTET):
                    new[lane + np.uint64(i)] = own[np.uint64(places[lane + np.uint64(i)])]


def _read(element: str, axes: int) -> str:
    """numba's name of an array that is only read."""
    return f"Array({element}, {axes}, 'C', readonly=True)"


NUMBER, FLAG = "int64", "boolean"
LANES = _read(NUMBER, 2), _read(FLAG, 2)  # their addresses, and which of them are in the group


@cache
def _checks() -> Callable[..., bool]:
    return kept(check, FLAG, *LANES, *[NUMBER] * 5)


@cache
def _gathers(width: int) -> Callable[..., None]:
    element = f"uint{8 * width}"
    return kept(gather, "void", *LANES, *[NUMBER] * 5, _read(element, 1), f"{element}[:, ::1]")


@cache
def _scatters(width: int) -> Callable[..., None]:
    element = f"uint{8 * width}"
    return kept(scatter, "void", *LANES, *[NUMBER] * 7, _read(element, 2), f"{element}[::1]")


@cache
def _row_gathers(width: int) -> Callable[..., None]:
    element = f"uint{8 * width}"
    return kept(gather_rows, "void", _read(NUMBER, 1), _read(element, 2), f"{element}[:, ::1]")
