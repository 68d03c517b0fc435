"""The arrays that a stepped launch touches, by the names that its source gives them."""

from __future__ import annotations

import ast
import linecache
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpulab.foundation.syntax_trees import parse
from gpulab.simulator.simt import Access, ArrayLabel, Memory, Program

HELD = 4096  # elements of an array whose contents are kept from before the launch
_KINDS = {"load": ("read",), "store": ("write",)}
_IN_C = re.compile(
    r"__shared__\s+(?:volatile\s+)?(?P<type>[\w ]+?)\s*\b(?P<name>\w+)\s*(?P<sizes>(?:\[[^\]]*\])+)"
)
_C_TYPES = {
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
}


@dataclass(frozen=True, eq=False)
class Known:
    """An array. `space` is ``global`` or ``shared``; `before` are its elements before the launch, in memory
    order, None where they are too many, or undefined as in shared memory."""

    name: str
    space: str
    shape: tuple[int, ...]
    dtype: str
    itemsize: int
    before: np.ndarray | None = None

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Touched:
    """What lanes of a warp read or wrote with one instruction: `kind` is ``read`` or ``write``, `cells` the
    linear index of an element for each of the `threads` (which count in the block), in their order, and
    `values` what was moved, None where it is not known."""

    array: Known
    kind: str
    threads: tuple[int, ...]
    cells: tuple[int, ...]
    values: tuple[Any, ...] | None


