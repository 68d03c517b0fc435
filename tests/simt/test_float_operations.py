"""Floating-point rows against exact fractions, rounded by hand; approximate ones against the stated bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from .drawing import floats, integers, seeds
from .running import assert_runs, results
from .scalar import bits_of, multiply_add, round_exact

DTYPE = {"f16": "f2", "f32": "f4", "f64": "f8"}


def columns(seed: int, form: str, names: str, finite: bool = False) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {name: floats(generator, DTYPE[form], finite) for name in names}


def rows(inputs: dict[str, np.ndarray]) -> list[tuple[float, ...]]:
    return list(zip(*(map(float, column) for column in inputs.values()), strict=True))


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("form", ["f32", "f64"])
def test_fma_rounds_once_in_every_mode(form, mode):
    @settings(max_examples=10, deadline=None)
    @given(seeds)
    def run(seed):
        inputs = columns(seed, form, "abc")
        expected = [multiply_add(*row, form, mode) for row in rows(inputs)]
        if form == "f64":  # which NaN is not promised
            expected = [0.0 if math.isnan(e) else e for e in expected]
            body = f"fma.{mode}.f64 %r, %a, %b, %c; testp.notanumber.f64 %p1, %r; "
            body += "selp.f64 %r, 0d0000000000000000, %r, %p1;"
        else:
            body = f"fma.{mode}.{form} %r, %a, %b, %c;"
        assert_runs(body, inputs, {"r": bits_of(expected, DTYPE[form])})

    run()


def test_fma_is_not_fooled_by_a_sum_that_float64_rounds_to_a_tie():
    a = np.full(4, 1 + 2.0**-12, "f4")
    c = np.array([2.0**-80, -(2.0**-80), 0, 2.0**-24], "f4")
    expected = [multiply_add(float(x), float(x), float(z), "f32") for x, z in zip(a, c, strict=True)]
    assert_runs("fma.rn.f32 %r, %a, %a, %c;", {"a": a, "c": c}, {"r": bits_of(expected, "f4")})


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("opcode", ["add", "sub", "mul"])
@pytest.mark.parametrize("form", ["f32", "f64"])
def test_sums_and_products_round_in_every_mode(form, opcode, mode):
    @settings(max_examples=10, deadline=None)
    @given(seeds)
    def run(seed):
        def exact(x, y):
            if opcode == "mul":
                return multiply_add(
                    x, y, math.copysign(0.0, math.copysign(1, x) * math.copysign(1, y)), form, mode
                )
            return multiply_add(x, 1.0, y if opcode == "add" else -y, form, mode)

        inputs = columns(seed, form, "ab", finite=True)
        expected = [exact(x, y) for x, y in rows(inputs)]
        assert_runs(f"{opcode}.{mode}.{form} %r, %a, %b;", inputs, {"r": bits_of(expected, DTYPE[form])})

    run()


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_quotients_and_roots_round_in_every_mode(mode):
    from fractions import Fraction

    generator = np.random.default_rng(3)
    a = generator.uniform(0.1, 9, 200).astype("f4")
    b = (generator.uniform(0.1, 9, 200) * generator.choice([-1, 1], 200)).astype("f4")
    quotients = [
        round_exact(Fraction(float(x)) / Fraction(float(y)), "f32", mode) for x, y in zip(a, b, strict=True)
    ]
    assert_runs(f"div.{mode}.f32 %r, %a, %b;", {"a": a, "b": b}, {"r": bits_of(quotients, "f4")})
    reciprocals = [round_exact(1 / Fraction(float(y)), "f32", mode) for y in b]
    assert_runs(f"rcp.{mode}.f32 %r, %b;", {"b": b}, {"r": bits_of(reciprocals, "f4")})
    roots = []
    for x in map(float, a):  # a root is irrational or exact: 80 digits decide every case
        scaled = math.isqrt(int(Fraction(x) * Fraction(2) ** 400))
        roots.append(round_exact(Fraction(scaled, 1) / Fraction(2) ** 200, "f32", mode))
    assert_runs(f"sqrt.{mode}.f32 %r, %a;", {"a": a}, {"r": bits_of(roots, "f4")})


def test_half_precision_is_rounded_like_half_precision():
    @settings(max_examples=10, deadline=None)
    @given(seeds)
    def run(seed):
        inputs = columns(seed, "f16", "abc")
        expected = [multiply_add(*row, "f16") for row in rows(inputs)]
        assert_runs("fma.rn.f16 %r, %a, %b, %c;", inputs, {"r": bits_of(expected, "f2")})
        sums = [multiply_add(x, 1.0, y, "f16") for x, y, _ in rows(inputs)]
        assert_runs("add.f16 %r, %a, %b;", inputs, {"r": bits_of(sums, "f2")})

    run()


@pytest.mark.parametrize("opcode, lower", [("min", True), ("max", False)])
def test_minimum_and_maximum_prefer_numbers_and_order_the_zeros(opcode, lower):
    a = np.array([1, -0.0, 0.0, math.nan, 3, math.nan, -math.inf], "f4")
    b = np.array([2, 0.0, -0.0, 4, math.nan, math.nan, math.inf], "f4")
    low = bits_of([1, -0.0, -0.0, 4, 3, math.nan, -math.inf], "f4")
    high = bits_of([2, 0.0, 0.0, 4, 3, math.nan, math.inf], "f4")
    assert_runs(f"{opcode}.f32 %r, %a, %b;", {"a": a, "b": b}, {"r": low if lower else high})
    spread = bits_of(
        [
            math.nan if math.isnan(x) or math.isnan(y) else z
            for x, y, z in zip(a, b, low if lower else high, strict=True)
        ],
        "f4",
    )
    assert_runs(f"{opcode}.NaN.f32 %r, %a, %b;", {"a": a, "b": b}, {"r": spread})


def test_arithmetic_makes_the_canonical_nan_and_copies_keep_theirs():
    payload = np.array([0x7FC12345, 0xFFC00001], "u4").view("f4")
    assert_runs("add.f32 %r, %a, 0f3F800000;", {"a": payload}, {"r": bits_of([math.nan] * 2, "f4")})
    assert_runs("mov.f32 %r, %a;", {"a": payload}, {"r": payload})
    assert_runs("mul.f32 %x1, %a, %a; mov.b32 %r, %x1;", {"a": payload}, {"r": np.full(2, 0x7FFFFFFF, "u4")})


def test_a_copy_of_a_copy_of_a_computed_nan_is_canonical_wherever_the_copies_are_in_the_text():
    body = """
        bra FIRST;
    SECOND:
        mov.f32 %x3, %x2;
        mov.b32 %r, %x3;
        bra DONE;
    FIRST:
        mul.f32 %x1, %a, %a;
        mov.f32 %x2, %x1;
        bra SECOND;
    DONE:
    """
    payload = np.array([0xFFC01234, 0x7FA00001], "u4").view("f4")
    assert_runs(body, {"a": payload}, {"r": np.full(2, 0x7FFFFFFF, "u4")})


def test_flushing_turns_denormals_into_zeros_of_their_sign():
    a = np.array([1e-40, -1e-40, 1e-38, -2.0], "f4")
    assert_runs("add.ftz.f32 %r, %a, 0f80000000;", {"a": a}, {"r": np.array([0.0, -0.0, 0.0, -2.0], "f4")})
    assert_runs("mul.f32 %r, %a, 0f3F800000;", {"a": a}, {"r": a})


def test_saturation_clamps_to_the_unit_interval_and_nan_to_zero():
    a = np.array([-1, -0.0, 0.25, 1, 7, math.nan, math.inf], "f4")
    assert_runs("add.sat.f32 %r, %a, 0f00000000;", {"a": a}, {"r": np.array([0, 0, 0.25, 1, 1, 0, 1], "f4")})


COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a < b or a > b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "equ": lambda a, b: not (a < b or a > b),
    "neu": lambda a, b: a != b,
    "ltu": lambda a, b: not a >= b,
    "leu": lambda a, b: not a > b,
    "gtu": lambda a, b: not a <= b,
    "geu": lambda a, b: not a < b,
    "num": lambda a, b: a == a and b == b,
    "nan": lambda a, b: a != a or b != b,
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_treats_nan_as_the_manual_says(name):
    values = [0.0, -0.0, 1.0, math.nan, math.inf]
    pairs = [(a, b) for a in values for b in values]
    a, b = (np.array(side, "f4") for side in zip(*pairs, strict=True))
    expected = np.array([COMPARISONS[name](x, y) for x, y in pairs], "i4")
    assert_runs(f"setp.{name}.f32 %p1, %a, %b; selp.s32 %r, 1, 0, %p1;", {"a": a, "b": b}, {"r": expected})
    both = f"setp.{name}.and.f32 %p1|%p2, %a, %b, %p3; selp.s32 %r, 1, 0, %p1; selp.s32 %s_, 1, 0, %p2;"
    always = "setp.eq.s32 %p3, 0, 0; "
    assert_runs(always + both, {"a": a, "b": b}, {"r": expected, "s_": 1 - expected})


@pytest.mark.parametrize(
    "mode, whole", [("rni", round), ("rzi", math.trunc), ("rmi", math.floor), ("rpi", math.ceil)]
)
@pytest.mark.parametrize(
    "target, low, high",
    [("s32", -(2**31), 2**31 - 1), ("u32", 0, 2**32 - 1), ("s64", -(2**63), 2**63 - 1), ("u16", 0, 65535)],
)
def test_floats_become_integers_with_rounding_and_saturation(mode, whole, target, low, high):
    @settings(max_examples=10, deadline=None)
    @given(seeds)
    def run(seed):
        def exact(x):
            if math.isnan(x):
                return 0
            return (low if x < 0 else high) if math.isinf(x) else max(low, min(high, whole(x)))

        kind = {"s": "i", "u": "u"}[target[0]] + str(int(target[1:]) // 8)
        inputs = columns(seed, "f64", "a")
        inputs["a"][::2] = np.clip(inputs["a"][::2], -1e13, 1e13) * 1e6
        expected = np.array([exact(float(x)) for x in inputs["a"]], kind)
        assert_runs(f"cvt.{mode}.{target}.f64 %r, %a;", inputs, {"r": expected})

    run()


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_integers_and_doubles_become_floats_in_every_mode(mode):
    from fractions import Fraction

    @settings(max_examples=10, deadline=None)
    @given(seeds)
    def run(seed):
        whole = integers(np.random.default_rng(seed), 64, True)
        real = columns(seed, "f64", "a", finite=True)
        expected = [round_exact(Fraction(x), "f32", mode) for x in whole]
        assert_runs(
            f"cvt.{mode}.f32.s64 %r, %a;", {"a": np.array(whole, "i8")}, {"r": bits_of(expected, "f4")}
        )
        narrow = [
            round_exact(Fraction(x), "f32", mode, math.copysign(1, x) < 0) for x in map(float, real["a"])
        ]
        assert_runs(f"cvt.{mode}.f32.f64 %r, %a;", real, {"r": bits_of(narrow, "f4")})

    run()


APPROXIMATE = {
    "ex2.approx.f32": (lambda x: 2.0**x, -60, 60, 1),
    "rcp.approx.f32": (lambda x: 1 / x, 0.01, 100, 1),
    "sqrt.approx.f32": (math.sqrt, 0.01, 100, 1),
    "rsqrt.approx.f32": (lambda x: 1 / math.sqrt(x), 0.01, 100, 1),
    "lg2.approx.f32": (math.log2, 0.01, 100, 1),
    "sin.approx.f32": (math.sin, -3, 3, 1),
    "cos.approx.f32": (math.cos, -3, 3, 1),
    "tanh.approx.f32": (math.tanh, -3, 3, 1),
}


@pytest.mark.parametrize("opcode", APPROXIMATE)
def test_an_approximate_function_keeps_its_stated_bound(opcode):
    """The simulator promises 1 ulp; the manual allows 1 to 2 ulp or a larger absolute error."""
    exact, low, high, bound = APPROXIMATE[opcode]
    a = np.linspace(low, high, 500, dtype="f4")
    found = results(f"{opcode} %r, %a;", {"a": a}, {"r": np.dtype("f4")})["r"]
    true = np.array([exact(float(x)) for x in a])
    ulp = np.spacing(np.abs(true).astype("f4"))
    assert (np.abs(found.astype("f8") - true) <= bound * ulp).all()


def test_a_nan_that_only_travels_keeps_its_bits():
    """As in a loop that compares and swaps: the bits that were loaded are the bits that are compared."""
    bits = np.array([0x7FC00000, 0xFFC12345], "u4")
    assert_runs("mov.b32 %x1, %a; mov.b32 %r, %x1;", {"a": bits}, {"r": bits})
    assert_runs("add.u32 %t1, %a, 0; mov.b32 %x1, %t1; mov.b32 %r, %x1;", {"a": bits}, {"r": bits})
    assert_runs("neg.f32 %r, %a;", {"a": bits.view("f4")}, {"r": (bits ^ 0x80000000).view("f4")})
