"""``cvt.rs`` against exact fractions: every number, every random bit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from gpulab.simulator import ptx, simt
from gpulab.simulator.compile.ptxas import link

from .drawing import floats, seeds
from .launching import element, kernel, launch

# Of each format: bits of the mantissa, smallest exponent, largest number, its NaN, bits of a code, random bits.
FORMATS = {
    "f16": (10, -14, 65504.0, 0x7FFF, 16, 13),
    "bf16": (7, -126, 3.3895313892515355e38, 0x7FFF, 16, 16),
    "e4m3": (3, -6, 448.0, 0x7F, 8, 8),
    "e5m2": (2, -14, 57344.0, 0x7F, 8, 8),
    "e2m3": (3, 0, 7.5, None, 6, 8),
    "e3m2": (2, -2, 28.0, None, 6, 8),
    "e2m1": (1, 0, 6.0, None, 4, 8),
}


def one(x: float, form: str, random: int, satfinite: bool) -> int:
    """The code of `x`: its bits below the last one that the format keeps are cut to as many as are random;
    their sum decides."""
    mantissa, smallest, largest, nan, width, bits = FORMATS[form]
    sign = 1 << width - 1
    negative = sign if math.copysign(1.0, x) < 0 else 0
    if math.isnan(x):  # that of 8 bits keeps its sign, as cvt.rn's does
        return code_of(largest, form) if nan is None else nan | (negative if width == 8 else 0)
    infinite = code_of(largest, form) + 1
    if math.isinf(x):
        return negative | infinite - satfinite
    size = abs(Fraction(x))
    exponent = max(math.frexp(float(size))[1] - 1 if size else smallest, smallest)
    unit = Fraction(2) ** (exponent - mantissa)
    steps, rest = divmod(size, unit)
    steps += math.floor(rest / unit * 2**bits) + random >= 2**bits
    code = ((exponent - smallest) << mantissa) + int(steps)
    return negative | min(code, infinite - satfinite)


def code_of(x: float, form: str) -> int:
    mantissa, smallest, *_ = FORMATS[form]
    exponent = math.frexp(x)[1] - 1
    return ((exponent - smallest) << mantissa) + int(x / 2.0 ** (exponent - mantissa))


def converted(opcode: str, numbers: list[np.ndarray], random: np.ndarray) -> np.ndarray:
    names = [f"n{i}" for i in range(len(numbers))]
    count = len(random)
    body = []
    for i, name in enumerate(names):
        body += [element(name, "%tid"), f"ld.global.f32 %f{i}, [%rd31];"]
    sources = ", ".join(f"%f{i}" for i in range(len(numbers)))
    if len(numbers) == 4:
        sources = "{" + sources + "}"
    target = "%h0" if "e2m1x4" in opcode else "%r1"
    body += [element("random", "%tid"), "ld.global.b32 %r0, [%rd31];", f"{opcode} {target}, {sources}, %r0;"]
    if target == "%h0":
        body.append("cvt.u32.u16 %r1, %h0;")
    body += [element("out", "%tid"), "st.global.b32 [%rd31], %r1;"]
    arrays = dict(zip(names, numbers, strict=True)) | {"random": random, "out": np.zeros(count, np.uint32)}
    return launch(kernel("\n".join(body), " ".join(arrays)), arrays, block=count)["out"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("relu", ["", ".relu"])
@settings(max_examples=15)
@given(seed=seeds)
def test_random_bits_are_added_to_what_is_cut(form, relu, seed):
    generator = np.random.default_rng(seed)
    width, bits = FORMATS[form][4:]
    count = 2 if width == 16 else 4
    numbers = [floats(generator, "f4") for _ in range(count)]
    random = generator.integers(0, 2**32, 96, np.uint32)
    satfinite = width < 16 or bool(seed & 1)
    opcode = f"cvt.rs{relu}{'.satfinite' if satfinite else ''}.{form}x{count}.f32"
    found = converted(opcode, numbers, random)
    step, packed = (16, 16) if count == 2 else (8, 4 if form == "e2m1" else 8)
    for i in range(96):
        for place in range(count):  # the first number is the uppermost
            x = float(numbers[count - 1 - place][i])
            if relu and not x > 0:
                x = 0.0
            drawn = int(random[i]) >> step * place & (1 << bits) - 1
            code = int(found[i]) >> packed * place & (1 << packed) - 1
            assert code == one(x, form, drawn, satfinite), (x, drawn)


def test_a_number_between_two_others_goes_up_as_often_as_it_is_near_the_upper_one():
    random = np.arange(256, dtype=np.uint32)
    for x, share in ((1.0, 0.0), (1.125, 0.25), (1.25, 0.5), (1.375, 0.75), (5.5, 0.75)):
        numbers = [np.full(256, x, np.float32)] * 4
        codes = converted("cvt.rs.satfinite.e2m1x4.f32", numbers, random) & 15
        assert (codes != codes.min()).mean() == share


def test_the_assembler_takes_every_form_for_the_large_gpus_of_blackwell_alone():
    bodies = []
    for form, facts in FORMATS.items():
        for relu in ("", ".relu"):
            if facts[4] == 16:
                bodies += [
                    f"cvt.rs{relu}{sat}.{form}x2.f32 %r1, %f0, %f1, %r0;" for sat in ("", ".satfinite")
                ]
            else:
                target = "%h0" if form == "e2m1" else "%r1"
                bodies.append(f"cvt.rs{relu}.satfinite.{form}x4.f32 {target}, {{%f0, %f1, %f2, %f3}}, %r0;")
    text = kernel("\n".join(bodies)).replace(".version 8.0", ".version 8.8")
    text = text.replace("%tid", "%place").replace("%place.x", "%tid.x")  # a name that ptxas keeps for itself
    simt.load(ptx.parse(text))
    for cc in ((10, 0), (10, 3)):
        log, code = link(text.replace("sm_80", f"sm_{cc[0]}{cc[1]}a"), cc)
        assert code, log
    with pytest.raises(Exception, match=r"not supported on .target 'sm_120a'"):
        link(text.replace("sm_80", "sm_120a"), (12, 0))
