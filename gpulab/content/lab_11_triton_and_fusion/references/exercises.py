"""Expected results of lab 11's exercises, in float64, and what plans cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf, pi, sqrt
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes, WrongAnswer
from gpulab.content.lab_11_triton_and_fusion.exercises import EPSILON, FEWEST, GRAPHS, panels

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]
_erf = np.vectorize(erf, otypes=[float])


@usual_slips(
    (
        lambda inputs, sizes: momentum(inputs, sizes) | {"p": inputs["p"] - 0.125 * inputs["m"]},
        "The same happens if the weight moves by the old momentum. Use the new one.",
    ),
)
def momentum(inputs: Arrays, sizes: Sizes) -> Expected:
    m = 0.75 * inputs["m"] + inputs["g"]
    return {"m": m, "p": inputs["p"] - 0.125 * m}


def _softmax(x: np.ndarray, axis: int) -> Expected:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return {"out": powers / powers.sum(axis=axis, keepdims=True)}


def layer_norm(inputs: Arrays, sizes: Sizes) -> Expected:
    centred = inputs["x"] - inputs["x"].mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    return {"out": centred / np.sqrt(variance + EPSILON) * inputs["weight"] + inputs["bias"]}


def uniform(seed: int, count: int) -> np.ndarray:
    """What ``tl.rand(seed, i)`` gives for i below `count`: the first word of Philox 4x32 with ten rounds, of
    the counter (i, 0, 0, 0) under the key `seed`, between 0 and 1 in float32.

    Philox: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
    """
    low, word = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b, c, d = (np.arange(count, dtype=np.uint64) * (i == 0) for i in range(4))
    keys = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for turn in range(10):
        first, second = (
            np.uint64((key + turn * step) & 0xFFFFFFFF)
            for key, step in zip(keys, (0x9E3779B9, 0xBB67AE85), strict=True)
        )
        left, right = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (right >> word) ^ b ^ first, right & low, (left >> word) ^ d ^ second, left & low
    signed = a.astype(np.uint32).view(np.int32)
    return np.where(signed < 0, -1 - signed, signed).astype(np.float32) * np.float32(4.6566127342e-10)


def _kept(inputs: Arrays, sizes: Sizes) -> np.ndarray:
    """Which elements dropout keeps, with the factor that makes up for the others."""
    x = inputs["x"]
    return (uniform(int(sizes["seed"]), x.size).reshape(x.shape) >= 0.25) / 0.75


def gelu_dropout(inputs: Arrays, sizes: Sizes) -> Expected:
    z = inputs["x"] + inputs["bias"]
    return {"out": 0.5 * z * (1 + _erf(z / sqrt(2))) * _kept(inputs, sizes)}


def gelu_dropout_back(inputs: Arrays, sizes: Sizes) -> Expected:
    z = inputs["x"] + inputs["bias"]
    slope = 0.5 * (1 + _erf(z / sqrt(2))) + z * np.exp(-z * z / 2) / sqrt(2 * pi)
    return {"out": inputs["grad"] * slope * _kept(inputs, sizes)}


@usual_slips(
    (
        lambda inputs, sizes: {"out": np.maximum(inputs["x"] @ inputs["w"], 0) + inputs["bias"]},
        "The same happens if the bias is added after the ReLU. Add it before.",
    ),
    (
        lambda inputs, sizes: {"out": np.maximum(inputs["x"] @ inputs["w"], 0)},
        "The same happens if the bias is left out.",
    ),
    (
        lambda inputs, sizes: {"out": inputs["x"] @ inputs["w"] + inputs["bias"]},
        "The same happens if the ReLU is left out.",
    ),
)
def linear(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"out": np.maximum(inputs["x"] @ inputs["w"] + inputs["bias"], 0)}


def order(answer: Any, tiles_m: int, tiles_n: int, wave: int) -> dict[str, float]:
    """Panels that an order of tiles reads."""
    visits = [(int(m), int(n)) for m, n in answer]
    for program, (m, n) in enumerate(visits):
        if not (0 <= m < tiles_m and 0 <= n < tiles_n):
            raise WrongAnswer(
                f"program {program} computes tile ({m}, {n}), which is not one of the {tiles_m} × {tiles_n}"
            )
    seen: dict[tuple[int, int], int] = {}
    for program, tile in enumerate(visits):
        if tile in seen:
            raise WrongAnswer(f"programs {seen[tile]} and {program} both compute tile {tile}")
        seen[tile] = program
    for m in range(tiles_m):
        for n in range(tiles_n):
            if (m, n) not in seen:
                raise WrongAnswer(
                    f"no program computes tile ({m}, {n}); {len(seen)} of {tiles_m * tiles_n} are computed"
                )
    return {"panels": panels(visits, wave)}


def fuse(answer: Any, operations: list[Any], outputs: list[str]) -> dict[str, float]:
    """What a grouping of operations into kernels costs, over the fewest that any legal one costs."""
    moved, launches = cost(answer, operations, outputs)
    computed = [name for name, _, _, _ in operations]
    graph = next(name for name, (known, _) in GRAPHS.items() if [o[0] for o in known] == computed)
    fewest_bytes, fewest_launches = FEWEST[graph]
    return {"bytes over fewest": moved / fewest_bytes, "launches over fewest": launches / fewest_launches}


def cost(answer: Any, operations: list[Any], outputs: list[str]) -> tuple[int, int]:
    """Bytes and launches of a grouping of operations into kernels; refuses one that no kernels could do."""
    kind = {name: what for name, what, _, _ in operations}
    inputs = {name: needs for name, _, needs, _ in operations}
    size = {name: moved for name, _, _, moved in operations}
    groups = [list(group) for group in answer]
    where: dict[str, int] = {}
    for number, group in enumerate(groups):
        _refuse(group, number, kind, inputs, where)
    for name in kind:
        if kind[name] != "input" and name not in where:
            raise WrongAnswer(f"no kernel computes {name!r}")
    moved = 0
    for number, group in enumerate(groups):
        read = {need for name in group for need in inputs[name] if where.get(need) != number}
        written = {
            name
            for name in group
            if name in outputs or any(name in inputs[o] and where[o] != number for o in where)
        }
        moved += sum(size[name] for name in read) + sum(size[name] for name in written)
    return moved, len(groups)


def _refuse(
    group: list[str],
    number: int,
    kind: Mapping[str, str],
    inputs: Mapping[str, list[str]],
    where: dict[str, int],
) -> None:
    """Places the operations of one kernel; raises where it cannot be one kernel, or not yet."""
    if not group:
        raise WrongAnswer(f"kernel {number} computes nothing")
    for name in group:
        if not isinstance(name, str) or kind.get(name, "input") == "input":
            raise WrongAnswer(
                f"kernel {number} is to compute {name!r}, which is no operation of this program"
            )
        if name in where:
            raise WrongAnswer(f"{name!r} is computed twice, in kernels {where[name]} and {number}")
        for need in inputs[name]:
            if kind[need] != "input" and need not in where:
                raise WrongAnswer(f"{name!r}, in kernel {number}, needs {need!r}, which is not computed yet")
            if where.get(need) != number:
                continue
            if kind[need] == "columns":
                raise WrongAnswer(
                    f"{name!r} uses {need!r} in the same kernel; a sum over columns is complete only after "
                    "all programs, so at the end of the launch"
                )
            if kind[name] == "matmul":
                raise WrongAnswer(
                    f"the product {name!r} is in one kernel with its input {need!r}; other programs need "
                    "that input, too, so it must be in memory before"
                )
        where[name] = number
    kinds = [kind[name] for name in group]
    if kinds.count("matmul") > 1:
        raise WrongAnswer(f"kernel {number} has two products; each needs a loop of its own")
    if "matmul" in kinds and "rows" in kinds:
        raise WrongAnswer(
            f"kernel {number} has a product and an operation on whole rows; a tile of a product holds a part "
            "of each row"
        )


REFERENCES: dict[str, Callable[..., Any]] = {
    "triton.momentum": momentum,
    "triton.softmax": lambda inputs, sizes: _softmax(inputs["x"], 1),
    "triton.softmax_columns": lambda inputs, sizes: _softmax(inputs["x"], 0),
    "triton.layer_norm": layer_norm,
    "triton.gelu_dropout": gelu_dropout,
    "triton.gelu_dropout_back": gelu_dropout_back,
    "triton.order": order,
    "triton.linear": linear,
    "triton.fuse": fuse,
}
