"""What a race report says of two accesses: source lines, threads, element, values, and where to fix it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpulab.simulator.simt import Access, Allocation, ArrayLabel, Chunk, Program
from gpulab.simulator.simt.errors import Index, index_of, indexed_names, source_text
from gpulab.simulator.simt.types import DTYPES

from .counters import is_copy
from .flow import Flow
from .granules import WIDEST
from .race import READ, STRONG, WRITE, Race, Touch
from .shadow import written_bits

Array = np.ndarray
OF_CUTE = "kernel_cutlass_"  # how the names of CuTe DSL's kernels begin


class Sightings:
    """The races of a launch, each pair of source lines once, in `findings`. `lanes` are those of a block;
    `arrays` names global memory, `find` gives the allocation of memory that is no argument."""

    def __init__(
        self,
        program: Program,
        flow: Flow,
        grid: Index,
        block: Index,
        lanes: int,
        arrays: tuple[ArrayLabel, ...],
        find: Callable[[int], Allocation | None],
    ) -> None:
        self.findings: list[Race] = []
        self._program, self._grid, self._block, self._lanes = program, grid, block, lanes
        self._arrays, self._find = arrays, find
        self._flow = flow
        self._seen: dict[tuple[object, ...], int] = {}
        self._sites: list[tuple[int, int]] = []  # of the findings: the two instructions
        self._decided: dict[int, Array] = {}  # how often each thread of one block took each branch, and not
        self._example = -1  # that block

    def branch(self, index: int, lanes: Array | None, taken: Array, chunk: Chunk) -> None:
        if self._example < 0:
            self._example = int(chunk.blocks[0])
        row = np.flatnonzero(chunk.blocks == self._example)
        if not row.size:
            return
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        on = np.broadcast_to(True if lanes is None else lanes, shape)[row[0]][: chunk.threads_per_block]
        way = np.broadcast_to(taken, shape)[row[0]][: chunk.threads_per_block]
        decided = self._decided.setdefault(index, np.zeros((2, chunk.threads_per_block), np.int64))
        decided[0] += on * way.astype(np.int64)
        decided[1] += on

    def add(
        self, access: Access, both: tuple[tuple[int, int, int, int | None], tuple[int, int, int]]
    ) -> None:
        """Two touches race: (instruction, thread, kind) of each, and what the first one wrote, if known."""
        (index, first, first_kind, written), (_, second, kind) = both
        instructions = self._program.instructions
        address = self._address_of(access, second)
        element, size, label = self._element(access, address, (index, access.index))
        dtype = self._type_of(access, size, address)
        sides = [
            (index, first, first_kind, _spoken(written, dtype)),
            (access.index, second, kind, _spoken(self._moved(access, second, kind), dtype)),
        ]
        if self._is_backwards(index, access.index):
            sides.reverse()
        places = tuple(instructions[i].location or i for i, *_ in sides)
        known = self._seen.get(places)  # an unrolled loop has many instructions of one line
        if known is not None and (first // 32 == second // 32 or not self.findings[known].within_a_warp):
            return
        earlier, later = (self._side(*side) for side in sides)
        fields = access.space == "shared" and any(self._has_fields(label, index) for index, *_ in sides)
        race = Race(
            self._program.display_name,
            "shared" if access.space == "cluster" else access.space,
            earlier,
            later,
            element,
            size,
            label,
            has_fields=fields,
            in_cute=self._program.name.startswith(OF_CUTE),
        )
        site = sides[0][0], sides[1][0]
        if known is not None:
            self.findings[known], self._sites[known] = race, site
        else:
            self._seen[places] = len(self.findings)
            self.findings.append(race)
            self._sites.append(site)

    def end(self, *, signalled: bool, in_parts: bool, by_mbarriers: bool) -> None:
        """What all threads have decided is known now, and so is where a barrier may stand. The arguments are
        as in Race."""
        for number, (race, (first, second)) in enumerate(zip(self.findings, self._sites, strict=True)):
            place = self._flow.place_of_barrier(first, second, self._is_divergent)
            written_first = race.first.kind != READ and race.second.kind == READ
            repeated = written_first or self._flow.is_repeated(first, second)
            copied = written_first and is_copy(self._program.instructions[first])
            self.findings[number] = replace(
                race,
                place=place,
                repeated=repeated,
                signalled=signalled,
                in_parts=in_parts,
                by_mbarriers=by_mbarriers,
                copied=copied,
            )

    def _is_divergent(self, branch: int) -> bool:
        """Whether threads of one block have decided differently at a branch."""
        decided = self._decided.get(branch)
        return decided is not None and bool((decided != decided[:, :1]).any())

    def _is_backwards(self, first: int, second: int) -> bool:
        """Whether only the schedule let instruction `first` run before `second`."""
        if self._flow.leads(first, second):
            return False
        places = [self._program.instructions[i].location for i in (first, second)]
        lines = [place.line for place in places if place is not None]
        return self._flow.leads(second, first) or lines[::-1] < lines

    def _address_of(self, access: Access, thread: int) -> int:
        row = int(np.flatnonzero(access.chunk.blocks == thread // self._lanes)[0])
        shape = (access.chunk.blocks.size, access.chunk.lanes_per_block)
        return int(np.broadcast_to(access.address, shape)[row, thread % self._lanes])

    def _element(
        self, access: Access, address: int, sites: tuple[int, int]
    ) -> tuple[tuple[int, ...], int, str]:
        """(index, bytes of an element, the array's name) of what the instructions `sites` touch."""
        size = max(access.size // max(len(access.values), 1), 1)
        if access.space == "global":
            for label in self._arrays:
                if label.address <= address < label.address + label.extent:
                    return label.index_of(address), label.itemsize, label.name
            variable = self._find(address)
            assert variable is not None
            return ((address - variable.address) // size,), size, variable.name
        start = max((o for o, _ in self._program.shared_variables.values() if o <= address), default=0)
        return ((address - start) // size,), size, self._shared_name(sites)

    def _shared_name(self, sites: tuple[int, int]) -> str:
        """The only name that both source lines use as an array and no argument has."""
        one, other = (indexed_names(self._program.instructions[i].location) for i in sites)
        common = (one & other) - {label.name for label in self._arrays}
        return common.pop() if len(common) == 1 else ""

    def _has_fields(self, label: str, index: int) -> bool:
        """Whether a source line uses elements of an array as structs."""
        text = source_text(self._program.instructions[index].location)
        return (
            bool(label) and re.search(rf"\b{re.escape(label)}\s*\[[^][]*\]\s*(\.|->)\s*\w", text) is not None
        )

    def _type_of(self, access: Access, size: int, address: int) -> np.dtype | None:
        """The type of an element, if it is known: where compilers merely move floats they call them words."""
        arrays = {a: np.dtype(a.dtype) for a in self._arrays if not a.dtype.startswith(("void", "record"))}
        if access.space == "global":
            dtype = next((t for a, t in arrays.items() if a.address <= address < a.address + a.extent), None)
        else:
            dtype = DTYPES.get(access.instruction.parts[-1])
            integers = arrays and all(t.kind in "iu" for t in arrays.values())
            if dtype is None or (dtype.kind != "f" and not integers):
                return None
        return dtype if dtype is not None and dtype.itemsize == size and dtype.kind in "iufb" else None

    def _moved(self, access: Access, thread: int, kind: int) -> int | None:
        """The bits that a thread reads or writes, where it is one element."""
        if kind not in (READ, WRITE) or len(access.values) != 1 or access.values[0].itemsize > WIDEST:
            return None
        row = int(np.flatnonzero(access.chunk.blocks == thread // self._lanes)[0])
        shape = (access.chunk.blocks.size, access.chunk.lanes_per_block)
        value = np.broadcast_to(access.values[0], shape)[row : row + 1, thread % self._lanes]
        return int(written_bits([value], value.itemsize, 0)[0])

    def _side(self, index: int, thread: int, kind: int, value: str) -> Touch:
        block, lane = divmod(thread, self._lanes)
        instruction = self._program.instructions[index]
        verb = {"ld": "reads", "st": "writes"}.get(instruction.parts[0], "")
        if verb and STRONG & set(instruction.parts):
            verb = f"{verb}, as a volatile," if "volatile" in instruction.parts else f"atomically {verb}"
        return Touch(
            instruction.location,
            index_of(block, self._grid),
            index_of(lane, self._block),
            lane,
            kind,
            value,
            verb,
            block,
        )


def _spoken(bits: int | None, dtype: np.dtype | None) -> str:
    """A value as a learner writes it; empty where it is not known."""
    if bits is None or dtype is None:
        return ""
    return str(np.array(bits, np.int64).reshape(1).view(dtype)[0])