class Arrays:
    """Finds the array and the element behind an address. `labels` name global memory, `numbers` is what names
    around the source stand for."""

    def __init__(self, labels: Sequence[ArrayLabel], memory: Memory, numbers: Mapping[str, int]) -> None:
        self._numbers = numbers
        self._global: list[tuple[ArrayLabel, Known]] = []
        for label in labels:
            known = Known(
                label.name, "global", label.shape, label.dtype, label.itemsize, _before(label, memory)
            )
            self._global.append((label, known))
        self._shared: dict[int, Known] = {}  # by its first byte

    def start(self, program: Program) -> None:
        """A launch begins: shared arrays get the names and shapes that the source declares, in order."""
        files = {i.location.file for i in program.instructions if i.location}
        declared = [
            d for file in sorted(files) for d in _declared(file, _lines(program, file), self._numbers)
        ]
        places = sorted(
            (place.offset, place.nbytes, name) for name, place in program.shared_variables.items()
        )
        for number, (offset, nbytes, symbol) in enumerate(places):
            mine = [d for d in declared if re.search(rf"(?<![a-z_]){d[0]}(?!\w)", symbol)]
            mine = mine or declared[number : number + 1]
            name, shape, dtype = mine[0] if mine else ("shared memory", (), "")
            room = nbytes or program.shared_bytes - offset  # dynamic shared memory has no size of its own
            size = np.dtype(dtype or "u4").itemsize
            if not shape or math.prod(shape) * size != room:
                shape = (max(room // size, 1),)
            self._shared[offset] = Known(name, "shared", shape, dtype, size)

    def touched(self, access: Access, row: int, threads: np.ndarray) -> list[Touched]:
        """What the `threads` of the block in `row` of its chunk did in an access."""
        shape = (access.chunk.blocks.size, access.chunk.lanes_per_block)
        address = np.broadcast_to(access.address, shape)[row, threads].astype(np.int64)
        values = [np.broadcast_to(v, shape)[row, threads] for v in access.values]
        found: list[Touched] = []
        for known, start, inside, elements in self._apart(access.space, address):
            wide = max(access.size // max(known.itemsize, 1), 1)
            for part in range(wide):  # of a vector
                who = tuple(int(t) for t in threads[inside])
                cells = tuple(int(c) for c in elements(address[inside] + part * known.itemsize - start))
                moved = _values(values, part, wide, inside, known.dtype)
                for kind in _KINDS.get(access.kind, ("read", "write")):
                    its = moved if access.kind in _KINDS else None
                    found.append(Touched(known, kind, who, cells, its))
        return found

    def _apart(self, space: str, address: np.ndarray) -> list[tuple[Known, int, np.ndarray, Any]]:
        """(array, its address, which of the addresses are in it, from offsets in it to elements)."""
        found: list[tuple[Known, int, np.ndarray, Any]] = []
        if space == "shared":
            starts = sorted(self._shared)
            for i, start in enumerate(starts):
                stop = starts[i + 1] if i + 1 < len(starts) else math.inf
                inside = (address >= start) & (address < stop)
                if inside.any():
                    known = self._shared[start]
                    found.append((known, start, inside, lambda offset, k=known: offset // k.itemsize))
            return found
        rest = np.ones(address.shape, bool)
        for label, known in self._global:
            inside = rest & (address >= label.address) & (address < label.address + label.extent)
            if inside.any():
                found.append((known, label.address, inside, lambda offset, at=label: _elements(at, offset)))
                rest &= ~inside
        return found


def _elements(label: ArrayLabel, offsets: np.ndarray) -> list[int]:
    """Linear indices of elements, row after row, whatever the strides."""
    found = []
    for offset in offsets:
        index = label.index_of(label.address + int(offset))
        found.append(int(np.ravel_multi_index(index, label.shape, mode="clip")) if index else 0)
    return found


def _values(values: list[np.ndarray], part: int, wide: int, inside: np.ndarray, dtype: str) -> Any:
    if len(values) != wide or not dtype:  # stored bits say nothing without a type
        return None
    moved = values[part][inside]
    known = np.dtype(dtype) if dtype and not dtype.startswith(("void", "record")) else None
    if known is not None and known.itemsize == moved.dtype.itemsize and known.kind in "iufb":
        moved = moved.astype(moved.dtype, copy=True).view(known)
    return tuple(moved.tolist())


def _before(label: ArrayLabel, memory: Memory) -> np.ndarray | None:
    """The elements of an array as they are now, in memory order; None for large or odd ones."""
    count = math.prod(label.shape)
    if not 0 < count <= HELD or label.extent != count * label.itemsize or not label.strides:
        return None
    contiguous = np.argsort(label.strides, kind="stable")[::-1].tolist() == list(range(len(label.shape)))
    allocation = memory.find(label.address)
    if allocation is None or not contiguous or np.dtype(label.dtype).kind not in "iufb":
        return None
    start = label.address - allocation.address
    return allocation.data[start : start + label.extent].view(label.dtype).copy()


def _lines(program: Program, file: str) -> tuple[int, int]:
    lines = [i.location.line for i in program.instructions if i.location and i.location.file == file]
    return min(lines), max(lines)


Declared = tuple[str, tuple[int, ...], str]  # name, shape (empty where it cannot be told), dtype (likewise)


def _declared(file: str, lines: tuple[int, int], numbers: Mapping[str, int]) -> list[Declared]:
    """The shared arrays that a source declares between two lines."""
    text = "".join(linecache.getlines(file))
    try:
        tree = parse(text)
    except (SyntaxError, ValueError):
        part = "\n".join(text.splitlines()[max(lines[0] - 1, 0) : lines[1]])
        return [_in_c(match) for match in _IN_C.finditer(part)]
    found: list[tuple[int, Declared]] = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and lines[0] <= node.lineno <= lines[1]
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Call)
            and ast.unparse(node.value.func).endswith("shared.array")
        ):
            given = {k.arg: k.value for k in node.value.keywords}
            given |= dict(zip(("shape", "dtype"), node.value.args, strict=False))
            shape = _shape(given["shape"], numbers) if "shape" in given else ()
            found.append((node.lineno, (node.targets[0].id, shape, _dtype(given.get("dtype")))))
    return [declared for _, declared in sorted(found)]


def _in_c(match: re.Match[str]) -> Declared:
    sizes = re.findall(r"\[\s*(\d+)\s*\]", match["sizes"])
    shape = tuple(map(int, sizes)) if len(sizes) == match["sizes"].count("[") else ()
    return match["name"], shape, _C_TYPES.get(match["type"].strip(), "")


def _dtype(node: ast.expr | None) -> str:
    """NumPy's name of a type such as ``np.float32`` or ``numba.float32``."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    try:
        return np.dtype(name).name if name else ""
    except TypeError:
        return ""


def _shape(node: ast.expr, numbers: Mapping[str, int]) -> tuple[int, ...]:
    """The shape that an expression says, of numbers and names; () where it cannot be known."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    found = []
    for part in parts:
        value = part.value if isinstance(part, ast.Constant) else None
        if isinstance(part, ast.Name):
            value = numbers.get(part.id)
        if not isinstance(value, int) or value < 1:
            return ()
        found.append(value)
    return tuple(found)
