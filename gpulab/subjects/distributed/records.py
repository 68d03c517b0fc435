"""What a rank did on the network, as data. Imports nothing, so that it can be read where PyTorch is not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Call:
    """One call of a rank: `operation` as torch.distributed names it, `bytes` of the tensors it was given.

    `peer` is the other rank of a send or receive, −1 for a collective. `start` and `end` are seconds
    since the ranks were joined; `end` is when the result was there (for calls that were not waited for,
    when they came to it).
    """

    rank: int
    operation: str
    bytes: int
    peer: int
    start: float
    end: float


def sent(calls: tuple[Call, ...]) -> dict[tuple[int, int], int]:
    """Bytes over each link (from, to): of the sends alone, because a collective chooses its own ways."""
    links: dict[tuple[int, int], int] = {}
    for call in calls:
        if call.operation == "send":
            link = call.rank, call.peer
            links[link] = links.get(link, 0) + call.bytes
    return links
