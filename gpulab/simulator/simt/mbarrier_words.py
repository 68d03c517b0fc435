"""The 64 bits of an mbarrier, and what arrivals and transferred bytes make of them.

PTX leaves it open what the 64 bits hold. Ours, from the lowest: 20 bits for the arrivals expected of each
phase, 20 for those that this phase still lacks, 22 for the bytes that are announced and have not come
(signed), and the phase's parity. The state that an arrival returns is the word as it was before.
"""

from __future__ import annotations

import numpy as np

from . import atomics

Array = np.ndarray

COUNT_BITS, BYTES_BITS = 20, 22
COUNT = (1 << COUNT_BITS) - 1
PENDING, BYTES, PARITY = COUNT_BITS, 2 * COUNT_BITS, 2 * COUNT_BITS + BYTES_BITS
LARGEST = COUNT  # of arrivals, as PTX limits it
NONE = (0, -1)  # words that are no mbarrier: destroyed or for no arrivals, and memory that nobody has written


def expected(word: Array) -> Array:
    """Arrivals that each phase takes."""
    return word & COUNT


def pending(word: Array) -> Array:
    """Arrivals that this phase still lacks."""
    return word >> PENDING & COUNT


def parity(word: Array) -> Array:
    """0 or 1: of the phase that is not over yet."""
    return word >> PARITY & 1


def coming(word: Array) -> Array:
    """Bytes that were announced and have not come, negative if more have come than were announced."""
    return (word << (64 - PARITY)) >> (64 - BYTES_BITS)


def after(old: Array, count: Array, drop: Array, announce: Array) -> Array:
    """The word after `count` arrivals, of which `drop` are for good, and `announce` more bytes to come."""
    will, lacks = expected(old) - drop, pending(old) - count
    more = coming(old) + announce
    over = (lacks == 0) & (more == 0)
    return _word(will, np.where(over, will, lacks), more, parity(old) ^ over)


def in_turn(start: Array, count: Array, drop: Array, announce: Array) -> Array:
    """The words before each of several arrivals at one mbarrier, and after the last, shape (n + 1,)."""
    if (count < 1).any() or count.sum() > pending(start)[0]:  # may end a phase in between
        words = [start]
        for each in zip(count[:, None], drop[:, None], announce[:, None], strict=True):
            words.append(after(words[-1], *each))
        return np.concatenate(words)
    sums = [np.cumsum(x) for x in (count, drop, announce)]
    so_far = [np.concatenate(([0], x[:-1])) for x in sums]
    before = after(start, *so_far)
    return np.append(before, after(start, *(x[-1:] for x in sums)))


atomics.CHAINS[after] = in_turn


def _word(will: Array, lacks: Array, more: Array, phase: Array) -> Array:
    mask = (1 << BYTES_BITS) - 1
    return (will | lacks << PENDING | (more & mask) << BYTES | phase << PARITY).astype(np.int64)


def first_word(count: Array) -> Array:
    """The word of a new mbarrier for `count` arrivals in each phase."""
    zero = np.zeros_like(count)
    return _word(count, count, zero, zero)
