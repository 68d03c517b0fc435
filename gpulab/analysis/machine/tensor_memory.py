"""`tensor_memory`: who used which lanes and columns of Blackwell's Tensor Memory, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gpulab.analysis.profile.onto_simulator import arrays_there, onto_simulator
from gpulab.analysis.profile.to_run import misuse
from gpulab.foundation.display import Card, Heading, Note, Shown, Table
from gpulab.foundation.errors import Message
from gpulab.simulator import device as devices
from gpulab.simulator.observe.tensor_memory_uses import MOST, TensorMemoryUses, Use

if TYPE_CHECKING:
    from gpulab.plot import Picture

ROWS = 40  # of the table


class NoTensorMemory(Message):
    """What was given to `tensor_memory` launches nothing, or uses no Tensor Memory."""


class TensorMemoryUse(Shown):
    """The `uses` of Tensor Memory by the first block of a launch, in their order."""

    def __init__(self, kernel: str, uses: Sequence[Use], dropped: bool = False) -> None:
        self.kernel, self.uses, self.dropped = kernel, tuple(uses), dropped

    def card(self) -> Card:
        rows = tuple(
            (
                str(use.start),
                use.kind,
                ", ".join(map(str, use.warps)),
                f"{use.lanes[0]}–{use.lanes[1]}",
                f"{use.columns[0]}–{use.columns[1]}",
                str(use.stop - use.start) if use.kind == "product" else "",
                str(use.line or ""),
            )
            for use in self.uses[:ROWS]
        )
        head = ("use", "what", "warps", "lanes", "columns", "uses until done", "line")
        notes = []
        if len(self.uses) > ROWS:
            notes.append(Note(f"The table has the first {ROWS} of {len(self.uses)} uses."))
        if self.dropped:
            notes.append(
                Note(f"The kernel uses Tensor Memory more than {MOST:,} times: the rest is left out.")
            )
        return Card(
            (Heading(self.kernel, "Tensor Memory, first block"), Table(head, rows, frozenset()), *notes)
        )

    def picture(self) -> Picture:
        """A bar for each use, over its columns."""
        from gpulab import plot

        return plot.tensor_memory(self.uses, self.kernel)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.card().text(), "text/html": self.picture().html() + self.card().html()}


def tensor_memory(run: Callable[..., Any], *args: Any, **named: Any) -> TensorMemoryUse:
    """Run ``run(*args, **named)`` once and say who used Tensor Memory in its first block.

    `run` is a kernel with its launch shape or host code; the last launch is looked at. Copies to Tensor
    Memory (``tcgen05.cp``) are left out. Raises NoTensorMemory where nothing is launched, or no Tensor Memory
    is used.

    >>> @cuda.jit
    ... def double(a):
    ...     a[cuda.grid(1)] *= 2
    >>> tensor_memory(double[1, 32], np.zeros(32, np.float32))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    NoTensorMemory: tensor_memory: double uses no Tensor Memory. Kernels that multiply by tcgen05 do so.
    """
    if problem := misuse("tensor_memory", run, args, named):
        raise NoTensorMemory(problem)
    if devices.uses_gpu():
        run = onto_simulator(run)
    seen: list[tuple[devices.Launch, TensorMemoryUses]] = []

    def look(launch: devices.Launch) -> TensorMemoryUses:
        seen.append((launch, TensorMemoryUses()))
        return seen[-1][1]

    with arrays_there(args) as there, devices.current().observed(look):
        run(*there, **named)
    if not seen:
        raise NoTensorMemory(f"tensor_memory: `{getattr(run, '__name__', run)}` launched no kernel.")
    launch, watched = seen[-1]
    if not watched.uses:
        raise NoTensorMemory(
            f"tensor_memory: {launch.kernel.name} uses no Tensor Memory. Kernels that multiply by tcgen05 "
            "do so, on a B200 or a B300."
        )
    return TensorMemoryUse(launch.kernel.name, watched.uses, watched.dropped)
