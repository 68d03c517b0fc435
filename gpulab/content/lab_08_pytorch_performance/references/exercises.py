"""Expected results of lab 08's exercises, in float64, and what its plans cost."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes, WrongAnswer, grouped
from gpulab.content.lab_08_pytorch_performance.exercises import (
    BETAS,
    EPSILON,
    GPU_WORK,
    LARGE,
    NCU_BYTES,
    NCU_COLUMNS,
    NCU_TIMES,
    ROUND,
    ROUND_LARGE,
    SEGMENT,
    WEIGHT_DECAY,
    ClockedGPU,
    facts_of,
)

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]


def fold(inputs: Arrays, sizes: Sizes) -> Expected:
    centred = (inputs["x"] - inputs["mean"]) / inputs["std"]
    return {"out": centred * inputs["weight"] + inputs["bias"]}


def adamw_step(inputs: Arrays, sizes: Sizes) -> Expected:
    """Loshchilov, Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2."""
    given, (b1, b2), step, lr = grouped(inputs), BETAS, int(sizes["step"]), 0.01
    found: Expected = {}
    lists = zip(*(given[name] for name in ("params", "grads", "means", "squares")), strict=True)
    for i, (p, g, m, v) in enumerate(lists):
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g**2
        update = m / (1 - b1**step) / (np.sqrt(v / (1 - b2**step)) + EPSILON)
        found |= {f"params[{i}]": p - lr * (update + WEIGHT_DECAY * p)}
        found |= {f"means[{i}]": m, f"squares[{i}]": v}
    return found


def _each_by_its_own_length(inputs: Arrays, sizes: Sizes) -> Expected:
    grads = grouped(inputs)["grads"]
    return {
        f"grads[{i}]": g * min(1.0, 1.0 / (float(np.sqrt((g**2).sum())) + 1e-6)) for i, g in enumerate(grads)
    }


@usual_slips(
    (
        _each_by_its_own_length,
        "The same happens if each tensor is scaled by its own length. All gradients together are one vector, "
        "and its length decides for all of them.",
    ),
)
def clip(inputs: Arrays, sizes: Sizes) -> Expected:
    grads = grouped(inputs)["grads"]
    length = np.sqrt(sum(float((g**2).sum()) for g in grads))
    return {f"grads[{i}]": g * min(1.0, 1.0 / (length + 1e-6)) for i, g in enumerate(grads)}


def gradients(inputs: Arrays, sizes: Sizes) -> Expected:
    given = grouped(inputs)
    kept, h = [], given["x"]
    for w in given["weights"]:
        t = np.tanh(h @ w)
        kept.append((h, t))
        h = h + t
    slope = 2 * h / h.size
    slopes: list[np.ndarray] = []
    for i in reversed(range(len(kept))):
        h, t = kept[i]
        inner = slope * (1 - t**2)
        slopes.append(h.T @ inner)
        slope = slope + inner @ given["weights"][i].T
    return {f"weights[{i}].grad": found for i, found in enumerate(reversed(slopes))}


def segments(events: list[list[int]]) -> list[int]:
    """A segment is a list of [bytes, name of what lies there or None] in order of address."""
    reserved: list[list[list[Any]]] = []
    total = 0
    for name, size in events:
        if size == 0:
            _free(reserved, name)
            continue
        size = -(-size // ROUND) * ROUND
        free = [(b[0], i, k) for i, s in enumerate(reserved) for k, b in enumerate(s) if b[1] is None]
        fitting = min((f for f in free if f[0] >= size), default=None)
        if fitting is None:
            whole = SEGMENT if size < LARGE else -(-size // ROUND_LARGE) * ROUND_LARGE
            reserved.append([[whole, None]])
            total += whole
            fitting = (whole, len(reserved) - 1, 0)
        room, i, k = fitting
        reserved[i][k : k + 1] = [[size, name], [room - size, None]] if room > size else [[size, name]]
    return [len(reserved), total]


def _free(reserved: list[list[list[Any]]], name: int) -> None:
    for i, segment in enumerate(reserved):
        merged: list[list[Any]] = []
        for size, owner in segment:
            owner = None if owner == name else owner
            if owner is None and merged and merged[-1][1] is None:
                merged[-1][0] += size
            else:
                merged.append([size, owner])
        reserved[i] = merged


def place(offsets: Any, tensors: list[list[int]]) -> dict[str, float]:
    """The bytes up to the end of the last tensor, over the most that are alive at once."""
    if not isinstance(offsets, list) or len(offsets) != len(tensors):
        raise WrongAnswer(f"it should be a list of {len(tensors)} offsets")
    for i, offset in enumerate(offsets):
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            raise WrongAnswer(f"offset {i} is {offset!r}; an offset is a whole number of bytes from 0 on")
    for i, (size, first, last) in enumerate(tensors):
        for k, (other, begin, end) in enumerate(tensors[:i]):
            apart = offsets[i] >= offsets[k] + other or offsets[k] >= offsets[i] + size
            if first <= end and begin <= last and not apart:
                raise WrongAnswer(
                    f"tensors {k} and {i} share bytes from {max(offsets[i], offsets[k])} on, and both are "
                    f"alive at {max(first, begin)}"
                )
    if not tensors:
        return {"arena": 1.0}
    most = max(sum(s for s, a, b in tensors if a <= now <= b) for _, now, _ in tensors)
    return {"arena": max(o + t[0] for o, t in zip(offsets, tensors, strict=True)) / most}


def epoch(loads: list[int], step: int, workers: int, prefetch: int) -> int:
    loaded: list[int] = []
    handed: list[int] = []
    clock = 0
    for i, load in enumerate(loads):
        if workers:
            free = loaded[i - workers] if i >= workers else 0
            asked = handed[i - workers * prefetch] if i >= workers * prefetch else 0
            loaded.append(max(free, asked) + load)
        else:
            loaded.append(clock + load)
        handed.append(max(loaded[i], clock))
        clock = handed[i] + step
    return clock


def idle(trace: list[dict[str, Any]]) -> list[int]:
    spans = sorted((e["ts"], e["dur"]) for e in trace if e["ph"] == "X" and e["cat"] in GPU_WORK)
    gaps = []
    until = spans[0][0] if spans else 0
    for start, length in spans:
        gaps.append(max(start - until, 0))
        until = max(until, start + length)
    return [sum(gaps), max(gaps, default=0)]


def compiles(shapes: list[list[int]]) -> list[bool]:
    """The rules of PyTorch's "Dynamic Shapes": sizes that have differed are dynamic, 0 and 1 never."""
    sizes_of: list[set[int]] = [set() for _ in (shapes[0] if shapes else [])]  # of each axis, where compiled
    versions: list[list[int]] = []  # 0 for dynamic
    found = []
    for shape in shapes:
        served = any(
            all(n == size or (not size and n >= 2) for size, n in zip(version, shape, strict=True))
            for version in versions
        )
        found.append(not served)
        if not served:
            for sizes, n in zip(sizes_of, shape, strict=True):
                sizes.add(n)
            versions.append(
                [0 if len(sizes) > 1 and n >= 2 else n for sizes, n in zip(sizes_of, shape, strict=True)]
            )
    return found


