"""Lab 09: what its nine exercises ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| fields | fields(code, exponent, mantissa) | sign, exponent, mantissa | answers | – | – | 1 |
| decode | decode(code, exponent, mantissa) | subnormals, infinity, NaN | answers | – | – | 3 |
| encode | encode(x, exponent, mantissa) | ties to even, the edges | answers | – | – | 4 |
| decode8 | decode8(code, variant) | E4M3, E5M2 and FNUZ | answers | – | – | 3 |
| order | order(n), a plan of FP16 additions | error grows with depth | steps | n − 1 | ⌈log2 n⌉ | 4 |
| | | | error | 50 % | 0.3 % | |
| stochastic | stochastic(bits, noise) | right on average | answers | – | – | 2 |
| block | block(values) → scale and codes | the MX rule for the scale | answers | – | – | 3 |
| dequantize | kernel dequantize(packed, scales, out) | four bits back to 32 | store sectors | n/4 | n/8 | 5 |
| | | | instructions/warp | 205 | 140 | |
| adopt | adopt(code), a detective's answer | one code, two meanings | answers | – | – | 2 |

Derivations:

**decode**: of FP16's 65,536 codes 2 · 1,023 have exponent field 0 and a mantissa that is not 0. A decoder
that forgets **subnormals** puts a leading 1 there and gets these 2,046 wrong.

**adopt**: E4M3's bias is 7, that of its FNUZ variant 8, so the same code means half as much. With a factor of
2 all finite codes mean the same but one: 0x80, minus zero in E4M3, is the one NaN of FNUZ. And E4M3's NaNs
0x7F and 0xFF would become ±480.

**order**: n numbers between 0 and 1, n = 8,192, have a sum near 4,096. One after the other in FP16: from
2,048 on the spacing is 2, and a number below 1 changes nothing any more. The sum stops there: half is
missing. As a tree each number takes part in 13 additions, each with a relative error of at most 2⁻¹¹; the
errors have both signs, and what is left of them in many runs is below 0.1 %. The tree is also ⌈log2 n⌉ steps
deep, which is the least that additions of two can do.

**dequantize**: a thread has one byte, two numbers. Two stores of 4 bytes lie 8 bytes apart from lane to lane,
so each touches 8 sectors where 4 would hold it: n/4 in all. One store of 8 bytes moves n/8, the least: n · 4
B / 32 B. Warp instructions: a chain of comparisons for each of the eight magnitudes against arithmetic on the
fields.
"""

from __future__ import annotations

from functools import partial
from math import ceil, log2
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import AnsweredCases, LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes
from gpulab.subjects import numerics

LAB = "09"
CODECS = tuple(
    f"gpulab.numerics.{name}"
    for name in (
        "decode", "encode", "quantize", "representable", "neighbours", "encode_blocks", "codecs.exact_codes",
    )
)  # fmt: skip
VARIANTS = ("E4M3", "E5M2", "E4M3FNUZ", "E5M2FNUZ")
BLOCK = 32  # numbers that share a scale in MXFP4
THREADS = 128

Numbers = np.random.Generator


def _cases(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"what": name}) for name in names)


def _formats(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"format": name}) for name in names)


def _widths(sizes: Sizes) -> tuple[int, int]:
    form = numerics.find(str(sizes["format"]))
    return form.exponent, form.mantissa


# ---------------------------------------------------------------- questions


def field_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    exponent, mantissa = _widths(sizes)
    bits = 1 + exponent + mantissa
    codes = [0, 1, 1 << (bits - 1), (1 << bits) - 1, *(int(c) for c in numbers.integers(0, 1 << bits, 8))]
    return [(code, exponent, mantissa) for code in codes]


def decode_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """All codes of a short format; of a longer one the edges and some at random."""
    exponent, mantissa = _widths(sizes)
    bits = 1 + exponent + mantissa
    if bits <= 16:
        return [(code, exponent, mantissa) for code in range(1 << bits)]
    one, top = 1 << mantissa, ((1 << exponent) - 1) << mantissa
    edges = [0, 1, one - 1, one, one + 1, top - 1, top, top + 1]
    codes = [*edges, *(edge | 1 << (bits - 1) for edge in edges)]
    return [(int(c), exponent, mantissa) for c in (*codes, *numbers.integers(0, 1 << bits, 40))]


