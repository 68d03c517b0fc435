"""bfloat16, FP8, TF32 and packed halves against torch's types, and against exact fractions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from .drawing import floats, seeds
from .launching import element, kernel, launch
from .running import assert_runs
from .scalar import bits_of, multiply_add

torch = pytest.importorskip("torch")

BF16_NAN, HALF_NAN = 0x7FFF, 0x7FFF


def as_bf16(x: np.ndarray) -> np.ndarray:
    """float32 → bfloat16 bits as torch rounds them, NaN as PTX writes it."""
    bits = torch.from_numpy(np.ascontiguousarray(x)).bfloat16().view(torch.int16).numpy().view("u2")
    return np.where(np.isnan(x), np.uint16(BF16_NAN), bits)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype("u4") << 16).view("f4")


def pair(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return low.astype("u4") | high.astype("u4") << 16


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_floats_become_bfloat16_as_torch_rounds_them(seed):
    generator = np.random.default_rng(seed)
    a, b = floats(generator, "f4"), floats(generator, "f4")
    assert_runs("cvt.rn.bf16.f32 %r, %a;", {"a": a}, {"r": as_bf16(a)})
    assert_runs("cvt.rn.bf16x2.f32 %r, %a, %b;", {"a": a, "b": b}, {"r": pair(as_bf16(b), as_bf16(a))})
    halves = [np.where(np.isnan(x), HALF_NAN, x.astype("f2").view("u2")).astype("u2") for x in (b, a)]
    assert_runs("cvt.rn.f16x2.f32 %r, %a, %b;", {"a": a, "b": b}, {"r": pair(*halves)})
    assert_runs("cvt.f32.bf16 %r, %a;", {"a": as_bf16(a)}, {"r": bits_of(from_bf16(as_bf16(a)), "f4")})


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_directed_rounding_to_bfloat16_gives_the_next_one_on_that_side(seed):
    a = floats(np.random.default_rng(seed), "f4")
    nearest = as_bf16(a)
    value = from_bf16(nearest)
    step = np.where(np.signbit(value), -1, 1)  # upwards, in bits
    up = np.where(value < a, nearest + step, nearest).astype("u2")
    down = np.where(value > a, nearest - step, nearest).astype("u2")
    assert_runs("cvt.rp.bf16.f32 %r, %a;", {"a": a}, {"r": up})
    assert_runs("cvt.rm.bf16.f32 %r, %a;", {"a": a}, {"r": down})
    toward_zero = np.where(np.isnan(a), BF16_NAN, np.where(np.signbit(a), up, down)).astype("u2")
    assert_runs("cvt.rz.bf16.f32 %r, %a;", {"a": a}, {"r": toward_zero})


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_bfloat16_rounds_to_whole_numbers(seed):
    generator = np.random.default_rng(seed)
    a = as_bf16((generator.standard_normal(64) * 10.0 ** generator.integers(-3, 5, 64)).astype("f4"))
    for mode, rounded in (("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)):
        assert_runs(f"cvt.{mode}.bf16.bf16 %r, %a;", {"a": a}, {"r": as_bf16(rounded(from_bf16(a)))})


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_packed_halves_are_two_single_operations(seed):
    generator = np.random.default_rng(seed)
    a, b, c, d = (floats(generator, "f2") for _ in range(4))
    inputs = {"a": pair(a.view("u2"), b.view("u2")), "b": pair(c.view("u2"), d.view("u2"))}
    for opcode in ("add", "mul"):

        def one(x: float, y: float, opcode: str = opcode) -> float:
            if opcode == "add":
                return multiply_add(x, 1.0, y, "f16")
            zero = -0.0 if np.signbit(x) != np.signbit(y) else 0.0
            return multiply_add(x, y, zero, "f16")

        low = bits_of([one(float(x), float(y)) for x, y in zip(a, c, strict=True)], "f2")
        high = bits_of([one(float(x), float(y)) for x, y in zip(b, d, strict=True)], "f2")
        assert_runs(f"{opcode}.f16x2 %r, %a, %b;", inputs, {"r": pair(low.view("u2"), high.view("u2"))})


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
@pytest.mark.parametrize("mode", ["rn", "rz.ftz"])
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_pairs_of_floats_are_two_single_operations(operation, mode, seed):
    generator = np.random.default_rng(seed)
    arrays = {name: floats(generator, "f4")[:64] for name in "abc"} | {
        name: np.zeros(64, np.float32) for name in ("pairs", "singles")
    }
    operands = "abc" if operation == "fma" else "ab"
    sources = [f"%rd{i}" for i in range(len(operands))]
    loads = [
        f"{element(name, '%tid', 8)} ld.global.b64 {to}, [%rd31];"
        for name, to in zip(operands, sources, strict=True)
    ]
    split = [f"mov.b64 {{%f{2 * i}, %f{2 * i + 1}}}, {to};" for i, to in enumerate(sources)]
    half = ["", ""]
    for side in range(2):
        floats_ = ", ".join(f"%f{2 * i + side}" for i in range(len(operands)))
        half[side] = f"{operation}.{mode}.f32 %f{8 + side}, {floats_};"
    body = [
        *loads,
        f"{operation}.{mode}.f32x2 %rd8, {', '.join(sources)};",
        element("pairs", "%tid", 8) + " st.global.b64 [%rd31], %rd8;",
        *split,
        *half,
        element("singles", "%tid", 8) + " st.global.v2.f32 [%rd31], {%f8, %f9};",
    ]
    found = launch(kernel("\n".join(body), " ".join(arrays)), arrays)
    assert found["pairs"].tobytes() == found["singles"].tobytes()


@pytest.mark.parametrize("narrow", ["f16", "bf16"])
@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_mixed_arithmetic_widens_first_and_rounds_once(narrow, seed):
    generator = np.random.default_rng(seed)
    c = floats(generator, "f4")
    if narrow == "f16":
        a, b = (floats(generator, "f2")[: len(c)].view("u2") for _ in range(2))
        wide = [x.view("f2").astype("f4") for x in (a, b)]
    else:
        a, b = (as_bf16(floats(generator, "f4"))[: len(c)] for _ in range(2))
        wide = [from_bf16(x) for x in (a, b)]
    c = c[: len(a)]
    inputs = {"a": a, "b": b, "c": c}
    single = [multiply_add(*map(float, row), "f32") for row in zip(*wide, c, strict=True)]
    assert_runs(f"fma.rn.f32.{narrow} %r, %a, %b, %c;", inputs, {"r": bits_of(single, "f4")})
    with np.errstate(invalid="ignore", over="ignore"):
        for name, value in (("add", wide[0] + c), ("sub", wide[0] - c)):
            assert_runs(f"{name}.rn.f32.{narrow} %r, %a, %c;", {"a": a, "c": c}, {"r": bits_of(value, "f4")})


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_bfloat16_arithmetic_is_rounded_once(seed):
    generator = np.random.default_rng(seed)
    a, b, c = (as_bf16(floats(generator, "f4", finite=True)) for _ in range(3))
    wide = [from_bf16(x).astype("f8") for x in (a, b, c)]
    expected = [multiply_add(*map(float, row), "bf16") for row in zip(*wide, strict=True)]
    bits = as_bf16(np.array(expected, "f4"))
    assert_runs("fma.rn.bf16 %r, %a, %b, %c;", {"a": a, "b": b, "c": c}, {"r": bits})


@pytest.mark.parametrize("form, dtype", [("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)])
def test_every_fp8_code_becomes_its_half_and_halves_become_the_nearest_code(form, dtype):
    codes = np.arange(256, dtype="u2")
    values = torch.from_numpy(codes.astype("u1")).view(dtype).to(torch.float16).numpy()
    halves = np.where(np.isnan(values), HALF_NAN, values.view("u2")).astype("u2")
    assert_runs(
        f"cvt.rn.f16x2.{form}x2 %r, %a;", {"a": codes | codes[::-1] << 8}, {"r": pair(halves, halves[::-1])}
    )
    x = np.random.default_rng(0).standard_normal(500).astype("f4") * 20
    largest = torch.finfo(dtype).max
    wanted = torch.from_numpy(np.clip(x, -largest, largest)).to(dtype).view(torch.uint8).numpy().astype("u2")
    body = f"cvt.rn.satfinite.{form}x2.f32 %r, %a, %b;"
    assert_runs(body, {"a": x, "b": x[::-1].copy()}, {"r": wanted << 8 | wanted[::-1]})


def test_fp8_stops_at_its_largest_value():
    x = np.array([1e6, -1e6, 448.0, 465.0, 0.0, -0.0], "f4")
    zero = np.zeros(6, "f4")
    assert_runs(
        "cvt.rn.satfinite.e4m3x2.f32 %r, %z, %a;",
        {"a": x, "z": zero},
        {"r": np.array([0x7E, 0xFE, 0x7E, 0x7E, 0, 0x80], "u2")},
    )


def test_tf32_keeps_ten_bits_and_ties_go_away_from_zero():
    one = 1.0
    x = np.array([one + 2**-11, -(one + 2**-11), one + 2**-12, one + 3 * 2**-11, 2.0**-130], "f4")
    exact = np.array([one + 2**-10, -(one + 2**-10), one, one + 2 * 2**-10, 2.0**-130], "f4")
    assert_runs("cvt.rna.tf32.f32 %r, %a;", {"a": x}, {"r": exact.view("u4")})
