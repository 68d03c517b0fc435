"""Walks over tiles: a matrix product along k, attention along the keys. What is in shared memory and in
registers in each step, and how many bytes came from global memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .figure import Figured, Moving
from .frames import Drawing, Frame, Frames

BOX = 15.0  # pixels of a tile in a matrix
MOST = 24  # tiles along a side
STEPS = 400


@dataclass(frozen=True)
class ProductWalk(Figured):
    """One block of threads computes a tile of C = A · B: A is `m` × `k`, B is `k` × `n`, tiles are `tile` =
    (rows, columns, depth), and each thread has `each` = (rows, columns) of the outputs. A frame is one k.

    Raises ValueError where tiles do not divide the matrices, or there are too many to draw.

    >>> ProductWalk(64, 64, 64).loaded(64)
    16384
    """

    m: int
    n: int
    k: int
    tile: tuple[int, int, int] = (32, 32, 32)
    each: tuple[int, int] = (1, 1)
    itemsize: int = 4

    def __post_init__(self) -> None:
        rows, columns, depth = self.tile
        sizes = (
            (self.m, rows),
            (self.n, columns),
            (self.k, depth),
            (rows, self.each[0]),
            (columns, self.each[1]),
        )
        if any(part < 1 or size % part for size, part in sizes):
            raise ValueError(
                f"tiles of {self.tile} with {self.each} outputs for each thread do not divide "
                f"{self.m} × {self.n} × {self.k}"
            )
        if max(self.m // rows, self.n // columns, self.k // depth) > MOST or self.k > STEPS:
            raise ValueError(f"at most {MOST} tiles along a side and {STEPS} steps of k can be drawn")

    def loaded(self, k: int) -> int:
        """Bytes that the block has loaded from global memory once step `k` (counted from 1) is done."""
        rows, columns, depth = self.tile
        return -(-k // depth) * depth * (rows + columns) * self.itemsize

    def figure(self) -> Moving:
        rows, columns, depth = self.tile
        down, across, deep = self.m // rows, self.n // columns, self.k // depth
        drawing = Drawing(max(deep, 6) * BOX + across * BOX + 40)
        left, top = max(deep, 6) * BOX + 26, deep * BOX + 44
        a = _tiles(drawing, 0, top, down, deep, "A")
        b = _tiles(drawing, left, 26, deep, across, "B")
        c = _tiles(drawing, left, top, down, across, "C")
        drawing.panel(depth * _fit(depth) + columns * _fit(columns) + 40)
        drawing.text(0, 14, "shared memory", "strong small")
        of_a = _cells(drawing, 0, 44, rows, depth, "earlier", f"tile of A, {rows} × {depth}")
        x = depth * _fit(depth) + 24
        of_b = _cells(drawing, x, 44, depth, columns, "earlier", f"tile of B, {depth} × {columns}")
        drawing.panel(250)
        drawing.text(0, 14, "registers of one thread", "strong small")
        high, wide = self.each
        _cells(drawing, 34, 62, high, wide, "write", size=22.0)
        _cells(drawing, 6, 62, high, 1, "byte", size=22.0)
        _cells(drawing, 34, 36, 1, wide, "byte", size=22.0)
        y = 62 + 22 * high + 26
        notes = [drawing.text(0, y + 20 * i, "", "small") for i in range(4)]
        drawing.text(0, y + 74, "", "")
        frames = []
        for k in range(self.k):
            step, inner = divmod(k, depth)
            kinds = {a[0][i]: "earlier" for i in range(step)} | {b[i][0]: "earlier" for i in range(step)}
            kinds |= {a[0][step]: "read", b[step][0]: "read", c[0][0]: "write"}
            kinds |= {of_a[row][inner]: "byte" if row < high else "ahead" for row in range(rows)}
            kinds |= {of_b[inner][column]: "byte" if column < wide else "ahead" for column in range(columns)}
            frames.append(
                Frame(self._said(k, inner == 0), kinds, dict(zip(notes, self._notes(k + 1), strict=True)))
            )
        legend = [
            ("box read", "tiles in shared memory"), ("box byte", "what this thread reads"),
            ("box ahead", "what the others read"), ("box write", "sums, in registers"),
        ]  # fmt: skip
        name = f"A block computes {rows} × {columns} outputs of a {self.m} × {self.n} × {self.k} product"
        return Frames(drawing, frames, name, "k", 0, legend).figure()

    def _said(self, k: int, fresh: bool) -> str:
        high, wide = self.each
        adds = high * wide
        said = f"k = {k}: each thread reads {high} + {wide} numbers of shared memory for {adds} multiply-add"
        said += "s." if adds > 1 else "."
        return f"{said[:-1]}, after the block has loaded its next two tiles." if fresh else said

    def _notes(self, done: int) -> list[str]:
        rows, columns, _ = self.tile
        loaded, plain = self.loaded(done), 2 * rows * columns * done * self.itemsize
        return [
            f"loaded from global memory: {loaded:,} B",
            f"without tiles: {plain:,} B, {plain / loaded:.1f} times as many",
            f"held in shared memory: {self.loaded(1):,} B",
            f"sums in registers: {self.each[0] * self.each[1]}",
        ]


@dataclass(frozen=True)
class AttentionWalk(Figured):
    """Attention for `queries` × `keys`, head of `width` numbers, in tiles of (queries, keys). Each frame is a
    tile of scores, row after row of them; with `causal` those above the diagonal are skipped.

    Raises ValueError where tiles do not divide the sizes, or there are too many to draw.
    """

    queries: int
    keys: int
    width: int = 64
    tile: tuple[int, int] = (64, 64)
    causal: bool = False
    itemsize: int = 2

    def __post_init__(self) -> None:
        if any(
            part < 1 or size % part for size, part in zip((self.queries, self.keys), self.tile, strict=True)
        ):
            raise ValueError(f"tiles of {self.tile} do not divide {self.queries} queries × {self.keys} keys")
        down, across = self.queries // self.tile[0], self.keys // self.tile[1]
        if max(down, across) > MOST or down * across > STEPS:
            raise ValueError(f"at most {MOST} tiles along a side and {STEPS} tiles in all can be drawn")

    def visited(self) -> list[tuple[int, int]]:
        """The tiles of scores that are computed, as (row, column), in order."""
        down, across = self.queries // self.tile[0], self.keys // self.tile[1]
        last = [(row + 1) * self.tile[0] - 1 for row in range(down)]  # the last query of a row of tiles
        return [
            (row, column)
            for row in range(down)
            for column in range(across)
            if not self.causal or column * self.tile[1] <= last[row]
        ]

    def moved(self, step: int) -> int:
        """Bytes of Q, K, V and O that have crossed to or from global memory once frame `step` is done."""
        visited = self.visited()
        seen = visited[: step + 1]
        rows = len({row for row, _ in seen})
        through = rows - (0 if step + 1 == len(visited) or visited[step + 1][0] != seen[-1][0] else 1)
        numbers = (rows + through) * self.tile[0] + 2 * len(seen) * self.tile[1]
        return numbers * self.width * self.itemsize

    def figure(self) -> Moving:
        down, across = self.queries // self.tile[0], self.keys // self.tile[1]
        drawing = Drawing(across * BOX + 96)
        q = _tiles(drawing, 0, 62, down, 1, "Q")
        k = _tiles(drawing, 46, 26, 1, across, "Kᵀ")
        s = _tiles(drawing, 46, 62, down, across, "")
        o = _tiles(drawing, 58 + across * BOX, 62, down, 1, "O")
        v = _tiles(drawing, 46, 84 + down * BOX, 1, across, "V")
        drawing.panel(330)
        drawing.text(0, 14, "on the chip", "strong small")
        notes = [drawing.text(0, 40 + 22 * i, "", "small") for i in range(6)]
        drawing.text(0, 160, "", "")
        visited = self.visited()
        skipped = {(r, c) for r in range(down) for c in range(across)} - set(visited)
        frames = []
        for number, (row, column) in enumerate(visited):
            kinds = {s[r][c]: "coming" for r, c in skipped}
            kinds |= {s[r][c]: "earlier" for r, c in visited[:number]}
            kinds |= {o[r][0]: "earlier" for r in range(row)}
            kinds |= {q[row][0]: "read", k[0][column]: "read", v[0][column]: "read"}
            kinds |= {s[row][column]: "write current", o[row][0]: "write"}
            frames.append(
                Frame(self._said(row, column), kinds, dict(zip(notes, self._notes(number), strict=True)))
            )
        legend = [
            ("box read", "read in this step"),
            ("box write", "computed, on the chip"),
            ("box earlier", "done"),
        ]
        if skipped:
            legend.append(("box coming", "never computed: masked"))
        tiles = f"{self.tile[0]} × {self.tile[1]}"
        name = f"Attention of {self.queries:,} queries and {self.keys:,} keys in tiles of {tiles}"
        return Frames(drawing, frames, name, "tile", 0, legend).figure()

    def _said(self, row: int, column: int) -> str:
        first, key = row * self.tile[0], column * self.tile[1]
        return (
            f"Queries {first} to {first + self.tile[0] - 1} meet keys {key} to {key + self.tile[1] - 1}. "
            "The running maximum and sum are corrected, and a tile of V is added to O."
        )

    def _notes(self, number: int) -> list[str]:
        rows, columns = self.tile
        visited = self.visited()
        return [
            f"Q, O: {rows} × {self.width} each, stay for a row of tiles",
            f"K, V: {columns} × {self.width} each, one tile at a time",
            f"scores: {rows} × {columns}, never in global memory",
            f"maximum and sum: {rows} numbers each",
            f"moved so far: {self.moved(number):,} B, tile {number + 1} of {len(visited)}",
            f"all scores would be {self.queries * self.keys * self.itemsize:,} B, written and read again",
        ]


def _fit(count: int) -> float:
    """The size of a cell of which so many stand side by side."""
    return min(12.0, 176 / count)


def _tiles(drawing: Drawing, x: float, y: float, rows: int, columns: int, name: str) -> list[list[int]]:
    if name:
        drawing.text(x, y - 6, name, "strong small")
    return [
        [
            drawing.box(x + c * BOX, y + r * BOX, BOX - 1.5, BOX - 1.5, "cell", radius=2)
            for c in range(columns)
        ]
        for r in range(rows)
    ]


def _cells(
    drawing: Drawing, x: float, y: float, rows: int, columns: int, kind: str, name: str = "", size: float = 0
) -> Sequence[Sequence[int]]:
    if name:
        drawing.text(x, y - 8, name, "soft small")
    box = size or _fit(max(rows, columns))
    edge = box - (0.8 if box < 14 else 2)
    return [
        [drawing.box(x + c * box, y + r * box, edge, edge, kind, radius=1) for c in range(columns)]
        for r in range(rows)
    ]
