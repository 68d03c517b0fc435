"""Records the first requests of each memory instruction as plain data: what figures draw and advice looks at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpulab.simt.events import Access, Observer
from gpulab.simt.errors import ArrayLabel, source_text

WARP = 32

Index = tuple[int, int, int]


@dataclass(frozen=True)
class Request:
    """One warp's execution of one memory instruction.

    `index` is the instruction's, `file`, `line` and `text` its place in the source. `kind` is load, store, atomic or
    reduction; `space` global, shared, local or const. `size` is bytes per lane. `block` is the block's index (x, y, z),
    `warp` the number of the warp in it. `addresses` has 32 entries, None for lanes that did not take part: bytes in the
    global space, or offsets into the block's shared or the thread's local memory. `array` is the label of the array
    that holds the first address of a global request, None elsewhere.
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
        """Distinct 32-byte sectors that the request touches; what they are worth outside global and local memory is
        for others to say."""
        touched = {s for a in self.asked for s in range(a // 32, (a + self.size - 1) // 32 + 1)}
        return len(touched)

    def thread(self, lane: int, block_shape: Index) -> Index:
        """The thread index (x, y, z) of a lane in a block of that shape."""
        return unravel(self.warp * WARP + lane, block_shape)


class Recorder(Observer):
    """Keeps the first `limit` requests of each memory instruction, in the order in which they ran.

    `arrays` are the labels that a launch knows; they name what a global address belongs to.
    """

    def __init__(self, limit: int = 4, arrays: Sequence[ArrayLabel] = ()) -> None:
        self.limit = limit
        self.arrays = tuple(arrays)
        self.requests: list[Request] = []
        self.kernel = ""
        self.grid: Index = (1, 1, 1)
        self.block: Index = (1, 1, 1)
        self._kept: dict[int, int] = {}

    def start(self, program: object, grid: Index, block: Index) -> None:
        self.kernel, self.grid, self.block = getattr(program, "name", ""), grid, block

    def access(self, access: Access) -> None:
        room = self.limit - self._kept.get(access.index, 0)
        if room <= 0:
            return
        for block, warp, addresses in self._warps(access):
            self.requests.append(self._request(access, block, warp, addresses))
            room -= 1
            self._kept[access.index] = self._kept.get(access.index, 0) + 1
            if room == 0:
                return

    def _warps(self, access: Access) -> Iterator[tuple[int, int, tuple[int | None, ...]]]:
        """(linear block, warp, addresses by lane) of the warps that took part, in order."""
        chunk = access.chunk
        rows = len(chunk.blocks)
        shape = (rows, chunk.lanes_per_block)
        address = np.broadcast_to(access.address, shape)
        real = np.arange(chunk.lanes_per_block) < chunk.threads_per_block
        lanes = np.broadcast_to(real if access.lanes is None else access.lanes & real, shape)
        by_warp = lanes.reshape(rows, -1, WARP)
        for row, warp in np.argwhere(by_warp.any(axis=2)):
            mine = address[row, warp * WARP : (warp + 1) * WARP]
            on = by_warp[row, warp]
            yield (
                int(chunk.blocks[row]),
                int(warp),
                tuple(int(a) if here else None for a, here in zip(mine, on, strict=True)),
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


def unravel(linear: int, shape: Index) -> Index:
    """(x, y, z) of a linear index; x runs fastest, as in CUDA."""
    return linear % shape[0], linear // shape[0] % shape[1], linear // (shape[0] * shape[1])
