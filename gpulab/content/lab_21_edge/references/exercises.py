"""What lab 21's exercises should answer, and how long a placement takes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes, WrongAnswer
from gpulab.content.lab_21_edge.exercises import choices, ways


def launch(api: str, threads: list[int], block: list[int], most: int) -> list[Any] | None:
    if block[0] * block[1] * block[2] > most:
        return None
    groups = [-(-n // b) for n, b in zip(threads, block, strict=True)]
    if api not in ("OpenCL", "SYCL"):
        return [groups, block]
    items = [g * b for g, b in zip(groups, block, strict=True)]
    return [items, block] if api == "OpenCL" else [items[::-1], block[::-1]]


def plan(
    model: dict[str, Any],
    device: dict[str, Any],
    need: dict[str, Any],
    formats: Sequence[Any],
    caches: Sequence[Any],
) -> list[Any] | None:
    found = choices(model, device, need, formats, caches)
    return list(found[0][1:]) if found else None


@usual_slips(
    (
        lambda modes, period, idle, sleep, battery: energy(modes, period, idle, [sleep[0], 0.0], battery),
        "Going to sleep and waking up costs energy as well: the second number of `sleep`, once a period.",
    ),
    (
        lambda modes, period, idle, sleep, battery: _with_late_modes(modes, period, idle, sleep, battery),
        "This mode takes longer than a period, so it does not keep up. Leave such modes out.",
    ),
)
def energy(
    modes: Sequence[Any], period: float, idle: float, sleep: Sequence[float], battery: float
) -> list[Any]:
    joules, mode, how = ways(modes, period, idle, sleep)[0]
    return [mode, how, joules, battery * period / joules]


@usual_slips(
    (
        lambda arrivals, times, limit: _played(arrivals, times, limit, oldest=True),
        "This keeps the older frame and drops the new one. The new one takes the place of the frame "
        "that waits.",
    ),
)
def deadline(arrivals: Sequence[int], times: Sequence[int], limit: int) -> list[int]:
    return _played(arrivals, times, limit)


def _played(arrivals: Sequence[int], times: Sequence[int], limit: int, oldest: bool = False) -> list[int]:
    """How the frames went; with `oldest`, a frame that waits keeps its place."""
    ages: list[int] = []
    free, dropped = 0, 0
    waiting: int | None = None

    def start(frame: int, at: int) -> int:
        ages.append(at + times[frame] - arrivals[frame])
        return at + times[frame]

    for frame, at in enumerate(arrivals):
        if waiting is not None and free <= at:
            free, waiting = start(waiting, free), None
        if free <= at:
            free = start(frame, at)
        else:
            dropped += waiting is not None
            waiting = waiting if oldest and waiting is not None else frame
    if waiting is not None:
        start(waiting, free)
    late = sum(age > limit for age in ages)
    return [len(ages) - late, late, dropped, max(ages)]


def matmul(
    a: list[list[int]],
    a_scale: float,
    a_zero: int,
    b: list[list[int]],
    b_scale: float,
    b_zero: int,
    c_scale: float,
    c_zero: int,
) -> list[list[int]]:
    """ONNX's QLinearMatMul, with the factor in float64."""
    factor = a_scale * b_scale / c_scale
    columns = list(zip(*b, strict=True))
    return [
        [min(255, max(0, c_zero + round(factor * _dot(row, column, a_zero, b_zero)))) for column in columns]
        for row in a
    ]


def _dot(row: Sequence[int], column: Sequence[int], a_zero: int, b_zero: int) -> int:
    return sum((x - a_zero) * (y - b_zero) for x, y in zip(row, column, strict=True))


# ---------------------------------------------------------------- pruned and packed


