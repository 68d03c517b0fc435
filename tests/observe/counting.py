"""Run a kernel and ask for its counts by source line: `counts_of(kernel[grid, block], …)`, `at(counts,
"out[")`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpulab.simulator import device, simt
from gpulab.simulator.observe import Counters, Counts
from gpulab.simulator.simt.errors import source_text
from tests.simt.launching import launch


def counts_of(configured: Any, *args: Any) -> Counts:
    """The counts of one launch of a numba kernel, ``kernel[grid, block]``."""
    counters = Counters()
    with device.current().observed(lambda _: counters):
        configured(*args)
    assert counters.counts is not None
    return counters.counts


def snippet_counts(
    text: str, arrays: dict[str, Any], grid: Any = 1, block: Any = 32, **options: Any
) -> Counts:
    """The counts of one launch of PTX written in a test."""
    counters = Counters()
    launch(text, arrays, grid, block, observers=(counters,), **options)
    assert counters.counts is not None
    return counters.counts


def at(counts: Counts, text: str = "", kind: str = "", space: str = "") -> dict[str, int]:
    """Sums of all columns over the instructions whose source line (or opcode, in a snippet) has `text`."""
    rows = [
        i
        for i, (instruction, (k, s)) in enumerate(zip(counts.instructions, counts.kinds, strict=True))
        if text in (source_text(instruction.location) or instruction.opcode)
        and (not kind or k == kind)
        and (not space or s == space)
    ]
    assert rows, f"no {kind} {space} instruction at {text!r}"
    return {column: int(values[rows].sum()) for column, values in counts.table.items()}


def only(found: dict[str, int], *columns: str) -> tuple[int, ...]:
    """Some columns of `at`, in order."""
    return tuple(found[column] for column in columns)


def same_table(a: Counts, b: Counts) -> None:
    """Both counted the same for every instruction."""
    for column in a.table:
        np.testing.assert_array_equal(a.table[column], b.table[column], err_msg=column)


SCHEDULES = {"lockstep": simt.LOCKSTEP, "warp after warp": simt.warp_serial(11)}
