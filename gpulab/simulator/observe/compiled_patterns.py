"""What `patterns` counts, compiled: sums over all warps of an access, in one pass and without sorting.

`patterns` says what the counts mean. Addresses and masks are (warps, 32).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gpulab.simulator.simt.compiled import kept

from .patterns import BANKS, SECTOR, WORD

Array = np.ndarray

WARP = 32
EVERYBODY = np.ones((1, 1), bool)  # the mask of an access that all lanes make
SECTOR_BITS = SECTOR.bit_length() - 1
# A table with more slots than a warp has lanes; a key's slot is a few bits of its product with an odd number.
SLOTS, SPREAD, SPREAD_BITS = 64, 0x1E3779B97F4A7C15, 40


def sectors(address: Array, size: int, lanes: Array | None) -> tuple[int, int]:
    """The sums of `patterns.sectors`."""
    asked, ideal = _sectors()(np.ascontiguousarray(address), size, _mask(lanes))
    return int(asked), int(ideal)


def wavefronts(offset: Array, size: int, lanes: Array | None) -> tuple[int, int]:
    """The sums of `patterns.wavefronts`."""
    asked, ideal = _wavefronts()(np.ascontiguousarray(offset), size, _mask(lanes))
    return int(asked), int(ideal)


def split(taken: Array, lanes: Array | None) -> int:
    """As `patterns.split`."""
    return int(_split()(np.ascontiguousarray(taken), _mask(lanes)))


def _mask(lanes: Array | None) -> Array:
    return EVERYBODY if lanes is None else np.ascontiguousarray(lanes)


# ---- what is compiled ----------------------------------------------------------------------------


def count_sectors(address: Any, size: int, lanes: Any) -> tuple[int, int]:
    asked = ideal = turn = 0
    everybody = lanes.size == 1
    keys = np.empty(WARP, np.int64)  # addresses; those outside the group repeat that of a lane inside it
    table, used = np.empty(SLOTS, np.int64), np.zeros(SLOTS, np.int64)
    for warp in range(len(address)):
        own = address[warp]
        if everybody:
            for lane in range(WARP):
                keys[lane] = own[lane]
        else:
            on, first = lanes[warp], 0
            while first < WARP and not on[first]:
                first += 1
            if first == WARP:
                continue
            last = own[first]
            for lane in range(WARP):
                last = own[lane] if on[lane] else last
                keys[lane] = last
        places = touched = 1
        back = 0
        for lane in range(WARP - 1):
            back += keys[lane + 1] < keys[lane]
            places += keys[lane + 1] != keys[lane]
            touched += keys[lane + 1] >> SECTOR_BITS != keys[lane] >> SECTOR_BITS
        if back:  # not in order: each key is looked up among those before it, in a table of hashes
            places = touched = 0
            for shift in (0, SECTOR_BITS):
                turn += 1
                different = 0
                for lane in range(WARP):
                    key = keys[lane] >> shift
                    slot = key * SPREAD >> SPREAD_BITS & SLOTS - 1
                    while used[slot] == turn and table[slot] != key:
                        slot = slot + 1 & SLOTS - 1
                    if used[slot] != turn:
                        used[slot], table[slot] = turn, key
                        different += 1
                if shift:
                    touched = different
                else:
                    places = different
        asked += touched
        ideal += (places * size + SECTOR - 1) >> SECTOR_BITS
    return asked, ideal


def count_wavefronts(offset: Any, size: int, lanes: Any) -> tuple[int, int]:
    asked = ideal = 0
    everybody = lanes.size == 1
    words = max(size // WORD, 1)
    served = WARP // words  # lanes at once
    seen = np.empty((BANKS, WARP), np.int64)  # the words of each bank
    of_bank = np.empty(BANKS, np.int64)  # … and their number
    for warp in range(len(offset)):
        for start in range(0, WARP, served):
            of_bank[:] = 0
            most = 0
            for lane in range(start, start + served):
                if not (everybody or lanes[warp, lane]):
                    continue
                for i in range(words):
                    word = offset[warp, lane] // WORD + i
                    bank = word % BANKS
                    known = False
                    for n in range(of_bank[bank]):
                        known |= seen[bank, n] == word
                    if not known:
                        seen[bank, of_bank[bank]] = word
                        of_bank[bank] += 1
                        most = max(most, of_bank[bank])
            asked += most
            ideal += most > 0
    return asked, ideal


def count_split(taken: Any, lanes: Any) -> int:
    found = 0
    everybody = lanes.size == 1
    for warp in range(len(taken)):
        went = stayed = False
        for lane in range(WARP):
            on = everybody or lanes[warp, lane]
            went |= on and taken[warp, lane]
            stayed |= on and not taken[warp, lane]
        found += went and stayed
    return found


ADDRESSES = "Array(int64, 2, 'C', readonly=True)"
MASK = "Array(boolean, 2, 'C', readonly=True)"
SUMS = "UniTuple(int64, 2)"


@cache
def _sectors() -> Callable[..., tuple[int, int]]:
    return kept(count_sectors, SUMS, ADDRESSES, "int64", MASK)


@cache
def _wavefronts() -> Callable[..., tuple[int, int]]:
    return kept(count_wavefronts, SUMS, ADDRESSES, "int64", MASK)


@cache
def _split() -> Callable[..., int]:
    return kept(count_split, "int64", MASK, MASK)
