"""Records the first requests of each memory instruction, and the passes of one warp, as plain data.

Figures draw it and advice looks at it; `Recording` is JSON-able and travels with a report.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpulab.simulator.simt import Access, ArrayLabel, Chunk, Observer, Program
from gpulab.simulator.simt.errors import source_text
from gpulab.simulator.simt.types import widened

from .counters import is_fragment

WARP = 32
PASSES = 200  # of the first warp that are kept

Index = tuple[int, int, int]


@dataclass(frozen=True)
class Request:
    """One warp's execution of one memory instruction.

    `index` is the instruction's, `file`, `line` and `text` its place in the source. `kind` is load, store,
    atomic or reduction; `space` global, shared, local or const. `size` is bytes per lane. `block` is the
    block's index (x, y, z),
    `warp` the number of the warp in it. `addresses` has 32 entries, None for lanes that did not take part:
    bytes in the global space, or offsets into the block's shared or the thread's local memory. `array` is the
    label of the array that holds the first address of a global request, None elsewhere.
    """

    index: int
    file: str
    line: int
    text: str
    space: str
    kind: str
    size: int
    block: Index
    warp: int
    addresses: tuple[int | None, ...]
    array: ArrayLabel | None = None

    @property
    def lanes(self) -> tuple[int, ...]:
        """The lanes that took part."""
        return tuple(lane for lane, address in enumerate(self.addresses) if address is not None)

    @property
    def asked(self) -> tuple[int, ...]:
        """The addresses of those lanes, in lane order."""
        return tuple(address for address in self.addresses if address is not None)

    @property
    def sectors(self) -> int:
        """Distinct 32-byte sectors that the request touches; what they are worth outside global and local
        memory is
        for others to say."""
        touched = {s for a in self.asked for s in range(a // 32, (a + self.size - 1) // 32 + 1)}
        return len(touched)

    def thread(self, lane: int, block_shape: Index) -> Index:
        """The thread index (x, y, z) of a lane in a block of that shape."""
        return unravel(self.warp * WARP + lane, block_shape)


@dataclass(frozen=True)
class Pass:
    """Instructions that the first warp ran one after the other with the same lanes: `lanes` has 32 entries,
    `lines` the source lines in order, `instructions` their number."""

    lanes: tuple[bool, ...]
    lines: tuple[int, ...]
    instructions: int


@dataclass(frozen=True)
class Recording:
    """What a `Recorder` kept of one launch. `passes` are those of warp 0 of block 0."""

    requests: tuple[Request, ...] = ()
    passes: tuple[Pass, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Recording:
        """The inverse of `to_dict`, before or after a trip through JSON."""
        return cls(
            tuple(_request(r) for r in data["requests"]),
            tuple(Pass(tuple(p["lanes"]), tuple(p["lines"]), p["instructions"]) for p in data["passes"]),
        )


def _request(data: Mapping[str, Any]) -> Request:
    label = data["array"] and ArrayLabel(
        **(data["array"] | {name: tuple(data["array"][name]) for name in ("shape", "strides")})
    )
    tuples = {name: tuple(data[name]) for name in ("block", "addresses")}
    return Request(**(dict(data) | tuples | {"array": label}))


class Recorder(Observer):
    """Keeps the first `limit` requests of each memory instruction, in the order in which they ran.

    `arrays` are the labels that a launch knows; they name what a global address belongs to.
    """

    wants_values = False

    def __init__(self, limit: int = 4, arrays: Sequence[ArrayLabel] = ()) -> None:
        self.limit = limit
        self.arrays = tuple(arrays)
        self.requests: list[Request] = []
        self.kernel = ""
        self.grid: Index = (1, 1, 1)
        self.block: Index = (1, 1, 1)
        self._kept: dict[int, int] = {}
        self._passes: list[tuple[tuple[bool, ...], list[int], int]] = []
        self._lines: tuple[int, ...] = ()
        self._real = np.empty(0, bool)  # which lanes of a block are threads
        self._first: tuple[bool, ...] = ()  # … of its first warp

    @property
    def recording(self) -> Recording:
        """What was kept so far."""
        passes = (Pass(lanes, tuple(dict.fromkeys(lines)), n) for lanes, lines, n in self._passes)
        return Recording(tuple(self.requests), tuple(passes))

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self.kernel, self.grid, self.block = program.display_name, grid, block
        self._lines = tuple(i.location.line if i.location else 0 for i in program.instructions)
        self._real = np.arange(-(-math.prod(block) // WARP) * WARP) < math.prod(block)
        self._first = tuple(self._real[:WARP].tolist())

    def executed(self, first: int, stop: int, lanes: np.ndarray | None, chunk: Chunk) -> None:
        if chunk.blocks[0] != 0:
            return
        on = self._first if lanes is None else tuple(widened(lanes[0], self._real.shape)[:WARP].tolist())
        if not any(on):
            return
        lines = [line for line in self._lines[first:stop] if line]
        if self._passes and self._passes[-1][0] == on:
            _, before, count = self._passes[-1]
            self._passes[-1] = (on, list(dict.fromkeys(before + lines)), count + stop - first)
        elif len(self._passes) < PASSES:
            self._passes.append((on, lines, stop - first))

    def access(self, access: Access) -> None:
        room = self.limit - self._kept.get(access.index, 0)
        if room <= 0 or is_fragment(access.instruction):  # PTX leaves open which lane moves what of a matrix
            return
        for block, warp, addresses in self._warps(access):
            self.requests.append(self._request(access, block, warp, addresses))
            room -= 1
            self._kept[access.index] = self._kept.get(access.index, 0) + 1
            if room == 0:
                return

    def _warps(self, access: Access) -> Iterator[tuple[int, int, tuple[int | None, ...]]]:
        """(linear block, warp, addresses by lane) of the warps that took part, in order."""
        shape = self._real.shape
        for row, block in enumerate(access.chunk.blocks):  # few of them: whoever asks wants the first ones
            address = widened(_row(access.address, row), shape)
            lanes = self._real if access.lanes is None else _row(access.lanes, row) & self._real
            on = lanes.reshape(-1, WARP)
            for warp in np.flatnonzero(on.any(axis=1)).tolist():
                mine = address[warp * WARP : (warp + 1) * WARP].tolist()
                yield (
                    int(block),
                    warp,
                    tuple(a if here else None for a, here in zip(mine, on[warp].tolist(), strict=True)),
                )

    def _request(self, access: Access, block: int, warp: int, addresses: tuple[int | None, ...]) -> Request:
        location = access.instruction.location
        first = next(a for a in addresses if a is not None)
        return Request(
            index=access.index,
            file=location.file if location else "",
            line=location.line if location else 0,
            text=source_text(location),
            space=access.space,
            kind=access.kind,
            size=access.size,
            block=unravel(block, self.grid),
            warp=warp,
            addresses=addresses,
            array=self._array(first) if access.space == "global" else None,
        )

    def _array(self, address: int) -> ArrayLabel | None:
        for label in self.arrays:
            if label.address <= address < label.address + label.extent:
                return label
        return None


def _row(x: np.ndarray, row: int) -> np.ndarray:
    """What belongs to one block; one row stands for all blocks where they are alike."""
    return x[row if x.shape[0] > 1 else 0]


def unravel(linear: int, shape: Index) -> Index:
    """(x, y, z) of a linear index; x runs fastest, as in CUDA."""
    return linear % shape[0], linear // shape[0] % shape[1], linear // (shape[0] * shape[1])
