"""Atomic operations whose outcome depends on who comes first, for results that differ from order to order."""

from __future__ import annotations

from gpulab.ptx import Location
from gpulab.simt import Access, Observer, Program
from gpulab.simt.errors import Index

ROUNDS = "adds floats, which rounds differently in every order"
OLD_VALUE = "hands out what was there before: first come, first served"
LAST_WINS = "keeps the last value that came"


class OrderedAtomics(Observer):
    """Remembers them by source line; read `reasons` after the launch."""

    def __init__(self) -> None:
        self.reasons: dict[Location, str] = {}
        self._known: set[int] = set()

    def start(self, program: object, grid: Index, block: Index) -> None:
        assert isinstance(program, Program)

    def access(self, access: Access) -> None:
        if access.kind not in ("atomic", "reduction") or access.index in self._known:
            return
        self._known.add(access.index)
        location, parts = access.instruction.location, access.instruction.parts
        reason = ""
        if "cas" in parts or access.kind == "atomic":
            reason = OLD_VALUE
        if "exch" in parts:
            reason = LAST_WINS
        if "add" in parts and any(part.startswith(("f", "bf")) for part in parts[1:]):
            reason = ROUNDS
        if reason and location is not None:
            self.reasons.setdefault(location, reason)
