"""GPUs side by side, as a table that shows itself in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from .catalogue import ALL, find
from .figure import Figure, amount
from .gpu import GPU
from .links import LINKS
from .roofline import roofline

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

Cell = Figure | str | None

_NOTHING = "–"
_LABELS = 27  # characters of the labels' column, and of a GPU's with what stands between
_COLUMN = 15


def _tensor(dtype: str, sparse: bool = False) -> Callable[[GPU], Cell]:
    def cell(gpu: GPU) -> Cell:
        rates = gpu.tensor_sparse if sparse else gpu.tensor_fma
        return gpu.peak(dtype, tensor=True, sparse=sparse) if dtype in rates else None

    return cell


def _per_direction(name: str) -> Cell:
    return LINKS[name].per_direction if name else None


ROWS: tuple[tuple[str, Callable[[GPU], Cell]], ...] = (
    ("architecture", lambda gpu: gpu.architecture),
    ("compute capability", lambda gpu: str(gpu.capability)),
    ("year", lambda gpu: gpu.year),
    ("SMs", lambda gpu: gpu.sms),
    ("boost clock", lambda gpu: gpu.boost_clock),
    ("tensor clock", lambda gpu: gpu.tensor_clock),
    ("float32 peak", lambda gpu: gpu.peak("float32")),
    ("float64 peak", lambda gpu: gpu.peak("float64")),
    ("float64 tensor, dense", _tensor("float64")),
    ("tfloat32 tensor, dense", _tensor("tfloat32")),
    ("float16 tensor, dense", _tensor("float16")),
    ("float16 tensor, 2:4 sparse", _tensor("float16", sparse=True)),
    ("float8 tensor, dense", _tensor("float8")),
    ("float4 tensor, dense", _tensor("float4")),
    ("int8 tensor, dense", _tensor("int8")),
    ("L1 + shared per SM", lambda gpu: gpu.l1_bytes),
    ("shared per SM, at most", lambda gpu: amount(gpu.capability.shared_per_sm, "B")),
    ("L2", lambda gpu: gpu.l2_bytes),
    ("DRAM", lambda gpu: f"{float(gpu.dram_bytes) / 1e9:g} GB"),
    ("memory bus", lambda gpu: gpu.bus_bits),
    ("DRAM bandwidth, peak", lambda gpu: gpu.dram_bandwidth),
    ("DRAM bandwidth, seen", lambda gpu: gpu.dram_seen),
    ("L2 bandwidth, seen", lambda gpu: gpu.l2_seen),
    ("L1 latency", lambda gpu: gpu.l1_latency),
    ("L2 latency", lambda gpu: gpu.l2_latency),
    ("DRAM latency", lambda gpu: gpu.dram_latency),
    ("ridge, float32", lambda gpu: f"{roofline(gpu).ridge:.1f} FLOP/B"),
    ("host link", lambda gpu: gpu.host_link or None),
    ("host link, per direction", lambda gpu: _per_direction(gpu.host_link)),
    ("GPU link", lambda gpu: gpu.gpu_link or None),
    ("GPU link, per direction", lambda gpu: _per_direction(gpu.gpu_link)),
    ("die", lambda gpu: gpu.die_area),
    ("power", lambda gpu: gpu.tdp),
)


@dataclass(frozen=True, repr=False)
class Comparison:
    """GPUs in columns, figures in rows. In HTML each figure's source is its tooltip."""

    gpus: tuple[GPU, ...]

    def rows(self) -> Iterator[tuple[str, list[Cell]]]:
        """Label and one cell per GPU; None where no source states the figure."""
        for label, cell in ROWS:
            yield label, [cell(gpu) for gpu in self.gpus]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """As many GPUs side by side as the width holds; the others below."""
        from rich.table import Table

        at_once = max(1, (options.max_width - _LABELS) // _COLUMN)
        for first in range(0, len(self.gpus), at_once):
            gpus = self.gpus[first : first + at_once]
            table = Table(box=None, pad_edge=False)
            table.add_column("", min_width=_LABELS)
            for gpu in gpus:
                table.add_column(gpu.name, justify="right")
            for label, cells in Comparison(gpus).rows():
                table.add_row(label, *map(_text, cells))
            if first:
                yield ""
            yield table

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(
            width=_LABELS + _COLUMN * len(self.gpus),
            color_system=None,
            force_terminal=False,
            force_jupyter=False,
        )
        with console.capture() as capture:
            console.print(self)
        return "\n".join(line.rstrip() for line in capture.get().splitlines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(gpu.name)}</th>" for gpu in self.gpus)
        body = "".join(
            f'<tr><th style="text-align:left">{escape(label)}</th>{"".join(map(_html, cells))}</tr>'
            for label, cells in self.rows()
        )
        return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"


def compare(*names: str | GPU) -> Comparison:
    """A table of GPUs side by side; of all of them when none is named. `gpulab.plot.gpus` draws it.

    Raises UnknownGPU.

    >>> [gpu.name for gpu in compare("T4", "A100").gpus]
    ['T4', 'A100']
    """
    return Comparison(tuple(find(name) for name in names) or ALL)


def _text(cell: Cell) -> str:
    if cell is None:
        return _NOTHING
    if isinstance(cell, Figure) and cell.unit in ("year", "SMs"):
        return f"{cell.value:g}"  # the row's label is the unit
    return str(cell)


def _html(cell: Cell) -> str:
    tip = ""
    if isinstance(cell, Figure):
        note = f"; {cell.note}" if cell.note else ""
        tip = f' title="{escape(f"{cell.source}{note}")}"'
    return f'<td style="text-align:right"{tip}>{escape(_text(cell))}</td>'
