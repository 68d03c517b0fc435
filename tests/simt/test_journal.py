"""A journal takes back any writes, and gives any state again that was noted."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator.simt import Journal, Memory
from gpulab.simulator.simt.journal import PAGE

SIZES = (1, 100, PAGE, 3 * PAGE + 5)
writes = st.lists(
    st.tuples(
        st.integers(0, len(SIZES) - 1),
        st.lists(st.integers(0, 3 * PAGE + 4), min_size=1, max_size=5),
        st.integers(0, 255),
    ),
    max_size=6,
)


def carry_out(memory: Memory, pieces, these):
    for number, places, value in these:
        offset = np.unique(np.minimum(places, SIZES[number] - 1))
        memory.writes(pieces[number], offset)
        pieces[number].data[offset] = value


@given(before=writes, first=writes, second=writes)
def test_memory_is_put_back_and_what_differs_is_told(before, first, second):
    memory = Memory()
    pieces = [memory.allocate(size) for size in SIZES]
    carry_out(memory, pieces, before)
    start = [(p.data.copy(), p.written) for p in pieces]
    memory.journal = journal = Journal(memory)
    carry_out(memory, pieces, first)
    contents, result = journal.contents(), [(p.data.copy(), p.written) for p in pieces]
    journal.restore()
    assert all(np.array_equal(p.data, d) and p.written == w for p, (d, w) in zip(pieces, start, strict=True))
    carry_out(memory, pieces, second)
    told = {
        (a.address, at + int(i))
        for a, at, x, y in journal.differences(contents)
        for i in np.flatnonzero(x != y)
    }
    assert told == {
        (p.address, int(i))
        for p, (d, _) in zip(pieces, result, strict=True)
        for i in np.flatnonzero(p.data != d)
    }
    journal.restore(contents)
    assert all(np.array_equal(p.data, d) and p.written == w for p, (d, w) in zip(pieces, result, strict=True))


def test_only_pages_that_are_written_to_are_kept():
    memory = Memory()
    piece = memory.allocate(100 * PAGE)
    memory.journal = journal = Journal(memory)
    memory.writes(piece, np.array([5, PAGE - 1, 7 * PAGE]))
    assert {n for pages in journal.contents().values() for n in pages} == {0, 7}
    memory.writes(piece)
    assert len(journal.contents()[piece]) == 100


def test_memory_of_later_is_not_the_journals_concern():
    memory = Memory()
    memory.journal = journal = Journal(memory)
    piece = memory.allocate(8)
    memory.writes(piece)
    assert journal.contents() == {}
