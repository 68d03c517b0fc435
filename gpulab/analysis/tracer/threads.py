"""Which threads are stepped through: numbers or indices of a learner → block and thread."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gpulab.foundation.errors import Message
from gpulab.simulator.device import Launch

MOST = 8  # threads in one table
AXES = "xyz"


class CannotTrace(Message):
    """There is nothing to step through; the message says what can be."""


@dataclass(frozen=True)
class Chosen:
    """A thread: the linear index of its block, its linear index in the block, and what tables call it."""

    block: int
    thread: int
    label: str

    @property
    def warp(self) -> int:
        return self.thread // 32


def chosen(threads: Any, launch: Launch) -> list[Chosen]:
    """The threads of a launch that a learner asked for.

    A number counts over the whole grid, block after block: in one dimension it is ``cuda.grid(1)``. A pair is
    (block, thread), each a number or an index (x, y, z). Raises CannotTrace.
    """
    asked = [threads] if _is_number(threads) else threads
    if isinstance(asked, str) or not isinstance(asked, Iterable):
        raise CannotTrace(_how(f"threads={threads!r} names no threads"))
    asked = list(asked)
    if not asked:
        raise CannotTrace(_how("threads=[] names no thread"))
    if len(asked) > MOST:
        raise CannotTrace(f"trace: {len(asked)} threads are too many for one table; choose at most {MOST}.")
    return list(dict.fromkeys(_one(item, launch) for item in asked))


def _one(item: Any, launch: Launch) -> Chosen:
    size = launch.threads_per_block
    if _is_number(item):
        number = operator.index(item)
        _check_range(number, size * launch.blocks, f"thread {number}", "the launch has", "threads")
        return Chosen(number // size, number % size, str(number))
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise CannotTrace(_how(f"{item!r} names no thread"))
    block = _linear(item[0], launch.grid, "block", "the grid has", "blocks")
    thread = _linear(item[1], launch.block, "thread", "a block has", "threads")
    return Chosen(block, thread, f"{_written(item[0])}/{_written(item[1])}")


def _linear(index: Any, shape: tuple[int, int, int], what: str, has: str, many: str) -> int:
    if _is_number(index):
        _check_range(operator.index(index), math.prod(shape), f"{what} {index}", has, many)
        return operator.index(index)
    if not isinstance(index, tuple | list) or not 1 <= len(index) <= 3 or not all(map(_is_number, index)):
        raise CannotTrace(_how(f"{index!r} is no index of a {what}"))
    x, y, z = (*map(operator.index, index), 0, 0)[:3]
    for axis, given, size in zip(AXES, (x, y, z), shape, strict=True):
        if not 0 <= given < size:
            raise CannotTrace(
                f"trace: there is no {what} {_written(index)}: in {axis} they run from 0 to {size - 1:,}."
            )
    return x + shape[0] * (y + shape[1] * z)


def _check_range(number: int, count: int, what: str, has: str, many: str) -> None:
    if not 0 <= number < count:
        last = f", 0 to {count - 1:,}" if count > 1 else ""
        raise CannotTrace(
            f"trace: there is no {what}: {has} {count:,} {many if count > 1 else many[:-1]}{last}."
        )


def _is_number(item: Any) -> bool:
    if isinstance(item, bool | tuple | list):
        return False
    try:
        operator.index(item)
    except TypeError:
        return False
    return True


def _written(index: Any) -> str:
    return f"({', '.join(map(str, index))})" if isinstance(index, tuple | list) else str(index)


def _how(problem: str) -> str:
    return (
        f"trace: {problem}. Give numbers that count over the grid, threads=[0, 33], or pairs of block and "
        "thread, threads=[(1, 5), ((0, 2), (4, 3))]."
    )
