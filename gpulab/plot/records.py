"""What the figures draw: recorded data, independent of who recorded it.

The geometry of a request, which sectors and which banks its lanes touch, is a definition and stands here
beside the record, so that all figures of one request show the same thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LANES = 32
SECTOR = 32  # bytes: what the L1 asks of the L2 at a time
LINE = 128  # bytes: four sectors that share a tag
BANKS = 32  # of shared memory, each 4 bytes wide
WORD = 4


@dataclass(frozen=True, eq=False)
class Request:
    """One memory instruction of one warp.

    `addresses` (32,) int64, in bytes; `active` (32,) bool, the lanes that took part (all when None); `size`
    is bytes per lane: 1, 2, 4, 8 or 16. `base` is the address of the first element of the array named
    `array`, from which the figures count. `line` and `text` say where in the source of `kernel` the
    instruction comes from. Raises ValueError when the arrays do not have 32 entries or no lane takes part.
    """

    addresses: np.ndarray | Sequence[int]
    active: np.ndarray | Sequence[bool] | None = None
    size: int = 4
    space: str = "global"
    kind: str = "load"
    array: str = ""
    base: int = 0
    line: int | None = None
    text: str = ""
    kernel: str = ""

    def __post_init__(self) -> None:
        addresses = np.asarray(self.addresses, dtype=np.int64)
        active = np.ones(LANES, bool) if self.active is None else np.asarray(self.active, dtype=bool)
        if addresses.shape != (LANES,) or active.shape != (LANES,):
            raise ValueError(
                f"a request has 32 addresses and 32 active flags; got {addresses.shape} and {active.shape}"
            )
        if not active.any():
            raise ValueError("a request in which no lane takes part touches nothing and cannot be drawn")
        if self.size not in (1, 2, 4, 8, 16):
            raise ValueError(f"a lane reads or writes 1, 2, 4, 8 or 16 bytes; got {self.size}")
        object.__setattr__(self, "addresses", addresses)
        object.__setattr__(self, "active", active)

    @property
    def lanes(self) -> np.ndarray:
        """The numbers of the lanes that take part, ascending."""
        return np.flatnonzero(np.asarray(self.active))

    @property
    def offsets(self) -> np.ndarray:
        """(32,) int64: bytes from the start of the array; meaningless for lanes that take no part."""
        return np.asarray(self.addresses) - self.base

    @property
    def sectors(self) -> np.ndarray:
        """The distinct 32-byte sectors that the lanes touch, as address // 32, ascending."""
        first = np.asarray(self.addresses)[self.lanes]
        return np.unique([first // SECTOR, (first + self.size - 1) // SECTOR])

    @property
    def useful_bytes(self) -> int:
        """Distinct bytes that the lanes ask for."""
        first = np.asarray(self.addresses)[self.lanes]
        return int(np.unique(first[:, None] + np.arange(self.size)).size)

    @property
    def bank_cells(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """Which lanes shared memory serves in which wavefront by which bank: (wavefront, bank) → lanes.

        Accesses of up to 4 bytes are served for 32 lanes at once, of 8 bytes for 16, of 16 bytes for 8. In
        each such group a bank delivers one word a wavefront; the distinct words of a bank are taken in the
        order of the lanes that want them. Lanes that want the same word share it.
        """
        cells: dict[tuple[int, int], tuple[int, ...]] = {}
        together = LANES * WORD // max(self.size, WORD)
        start = 0
        for group in range(0, LANES, together):
            turn: dict[int, dict[int, int]] = {}  # bank → word → wavefront
            for lane in self.lanes[(self.lanes >= group) & (self.lanes < group + together)]:
                first = int(np.asarray(self.addresses)[lane])
                for word in range(first // WORD, (first + self.size - 1) // WORD + 1):
                    words = turn.setdefault(word % BANKS, {})
                    cell = (start + words.setdefault(word, len(words)), word % BANKS)
                    cells[cell] = (*cells.get(cell, ()), int(lane))
            start += max((len(words) for words in turn.values()), default=0)
        return cells

    @property
    def wavefronts(self) -> int:
        """Passes that shared memory needs for this request."""
        return 1 + max(row for row, _ in self.bank_cells)


@dataclass(frozen=True, eq=False)
class Coverage:
    """Which thread touched which element of an array.

    `block`, `thread` and `times` are int and have the shape of the array: the linear index of the last block
    that touched the element, -1 where none did; its linear thread in the block; how often it was touched.
    `outside` is the number of threads of the launch that fell beyond the array.
    """

    block: np.ndarray
    thread: np.ndarray
    times: np.ndarray | None = None
    outside: int = 0
    array: str = "out"

    def __post_init__(self) -> None:
        times = (np.asarray(self.block) >= 0).astype(int) if self.times is None else np.asarray(self.times)
        if not (np.shape(self.block) == np.shape(self.thread) == times.shape) or times.ndim not in (1, 2):
            raise ValueError(
                "block, thread and times must have the one- or two-dimensional shape of the array"
            )
        object.__setattr__(self, "times", times)


@dataclass(frozen=True, eq=False)
class Pass:
    """One stretch of code that one warp ran.

    `lanes` (32,) bool, the lanes that took part; `label` says what ran; `instructions` is its length.
    """

    label: str
    lanes: np.ndarray | Sequence[bool]
    instructions: int = 1


@dataclass(frozen=True)
class Point:
    """A kernel in the roofline.

    `intensity` in FLOP per byte of DRAM traffic; `rate` in FLOP/s, None when no time is known; `dtype` says
    which roof the kernel is under.
    """

    label: str
    intensity: float  # a report has None for a run without an operation: `roofline` says so
    rate: float | None = None
    dtype: str = "float32"


@dataclass(frozen=True)
class Span:
    """Something that takes time: on which row of a timeline, from when to when, and what it is."""

    row: str
    start: float
    stop: float
    label: str = ""
    kind: str = "work"


@dataclass(frozen=True)
class Listing:
    """A program's text: lines, each with the source line that it comes from, 0 for none."""

    title: str
    lines: tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class Steps:
    """What threads of one warp did, as a table: cells are (text, style); style ``strong`` is what a row
    changed, ``code`` a source line. `left` are the columns that are set from the left."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[tuple[str, str]]]
    left: frozenset[int] = frozenset()
