"""Expected results of lab 14's exercises, in float64, and what its packed matrices keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes, WrongAnswer
from gpulab.content.lab_14_compression_and_finetuning.exercises import PAIRS

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]


def _layer_by_layer(
    initial: list[list[float]], trained: list[list[float]], sparsity: float
) -> list[list[float]]:
    return [ticket([start], [end], sparsity)[0] for start, end in zip(initial, trained, strict=True)]


@usual_slips(
    (
        _layer_by_layer,
        "This removes the same share of each layer. Compare the weights of all layers with one another.",
    ),
    (
        lambda initial, trained, sparsity: ticket(trained, trained, sparsity),
        "These are the trained values. What stays must go back to its initial value.",
    ),
)
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
    """Unpacks what was packed, and says which share of the most magnitude of 2:4 it keeps."""
    if not isinstance(answer, list) or len(answer) != 2:
        raise WrongAnswer("it should be a list of two: the values and the metadata")
    values, metadata = answer
    for name, part in (("values", values), ("metadata", metadata)):
        if not isinstance(part, list) or len(part) != len(weights):
            raise WrongAnswer(f"{name} should be a list of {len(weights)} rows, as the weights are")
    kept = best = 0.0
    for row, dense in enumerate(weights):
        groups = [dense[i : i + 4] for i in range(0, len(dense), 4)]
        places = _unpacked(metadata[row], len(groups), row)
        if len(values[row]) != 2 * len(groups):
            raise WrongAnswer(
                f"row {row} has {len(values[row])} values; 2 of 4 for {len(groups)} groups are "
                f"{2 * len(groups)}"
            )
        for g, group in enumerate(groups):
            first, second = places[g]
            if first >= second:
                raise WrongAnswer(
                    f"group {g} of row {row}, counted from 0, has the indices {first} and {second}; the "
                    "first should be smaller"
                )
            pair = values[row][2 * g : 2 * g + 2]
            for k, place in enumerate((first, second)):
                if pair[k] != group[place]:
                    other = [group[i] for i in places[g ^ 1]] == pair
                    raise WrongAnswer(
                        f"value {2 * g + k} of row {row} is {pair[k]!r}; by its index it stands for column "
                        f"{4 * g + place}, which is {group[place]!r}" + (EXCHANGED if other else "")
                    )
            kept += abs(group[first]) + abs(group[second])
            best += max(abs(group[i]) + abs(group[k]) for i, k in PAIRS)
    return {"magnitude": 1.0 if best == 0 else min(1.0, round(kept / best, 12))}


EXCHANGED = (
    ". With the indices of the other group in its byte it would be right: the even group's are the lower "
    "four bits"
)


def _unpacked(metadata: list[Any], groups: int, row: int) -> list[tuple[int, int]]:
    """The two indices of each group, from bytes that hold two groups each."""
    if len(metadata) != groups // 2:
        raise WrongAnswer(
            f"row {row} has {len(metadata)} bytes of metadata; {groups} groups need {groups // 2}, two "
            "groups in a byte: the even one's four bits below, the odd one's above"
        )
    for byte in metadata:
        if isinstance(byte, bool) or not isinstance(byte, int) or not 0 <= byte < 256:
            raise WrongAnswer(f"row {row} has {byte!r} among its metadata; that is no whole number of 8 bits")
    nibbles = [byte >> shift & 15 for byte in metadata for shift in (0, 4)]
    return [(nibble & 3, nibble >> 2) for nibble in nibbles]


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


@usual_slips(
    (
        lambda inputs, sizes: serve({**inputs, "adapter": np.zeros_like(inputs["adapter"])}, sizes),
        "The same happens if all rows use adapter 0. `adapter` names the one that each row uses.",
    ),
    (
        lambda inputs, sizes: {"out": inputs["x"] @ inputs["weight"].T},
        "The same happens if no adapter is used.",
    ),
)
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
