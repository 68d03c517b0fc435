"""Compiled code that executes a stretch. Import it only to compile it: it imports the compiler."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from .lines import ADD, FUSED, LOAD, MOVE, MULTIPLY, NEXT, OCTET, READ, SAME, SUBTRACT, TILE, WRITE
from .llvm import copy, fill, fused, pointer


def sweep(
    lines: Any,
    places: Any,
    octets: Any,
    shared: Any,
    inputs: Any,
    outputs: Any,
    pad: Any,
    rows: int,
    columns: int,
) -> None:
    """Take all lanes through the lines, a tile at a time.

    `places` (loads, T) are the elements of each lane in its block's row of `shared`, and `octets` what
    `stretches` found out about them. A row of `inputs` is the address of a register and the steps between its
    rows and columns; `outputs` are addresses of registers of shape (rows, columns). Arrays are reached by
    address, because numba counts the references to every array that it makes.
    """
    size, at, room = pad.itemsize, pad.ctypes.data, shared.shape[1]
    tile_bytes, octet_bytes = TILE * size, OCTET * size
    for row in range(rows):
        own = shared.ctypes.data + row * room * size
        for start in range(0, columns, TILE):
            width = np.uint64(min(TILE, columns - start))
            before = np.uint64(start)
            for n in range(len(lines)):
                code, target = lines[n, 0], at + lines[n, 1] * tile_bytes
                new = numba.carray(pointer(target, pad), TILE)
                a = numba.carray(pointer(at + lines[n, 2] * tile_bytes, pad), TILE)
                b = numba.carray(pointer(at + lines[n, 3] * tile_bytes, pad), TILE)
                c = numba.carray(pointer(at + lines[n, 4] * tile_bytes, pad), TILE)
                if code == FUSED:
                    for i in range(np.uint64(TILE)):
                        new[i] = fused(a[i], b[i], c[i])
                elif code == LOAD:
                    load, begin = lines[n, 2], own + lines[n, 3] * size
                    window = numba.carray(pointer(begin, pad), room)
                    for octet in range(width // np.uint64(OCTET)):
                        known = octets[load, before // np.uint64(OCTET) + octet]
                        to, here = target + octet * octet_bytes, begin + (known >> 2)
                        if known & 3 == SAME:
                            fill(to, here, pad)
                        elif known & 3 == NEXT:
                            copy(to, here, pad)
                        else:
                            lane = octet * np.uint64(OCTET)
                            for i in range(lane, lane + np.uint64(OCTET)):
                                new[i] = window[np.uint64(places[load, before + i])]
                elif code == READ:
                    start_of, by_row, by_column = inputs[lines[n, 2]]
                    there = start_of + (row * by_row + start * by_column) * size
                    given = numba.carray(pointer(there, pad), TILE)
                    if by_column:
                        for i in range(width):
                            new[i] = given[i]
                    else:
                        for i in range(width):
                            new[i] = given[0]
                elif code == WRITE:
                    there = outputs[lines[n, 3]] + (row * columns + start) * size
                    made = numba.carray(pointer(there, pad), TILE)
                    for i in range(width):
                        made[i] = a[i]
                elif code == MOVE:
                    for i in range(np.uint64(TILE)):
                        new[i] = a[i]
                elif code == ADD:
                    for i in range(np.uint64(TILE)):
                        new[i] = a[i] + b[i]
                elif code == SUBTRACT:
                    for i in range(np.uint64(TILE)):
                        new[i] = a[i] - b[i]
                elif code == MULTIPLY:
                    for i in range(np.uint64(TILE)):
                        new[i] = a[i] * b[i]
