"""Lab 20, part A: expected answers, and the engine that asks policies. Not in the judge's sandbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import Any

from gpulab.checks.spec import WrongAnswer
from gpulab.subjects import serving
from gpulab.subjects.serving import metrics
from gpulab.subjects.serving.requests import from_data


def queue(rate: float, service: float, cv: float, limit: float) -> list[float | None]:
    """Pollaczek and Khinchine: W = ρ s (1 + cv²)/(2 (1 − ρ))."""
    load, spread = rate * service, 1 + cv**2
    room = limit - service
    best = 0.0 if room <= 0 else 2 * room / (service**2 * spread + 2 * room * service)
    if load >= 1:
        return [load, None, None, best]
    latency = service + load * service * spread / (2 * (1 - load))
    return [load, latency, rate * latency, best]


def measure(log: Sequence[Sequence[Any]], ttft: float, tpot: float) -> list[float | None]:
    due, tokens, failed = dict[int, int](), dict[int, list[int]](), set[int]()
    for number, event, time in log:
        if event == "due":
            due[number] = time
        elif event == "token":
            tokens.setdefault(number, []).append(time)
        elif event == "error":
            failed.add(number)
    first, each, kept = list[int](), list[float](), 0
    for number, start in due.items():
        if number in failed:
            continue
        times = sorted(tokens[number])
        first.append(times[0] - start)
        pace = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0.0
        if len(times) > 1:
            each.append(pace)
        kept += times[0] - start <= ttft and pace <= tpot
    seconds = (max(time for *_, time in log) - min(due.values())) / 1000
    return [
        _ranked(first, 50),
        _ranked(first, 99),
        _ranked(each, 99),
        sum(map(len, tokens.values())) / seconds,
        kept / seconds,
    ]


def _ranked(values: Sequence[float], percent: int) -> float | None:
    return sorted(values)[ceil(percent * len(values) / 100) - 1] if values else None


# ---------------------------------------------------------------- policies

Data = Mapping[str, Any]
Ask = Callable[..., Any]


def served(ask: Ask, machine: Data, requests: Sequence[Data]) -> serving.Run:
    """What a policy at the other end of a dialogue makes of a trace. Raises WrongAnswer."""

    def policy(tell: Callable[..., Any], machine: Data) -> None:
        def decide(decision: Any) -> dict[str, Any]:
            try:
                return dict(tell(decision))
            except serving.InvalidDecision as wrong:
                raise WrongAnswer(str(wrong)) from None

        ask(decide, machine)

    try:
        return serving.decided_by(policy, machine, from_data(requests))
    except serving.InvalidDecision as wrong:
        raise WrongAnswer(str(wrong)) from None


def admit(ask: Ask, machine: Data, requests: Sequence[Data]) -> dict[str, float]:
    """No request may overtake another; compared with first come, first served, of all that fit."""
    run = served(ask, machine, requests)
    _check_turns(run, requests)
    steps = len(run.steps)
    used = serving.Machine.from_data(machine)
    best = len(serving.run(used, from_data(requests), _reserving).steps)
    return {"steps": steps, "started": round(steps / best, 4)}


def _check_turns(run: serving.Run, requests: Sequence[Data]) -> None:
    """Raises WrongAnswer if a request starts before one that arrived earlier."""
    order = sorted(from_data(requests), key=lambda r: (r.arrival, r.number))
    started = {life.request.number: life.admitted for life in run.lives}
    for before, after in pairwise(order):
        first, second = started[before.number], started[after.number]
        if first is not None and second is not None and second < first:
            raise WrongAnswer(
                f"request {after.number} starts at time {second:g} and request {before.number}, which "
                f"arrived before it, only at {first:g}. A request must not overtake another"
            )


def _longest_gap(run: serving.Run) -> float:
    return max((gap for life in run.lives for gap in metrics.gaps(life)), default=0.0)


def chunk(ask: Ask, machine: Data, requests: Sequence[Data]) -> dict[str, float]:
    """Against prompts that go through whole; gaps in the time in which the weights are read."""
    run = served(ask, machine, requests)
    used = serving.Machine.from_data(machine)
    whole = serving.run(used, from_data(requests), _first_come)
    assert isinstance(used.times, serving.Times)
    read = used.times.weights / used.times.bandwidth
    return {"longest gap": round(_longest_gap(run) / read, 4), "time": round(run.end / whole.end, 4)}


def _first_come(state: serving.State) -> dict[str, Any]:
    return {"admit": [seen.number for seen in state.waiting[: state.free_slots]]}


def preempt(ask: Ask, machine: Data, requests: Sequence[Data]) -> dict[str, float]:
    """Against first come, first served, with blocks reserved for the longest outputs."""
    run = served(ask, machine, requests)
    careful = serving.run(serving.Machine.from_data(machine), from_data(requests), _reserving)
    urgent = [metrics.ttft(life) for life in run.lives if life.request.priority]
    twice, tokens = sum(life.recomputed for life in run.lives), sum(step.tokens for step in run.steps)
    share = _mean_latency(run) / _mean_latency(careful)
    return {
        "recomputed": round(100 * twice / tokens, 2),
        "time": round(share, 4),
        "urgent": round(max(urgent, default=0.0), 4),
    }


def _mean_latency(run: serving.Run) -> float:
    return sum(map(metrics.latency, run.lives)) / len(run.lives)


def _reserving(state: serving.State) -> dict[str, Any]:
    blocks_for, chosen = state.machine.blocks_for, []
    free = state.machine.blocks - sum(blocks_for(seen.prompt + seen.most) for seen in state.running)
    for seen in state.waiting[: state.free_slots]:
        free -= blocks_for(seen.prompt + seen.most)
        if free < 0:
            break
        chosen.append(seen.number)
    return {"admit": chosen}


# ---------------------------------------------------------------- prefixes


def prefix(prompts: Sequence[Sequence[int]], capacity: int, size: int) -> list[int]:
    cache: dict[tuple[int, ...], int] = {}
    found = []
    for number, prompt in enumerate(prompts):
        names = [tuple(prompt[: end + size]) for end in range(0, len(prompt) - size + 1, size)]
        hits = 0
        for name in names[: max(0, len(prompt) - 1) // size]:
            if name not in cache:
                break
            hits += 1
        found.append(hits)
        cache |= dict.fromkeys(names, number)
        while len(cache) > capacity:
            del cache[min(cache, key=lambda name: (cache[name], -len(name)))]
    return found


REFERENCES: dict[str, Callable[..., Any]] = {
    "serve.queue": queue,
    "serve.measure": measure,
    "serve.admit": admit,
    "serve.chunk": chunk,
    "serve.preempt": preempt,
    "serve.prefix": prefix,
}
