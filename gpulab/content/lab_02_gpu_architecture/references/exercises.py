"""Expected answers of lab 02's exercises; for the order of warps, the cycles that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes, WrongAnswer
from gpulab.content.lab_02_gpu_architecture.exercises import (
    JUMPS_BLOCK,
    bytes_under_way,
    first_whole,
    sm_limits,
)
from gpulab.simulator import hardware


def peak(sheet: dict[str, Any], dtype: str, advertised: float) -> list[Any] | None:
    unit = sheet["units"].get(dtype)
    if unit is None:
        return None
    rate = 2 * sheet["sms"] * unit["fma_per_sm"] * unit["clock"]
    return [rate, round(advertised / rate)]


@usual_slips(
    (
        lambda serial, target: [processors(serial, target)[0]] * 2,
        "The second number is for a problem that grows with the machine: there Gustafson's law holds.",
    ),
    (
        lambda serial, target: [processors(serial, target)[1]] * 2,
        "The first number is for a problem that stays as large as it is: there Amdahl's law holds.",
    ),
)
def processors(serial: float, target: float) -> list[int | None]:
    if target <= 1:
        return [1, 1]
    left = 1 / target - serial
    return [
        ceil((1 - serial) / left) if left > 0 else None,
        ceil((target - serial) / (1 - serial)) if serial < 1 else None,
    ]


def bound(product: dict[str, Any], gpu: dict[str, Any]) -> list[Any]:
    m, n, k = product["m"], product["n"], product["k"]
    flops = 2 * m * n * k
    moved = product["bytes"] * (m * k + k * n + m * n)
    peak = gpu["peak"][product["dtype"]]
    arithmetic, traffic = flops / peak, moved / gpu["dram_bandwidth"]
    return [flops / moved, "memory" if arithmetic < traffic else "compute", max(arithmetic, traffic)]


@usual_slips(
    (
        lambda gpu, bytes_per_lane: int(bytes_under_way(gpu) / (32 * bytes_per_lane)),
        "This is rounded down, and so many warps keep a little too few bytes under way. Round up.",
    ),
)
def warps_needed(gpu: dict[str, Any], bytes_per_lane: int) -> int:
    return ceil(bytes_under_way(gpu) / (32 * bytes_per_lane))


def break_even(job: dict[str, Any]) -> int | None:
    moved = 0 if job["resident"] else job["bytes_in"] + job["bytes_out"]
    gain = job["cpu_s"] - job["gpu_s"] - moved / job["link"]
    return first_whole(job["overhead_s"] / gain) if gain > 0 else None


def _taken(weights: float, machine: dict[str, Any], own: float) -> list[float] | None:
    """`own` bytes in the GPU's memory, or as near to that as the two memories allow."""
    room = machine["gpu_memory"], machine["cpu_memory"]
    if weights > sum(room):
        return None
    own = min(max(own, weights - room[1], 0.0), room[0], weights)
    return [own, max(own / machine["gpu_bandwidth"], (weights - own) / machine["link"])]


def _balanced(weights: float, machine: dict[str, Any]) -> list[float] | None:
    together = machine["gpu_bandwidth"] + machine["link"]
    return _taken(weights, machine, weights * machine["gpu_bandwidth"] / together)


@usual_slips(
    (
        lambda weights, machine: _taken(weights, machine, weights),
        "This fills the GPU's memory first. While the GPU reads it, the link could bring a part as well.",
    ),
    (
        lambda weights, machine: _balanced(weights, machine | {"cpu_memory": weights}),
        "This leaves more to the CPU's memory than it can hold.",
    ),
)
def split(weights: float, machine: dict[str, Any]) -> list[float] | None:
    return _balanced(weights, machine)


def cheapest(model: dict[str, Any], offers: list[dict[str, Any]]) -> list[Any]:
    weights = model["parameters"] * model["bytes_per_parameter"]
    found = []
    for offer in offers:
        count = ceil(weights / (0.8 * offer["memory"]))
        step = max(
            weights / (count * offer["bandwidth"]),
            2 * model["parameters"] * model["batch"] / (count * offer["peak"]),
        )
        hours = count * step * 1e6 / model["batch"] / 3600
        found.append([offer["name"], count, hours * offer["price_per_hour"], hours * offer["watts"] / 1000])
    return min(found, key=lambda each: each[2])


def _without_steps(sm: dict[str, Any], threads: int, registers: int, shared: int) -> int:
    limits = [32 * sm["warps"] // threads, sm["blocks"], sm["registers"] // (registers * threads)]
    return min([*limits, sm["shared"] // shared] if shared else limits)


@usual_slips(
    (
        _without_steps,
        "Nothing is rounded up. Threads take whole warps, and registers and shared memory come in steps.",
    ),
)
def active_blocks(sm: dict[str, Any], threads: int, registers: int, shared: int) -> int:
    capability = next(cap for cap in hardware.TABLE.values() if sm_limits(cap) == sm)
    return hardware.occupancy(capability, threads, registers, shared).active_blocks


def issue(order: Sequence[int], programs: Sequence[Sequence[int]]) -> dict[str, float]:
    """Issues in that order, one instruction a cycle; each waits until its warp is ready."""
    ready = [0] * len(programs)
    done = [0] * len(programs)
    cycle = 0
    for place, warp in enumerate(order):
        if type(warp) is not int or not 0 <= warp < len(programs):
            raise WrongAnswer(f"at place {place} it has {warp!r}; warps are 0 … {len(programs) - 1}.")
        if done[warp] == len(programs[warp]):
            raise WrongAnswer(f"at place {place} warp {warp} has no instruction left.")
        cycle = max(cycle, ready[warp])
        ready[warp] = cycle + programs[warp][done[warp]]
        done[warp] += 1
        cycle += 1
    for warp, program in enumerate(programs):
        if done[warp] < len(program):
            raise WrongAnswer(f"warp {warp} issues {done[warp]} of its {len(program)} instructions.")
    bound = max(sum(map(len, programs)), *map(sum, programs))
    return {"cycles": max(ready), "slowdown": max(ready) / bound}


def jumps(inputs: Mapping[str, np.ndarray], sizes: Sizes) -> dict[str, np.ndarray]:
    a = inputs["a"]
    rows, cols = a.shape
    steps = np.abs(np.diff(a, axis=1))
    out = np.zeros((rows, JUMPS_BLOCK))
    for t in range(min(JUMPS_BLOCK, max(0, cols - 1))):
        out[:, t] = steps[:, t::JUMPS_BLOCK].max(axis=1)
    return {"out": out}


REFERENCES: dict[str, Callable[..., Any]] = {
    "arch.peak": peak,
    "arch.bound": bound,
    "arch.warps_needed": warps_needed,
    "arch.processors": processors,
    "arch.break_even": break_even,
    "arch.split": split,
    "arch.cheapest": cheapest,
    "arch.active_blocks": active_blocks,
    "arch.issue": issue,
    "arch.jumps": jumps,
}
