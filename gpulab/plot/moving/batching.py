"""Continuous batching to scrub through: who is in which slot, whose tokens fill which block of the cache."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .figure import Figured, Moving
from .frames import Drawing, Frame, Frames

BLOCKS, STEPS = 256, 400
ACROSS = 16  # blocks in a row
BOX, ROW = 26.0, 30.0


@dataclass(frozen=True)
class Batching(Figured):
    """`run` is what `gpulab.serving.run` returned, `stays` who was in which slot (`gpulab.serving.stays`). A
    frame is a step of the engine. A request that gets a block takes the first that is free: which one it is
    makes no difference to the engine.

    Raises ValueError for more than 256 blocks, more than 400 steps, or nobody served.
    """

    run: Any
    stays: Sequence[Any]

    def __post_init__(self) -> None:
        machine, steps = self.run.machine, self.run.steps
        if not self.stays or not steps:
            raise ValueError("there is nothing to step through: nobody was served")
        if machine.blocks > BLOCKS or len(steps) > STEPS:
            raise ValueError(
                f"a cache of {machine.blocks:,} blocks and {len(steps):,} steps cannot be drawn; "
                f"take at most {BLOCKS} blocks and {STEPS} steps"
            )

    def figure(self) -> Moving:
        machine = self.run.machine
        drawing = Drawing(340)
        drawing.text(0, 14, "slots", "strong small")
        slots = []
        for slot in range(machine.slots):
            y = 24 + slot * ROW
            back = drawing.box(0, y, 330, ROW - 6, "idle", radius=3)
            pieces = [drawing.box(60 + 27 * i, y + 7, 25, ROW - 20, "hidden", radius=2) for i in range(10)]
            slots.append((back, pieces, drawing.text(8, y + 16, "", "small strong")))
        drawing.panel(ACROSS * BOX + 4)
        drawing.text(0, 14, f"cache, blocks of {machine.block_tokens} tokens", "strong small")
        blocks = []
        for block in range(machine.blocks):
            x, y = block % ACROSS * BOX, 24 + block // ACROSS * BOX
            box = drawing.box(x, y, BOX - 2, BOX - 2, "cell", f"block {block}")
            fill = drawing.box(x, y, BOX - 2, BOX - 2, "hidden")
            blocks.append((box, fill, drawing.text(x + BOX / 2 - 1, y + 16, "", "tiny middle")))
        taken: dict[int, list[int]] = {}
        frames = [self._frame(number, taken, slots, blocks) for number in range(len(self.run.steps))]
        legend = [
            ("box earlier", "tokens in the cache"), ("box write", "got a token in this step"),
            ("box reserved", "reserved, still empty"), ("box cell", "free"), ("box idle", "slot that waits"),
        ]  # fmt: skip
        name = f"{machine.slots} slots and {machine.blocks} blocks of cache serve {len(self.stays)} requests"
        return Frames(drawing, frames, name, "step", min(len(frames) - 1, 3), legend).figure()

    def _frame(self, number: int, taken: dict[int, list[int]], slots: list[Any], blocks: list[Any]) -> Frame:
        step, machine = self.run.steps[number], self.run.machine
        inside = [stay for stay in self.stays if stay.start <= step.start < stay.stop]
        numbers = {stay.request.number for stay in inside}
        for gone in [n for n in taken if n not in numbers]:
            del taken[gone]
        kinds: dict[int, str] = {}
        words: dict[int, str] = {}
        lives = {life.request.number: life for life in self.run.lives}
        for stay in sorted(inside, key=lambda stay: stay.start):
            request = stay.request
            made = bisect_right(lives[request.number].tokens, step.stop)
            tokens = request.prompt + made
            wanted = machine.blocks_for(request.prompt + request.most if machine.reserve else tokens)
            mine = taken.setdefault(request.number, [])
            used = {block for its in taken.values() for block in its}
            free = [block for block in range(machine.blocks) if block not in used]
            mine += free[: max(wanted - len(mine), 0)]
            gave = request.number in step.gave
            for place, block in enumerate(mine):
                box, _, text = blocks[block]
                full = min(max(tokens - place * machine.block_tokens, 0), machine.block_tokens)
                newest = gave and place == (tokens - 1) // machine.block_tokens
                kinds[box] = "write" if newest else "earlier" if full else "reserved"
                words[text] = str(request.number)
            back, pieces, text = slots[stay.slot]
            kinds[back], words[text] = "plain", f"no. {request.number}"
            share = made / max(request.output, 1)
            for i, piece in enumerate(pieces):
                kinds[piece] = "full" if i < round(share * 10) else "cell"
        waiting = sum(_waits(life, step.start) for life in self.run.lives)
        held = sum(len(its) for its in taken.values())
        got = len(step.gave)
        said = f"Step {number + 1}: {got} request{'' if got == 1 else 's'} got a token, {held} of "
        said += (
            f"{machine.blocks} blocks are held, {waiting} request{' waits' if waiting == 1 else 's wait'}."
        )
        if step.ended:
            said += f" Through: {', '.join(f'no. {n}' for n in step.ended)}."
        return Frame(said, kinds, words)


def _waits(life: Any, now: float) -> bool:
    return life.request.arrival <= now and (life.admitted is None or life.admitted > now)
