"""What a warp's addresses look like, in words: how far apart neighbours are and what that costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gpulab.simulator.observe.patterns import SECTOR
from gpulab.simulator.observe.recorder import WARP, Index, Request

from . import messages

BANKS, WORD = 32, 4  # of shared memory
MOSTLY = 0.75  # of the neighbours at one distance make it the pattern

VERBS = {"load": "read", "store": "write", "atomic": "update", "reduction": "update"}


def describe(request: Request, block: Index) -> str:
    """One sentence on one request; empty for memory in which addresses say nothing."""
    if request.space == "global":
        return _global(request, block)
    return _shared(request, block) if request.space == "shared" else ""


def worst(requests: Iterable[Request]) -> Request | None:
    """The request that costs most: sectors of global, passes of shared memory."""
    return max(requests, key=lambda r: ways(r) if r.space == "shared" else r.sectors, default=None)


def typical(requests: Iterable[Request]) -> Request | None:
    """One of the requests that are most frequent."""
    like: dict[tuple[int | None, int], list[Request]] = {}
    for request in requests:
        like.setdefault((distance(request), request.sectors), []).append(request)
    return max(like.values(), key=len)[0] if like else None


def side_by_side(request: Request) -> bool:
    """Whether neighbouring lanes ask for neighbouring numbers, without gaps."""
    return distance(request) == request.size


def distance(request: Request) -> int | None:
    """The bytes between most neighbouring lanes; None where there is no such distance."""
    lanes, asked = request.lanes, request.asked
    steps = Counter(
        asked[i + 1] - asked[i] for i in range(len(lanes) - 1) if lanes[i + 1] == lanes[i] + 1
    ).most_common(1)
    return steps[0][0] if steps and steps[0][1] >= MOSTLY * (len(lanes) - 1) else None


def ways(request: Request) -> int:
    """How many passes the worst bank makes of one group of lanes; 1 is no conflict."""
    together = WARP * WORD // max(request.size, WORD)
    most = 1
    for start in range(0, WARP, together):
        group = [a for a in request.addresses[start : start + together] if a is not None]
        words = {w for a in group for w in range(a // WORD, (a + request.size - 1) // WORD + 1)}
        most = max([most, *Counter(word % BANKS for word in words).values()])
    return most


def _axis(block: Index) -> str:
    """The coordinate in which neighbouring lanes differ."""
    return next((axis for axis, size in zip("xyz", block, strict=True) if size > 1), "")


def _global(request: Request, block: Index) -> str:
    threads, sectors, verb = len(request.lanes), request.sectors, VERBS[request.kind]
    step = distance(request)
    if len(set(request.asked)) == 1 and threads > 1:
        return messages.same_address(verb, "global")
    if step is None:
        return messages.scattered(verb, sectors, threads) if threads > 1 else ""
    behind = min(request.asked) % SECTOR
    if sectors >= threads:
        cost = messages.one_sector_each()
    elif abs(step) == request.size and behind and sectors > -(-threads * request.size // SECTOR):
        cost = messages.misaligned(behind, sectors)
    else:
        cost = messages.sectors_for(sectors, threads)
    return messages.apart(verb, _axis(block), abs(step), cost)


def _shared(request: Request, block: Index) -> str:
    threads, passes, verb = len(request.lanes), ways(request), VERBS[request.kind]
    if passes == 1:
        return ""
    step = distance(request)
    if step:
        return messages.apart(verb, _axis(block), abs(step), messages.one_bank(passes, threads))
    return messages.banks(verb, passes)
