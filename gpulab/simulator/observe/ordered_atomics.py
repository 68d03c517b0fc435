"""Atomic operations whose outcome depends on which thread comes first: the result changes with the order."""

from __future__ import annotations

from gpulab.simulator.ptx import Location
from gpulab.simulator.simt import Access, Observer

ROUNDS = "adds floats, which rounds differently in every order"
OLD_VALUE = "hands out what was there before: first come, first served"
LAST_WINS = "keeps the last value that came"
MIXED = "takes turns with another operation, and the two do not commute"
COMMUTE = {"add", "and", "or", "xor", "min", "max"}  # of integers: each with itself, not with another one


class OrderedAtomics(Observer):
    """Remembers them by source line; ask `reasons` after the launch, and whether the order `may_matter`."""

    def __init__(self) -> None:
        self._reasons: dict[Location, str] = {}
        self._known: set[int] = set()
        self._commuting: dict[str, list[Location]] = {}  # by operation: of integers, old value not asked for
        self._others = False

    @property
    def may_matter(self) -> bool:
        return self._others or len(self._commuting) > 1

    @property
    def reasons(self) -> dict[Location, str]:
        """Source lines whose outcome depends on the order, with the reason."""
        mixed = [place for places in self._commuting.values() for place in places]
        return {**self._reasons, **(dict.fromkeys(mixed, MIXED) if len(self._commuting) > 1 else {})}

    def access(self, access: Access) -> None:
        if access.kind not in ("atomic", "reduction") or access.index in self._known:
            return
        self._known.add(access.index)
        location, parts = access.instruction.location, access.instruction.parts
        operation = next((part for part in parts[1:] if part in COMMUTE), "")
        reason = ""
        if "cas" in parts or access.kind == "atomic":
            reason = OLD_VALUE
        if "exch" in parts:
            reason = LAST_WINS
        if "add" in parts and any(part.startswith(("f", "bf")) for part in parts[1:]):
            reason = ROUNDS
        if reason or not operation:
            self._others = True
            if reason and location is not None:
                self._reasons.setdefault(location, reason)
        else:
            self._commuting.setdefault(operation, []).extend([location] if location else [])