def encode_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Numbers of the format, ties between two of them, a hair beside the ties, too small and too large."""
    form = numerics.find(str(sizes["format"]))
    codes = numbers.integers(0, form.largest_code, 12)
    low = _exact(codes, form)
    high = _exact(codes + 1, form)
    middle = (low + high) / 2
    asked = [*low, *middle, *np.nextafter(middle, 0), *np.nextafter(middle, np.inf)]
    limit = form.largest + (form.largest - _exact(np.array([form.largest_code - 1]), form)[0]) / 2
    asked += [form.largest, np.nextafter(limit, 0), limit, 2 * form.largest, np.inf]
    asked += [form.smallest / 2, np.nextafter(form.smallest / 2, 1), form.smallest / 3, form.smallest * 1.5]
    asked += [form.smallest_normal * (1 - form.epsilon / 4), form.smallest_normal]
    signed = [float(x) * (1 if k % 2 else -1) for k, x in enumerate(asked)]
    return [(x, form.exponent, form.mantissa) for x in (*signed, 0.0, -0.0)]


def _exact(codes: np.ndarray, form: numerics.Format) -> np.ndarray:
    """The values of positive finite codes, float64."""
    field, fraction = codes >> form.mantissa, codes & ((1 << form.mantissa) - 1)
    lead = np.where(field > 0, 1 << form.mantissa, 0)
    power = np.maximum(field, 1) - form.bias - form.mantissa
    return np.ldexp((fraction + lead).astype(np.float64), power)


def eight_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    return [(code, str(sizes["what"])) for code in range(256)]


def adopt_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    if sizes["what"] == "all codes":
        return [(code,) for code in range(256)]
    return [(int(code),) for code in (*numbers.integers(0, 127, 5), 0, 128)]


def noise_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Bits of float32 numbers, and 16 random bits for each."""
    x = (numbers.standard_normal(16) * 10.0 ** numbers.integers(-6, 7, 16)).astype(np.float32)
    if sizes["what"] == "already short":
        bits = x.view(np.uint32) & np.uint32(0xFFFF0000)
    elif sizes["what"] == "carries":
        bits = x.view(np.uint32) | np.uint32(0x007FFF00)
    else:
        bits = x.view(np.uint32)
    noise = [0, 0xFFFF, 0x8000, *numbers.integers(0, 1 << 16, 13)]
    return [(int(b), int(n)) for b, n in zip(bits, noise, strict=True)]


def order_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    return [(int(sizes["n"]),)]


