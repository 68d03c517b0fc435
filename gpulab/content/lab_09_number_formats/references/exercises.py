"""Expected results of lab 09's exercises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, nan
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes, WrongAnswer
from gpulab.subjects import numerics

RUNS = 4  # sums that a plan is carried out for


@usual_slips(
    (
        lambda code, exponent, mantissa: [
            code >> (exponent + mantissa),
            code >> mantissa,
            code % (1 << mantissa),
        ],
        "The sign is still part of your exponent. Keep only the lowest `exponent` bits after the shift.",
    ),
)
def fields(code: int, exponent: int, mantissa: int) -> list[int]:
    return [code >> (exponent + mantissa), (code >> mantissa) % (1 << exponent), code % (1 << mantissa)]


def _format(exponent: int, mantissa: int) -> numerics.Format:
    return numerics.Format(f"E{exponent}M{mantissa}", exponent, mantissa, (1 << (exponent - 1)) - 1)


def decode(code: int, exponent: int, mantissa: int) -> float:
    form = _format(exponent, mantissa)
    sign, field, fraction = fields(code, exponent, mantissa)
    factor = -1.0 if sign else 1.0
    if field == (1 << exponent) - 1:
        return nan if fraction else factor * inf
    lead = 1 if field else 0
    return factor * (lead + fraction * form.epsilon) * 2.0 ** (max(field, 1) - form.bias)


def encode(x: float, exponent: int, mantissa: int) -> int:
    """From float64, which holds what lies between two float32 numbers."""
    from gpulab.subjects.numerics.codecs import exact_codes

    return int(exact_codes(np.array([x]), _format(exponent, mantissa), saturate=False)[0])


def decode8(code: int, variant: str) -> float:
    return float(numerics.decode(code, variant))


def adopt(code: int) -> list[int]:
    return [{0x80: 0x00, 0x7F: 0x80, 0xFF: 0x80}.get(code, code), 2]


@usual_slips(
    (lambda bits, noise: bits >> 16, "This cuts the lower bits off. Add the noise to them before you shift."),
    (
        lambda bits, noise: (bits + 0x8000) >> 16,
        "This rounds to the nearest, whatever the noise is. Add the noise instead of one half.",
    ),
    (
        lambda bits, noise: (bits >> 16) + (noise >= 0x8000 and bits & 0xFFFF > 0),
        "This rounds up in half of the cases. How often must depend on the lower bits.",
    ),
)
def stochastic(bits: int, noise: int) -> int:
    return (bits + noise) >> 16


def order(plan: Sequence[Sequence[int]], n: int) -> dict[str, float]:
    """Adds up as planned, in FP16, and holds the sum against the exact one of the same numbers."""
    ready, gone = [0] * n, [False] * n
    for number, (to, source) in enumerate(plan, 1):
        if not (0 <= to < n and 0 <= source < n and to != source):
            raise WrongAnswer(f"addition {number} takes slots {to} and {source} of {n}.")
        if gone[to] or gone[source]:
            slot = source if gone[source] else to
            raise WrongAnswer(
                f"addition {number} uses slot {slot}, whose number was added to another before."
            )
        ready[to] = max(ready[to], ready[source]) + 1
        gone[source] = True
    left = [slot for slot in range(1, n) if not gone[slot]]
    if left:
        raise WrongAnswer(
            f"the numbers of {len(left)} slots are never added to slot 0, the first of slot {left[0]}."
        )
    if gone[0]:
        raise WrongAnswer("the sum does not end in slot 0.")
    generator = np.random.default_rng(n)
    numbers = generator.random((n, RUNS)).astype(np.float16)
    exact = numbers.astype(np.float64).sum(axis=0)
    slots = list(numbers)
    for to, source in plan:
        slots[to] = slots[to] + slots[source]
    error = np.abs(slots[0].astype(np.float64) - exact) / exact
    return {"steps": float(ready[0]), "error": 100 * float(error.max())}


def block(values: Sequence[float]) -> list[Any]:
    blocks = numerics.encode_blocks(values, "MXFP4")
    return [int(blocks.scales[0]), blocks.codes[0].tolist()]


def dequantize(inputs: Mapping[str, np.ndarray], sizes: Sizes) -> dict[str, np.ndarray]:
    codes = numerics.unpack(inputs["packed"], 4, int(sizes["n"]))
    scales = numerics.decode(inputs["scales"], "E8M0").astype(np.float64)
    return {"out": numerics.decode(codes, "E2M1") * np.repeat(scales, 32)}


REFERENCES: dict[str, Callable[..., Any]] = {
    "formats.fields": fields,
    "formats.decode": decode,
    "formats.encode": encode,
    "formats.decode8": decode8,
    "formats.adopt": adopt,
    "formats.stochastic": stochastic,
    "formats.order": order,
    "formats.block": block,
    "formats.dequantize": dequantize,
}
