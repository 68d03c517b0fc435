"""How many sectors, wavefronts and distinct addresses the lanes of a warp touch. Rows are warps, columns its
32 lanes.

All functions take int64 byte addresses (N, 32) and a boolean mask of the same shape or None (all lanes), and
return int64 (N,). The usual patterns — unit stride, one address for all — are recognised before anything is
sorted.
"""

from __future__ import annotations

import numpy as np

SECTOR = 32  # bytes
BANKS = 32
WORD = 4  # bytes that one bank delivers a wavefront
LINE = BANKS * WORD  # bytes of a wavefront
LANES = np.arange(32)

Array = np.ndarray


def distinct(keys: Array, lanes: Array | None) -> Array:
    """Number of different keys among the lanes of each row; 0 for a row without lanes."""
    if lanes is not None:
        keys = _fill(keys, lanes)
    changes = keys[:, 1:] != keys[:, :-1]
    if not (keys[:, 1:] >= keys[:, :-1]).all():
        ordered = np.sort(keys, axis=1)
        changes = ordered[:, 1:] != ordered[:, :-1]
    count = 1 + changes.sum(axis=1)
    return count if lanes is None else np.where(lanes.any(axis=1), count, 0)


def box_sectors(address: Array, size: int, inside: Array | None) -> tuple[int, int, int]:
    """(bytes, sectors, sectors at best) of copies: element e of copy n has `size` bytes at address[n, e],
    and those not `inside` (None: all are) are not there. A sector counts once for each copy."""
    sectors = address // SECTOR
    if inside is None and sectors.size:
        moved = sectors - sectors[:, :1]
        if (moved == moved[:1]).all():  # as nearly always: the same shape somewhere else
            moved = moved[:1]
        counts = [len(np.unique(row)) for row in moved]
        total = sum(counts) * (len(sectors) // len(moved))
        each = sectors.shape[1] * size
        return each * len(sectors), total, -(-each // SECTOR) * len(sectors)
    there = np.ones(sectors.shape, bool) if inside is None else inside
    each = there.sum(axis=1) * size
    total = sum(len(np.unique(row[on])) for row, on in zip(sectors, there, strict=True))
    return int(each.sum()), total, int((-(-each // SECTOR)).sum())


def _fill(keys: Array, lanes: Array) -> Array:
    """Inactive lanes repeat the key of the row's first active lane; a row without lanes is all 0.

    What inactive lanes hold is anything, negative numbers included.
    """
    first = lanes.argmax(axis=1)[:, None]
    key = np.take_along_axis(keys, first, axis=1) * np.take_along_axis(lanes, first, axis=1)
    return np.where(lanes, keys, key)


def is_unit_stride(address: Array, size: int) -> bool:
    """Whether in every row each lane starts where its left neighbour ends."""
    flat = address.reshape(-1)
    steps = flat[1:] - flat[:-1] == size
    if not steps.all():
        steps[address.shape[1] - 1 :: address.shape[1]] = True  # from the end of a row to the next
    return bool(steps.all())


def sectors(address: Array, size: int, lanes: Array | None) -> tuple[Array, Array]:
    """(distinct 32-byte sectors, sectors that the same distinct bytes would need side by side).

    Accesses are at most 16 bytes and aligned to their size, so a lane never straddles two sectors.
    """
    if is_unit_stride(address, size):
        offset = address[:, 0] % SECTOR
        if lanes is None:
            return (offset + size * LANES.size - 1) // SECTOR + 1, np.full(len(address), size)
        if (offset == offset[0]).all():  # the lanes of a sector are the same neighbours in all rows
            begins = (offset[0] + size * LANES) % SECTOR == 0
            begins[0] = True
            touched = np.logical_or.reduceat(lanes, np.flatnonzero(begins), axis=1).sum(axis=1)
            return touched, -(-lanes.sum(axis=1) * size // SECTOR)
    if lanes is None and len(address) > 1:
        moved = address - address[:, :1] // SECTOR * SECTOR
        if (moved == moved[0]).all():  # the same sectors further on
            touched, ideal = sectors(moved[:1], size, None)
            return touched.repeat(len(address)), ideal.repeat(len(address))
    there = None if lanes is None else lanes.any(axis=1)
    if lanes is not None:
        address = _fill(address, lanes)
    touched = distinct(address >> 5, None)
    ideal = -(-distinct(address, None) * size // SECTOR)
    return (touched, ideal) if there is None else (touched * there, ideal * there)


def local_sectors(offset: Array, size: int, lanes: Array | None) -> tuple[Array, Array]:
    """As `sectors`, for local memory: word w of 32 neighbouring lanes lies in 128 neighbouring bytes."""
    words = max(size // WORD, 1)
    lane_group = np.arange(32) // (SECTOR // WORD)
    keys = (((offset // WORD)[:, :, None] + np.arange(words)) * 4 + lane_group[:, None]).reshape(
        len(offset), -1
    )
    wide = None if lanes is None else np.repeat(lanes, words, axis=1)
    active = np.full(len(offset), 32) if lanes is None else lanes.sum(axis=1)
    return distinct(keys, wide), -(-active * max(size, WORD) // SECTOR)


def wavefronts(offset: Array, size: int, lanes: Array | None) -> tuple[Array, Array]:
    """(passes that the 32 banks need, passes without bank conflicts) of a shared-memory access.

    4-byte accesses are served for 32 lanes at once, 8-byte ones for 16, 16-byte ones for 8; in each such
    group the number of passes is the largest number of distinct words that fall into one bank. Lanes that
    read the same word share it.
    """
    words = max(size // WORD, 1)
    word = (offset // WORD)[:, :, None] + np.arange(words)
    groups = word.reshape(len(offset) * words, 32)
    active = None if lanes is None else np.repeat(lanes, words, axis=1).reshape(groups.shape)
    passes = _bank_passes(groups, active)
    busy = np.ones(len(groups), np.int64) if active is None else active.any(axis=1).astype(np.int64)
    return passes.reshape(-1, words).sum(axis=1), busy.reshape(-1, words).sum(axis=1)


def matrix(address: Array, size: int, shared: bool) -> tuple[Array, Array]:
    """(distinct 32-byte sectors, distinct bytes) of a matrix that a warp moves as a whole.

    `address` is (N, elements). In shared memory the first are the passes of the banks, whoever moves which
    word.
    """
    places = _bank_passes(address // WORD, None) if shared else distinct(address // SECTOR, None)
    return places, distinct(address, None) * size


def _bank_passes(words: Array, lanes: Array | None) -> Array:
    """Largest number of distinct words in one bank, for each row."""
    if lanes is not None:
        words = _fill(words, lanes)
    if int(np.ptp(words, axis=1).max()) < BANKS:  # so close together that no two share a bank
        passes = np.ones(len(words), np.int64)
        return passes if lanes is None else np.where(lanes.any(axis=1), passes, 0)
    ordered = np.sort((words % BANKS << 40) | words, axis=1)  # by bank, then by word
    new = np.ones(ordered.shape, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    bank = (ordered >> 40) + np.arange(len(words))[:, None] * BANKS
    passes = np.bincount(bank[new], minlength=len(words) * BANKS).reshape(-1, BANKS).max(axis=1)
    return passes if lanes is None else np.where(lanes.any(axis=1), passes, 0)


def split(taken: Array, lanes: Array | None) -> int:
    """The number of rows in which some lanes take a branch and others do not."""
    went = taken if lanes is None else taken & lanes
    stayed = ~taken if lanes is None else ~taken & lanes
    return int((went.any(axis=1) & stayed.any(axis=1)).sum())


def constant_passes(offset: Array, size: int, lanes: Array | None) -> tuple[Array, Array]:
    """(words that constant memory serves one after the other, 1 for a row with lanes)."""
    passes = distinct(offset // WORD, lanes)
    return passes, np.minimum(passes, 1)