def block_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Blocks of 32 numbers: of one size, of many sizes, around the limits, with an outlier, of zeros."""
    match sizes["what"]:
        case "by hand":
            return [([3.7, -0.2, 0.9, 1.6] + [0.0] * 28,)]
        case "zeros":
            return [([0.0] * BLOCK,)]
        case "powers of two":
            return [([s * 2.0**k for _ in range(16) for s in (1, -1)],) for k in (-9, 0, 5)]
        case "ties":
            ties = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0]
            return [([s * 2.0**k * t for t in ties for s in (1, -1, 1, -1)],) for k in (-3, 4)]
        case "outlier":
            x = numbers.standard_normal((2, BLOCK))
            x[:, 7] *= 100
        case "largest between 6 and 8":  # saturates: 7 is cut to 6
            x = numbers.uniform(-1, 1, (2, BLOCK))
            x[:, 3] = 7.5 / 8
        case _:
            x = numbers.standard_normal((3, BLOCK)) * 10.0 ** numbers.integers(-4, 5, (3, 1))
    return [([float(v) for v in row],) for row in x.astype(np.float32)]


# ---------------------------------------------------------------- a kernel


def dequantize_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = int(sizes["n"])
    return (
        Array("packed", (n // 2,), "uint8", fill="integers:0:256"),
        Array("scales", (n // BLOCK,), "uint8", fill="integers:100:150"),
        Array("out", (n,), role="out"),
    )


def dequantize_shape(sizes: Sizes) -> Shape:
    return Shape((max(1, ceil(int(sizes["n"]) / 2 / THREADS)),), (THREADS,))


def _n(*sizes: int) -> tuple[Case, ...]:
    return tuple(Case(f"{n:,}" if n else "empty", {"n": n}) for n in sizes)


def warps(sizes: Sizes) -> int:
    """Warps of the launch of `dequantize`."""
    return dequantize_shape(sizes).grid[0] * THREADS // 32


def steps_of_a_tree(sizes: Sizes) -> int:
    return ceil(log2(int(sizes["n"]))) if int(sizes["n"]) > 1 else 0


FEW = ("BF16", "E5M2", "E4M3")  # of these E4M3 stands for any format of that shape, with IEEE's rules

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="formats.fields",
        lab=LAB,
        evidence=AnsweredCases(questions=field_questions),
        correct_points=1,
        cases=_formats("FP16", "FP32", "BF16", "E5M2"),
        hints=(
            "The mantissa is in the lowest bits. Which operation keeps only the lowest `mantissa` bits of a "
            "number?",
            "`code >> mantissa` moves the exponent to the lowest bits. The sign bit is still above it.",
            "`x & ((1 << k) - 1)` keeps the lowest k bits of x.",
        ),
        section="1 · Three fields",
    ),
    Exercise(
        name="formats.decode",
        lab=LAB,
        evidence=AnsweredCases(questions=decode_questions, by_hand=CODECS),
        correct_points=3,
        cases=_formats("E5M2", "FP16", "BF16", "FP32"),
        hints=(
            "There are three kinds of codes: exponent field 0, exponent field all ones, and the rest.",
            "With exponent field 0 there is no leading 1, and the power is the same as with field 1: `1 - "
            "bias`.",
            "If the exponent field is all ones, mantissa 0 means infinity and every other mantissa means "
            "`math.nan`. Infinity and zero have a sign as well.",
        ),
        section="2 · Subnormals, infinity, NaN",
    ),
    Exercise(
        name="formats.encode",
        lab=LAB,
        evidence=AnsweredCases(questions=encode_questions, by_hand=CODECS),
        correct_points=4,
        cases=_formats("FP16", "BF16", "E5M2", "FP32"),
        hints=(
            "Divide |x| by the spacing of the format's numbers around it, and round to a whole number. Which "
            "one do you take if the result is exactly in the middle?",
            "`math.frexp(x)` gives the power of two. Below the smallest normal number the spacing stays the "
            "same as at the smallest normal number. Python's `round` takes the even one of two.",
            "Let q be the number of steps, with a spacing of 2^(p − mantissa). Then the code is "
            "`((p + bias - 1) << mantissa) + q`. If q carries into the exponent, the result is right as it "
            "is. A code beyond the largest finite one becomes infinity.",
        ),
        section="3 · Rounding to the nearest",
    ),
    Exercise(
        name="formats.decode8",
        lab=LAB,
        evidence=AnsweredCases(questions=eight_questions, by_hand=CODECS),
        correct_points=3,
        cases=_cases(*VARIANTS),
        hints=(
            "Your `decode` follows the rules of IEEE 754. Where do the four variants differ from them: bias, "
            "infinity, NaN, minus zero?",
            "E4M3 uses the top exponent field for numbers. Only mantissa 111 there means NaN, and no code "
            "means infinity.",
            "In FNUZ the bias is one more, 0x80 is the only NaN, and every other code is a number.",
        ),
        section="4 · Eight bits, four ways",
    ),
    Exercise(
        name="formats.adopt",
        lab=LAB,
        evidence=AnsweredCases(questions=adopt_questions),
        correct_points=2,
        cases=_cases("all codes", "small ones"),
        detective=True,
        hints=(
            "Plot what the codes mean in one format against what they mean in the other.",
            "In the new format the finite codes mean half of what they meant. Which factor corrects "
            "this, and for which codes is it not enough?",
            "Look at 0x80, 0x7F and 0xFF in both formats.",
        ),
        section="Detective · The same bytes",
    ),
    Exercise(
        name="formats.stochastic",
        lab=LAB,
        evidence=AnsweredCases(questions=noise_questions),
        correct_points=2,
        cases=_cases("numbers", "already short", "carries"),
        hints=(
            "BF16 keeps the upper 16 bits. If the lower 16 are a quarter of the way up, a quarter of the "
            "65,536 noises should round up. Which quarter?",
            "Add the noise to the lower bits. When does the sum reach bit 16?",
            "The carry may run through all of the upper bits, and the sign bit is not affected. One addition "
            "and one shift are enough.",
        ),
        section="6 · Rounding by chance",
    ),
    Exercise(
        name="formats.order",
        lab=LAB,
        evidence=AnsweredCases(questions=order_questions, measured=True),
        correct_points=1,
        cases=(*_n(1, 2, 3, 7, 1000), *_n(8192)),
        budgets=(
            Budget(
                "steps",
                steps_of_a_tree,
                1.5,
                "steps",
                naive=lambda sizes: int(sizes["n"]) - 1,
                unit="steps",
                why="each step halves how many are left, at best",
                advice="Additions of different slots can run in the same step. Which of yours could?",
                case=EVERY,
            ),
            Budget(
                "error",
                0.3,
                1.5,
                "error",
                naive=50,
                unit="% of the sum",
                why="as a tree: 13 roundings of at most 0.05 %",
                advice="Which number of an addition is the smaller one, and how much of it is lost?",
                case=EVERY,
            ),
        ),
        hints=(
            "First add neighbours: slots 0 and 1, 2 and 3, … Each pair leaves its sum in the first of "
            "the two.",
            "Then add sums whose slots are 2 apart, then 4, then 8, until slot 0 holds the sum of all.",
            "Write a loop over the distance (1, 2, 4, …), and inside it a loop over the slots in steps of "
            "twice the distance. Leave out pairs whose second slot does not exist.",
        ),
        section="5 · Sums",
    ),
    Exercise(
        name="formats.block",
        lab=LAB,
        evidence=AnsweredCases(questions=block_questions, by_hand=CODECS),
        correct_points=3,
        cases=_cases(
            "by hand", "numbers", "powers of two", "ties", "largest between 6 and 8", "outlier", "zeros"
        ),
        hints=(
            "The scale is a power of two: 2^(⌊log2 of the largest magnitude⌋ − 2). Its code is that "
            "power + 127.",
            "Divide by the scale, and take the nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6. Above 6 take 6. In the "
            "middle between two take the one with the even code.",
            "The code of a number is the place of its magnitude in that list, plus 8 if the number is "
            "negative, even if it is rounded to zero. A block of zeros has scale code 0.",
        ),
        section="7 · Blocks that share a scale",
    ),
    Exercise(
        name="formats.dequantize",
        lab=LAB,
        correct_points=2,
        cases=_n(64, 96, 4096, 0, 8224, 65536),
        evidence=LaunchTrace(arguments=dequantize_arguments, shape=dequantize_shape),
        budgets=(
            Budget(
                "global_store_sectors",
                lambda sizes: int(sizes["n"]) // 8,
                1.5,
                "store sectors",
                naive=lambda sizes: int(sizes["n"]) // 4,
                why="n × 4 B / 32 B",
                advice="Lane 0 writes elements 0 and 1, and lane 1 elements 2 and 3. How far apart are the "
                "words that one store instruction writes?",
                case=EVERY,
            ),
            Budget(
                "instructions",
                lambda sizes: 140 * warps(sizes),
                1.5,
                "instructions",
                naive=lambda sizes: 205 * warps(sizes),
                why="140 a warp",
                advice="Do both numbers of a byte share as much of the work as they can? Are all operations "
                "on integers of one type?",
                case=EVERY,
            ),
        ),
        hints=(
            "Make the 32 bits of each result as an integer: the sign is bit 31, the exponent begins at bit "
            "23, and the one mantissa bit is bit 22.",
            "A code with exponent field f > 0 means 2^(f − 1) · (1 + m/2), so its float32 exponent field is "
            "`scale + f - 1`. The code of 0.5 means 2^−1, and all bits of 0 are 0.",
            "`out.view(np.uint64)` has one element for two results: `first | second << 32`, in unsigned "
            "64-bit arithmetic.",
        ),
        section="8 · Back to thirty-two bits, in a kernel",
        rtol=0,
        atol=0,
    ),
)


_prediction = partial(prediction, "formats", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "subnormals",
        "Codes that a decoder of FP16 gets wrong if it forgets subnormals",
        "codes",
        2046,
        "With exponent field 0 there are 2^10 − 1 mantissas that are not 0, and two signs: 2 · 1,023.",
    ),
    _prediction(
        "gpt_oss",
        "gpt-oss-120b, with experts in MXFP4 and all else in BF16, takes",
        "GB",
        None,
        "36 · 128 · 3 · 2,880² = 114.7 billion numbers of 4.25 bits are 60.9 GB, and 2.1 billion of 16 bits "
        "are 4.3 GB.",
        0.02,
    ),
    _prediction(
        "whole",
        "The first whole number that FP16 does not have",
        "",
        2049,
        "The mantissa and the leading 1 are 11 bits, which hold all whole numbers up to 2^11 = 2,048. From "
        "there on the spacing is 2.",
    ),
    _prediction(
        "hundredths",
        "1,000 × 0.01, added one by one in FP16",
        "",
        None,
        "0.01 itself is off by only 0.02 %. But from 8 on the spacing is 2^-7 = 0.0078, and each sum is "
        "rounded to it.",
        0.002,
    ),
    _prediction(
        "e4m3_numbers",
        "Different finite numbers that E4M3 has, zero counted once",
        "numbers",
        253,
        "256 codes minus two NaN, minus one because plus and minus zero are the same number.",
    ),
    _prediction(
        "mxfp4_bits",
        "Bits per number in MXFP4",
        "bits",
        4.25,
        "Each number has 4 bits and a share of the 8-bit scale: 4 + 8/32.",
    ),
    _prediction(
        "stuck",
        "1 plus 10,000 × 0.001 in BF16, each sum rounded to nearest",
        "",
        None,
        "Above 1 BF16's spacing is 2^-7 = 0.0078. 0.001 is less than half of it, so nothing is ever added.",
    ),
    _prediction(
        "rotated",
        "How many times smaller the error of MXFP4 becomes by a rotation, with an outlier in each block",
        "×",
        None,
        "Without the rotation the outlier sets the scale of its block, and its 31 neighbours are lost. With "
        "it the outliers make each of the 256 numbers somewhat larger, so all are slightly off.",
        0.25,
    ),
)
