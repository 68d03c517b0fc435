"""The steps of a training run, which say in a notebook how far they are."""

from __future__ import annotations

from collections.abc import Iterator

from gpulab.foundation import underway


def steps(count: int, what: str = "training") -> Iterator[int]:
    """0, 1 … `count` - 1, to be looped over. After two seconds the cell says how many steps are done and how
    long the rest takes; if it is interrupted, what the loop has changed stays.

    >>> [step for step in steps(3)]
    [0, 1, 2]
    """
    with underway.work(what, count, "step") as work:
        for step in range(count):
            work.done = step
            yield step
