"""What kernels print during a check: the first lines are shown, the rest is counted.

A check runs a kernel at several sizes and in several orders, so one print() in a kernel makes thousands of
lines, which would bury the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpulab.simulator import device

SHOWN = 100  # lines


class Printed:
    """The lines that kernels have printed: `write` shows the first `SHOWN` of them, and `left_out` counts the
    lines that were not shown."""

    def __init__(self) -> None:
        self._lines = 0

    def write(self, text: str) -> None:
        for line in text.splitlines(keepends=True):
            if self._lines < SHOWN:
                print(line, end="")
            self._lines += line.endswith("\n")

    @property
    def left_out(self) -> int:
        return max(0, self._lines - SHOWN)


@contextmanager
def limited() -> Iterator[Printed]:
    """While it is entered, kernels on the simulated device print into the `Printed` that it gives.

    >>> with limited() as printed:
    ...     chatty[1, 128](a)  # a kernel in which every thread prints a line
    >>> printed.left_out
    28
    """
    printed = Printed()
    with device.current().using(write=printed.write):
        yield printed
