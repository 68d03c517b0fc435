"""The counts of a launch by source line, kind and space: small, additive, and plain enough for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpulab.simulator.observe import COLUMNS, Counts

OF_ALL_INSTRUCTIONS = ("warps", "threads", "active", "flops")  # columns, of which the others are of accesses
Place = tuple[str, int]  # file and line; ("", 0) where the compiler names none


@dataclass(frozen=True, order=True)
class Key:
    """What the counts of one row have in common. `kind` and `space` are those of `Counts.kinds`;
    branches without a condition have the kind ``jump``, because they cannot diverge."""

    file: str
    line: int
    kind: str
    space: str

    @property
    def place(self) -> Place:
        return self.file, self.line


@dataclass(frozen=True)
class Tally:
    """Sums of the columns of `Counts` by `Key`.

    Tallies add: the sum is that of the launches one after the other.
    """

    rows: dict[Key, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, counts: Counts) -> Tally:
        """The tally of one launch."""
        names = [name for name in COLUMNS if name in counts.table]
        table = np.stack([counts.table[name] for name in names], axis=1)
        groups: dict[tuple[str, int, str, str], int] = {}
        group_of: list[int] = []
        seen: set[int] = set()
        happened = np.asarray(table.any(axis=1))
        for i, (instruction, (kind, space)) in enumerate(zip(counts.instructions, counts.kinds, strict=True)):
            if id(instruction) in seen and not happened[i]:
                group_of.append(0)  # a generic access that went to no such space: zeros, wherever they go
                continue
            seen.add(id(instruction))
            if kind == "branch" and instruction.guard is None and "idx" not in instruction.parts:
                kind = "jump"
            file, line = (place.file, place.line) if (place := instruction.location) else ("", 0)
            group_of.append(groups.setdefault((file, line, kind, space), len(groups)))
        sums = np.zeros((len(groups), len(names)), table.dtype)
        np.add.at(sums, group_of, table)
        rows = (dict(zip(names, row, strict=True)) for row in sums.tolist())
        return cls({Key(*what): row for what, row in zip(groups, rows, strict=True)})

    def __add__(self, other: Tally) -> Tally:
        rows = {key: dict(row) for key, row in self.rows.items()}
        for key, row in other.rows.items():
            mine = rows.setdefault(key, dict.fromkeys(row, 0))
            for name, value in row.items():
                mine[name] = mine.get(name, 0) + value
        return Tally(rows)

    def total(self, column: str, kind: str | None = None, space: str | None = None) -> int:
        """Sum of a column over all rows of a kind and a space (None means any)."""
        return sum(
            row.get(column, 0)
            for key, row in self.rows.items()
            if (kind is None or key.kind == kind) and (space is None or key.space == space)
        )

    def with_atomics_as_accesses(self) -> Tally:
        """The same run, with each atomic as the load and the store that it is.

        What is counted for every instruction, such as warps, stays with the atomic.
        """
        others = {key: row for key, row in self.rows.items() if key.kind != "atomic"}
        found = Tally(others)
        for key, row in self.rows.items():
            if key.kind == "atomic":
                moved = {name: n for name, n in row.items() if name not in OF_ALL_INSTRUCTIONS}
                found += Tally({key: {name: row[name] for name in row if name in OF_ALL_INSTRUCTIONS}})
                found += Tally({replace(key, kind="load"): moved})
                found += Tally({replace(key, kind="store"): moved})
        return found

    def with_cluster_barriers_as_barriers(self) -> Tally:
        """The same run, with each barrier of a cluster as the barrier of its blocks that it also is."""
        found = Tally({key: row for key, row in self.rows.items() if key.kind != "cluster_barrier"})
        for key, row in self.rows.items():
            if key.kind == "cluster_barrier":
                found += Tally({replace(key, kind="barrier"): row})
        return found

    def with_shuffles_as_shared_loads(self) -> Tally:
        """The same run, with each shuffle as the load from shared memory whose place it can take.

        Hardware serves both by the same pipe: 4 bytes for each lane, in one pass.
        """
        found = self
        for key, row in self.rows.items():
            if key.kind == "shuffle":
                passes = dict.fromkeys(("requests", "wavefronts", "ideal_wavefronts"), row["warps"])
                load = replace(key, kind="load", space="shared")
                found += Tally({load: passes | {"bytes": 4 * row["active"]}})
        return found

    def by_place(self) -> dict[Place, Tally]:
        """One tally per source line, in the order of file and line."""
        places: dict[Place, dict[Key, dict[str, int]]] = {}
        for key in sorted(self.rows):
            places.setdefault(key.place, {})[key] = self.rows[key]
        return {place: Tally(rows) for place, rows in places.items()}

    def to_list(self) -> list[dict[str, Any]]:
        """JSON-able rows; columns that are 0 are left out."""
        return [
            {"file": k.file, "line": k.line, "kind": k.kind, "space": k.space}
            | {"counts": {name: value for name, value in self.rows[k].items() if value}}
            for k in sorted(self.rows)
        ]

    @classmethod
    def from_list(cls, rows: Iterable[dict[str, Any]]) -> Tally:
        """The inverse of `to_list`."""
        return cls(
            {
                Key(row["file"], row["line"], row["kind"], row["space"]): dict.fromkeys(COLUMNS, 0)
                | row["counts"]
                for row in rows
            }
        )

    def __iter__(self) -> Iterator[tuple[Key, dict[str, int]]]:
        return iter(self.rows.items())


def total(tallies: Iterable[Tally]) -> Tally:
    """The sum of tallies; empty for none."""
    result = Tally()
    for tally in tallies:
        result = result + tally
    return result
