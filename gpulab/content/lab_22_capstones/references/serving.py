"""Lab 22, project C: policies serve here, and are compared with ours. Not in the judge's sandbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpulab.content.lab_20_serving.references.engine import Ask, Data, served
from gpulab.content.lab_22_capstones.serving import SLO
from gpulab.subjects import serving
from gpulab.subjects.serving.requests import from_data

PIECE = 256  # tokens of a step, prompts and outputs together
SPARE = 60  # blocks that stay free for those who grow


def ours(state: serving.State) -> dict[str, Any]:
    """Short prompts first, those that are too late anyway last; blocks as tokens come."""
    machine, times = state.machine, state.machine.times
    assert isinstance(times, serving.Times) and SLO.ttft is not None
    rate, limit = times.peak / times.per_token, SLO.ttft

    def order(seen: serving.Seen) -> tuple[bool, int, int]:
        return not seen.made and state.now + seen.left / rate > seen.arrival + limit, seen.left, seen.number

    needs = {seen.number: machine.blocks_for(seen.tokens + max(1, seen.left)) for seen in state.running}
    free, preempt = machine.blocks - sum(needs.values()), list[int]()
    for seen in sorted(state.running, key=lambda seen: (not order(seen)[0], seen.tokens)):
        if free >= 0:
            break
        preempt.append(seen.number)
        free += needs[seen.number]
    running = [seen for seen in state.running if seen.number not in preempt]
    room = min(PIECE, machine.step_tokens or PIECE) - sum(seen.decodes for seen in running)
    prefill, admit = dict[int, int](), list[int]()
    for seen in sorted((seen for seen in running if seen.left), key=order):
        prefill[seen.number] = max(0, min(seen.left, room))
        room -= prefill[seen.number]
    for seen in sorted(state.waiting, key=order):
        blocks = machine.blocks_for(seen.left)
        if preempt or len(running) + len(admit) == machine.slots or room <= 0:
            break
        if blocks <= free - SPARE or not (running or admit):
            admit.append(seen.number)
            prefill[seen.number] = min(seen.left, room)
            room, free = room - prefill[seen.number], free - blocks
    return {"admit": admit, "preempt": preempt, "prefill": prefill}


def batch(ask: Ask, machine: Data, requests: Sequence[Data]) -> dict[str, float]:
    """The time in percent of our policy's."""
    run = served(ask, machine, requests)
    reference = serving.run(serving.Machine.from_data(machine), from_data(requests), ours)
    return {"time": round(100 * run.end / reference.end, 4)}


def serve(ask: Ask, machine: Data, requests: Sequence[Data]) -> dict[str, float]:
    """The requests that keep the SLO, in percent of those that do with our policy."""
    run = served(ask, machine, requests)
    reference = serving.run(serving.Machine.from_data(machine), from_data(requests), ours)
    kept = [sum(map(SLO.kept, each.lives)) for each in (run, reference)]
    return {"goodput": round(100 * kept[0] / max(1, kept[1]), 4)}


REFERENCES: dict[str, Callable[..., Any]] = {
    "serving_project.batch": batch,
    "serving_project.serve": serve,
}