def read_ncu(report: str) -> list[list[str | float]]:
    table = list(csv.reader(line for line in report.splitlines() if not line.startswith("==")))
    factors = dict(NCU_TIMES) | dict(NCU_BYTES) | {"": 1}
    found: list[list[str | float]] = []
    for row in table[2:]:
        ns, moved, requests, sectors = (
            float(row[at].replace(",", "")) * factors[table[1][at]] for at in map(table[0].index, NCU_COLUMNS)
        )
        name = row[table[0].index("Kernel Name")]
        found.append(
            [name, moved / ns, sectors / requests if requests else 0.0]
        )  # bytes per ns are 10⁹ per s
    return found


def _what_was_timed(found: Any, facts: Mapping[str, float]) -> str:
    """Half a sentence on what was timed, where the number tells."""
    for also, why in (
        (facts["warm"], "which is a call whose data the cache still holds. Flush the cache before each call"),
        (0.0, "which is the launch alone. Wait for the GPU before you read the clock"),
        (facts["cold"] + facts["flush"], "which includes the flush. Wait for it before you start the clock"),
    ):
        if type(found) in (int, float) and math.isclose(found, facts["launch"] + also, rel_tol=1e-6):
            return f": {found:g} is {facts['launch']:g} + {also:g}, {why}"
    if facts["hiccup"] > 1 and type(found) in (int, float) and found > facts["launch"] + facts["cold"]:
        return ". Some calls were disturbed by others on the machine; a mean follows these, a median does not"
    return ""


def benchmark(ask: Callable[..., Any], machine: int) -> dict[str, float]:
    """The learner times a GPU that stays on this side. Raises WrongAnswer."""
    gpu, facts = ClockedGPU(machine), facts_of(machine)
    truth = facts["launch"] + facts["cold"]
    found = ask(gpu.now, gpu.call, gpu.flush, gpu.synchronize)
    if type(found) not in (int, float) or not math.isclose(found, truth, rel_tol=1e-6):
        raise WrongAnswer(f"it finds {found} µs, should be {truth:g}{_what_was_timed(found, facts)}")
    return {}


REFERENCES: dict[str, Callable[..., Any]] = {
    "pytorch.fold": fold,
    "pytorch.adamw_step": adamw_step,
    "pytorch.clip": clip,
    "pytorch.compiles": compiles,
    "pytorch.read_ncu": read_ncu,
    "pytorch.segments": segments,
    "pytorch.place": place,
    "pytorch.gradients": gradients,
    "pytorch.epoch": epoch,
    "pytorch.idle": idle,
    "pytorch.benchmark": benchmark,
}
