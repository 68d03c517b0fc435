"""What ranks send to one another, and when: one row for each rank, arrows from senders to receivers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from . import style

UNITS = {"s": 1.0, "ms": 1e3, "µs": 1e6}
HALF = 0.3  # of a row: sends lie in the upper half, receives in the lower


def timeline_ranks(calls: Sequence[Any], unit: str = "ms", ax: Axes | None = None) -> style.Picture:
    """Draw the calls of a run, as `gpulab.distributed.run` gives them.

    A call has ``rank``, ``operation``, ``bytes``, ``peer``, ``start`` and ``end`` in seconds. A full box in
    the upper half of a row is a send, a dashed one below is a receive, a box of full height a collective; the
    first send from one rank to another belongs to the first receive, and so on. `unit` is s, ms or µs.
    Raises NothingToDraw without a call.
    """
    if not calls:
        raise style.NothingToDraw("there is nothing to draw: no rank called anything")
    scale = UNITS[unit]
    ranks = 1 + max(call.rank for call in calls)
    begin, end = min(call.start for call in calls), max(call.end for call in calls)
    whole = (end - begin) * scale or 1.0
    ax, given = style.begin(ax, 8.6, 1.0 + 0.5 * ranks)
    least = 0.004 * whole  # a call that takes no time is seen, too
    for call in calls:
        top, height, fill = {
            "send": (call.rank - HALF, HALF, style.DEEP),
            "recv": (call.rank, HALF, None),
        }.get(call.operation, (call.rank - HALF, 2 * HALF, style.LEAF))
        length = max((call.end - call.start) * scale, least)
        name = call.operation if call.operation not in ("send", "recv") else ""
        style.cell(
            ax, (call.start - begin) * scale, top, name if 0.011 * whole * len(name) < length else "", fill,
            width=length, height=height, dashed=fill is None, size=8,
        )  # fmt: skip
    messages = _messages(calls)
    for send, recv in messages:
        ax.annotate(
            "", ((recv.end - begin) * scale, recv.rank + HALF / 2),
            ((send.start - begin) * scale, send.rank - HALF / 2),
            arrowprops={"arrowstyle": "-|>", "color": style.AMBER, "linewidth": 1.2, "shrinkA": 0,
                        "shrinkB": 0, "mutation_scale": 8},
        )  # fmt: skip
    ax.set_xlim(-0.01 * whole, 1.02 * whole)
    ax.set_ylim(ranks - 0.5, -0.5)
    ax.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"time, {unit}", color=style.INK)
    return style.finish(ax, _caption(calls, messages, ranks, f"{whole:,.3g} {unit}"), given)


def _messages(calls: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Sends with their receives, in the order of each link."""
    sends, receives = defaultdict(list), defaultdict(list)
    for call in sorted(calls, key=lambda call: call.start):
        if call.operation == "send":
            sends[call.rank, call.peer].append(call)
        elif call.operation == "recv":
            receives[call.peer, call.rank].append(call)
    return [pair for link, mine in sends.items() for pair in zip(mine, receives.get(link, ()), strict=False)]


def _caption(calls: Sequence[Any], messages: Sequence[Any], ranks: int, time: str) -> str:
    sizes = [sum(c.bytes for c in calls if (c.rank, c.operation) == (r, "send")) for r in range(ranks)]
    collectives = sum(call.operation not in ("send", "recv") for call in calls)
    said = f"{style.plural(ranks, 'rank')} over {time}"
    if messages:
        said += (
            f": {style.plural(len(messages), 'message')}, each an arrow from a full box, where it is sent, "
            "to a dashed one, where it is waited for"
        )
        if min(sizes) == max(sizes):
            said += f", and every rank sends {sizes[0]:,} bytes"
        else:
            said += f", and rank {sizes.index(max(sizes))} sends most, {max(sizes):,} bytes"
    if collectives:
        said += f"; {style.plural(collectives, 'call')} of collectives in boxes of full height"
    return f"{said}."


def sample() -> style.Picture:
    """A ring's first step, where rank 2 comes late, and a collective after it."""
    from types import SimpleNamespace as Call

    late = (0.0, 0.1e-3, 1.0e-3, 0.0)
    calls = []
    for rank in range(4):
        came = max(late[rank], late[(rank - 1) % 4]) + 0.4e-3
        taken = max(late[rank], late[(rank + 1) % 4]) + 0.4e-3
        calls += [
            Call(rank=rank, operation="send", bytes=1024, peer=(rank + 1) % 4, start=late[rank], end=taken),
            Call(rank=rank, operation="recv", bytes=1024, peer=(rank - 1) % 4, start=late[rank], end=came),
            Call(rank=rank, operation="all_reduce", bytes=64, peer=-1, start=max(came, taken), end=2.0e-3),
        ]
    return timeline_ranks(calls)


if __name__ == "__main__":
    style.demo(sample)
