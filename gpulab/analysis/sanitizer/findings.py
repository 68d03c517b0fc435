"""What the sanitizer found, as data that shows itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpulab.foundation.display import Block, Card, Heading, Note, Piece, Shown, Span
from gpulab.simulator.ptx import Location

CURE = "Usual cure:"  # how the last line of a message begins
KINDS = {
    "race": "data race",
    "memory": "bad access",
    "uninitialised": "uninitialised memory",
    "barrier": "wrong synchronisation",
    "proxy": "missing proxy fence",
    "endless": "never ends",
    "stopped": "stopped itself",
    "order": "depends on the order",
}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. `kind` is a key of `KINDS`, `message` says where, why and what to do.

    `places` are the source lines concerned, in the order of the program's run. `sighting` is the message
    without the why and the cure, for somebody who wants to find out.
    """

    kind: str
    message: str
    places: tuple[Location, ...] = ()
    sighting: str = ""

    @property
    def lines(self) -> tuple[int, ...]:
        """The numbers of the source lines."""
        return tuple(place.line for place in self.places)

    def __str__(self) -> str:
        return self.message

    def puzzle(self) -> Finding:
        """The finding with its sighting alone."""
        told = [line for line in self.message.splitlines() if not line.startswith(CURE)]
        return replace(self, message=self.sighting or "\n".join(told))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "message": self.message, "lines": list(self.lines)}


class Findings(Shown, Sequence[Finding]):
    """All findings of one kernel, worst first; empty when nothing was found. True if there are any."""

    def __init__(self, kernel: str, findings: Sequence[Finding], looked: str):
        self.kernel, self.looked = kernel, looked
        order = list(KINDS)
        self._findings = sorted(findings, key=lambda finding: order.index(finding.kind))

    def __getitem__(self, index: Any) -> Any:
        return self._findings[index]

    def __len__(self) -> int:
        return len(self._findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    def of(self, kind: str) -> list[Finding]:
        """The findings of one kind."""
        return [finding for finding in self._findings if finding.kind == kind]

    def card(self) -> Card:
        count = len(self._findings)
        right = "nothing found" if not count else f"{count} finding{'s' if count > 1 else ''}"
        pieces: list[Piece] = [Heading(self.kernel, right)]
        for finding in self._findings:
            pieces += [Note(Span(KINDS[finding.kind], "strong")), Block(finding.message)]
        pieces.append(Note(self.looked))
        return Card(tuple(pieces))