def _codes(packed: np.ndarray, name: str, rows: int, units: int) -> np.ndarray:
    """Two codes a byte, the even row in its low half; as numbers from −8 to 7."""
    if packed.dtype != np.uint8 or packed.shape != (rows // 2, units):
        raise WrongAnswer(
            f"`{name}` is {packed.dtype} of shape {packed.shape}; two codes a byte for {rows} rows and "
            f"{units} units are uint8 of shape {(rows // 2, units)}."
        )
    both = np.stack([packed & 15, packed >> 4], axis=1)
    return both.reshape(rows, units).astype(np.float64) - 8


def _scales(artefact: dict[str, np.ndarray], name: str, count: int) -> np.ndarray:
    if artefact[name].dtype != np.float16 or artefact[name].shape != (count,):
        raise WrongAnswer(
            f"`{name}` is {artefact[name].dtype} of shape {artefact[name].shape}; it is read as float16 "
            f"of shape ({count},)."
        )
    return artefact[name].astype(np.float64)


PARTS = ("units", "scales_in", "scales_out", "codes_in", "codes_out")


def unpack(artefact: dict[str, np.ndarray], inputs: int, outputs: int, hidden: int) -> np.ndarray:
    """The kept units' columns. Raises WrongAnswer."""
    if missing := [name for name in PARTS if name not in artefact]:
        raise WrongAnswer(f"the dictionary has no {' and no '.join(f'`{name}`' for name in missing)}.")
    units = artefact["units"]
    if units.ndim != 1 or units.dtype.kind not in "iu" or not len(units):
        raise WrongAnswer("`units` must be one row of whole numbers, the units that are kept, at least one.")
    if len(set(units.tolist())) < len(units) or units.min() < 0 or units.max() >= hidden:
        raise WrongAnswer(f"`units` must be different numbers from 0 to {hidden - 1}.")
    coming = _codes(artefact["codes_in"], "codes_in", inputs, len(units))
    away = _codes(artefact["codes_out"], "codes_out", outputs, len(units))
    return np.vstack(
        [
            coming * _scales(artefact, "scales_in", len(units)),
            away * _scales(artefact, "scales_out", outputs)[:, None],
        ]
    )


def _follows(name: str, read: np.ndarray, model: np.ndarray, units: np.ndarray) -> None:
    """Refuses weights that do not go the way of the model's. Raises WrongAnswer.

    The cosine of each unit's weights with the model's, weighted by the norm of the model's: 1 at best, and
    the same if a unit's scale is moved from one side of the ReLU to the other.
    """
    norms = np.linalg.norm(read, axis=0)
    along = np.divide((read * model).sum(0), norms, out=np.zeros_like(norms), where=norms > 0)
    if along.sum() >= 0.5 * np.linalg.norm(model, axis=0).sum():
        return
    worst = int((np.linalg.norm(model, axis=0) - along).argmax())
    raise WrongAnswer(
        f"`{name}` is not read as the model's weights: rows 0 and 1 of column {worst}, unit {units[worst]}, "
        f"are {read[0, worst]:.2f} and {read[1, worst]:.2f}, and in the model {model[0, worst]:.2f} and "
        f"{model[1, worst]:.2f}. Read your own bytes back: which half is which row, what is code 8, which "
        "unit's scale is it?"
    )


def through(columns: np.ndarray, x: np.ndarray, inputs: int) -> np.ndarray:
    """The network's outputs, a row for each row of x."""
    return np.maximum(x @ columns[:inputs], 0) @ columns[inputs:].T


def in_four_bits(columns: np.ndarray, inputs: int) -> np.ndarray:
    """Rounded to nearest: a scale for each unit's incoming weights, and one for each output's."""
    parts = []
    for part, axis in ((columns[:inputs], 0), (columns[inputs:], 1)):
        scale = np.abs(part).max(axis, keepdims=True) / 7
        scale = np.where(scale == 0, 1, scale).astype(np.float16).astype(np.float64)
        parts.append(scale * np.clip(np.round(part / scale), -8, 7))
    return np.vstack(parts)


def compress(
    artefact: dict[str, np.ndarray],
    given: dict[str, np.ndarray],
    held_out: dict[str, np.ndarray],
    sizes: Sizes,
) -> dict[str, float]:
    inputs, hidden, outputs = (int(sizes[name]) for name in ("inputs", "hidden", "outputs"))
    model, x = given["model"].astype(np.float64), held_out["fresh"].astype(np.float64)
    columns, units = unpack(artefact, inputs, outputs, hidden), artefact["units"]
    for name, rows in (("codes_in", slice(inputs)), ("codes_out", slice(inputs, None))):
        _follows(name, columns[rows], model[rows][:, units], units)
    right = through(model, x, inputs)

    def off(columns: np.ndarray) -> float:
        return float(np.sqrt(np.mean((through(columns, x, inputs) - right) ** 2)))

    return {"error": off(columns) / off(in_four_bits(model, inputs))}


# ---------------------------------------------------------------- placement


def time_of(sides: Sequence[int], layers: Sequence[Sequence[int]], first: int) -> int:
    """µs of a chain whose layer i runs on the GPU where sides[i] is 1; it begins and ends on the CPU."""
    total, side, send = 0, 0, first
    for here, (cpu, gpu, _, after) in zip(sides, layers, strict=True):
        total += (gpu if here else cpu) + (send if here != side else 0)
        side, send = here, after
    return total + (send if side else 0)


def least(layers: Sequence[Sequence[int]], first: int, memory: int) -> float:
    """The least time of all placements that fit: of the same side and memory only the fastest goes on."""
    reached: dict[tuple[int, int], float] = {(0, 0): 0}
    send = first
    for cpu, gpu, size, after in layers:
        further: dict[tuple[int, int], float] = {}
        for (side, used), time in reached.items():
            for here, spent in ((0, cpu), (1, gpu)):
                key = here, used + size * here
                if key[1] <= memory:
                    new = time + spent + (send if here != side else 0)
                    further[key] = min(further.get(key, inf), new)
        reached, send = further, after
    return min(time + (send if side else 0) for (side, _), time in reached.items())


def place(answer: Any, layers: Sequence[Sequence[int]], first: int, memory: int) -> dict[str, float]:
    if not isinstance(answer, list | tuple) or len(answer) != len(layers):
        raise WrongAnswer(f"it must be a list of {len(layers)} sides, one for each layer.")
    for number, side in enumerate(answer):
        if type(side) not in (int, bool) or side not in (0, 1):
            raise WrongAnswer(f"layer {number} is on side {side!r}; 0 is the CPU and 1 the GPU.")
    used = sum(layer[2] for side, layer in zip(answer, layers, strict=True) if side)
    if used > memory:
        raise WrongAnswer(f"the GPU's layers need {used} MB, and it has {memory}.")
    return {"share": round(time_of(answer, layers, first) / least(layers, first, memory), 6)}


# ---------------------------------------------------------------- learning where the data is


def _with_late_modes(
    modes: Sequence[Any], period: float, idle: float, sleep: Sequence[float], battery: float
) -> list[Any]:
    found = []
    for name, watts, seconds in modes:
        rest = max(0.0, period - seconds)
        found += [(watts * seconds + idle * rest, name, "idle")]
        found += [(watts * seconds + sleep[0] * rest + sleep[1], name, "sleep")]
    joules, mode, how = min(found)
    return [mode, how, joules, battery * period / joules]


def _sent_to_those_that_answer(weights: list[float], replies: Sequence[Any], bits: int) -> list[Any]:
    new, _, back = federated(weights, replies, bits)
    return [new, 4 * len(weights) * sum(reply is not None for reply in replies), back]


@usual_slips(
    (
        _sent_to_those_that_answer,
        "The server sends its weights to every device, because it cannot know which of them will answer.",
    ),
)
def federated(weights: list[float], replies: Sequence[Any], bits: int) -> list[Any]:
    heard = [reply for reply in replies if reply is not None]
    samples = sum(count for count, _ in heard)
    new = list(weights)
    if samples:
        new = [sum(count * theirs[i] for count, theirs in heard) / samples for i in range(len(weights))]
    return [new, 4 * len(weights) * len(replies), len(heard) * (-(-len(weights) * bits // 8))]


REFERENCES = {
    "edge.launch": launch,
    "edge.plan": plan,
    "edge.energy": energy,
    "edge.deadline": deadline,
    "edge.matmul": matmul,
    "edge.compress": compress,
    "edge.place": place,
    "edge.federated": federated,
}
