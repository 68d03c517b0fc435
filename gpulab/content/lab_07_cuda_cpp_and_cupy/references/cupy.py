"""Expected results of the exercises of lab 07, part B, and what carries its plans out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from gpulab.analysis.profile.engines import Operation, makespan, predecessors
from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes, WrongAnswer
from gpulab.content.lab_07_cuda_cpp_and_cupy.cupy import EPS, STAGES

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]

WORDS = {"in": "copy in", "kernel": "kernel", "out": "copy out"}


@usual_slips(
    (
        lambda inputs, sizes: {"out": _normalised(inputs)},
        "The same happens if negative results stay. The last step is max(…, 0).",
    ),
)
def normalise(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"out": np.maximum(_normalised(inputs), 0)}


def _normalised(inputs: Arrays) -> np.ndarray:
    x, mean, var, gamma, beta = (inputs[name] for name in ("x", "mean", "var", "gamma", "beta"))
    return (x - mean) / np.sqrt(var + EPS) * gamma + beta


def rms(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"out": np.sqrt(((inputs["x"] - inputs["y"]) ** 2).mean(axis=1))}


def pipeline(plan: Any, chunks: int, buffers: int) -> dict[str, float]:
    """Runs the plan on two copy engines and the SMs; all stages of all data take 1."""
    if not isinstance(plan, list) or not all(isinstance(each, dict) for each in plan):
        raise WrongAnswer("a plan is a list of dictionaries.")
    operations, places = [], {}
    for place, each in enumerate(plan):
        operation, key = _operation(place, each, chunks)
        if key in places:
            raise WrongAnswer(f"the {WORDS[key[0]]} of chunk {key[1]} is there twice.")
        operations.append(operation)
        places[key] = place
    missing = [(do, k) for k in range(chunks) for do in STAGES if (do, k) not in places]
    if missing:
        raise WrongAnswer(f"the {WORDS[missing[0][0]]} of chunk {missing[0][1]} is missing.")
    _check_order(predecessors(operations), places, chunks, buffers)
    return {"makespan": makespan(operations) / chunks}


def _operation(place: int, each: dict[str, Any], chunks: int) -> tuple[Operation, tuple[str, int]]:
    do, chunk, stream, after = (each.get(name) for name in ("do", "chunk", "stream", "after"))
    if do not in STAGES:
        raise WrongAnswer(f'operation {place}: "do" is {do!r}, and not one of {", ".join(STAGES)}.')
    if type(chunk) is not int or not 0 <= chunk < chunks:
        raise WrongAnswer(
            f'operation {place}: "chunk" is {chunk!r}, and not a number from 0 to {chunks - 1}.'
        )
    if type(stream) not in (int, str):
        raise WrongAnswer(f'operation {place}: "stream" is {stream!r}, and not a number or a name.')
    after = [] if after is None else after
    if not isinstance(after, list) or any(type(other) is not int for other in after):
        raise WrongAnswer(f'operation {place}: "after" is no list of places in the plan.')
    if any(not 0 <= other < place for other in after):
        raise WrongAnswer(
            f"operation {place} waits for an event that is recorded later, or never. On a GPU such a wait "
            "waits for nothing."
        )
    return Operation(stream, do, 1.0, tuple(after)), (do, chunk)


def _check_order(
    earlier: tuple[frozenset[int], ...], places: dict[tuple[str, int], int], chunks: int, buffers: int
) -> None:
    """Raises WrongAnswer where neither streams nor events promise what the data need."""

    def must_follow(then: tuple[str, int], first: tuple[str, int], harm: str) -> None:
        if places[first] in earlier[places[then]]:
            return
        why = "neither a stream nor an event orders them."
        if places[then] < places[first]:
            before, after = (f"the {WORDS[do]} of chunk {k}" for do, k in (then, first))
            why = (
                f"the plan issues {before} before {after}, and what is issued first waits for nothing later."
            )
        raise WrongAnswer(f"{harm}: {why}")

    for k in range(chunks):
        for first, then in (("in", "kernel"), ("kernel", "out")):
            harm = f"the {WORDS[then]} of chunk {k} may start before its {WORDS[first]} has ended"
            must_follow((then, k), (first, k), harm)
        old = k - buffers
        if old >= 0:
            harm = (
                f"the copy in of chunk {k} may overwrite chunk {old}, which is in the same buffer "
                f"({k % buffers}), before its copy out has ended"
            )
            must_follow(("in", k), ("out", old), harm)


def winograd(answer: Any) -> dict[str, float]:
    """Checks that the products add up to the filter for all inputs and weights, and counts them."""
    if not isinstance(answer, dict) or set(answer) != {"inputs", "weights", "outputs"}:
        raise WrongAnswer('the answer is a dictionary with "inputs", "weights" and "outputs".')
    inputs, weights, outputs = (_rows(answer, name) for name in ("inputs", "weights", "outputs"))
    products = len(inputs)
    for name, rows, count, width in (
        ("inputs", inputs, products, 4),
        ("weights", weights, products, 3),
        ("outputs", outputs, 2, products),
    ):
        if len(rows) != count or any(len(row) != width for row in rows):
            raise WrongAnswer(f'"{name}" has to have {count} rows of {width} numbers.')
    for j in range(2):
        for a in range(4):
            for b in range(3):
                got = sum(outputs[j][k] * inputs[k][a] * weights[k][b] for k in range(products))
                if got != (a == j + b):
                    raise WrongAnswer(
                        f"in output {j} the product d{a} · g{b} comes {float(got):g} times, and should come "
                        f"{int(a == j + b)} times."
                    )
    return {"products": products}


def _rows(answer: dict[str, Any], name: str) -> list[list[Fraction]]:
    return [[Fraction(number) for number in row] for row in answer[name]]


GEMM_KEYS = ("first", "second", "transa", "transb", "m", "n", "k", "lda", "ldb", "ldc")


def gemm(
    call: Any, rows: int, cols: int, inner: int, pitch_a: int, pitch_b: int, pitch_c: int, b_transposed: bool
) -> dict[str, float]:
    """Carries the call out as cuBLAS would, on numbers that know where they come from. Raises WrongAnswer."""
    if not isinstance(call, dict) or set(call) != set(GEMM_KEYS):
        raise WrongAnswer(f"a call is a dictionary with the keys {', '.join(GEMM_KEYS)}.")
    if [call["first"], call["second"]] not in (["A", "B"], ["B", "A"]):
        raise WrongAnswer('`first` and `second` must be "A" and "B", in one order or the other.')
    if any(call[name] not in ("N", "T") for name in ("transa", "transb")):
        raise WrongAnswer('`transa` and `transb` must be "N" or "T".')
    if any(type(call[name]) is not int or call[name] < 1 for name in GEMM_KEYS[4:]):
        raise WrongAnswer("`m`, `n`, `k` and the leading dimensions must be whole numbers from 1 on.")
    numbers = np.random.default_rng(rows * 10_007 + cols * 101 + inner)
    stored_b = (cols, inner) if b_transposed else (inner, cols)
    memory = {
        name: numbers.integers(-99, 100, (count, pitch))
        for name, count, pitch in (("A", rows, pitch_a), ("B", stored_b[0], pitch_b))
    }
    m, n, k = (call[name] for name in "mnk")
    first = _operand(call, memory, "first", "transa", "lda", (m, k))
    second = _operand(call, memory, "second", "transb", "ldb", (k, n))
    if call["ldc"] < m:
        raise WrongAnswer(f"cuBLAS refuses it: ldc is {call['ldc']}, and out has m = {m} rows.")
    if (n - 1) * call["ldc"] + m > (rows - 1) * pitch_c + cols:
        raise WrongAnswer("the call would write behind the end of C.")
    out = np.full(rows * pitch_c, 2**40)
    np.lib.stride_tricks.as_strided(out, (n, m), (8 * call["ldc"], 8))[:] = (first @ second).T
    b = memory["B"][:, : stored_b[1]]
    right = np.full((rows, pitch_c), 2**40)
    right[:, :cols] = memory["A"][:, :inner] @ (b.T if b_transposed else b)
    if (wrong := np.argwhere(out.reshape(rows, pitch_c) != right)).size:
        inside = wrong[wrong[:, 1] < cols]
        if not inside.size:
            raise WrongAnswer("cuBLAS carries it out, and it overwrites the padding of C.")
        row, col = inside[0]
        raise WrongAnswer(
            f"cuBLAS carries it out, and C[{row}, {col}] is wrong ({len(inside)} of {rows * cols} elements)."
        )
    return {}


def _operand(
    call: dict[str, Any],
    memory: dict[str, np.ndarray],
    which: str,
    trans: str,
    ld: str,
    shape: tuple[int, int],
) -> np.ndarray:
    """op(matrix) of this shape, as cuBLAS reads it from memory."""
    stored = shape if call[trans] == "N" else shape[::-1]
    if call[ld] < stored[0]:
        raise WrongAnswer(
            f"cuBLAS refuses it: {ld} is {call[ld]}, and {which} is stored with {stored[0]} rows, in columns."
        )
    flat = memory[call[which]].ravel()
    if (stored[1] - 1) * call[ld] + stored[0] > flat.size:
        raise WrongAnswer(f"the call would read behind the end of {call[which]}.")
    read = np.lib.stride_tricks.as_strided(flat, stored, (8, 8 * call[ld]))
    return read if call[trans] == "N" else read.T


REFERENCES: dict[str, Callable[..., Any]] = {
    "cupy.normalise": normalise,
    "cupy.rms": rms,
    "cupy.pipeline": pipeline,
    "cupy.gemm": gemm,
    "cupy.winograd": winograd,
}
