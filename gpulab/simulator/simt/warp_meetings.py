"""Operations of a warp (``*.sync``): when all lanes of the mask have come, they are computed once for all."""

from __future__ import annotations

import numpy as np

from . import branching, warps
from .program import Meeting
from .run import Run
from .warps import WARP

Array = np.ndarray

EVERY = 0xFFFFFFFF  # the mask of all lanes of a warp


def release(run: Run, key: str) -> None:
    """Let those lanes continue whose partners have all arrived at an operation of the same kind."""
    meets = {n: run.program.segments[n].meets for n in run.at_warp}
    numbers = [n for n, meeting in meets.items() if meeting is not None and meeting.key == key]
    if not numbers:
        return
    if run.alone():
        number = numbers[0]
        lanes = run.at_warp.pop(number)
        _pass(run, {number: lanes}, lanes)
        return
    arrived = np.zeros(run.shape, bool)
    wanted = np.zeros(run.shape, np.uint32)
    for number in numbers:
        lanes = run.full(run.at_warp[number])
        arrived = arrived | lanes
        wanted = np.where(lanes, _members(run, number), wanted)
    absent = warps.pack(run.by_warp(run.full(run.alive) & ~arrived))  # (B, W, 1)
    complete = ((run.by_warp(wanted) & absent) == 0).reshape(run.shape) & arrived
    if not complete.any():
        return
    parts: dict[int, Array] = {}
    for number in numbers:
        lanes = run.full(run.at_warp[number])
        parts[number] = lanes & complete
        rest = lanes & ~complete
        if rest.any():
            run.at_warp[number] = rest
        else:
            del run.at_warp[number]
    _pass(run, {n: part for n, part in parts.items() if part.any()}, complete)


def _members(run: Run, number: int) -> Array:
    return run.program.segments[number].meeting.mask.value(run.registers)


def _pass(run: Run, parts: dict[int, Array | None], lanes: Array | None) -> None:
    """Run one warp operation for lanes whose partners are all here."""
    segments = run.program.segments
    others = run.needed()
    for number in parts:
        others |= segments[number].live if len(parts) > 1 else 0
    run.protected = others
    meeting = segments[next(iter(parts))].meeting
    if meeting.compute is not None:
        _exchange(run, parts, lanes, meeting)
    for number, part in parts.items():
        segment = segments[number]
        run.lanes = part
        for hear in run.on_executed:
            hear(segment.first, segment.stop, part, run.chunk)
        for hear in run.on_warp_sync:
            hear(segment.first, part, _some(run, number, part), run.chunk)
        run.spend(segment)
        branching.leave(run, segment, part)


def _some(run: Run, number: int, part: Array | None) -> Array | None:
    """The masks of lanes that wait for only some lanes of their warp; None if all wait for all active
    lanes."""
    masks = _members(run, number)
    if masks.size == 1 and int(masks.flat[0]) & EVERY == EVERY:
        return None
    masks = np.broadcast_to(masks, run.shape)
    there = warps.pack(run.by_warp(run.full(run.alive)))  # (B, W, 1)
    short = ((there & ~run.by_warp(masks.astype(np.uint32))) != 0).reshape(run.shape) & run.full(part)
    return masks.astype(np.uint32) if short.any() else None


def _exchange(run: Run, parts: dict[int, Array | None], lanes: Array | None, meeting: Meeting) -> None:
    if len(parts) == 1:
        number = next(iter(parts))
        given = [run.by_warp(v) for v in meeting.given(run.registers)]
        masks = run.by_warp(_members(run, number))
    else:
        given, masks = _gathered(run, parts)
    remaining = run.by_warp(run.full(lanes))
    results: list[Array] | None = None
    strays = _Strays(run.shape) if run.watches_lanes else None
    first = True
    while first or remaining.any():  # once, unless lanes of one warp came with different masks
        leader = remaining.argmax(axis=-1)[..., None]
        wide = np.broadcast_to(masks, remaining.shape)
        mask = np.take_along_axis(wide, leader, axis=-1)
        members = warps.unpack(mask[..., 0]) & run.by_warp(run.full(lanes))
        new = meeting.compute(*given, members)  # type: ignore[misc]
        mine = remaining & (members | (leader == warps.LANE))
        if strays is not None:
            named = warps.unpack(mask[..., 0])
            new = strays.look(meeting, given, new, mine, named, members, run.frame.undefined)
        if first and not (remaining & ~mine).any():
            results = new
            break
        results = (
            new if results is None else [np.where(mine, n, r) for n, r in zip(new, results, strict=True)]
        )
        remaining = remaining & ~mine
        first = False
    assert results is not None
    flat = [np.broadcast_to(r, (*r.shape[:-1], WARP)).reshape(r.shape[0], -1) for r in results]
    flat = [np.ascontiguousarray(np.broadcast_to(f, (f.shape[0], run.shape[1]))) for f in flat]
    for number, part in parts.items():
        run.lanes = part
        run.hand_out(run.program.segments[number].meeting.outputs, flat)
        for why, stray in strays.lanes.items() if strays is not None else ():
            if (here := stray.reshape(run.shape) & run.full(part)).any():
                for hear in run.on_stray:
                    hear(run.program.segments[number].first, here, why, run.chunk)


def _gathered(run: Run, parts: dict[int, Array | None]) -> tuple[list[Array], Array]:
    """Inputs and masks of lanes that came through different instructions."""
    merged: list[Array] = []
    masks = np.zeros(run.shape, np.uint32)
    for number, part in parts.items():
        here = run.full(part)
        meeting = run.program.segments[number].meeting
        given = meeting.given(run.registers)
        merged = [np.where(here, v, m) for v, m in zip(given, merged, strict=True)] if merged else given
        masks = np.where(here, _members(run, number), masks)
    return [run.by_warp(m) for m in merged], run.by_warp(masks)


class _Strays:
    """Lanes for which a warp operation has no defined result. `lanes` are arrays (B, W, 32) by reason."""

    def __init__(self, shape: tuple[int, int]):
        empty = np.zeros((shape[0], shape[1] // WARP, WARP), bool)
        self.lanes = {"unnamed": empty, "outside": empty, "inactive": empty}

    def look(
        self,
        meeting: Meeting,
        given: list[Array],
        results: list[Array],
        mine: Array,
        named: Array,
        members: Array,
        fill: int | None,
    ) -> list[Array]:
        """Note the strays among the lanes `mine`, and put `fill` for what a shuffle gives them."""
        self.lanes["unnamed"] = self.lanes["unnamed"] | mine & ~named
        if meeting.sources is None:
            return results
        shape = mine.shape
        source = np.broadcast_to(meeting.sources(*given), shape).astype(np.int64)
        outside = mine & ~np.take_along_axis(np.broadcast_to(named, shape), source, axis=-1)
        inactive = mine & ~outside & ~np.take_along_axis(np.broadcast_to(members, shape), source, axis=-1)
        self.lanes["outside"] = self.lanes["outside"] | outside
        self.lanes["inactive"] = self.lanes["inactive"] | inactive
        if fill is None:
            return results
        value = np.where(outside | inactive, results[0].dtype.type(fill), results[0])
        return [value, *results[1:]]
