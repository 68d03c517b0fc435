"""Expected results of lab 14's exercises, in float64, and what its packed matrices cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf
from typing import Any

import numpy as np

from gpulab.exercises.lab_14_compression_and_finetuning import PAIRS
from gpulab.exercises.spec import Sizes, WrongAnswer

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]


def ticket(initial: list[list[float]], trained: list[list[float]], sparsity: float) -> list[list[float]]:
    """One-shot pruning, rewound (J. Frankle, M. Carbin, "The Lottery Ticket Hypothesis", 2019)."""
    magnitudes = np.abs(np.concatenate([np.asarray(layer) for layer in trained]))
    gone = np.argsort(magnitudes, kind="stable")[: round(sparsity * magnitudes.size)]
    kept = np.concatenate([np.asarray(layer, dtype=float) for layer in initial])
    kept[gone] = 0.0
    ends = np.cumsum([len(layer) for layer in initial])[:-1]
    return [part.tolist() for part in np.split(kept, ends)]


def amounts(sparsities: list[float]) -> list[float]:
    found, before = [], 0.0
    for now in sparsities:
        found.append((now - before) / (1 - before) if before < 1 else 0.0)
        before = now
    return found


def shrink(inputs: Arrays, sizes: Sizes) -> Expected:
    up, down = inputs["up"], inputs["down"]
    scores = np.linalg.norm(up, axis=1) * np.linalg.norm(down, axis=0)
    stay = np.sort(np.argsort(-scores)[: int(sizes["count"])])
    inner = inputs["x"] @ up[stay].T + inputs["up_bias"][stay]
    gelu = 0.5 * inner * (1 + np.vectorize(erf)(inner / np.sqrt(2)))
    return {"out": gelu @ down[:, stay].T + inputs["down_bias"]}


def pack24(answer: Any, weights: list[list[float]]) -> dict[str, float]:
    """Unpacks what was packed, and counts its bytes and the magnitude that it keeps."""
    if not isinstance(answer, list) or len(answer) != 2:
        raise WrongAnswer("it should be a list of two: the values and the metadata")
    values, metadata = answer
    for name, part in (("values", values), ("metadata", metadata)):
        if not isinstance(part, list) or len(part) != len(weights):
            raise WrongAnswer(f"{name} should be a list of {len(weights)} rows, as the weights are")
    dense = np.array(weights)
    groups = dense.shape[1] // 4
    widths = {len(row) for row in metadata}
    if len(widths) != 1 or not widths <= {groups // 2, groups, 2 * groups}:
        raise WrongAnswer(
            f"a row of metadata has {' or '.join(map(str, sorted(widths)))} bytes; {groups} groups need "
            f"{groups // 2}, with two groups in a byte ({groups} or {2 * groups} with less in each)"
        )
    width = widths.pop()
    kept = best = 0.0
    for row in range(len(weights)):
        places = [place for byte in metadata[row] for place in _places(byte, 4 * groups // width, row)]
        if len(values[row]) != 2 * groups:
            raise WrongAnswer(
                f"row {row} has {len(values[row])} values; 2 of 4 for {groups} groups are {2 * groups}"
            )
        for g in range(groups):
            group = dense[row, 4 * g : 4 * g + 4]
            first, second = places[2 * g : 2 * g + 2]
            if first >= second:
                raise WrongAnswer(
                    f"group {g} of row {row}, counted from 0, has the indices {first} and {second}; the "
                    "first should be smaller"
                )
            for k, place in ((2 * g, first), (2 * g + 1, second)):
                if values[row][k] != group[place]:
                    raise WrongAnswer(
                        f"value {k} of row {row} is {values[row][k]!r}; by its index it stands for column "
                        f"{4 * g + place}, which is {group[place]!r}"
                    )
            sizes = np.abs(group)
            kept += sizes[first] + sizes[second]
            best += max(sizes[i] + sizes[k] for i, k in PAIRS)
    bytes_packed = len(weights) * (2 * 2 * groups + width)
    return {
        "magnitude": 1.0 if best == 0 else min(1.0, round(kept / best, 12)),
        "bytes": 4 * bytes_packed / dense.size,
    }


def _places(byte: Any, bits: int, row: int) -> list[int]:
    """The indices in a byte of metadata that uses so many bits."""
    if isinstance(byte, bool) or not isinstance(byte, int) or not 0 <= byte < 1 << bits:
        raise WrongAnswer(
            f"row {row} has {byte!r} among its metadata; that is no whole number of {bits} bits"
        )
    return [byte >> shift & 3 for shift in range(0, bits, 2)]


def sparse24(inputs: Arrays, sizes: Sizes) -> Expected:
    rows, columns = int(sizes["rows"]), int(sizes["columns"])
    nibbles = np.stack([inputs["meta"] & 15, inputs["meta"] >> 4], -1).reshape(rows, columns // 4)
    places = np.stack([nibbles & 3, nibbles >> 2], -1)
    dense = np.zeros((rows, columns // 4, 4))
    values = inputs["values"].astype(np.float64).reshape(rows, columns // 4, 2)
    np.put_along_axis(dense, places.astype(np.int64), values, -1)
    return {"out": dense.reshape(rows, columns) @ inputs["x"]}


def distill(inputs: Arrays, sizes: Sizes) -> Expected:
    """G. Hinton et al., "Distilling the Knowledge in a Neural Network", 2015, section 2."""
    temperature, alpha = float(sizes["temperature"]), float(sizes["alpha"])
    hard = -_log_softmax(inputs["student"])[np.arange(len(inputs["labels"])), inputs["labels"]].mean()
    student, teacher = (_log_softmax(inputs[name] / temperature) for name in ("student", "teacher"))
    soft = (np.exp(teacher) * (teacher - student)).sum(-1).mean()
    return {"loss": np.asarray(alpha * hard + (1 - alpha) * temperature**2 * soft)}


def _log_softmax(x: np.ndarray) -> np.ndarray:
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def serve(inputs: Arrays, sizes: Sizes) -> Expected:
    a, b = (inputs[name][inputs["adapter"]] for name in ("a", "b"))
    down = np.einsum("nrd,nd->nr", a, inputs["x"])
    return {"out": inputs["x"] @ inputs["weight"].T + 2.0 * np.einsum("ndr,nr->nd", b, down)}


def merge(inputs: Arrays, sizes: Sizes) -> Expected:
    """S. Liu et al., "DoRA", 2024, with a length for each output, as Hugging Face's PEFT has it."""
    total = inputs["weight"] + 0.5 * inputs["b"] @ inputs["a"]
    return {"out": inputs["magnitude"][:, None] * total / np.linalg.norm(total, axis=1, keepdims=True)}


def workload(layers: int, width: int, rank: int, way: str) -> list[float]:
    model, adapters = 12 * width**2 * layers, 18 * width * rank * layers
    if way == "full":
        return [model, 16 * model, 6 * model]
    frozen = 2 * model if way == "LoRA" else model / 2 + model / 64 + 4 * model / (64 * 256)
    return [adapters, frozen + 16 * adapters, 4 * model + 6 * adapters]


REFERENCES: dict[str, Callable[..., Any]] = {
    "compress.ticket": ticket,
    "compress.amounts": amounts,
    "compress.shrink": shrink,
    "compress.pack24": pack24,
    "compress.sparse24": sparse24,
    "compress.distill": distill,
    "compress.serve": serve,
    "compress.merge": merge,
    "compress.workload": workload,
}
