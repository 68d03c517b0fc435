"""Integer rows against the scalar evaluation, over whole ranges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from .drawing import integers, seeds
from .running import assert_runs
from .scalar import quotient, wrap


def dtype_of(type_: str) -> str:
    return {"s": "i", "u": "u", "b": "u"}[type_[0]] + str(int(type_[1:]) // 8)


def field(value: int, start: int, length: int, bits: int, signed: bool) -> int:
    start, length = start & 255, length & 255
    raw = value & ((1 << bits) - 1)
    taken = [raw >> i & 1 for i in range(start, min(start + length, bits))]
    result = sum(bit << i for i, bit in enumerate(taken))
    if signed and length:
        sign = raw >> min(start + length - 1, bits - 1) & 1
        if sign:
            result |= ((1 << bits) - 1) ^ ((1 << len(taken)) - 1)
    return result


def insert(a: int, b: int, start: int, length: int, bits: int) -> int:
    start, length = start & 255, length & 255
    for i in range(length):
        if start + i < bits:
            b = b & ~(1 << start + i) | (a >> i & 1) << start + i
    return b


def permute(a: int, b: int, selector: int) -> int:
    source = (a & 0xFFFFFFFF).to_bytes(4, "little") + (b & 0xFFFFFFFF).to_bytes(4, "little")
    octets = []
    for i in range(4):
        nibble = selector >> 4 * i & 15
        octet = source[nibble & 7]
        octets.append((0xFF if octet & 0x80 else 0) if nibble & 8 else octet)
    return int.from_bytes(bytes(octets), "little")


# opcode, operand types, result type, what it means on Python integers
ROWS = [
    ("add.s32", ("s32", "s32"), "s32", lambda a, b: a + b),
    ("add.u64", ("u64", "u64"), "u64", lambda a, b: a + b),
    ("add.s16", ("s16", "s16"), "s16", lambda a, b: a + b),
    ("add.sat.s32", ("s32", "s32"), "s32", lambda a, b: max(-(2**31), min(2**31 - 1, a + b))),
    ("sub.s64", ("s64", "s64"), "s64", lambda a, b: a - b),
    ("sub.sat.s32", ("s32", "s32"), "s32", lambda a, b: max(-(2**31), min(2**31 - 1, a - b))),
    ("mul.lo.s32", ("s32", "s32"), "s32", lambda a, b: a * b),
    ("mul.lo.u64", ("u64", "u64"), "u64", lambda a, b: a * b),
    ("mul.hi.s32", ("s32", "s32"), "s32", lambda a, b: a * b >> 32),
    ("mul.hi.u32", ("u32", "u32"), "u32", lambda a, b: a * b >> 32),
    ("mul.hi.s64", ("s64", "s64"), "s64", lambda a, b: a * b >> 64),
    ("mul.hi.u64", ("u64", "u64"), "u64", lambda a, b: a * b >> 64),
    ("mul.wide.s32", ("s32", "s32"), "s64", lambda a, b: a * b),
    ("mul.wide.u32", ("u32", "u32"), "u64", lambda a, b: a * b),
    ("mul.wide.u16", ("u16", "u16"), "u32", lambda a, b: a * b),
    ("mul24.lo.s32", ("s32", "s32"), "s32", lambda a, b: wrap(a, 24, True) * wrap(b, 24, True)),
    ("mad.lo.s32", ("s32", "s32", "s32"), "s32", lambda a, b, c: a * b + c),
    ("mad.hi.u32", ("u32", "u32", "u32"), "u32", lambda a, b, c: (a * b >> 32) + c),
    ("mad.wide.s32", ("s32", "s32", "s64"), "s64", lambda a, b, c: a * b + c),
    ("sad.s32", ("s32", "s32", "s32"), "s32", lambda a, b, c: c + abs(a - b)),
    ("div.s32", ("s32", "s32"), "s32", lambda a, b: quotient(a, b) if b else -1),
    ("div.u64", ("u64", "u64"), "u64", lambda a, b: a // b if b else -1),
    ("rem.s64", ("s64", "s64"), "s64", lambda a, b: a - b * quotient(a, b) if b else a),
    ("rem.u32", ("u32", "u32"), "u32", lambda a, b: a % b if b else a),
    ("neg.s32", ("s32",), "s32", lambda a: -a),
    ("abs.s64", ("s64",), "s64", abs),
    ("min.s32", ("s32", "s32"), "s32", min),
    ("min.u32", ("u32", "u32"), "u32", min),
    ("max.s64", ("s64", "s64"), "s64", max),
    ("max.u16", ("u16", "u16"), "u16", max),
    ("and.b32", ("b32", "b32"), "b32", lambda a, b: a & b),
    ("or.b64", ("b64", "b64"), "b64", lambda a, b: a | b),
    ("xor.b32", ("b32", "b32"), "b32", lambda a, b: a ^ b),
    ("not.b64", ("b64",), "b64", lambda a: ~a),
    ("cnot.b32", ("b32",), "b32", lambda a: int(a == 0)),
    ("shl.b32", ("b32", "u32"), "b32", lambda a, n: a << n if n < 32 else 0),
    ("shl.b64", ("b64", "u32"), "b64", lambda a, n: a << n if n < 64 else 0),
    ("shl.b16", ("b16", "u32"), "b16", lambda a, n: a << n if n < 16 else 0),
    ("shr.u32", ("u32", "u32"), "u32", lambda a, n: a >> min(n, 32)),
    ("shr.b64", ("b64", "u32"), "b64", lambda a, n: a >> min(n, 64)),  # no sign, so zeros come in
    ("shr.b32", ("b32", "u32"), "b32", lambda a, n: a >> min(n, 32)),
    ("shr.b16", ("b16", "u32"), "b16", lambda a, n: a >> min(n, 16)),
    ("shr.s32", ("s32", "u32"), "s32", lambda a, n: a >> min(n, 31)),
    ("shr.s64", ("s64", "u32"), "s64", lambda a, n: a >> min(n, 63)),
    ("shr.s16", ("s16", "u32"), "s16", lambda a, n: a >> min(n, 15)),
    ("shf.l.wrap.b32", ("b32", "b32", "u32"), "b32", lambda a, b, n: (b << 32 | a) << (n & 31) >> 32),
    ("shf.l.clamp.b32", ("b32", "b32", "u32"), "b32", lambda a, b, n: (b << 32 | a) << min(n, 32) >> 32),
    ("shf.r.wrap.b32", ("b32", "b32", "u32"), "b32", lambda a, b, n: (b << 32 | a) >> (n & 31)),
    ("shf.r.clamp.b32", ("b32", "b32", "u32"), "b32", lambda a, b, n: (b << 32 | a) >> min(n, 32)),
    ("popc.b32", ("b32",), "s32", lambda a: a.bit_count()),
    ("popc.b64", ("b64",), "s32", lambda a: a.bit_count()),
    ("clz.b32", ("b32",), "s32", lambda a: 32 - a.bit_length()),
    ("clz.b64", ("b64",), "s32", lambda a: 64 - a.bit_length()),
    ("brev.b32", ("b32",), "b32", lambda a: int(f"{a:032b}"[::-1], 2)),
    ("brev.b64", ("b64",), "b64", lambda a: int(f"{a:064b}"[::-1], 2)),
    ("bfind.u32", ("u32",), "s32", lambda a: a.bit_length() - 1),
    ("bfind.s32", ("s32",), "s32", lambda a: (a if a >= 0 else ~a).bit_length() - 1),
    ("bfind.shiftamt.u32", ("u32",), "s32", lambda a: 32 - a.bit_length() if a else -1),
    ("bfe.u32", ("u32", "u32", "u32"), "u32", lambda a, s, n: field(a, s, n, 32, False)),
    ("bfe.s32", ("s32", "u32", "u32"), "s32", lambda a, s, n: field(a, s, n, 32, True)),
    ("bfe.u64", ("u64", "u32", "u32"), "u64", lambda a, s, n: field(a, s, n, 64, False)),
    ("bfi.b32", ("b32", "b32", "u32", "u32"), "b32", lambda a, b, s, n: insert(a, b, s, n, 32)),
    ("bfi.b64", ("b64", "b64", "u32", "u32"), "b64", lambda a, b, s, n: insert(a, b, s, n, 64)),
    ("prmt.b32", ("b32", "b32", "b32"), "b32", permute),
    (
        "dp4a.u32.u32",
        ("u32", "u32", "u32"),
        "u32",
        lambda a, b, c: c + sum((a >> 8 * i & 255) * (b >> 8 * i & 255) for i in range(4)),
    ),
    (
        "dp4a.s32.s32",
        ("u32", "u32", "s32"),
        "s32",
        lambda a, b, c: c + sum(wrap(a >> 8 * i, 8, True) * wrap(b >> 8 * i, 8, True) for i in range(4)),
    ),
    ("lop3.b32", ("b32", "b32", "b32", 0x96), "b32", lambda a, b, c: a ^ b ^ c),
    ("lop3.b32", ("b32", "b32", "b32", 0xE8), "b32", lambda a, b, c: a & b | a & c | b & c),
    ("cvt.s64.s32", ("s32",), "s64", lambda a: a),
    ("cvt.u64.u32", ("u32",), "u64", lambda a: a),
    ("cvt.u32.u64", ("u64",), "u32", lambda a: a),
    ("cvt.s8.s32", ("s32",), "s32", lambda a: wrap(a, 8, True)),
    ("cvt.u16.u32", ("u32",), "u16", lambda a: a),
    ("cvt.sat.u8.s32", ("s32",), "u32", lambda a: max(0, min(255, a))),
    ("cvt.sat.s32.s64", ("s64",), "s32", lambda a: max(-(2**31), min(2**31 - 1, a))),
]


@pytest.mark.parametrize(
    "opcode, types, result, meaning", ROWS, ids=[f"{r[0]}-{i}" for i, r in enumerate(ROWS)]
)
def test_an_integer_operation_means_what_the_manual_says(opcode, types, result, meaning):
    drawn = [t for t in types if isinstance(t, str)]

    @settings(max_examples=6, deadline=None)
    @given(seeds)
    def run(seed):
        generator = np.random.default_rng(seed)
        columns = [integers(generator, int(t[1:]), t[0] == "s") for t in drawn]
        names = "abcd"[: len(columns)]
        inputs = {n: np.array(c, dtype_of(t)) for n, c, t in zip(names, columns, drawn, strict=True)}
        bits, signed = int(result[1:]), result[0] == "s"
        answers = [wrap(meaning(*row), bits, signed) for row in zip(*columns, strict=True)]
        operands = [f"%{n}" for n in names] + [str(t) for t in types if not isinstance(t, str)]
        assert_runs(
            f"{opcode} %r, {', '.join(operands)};", inputs, {"r": np.array(answers, dtype_of(result))}
        )

    run()


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_a_carry_chain_adds_and_subtracts_128_bit_numbers(seed):
    generator = np.random.default_rng(seed)
    low_a, high_a, low_b, high_b = (integers(generator, 64, False) for _ in range(4))
    body = "add.cc.u64 %s, %a, %c; addc.u64 %t, %b, %d; sub.cc.u64 %u, %a, %c; subc.u64 %v, %b, %d;"
    body = body.replace("%t", "%t_").replace("%s", "%s_")
    inputs = {n: np.array(v, "u8") for n, v in zip("abcd", (low_a, high_a, low_b, high_b), strict=True)}
    sums = [a + (b << 64) + c + (d << 64) for a, b, c, d in zip(low_a, high_a, low_b, high_b, strict=True)]
    differences = [
        a + (b << 64) - c - (d << 64) for a, b, c, d in zip(low_a, high_a, low_b, high_b, strict=True)
    ]
    low = 2**64 - 1
    expected = {
        "s_": np.array([x & low for x in sums], "u8"),
        "t_": np.array([x >> 64 & low for x in sums], "u8"),
        "u": np.array([x & low for x in differences], "u8"),
        "v": np.array([x >> 64 & low for x in differences], "u8"),
    }
    assert_runs(body, inputs, expected)


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_a_multiply_add_hands_its_carry_on(seed):
    generator = np.random.default_rng(seed)
    a, b, c = (integers(generator, 32, False) for _ in range(3))
    body = "mad.lo.cc.u32 %lo, %a, %b, %c; madc.hi.u32 %hi, %a, %b, 0;"
    exact = [x * y + z for x, y, z in zip(a, b, c, strict=True)]
    expected = {
        "lo": np.array([e & 0xFFFFFFFF for e in exact], "u4"),
        "hi": np.array([e >> 32 & 0xFFFFFFFF for e in exact], "u4"),
    }
    assert_runs(body, {n: np.array(v, "u4") for n, v in zip("abc", (a, b, c), strict=True)}, expected)


def test_vector_moves_pack_the_first_item_lowest():
    low, high = np.arange(64, dtype="u4"), np.arange(64, dtype="u4")[::-1].copy() + 7
    packed = low.astype("u8") | high.astype("u8") << np.uint64(32)
    assert_runs("mov.b64 %r, {%a, %b};", {"a": low, "b": high}, {"r": packed})
    assert_runs("mov.b64 {%a, %b}, %r;", {"r": packed}, {"a": low, "b": high})


def test_a_guarded_instruction_leaves_the_other_lanes_alone():
    a = np.arange(64, dtype="i4")
    body = "mov.u32 %r, 5; setp.lt.s32 %p1, %a, 10; @%p1 mov.u32 %r, 1; @!%p1 add.s32 %r, %r, %a;"
    assert_runs(body, {"a": a}, {"r": np.where(a < 10, 1, 5 + a).astype("i4")})
