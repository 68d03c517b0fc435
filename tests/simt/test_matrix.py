"""Tensor-core instructions against sums done by hand with exact fractions, one element at a time."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from zlib import crc32

import numpy as np
import pytest

from gpulab.simulator import ptx, simt
from gpulab.simulator.observe import Counters
from gpulab.simulator.simt import small_floats
from gpulab.simulator.simt.packed import from_bf16, to_bf16

LANES = np.arange(32)


def run(text: str, inputs: list[np.ndarray], outputs: list[np.ndarray], observers=()) -> list[np.ndarray]:
    """One warp runs `text`; its parameters are pointers to the inputs, then to the outputs."""
    memory = simt.Memory()
    places = [memory.allocate(array.nbytes) for array in (*inputs, *outputs)]
    for place, array in zip(places, inputs, strict=False):
        place.data[:] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
    program = simt.load(ptx.parse(text))
    arguments = struct.pack(f"{len(places)}q", *(p.address for p in places))
    simt.launch(program, (1, 1, 1), (32, 1, 1), arguments, memory, observers=observers)
    return [
        p.data.view(a.dtype).reshape(a.shape).copy()
        for p, a in zip(places[len(inputs) :], outputs, strict=True)
    ]


def kernel(body: str, parameters: int, target: str = "sm_80", shared: int = 0) -> str:
    lines = [f".version 8.0\n.target {target}\n.address_size 64\n.visible .entry warp("]
    lines.append(",\n".join(f".param .u64 p{i}" for i in range(parameters)) + ") {")
    lines.append(".reg .b32 %r<40>, %lane, %at; .reg .f32 %f<40>; .reg .f64 %d<40>; .reg .b64 %p<9>, %q<9>;")
    if shared:
        lines.append(f".shared .align 16 .b8 tile[{shared}];")
    lines.append("mov.u32 %lane, %laneid;")
    lines += [f"ld.param.u64 %p{i}, [p{i}];" for i in range(parameters)]
    return "\n".join([*lines, body, "ret;", "}"]) + "\n"


def fragment(pointer: int, first: int, count: int, register: str, width: int, load: bool) -> str:
    """Load or store `count` registers of each lane, laid out as [lane][register]."""
    kind = {"r": "b32", "f": "f32", "d": "f64"}[register]
    code = [f"mad.wide.u32 %q{pointer}, %lane, {count * width}, %p{pointer};"]
    for i in range(count):
        place, name = f"[%q{pointer}+{i * width}]", f"%{register}{first + i}"
        code.append(f"ld.global.{kind} {name}, {place};" if load else f"st.global.{kind} {place}, {name};")
    return "\n".join(code)


def braces(register: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"%{register}{first + i}" for i in range(count)) + "}"


# ---- who holds what, once more, straight from the manual's formulas ------------------------------------


def a_place(lane: int, i: int, bits: int) -> tuple[int, int]:
    """(row, column) of element i of A for m16."""
    per = 32 // bits
    register, inner = divmod(i, per)
    row = lane // 4 + (8 if register % 2 else 0)
    return row, (lane % 4) * per + inner + (4 * per if register >= 2 else 0)


def b_place(lane: int, i: int, bits: int) -> tuple[int, int]:
    """(row, column) of element i of B."""
    per = 32 // bits
    register, inner = divmod(i, per)
    return (lane % 4) * per + inner + 4 * per * register, lane // 4


def c_place(lane: int, i: int) -> tuple[int, int]:
    return lane // 4 + (8 if i >= 2 else 0), (lane % 4) * 2 + i % 2


# ---- how the cores add -------------------------------------------------------------------------------


def exponent(x: float, smallest: int) -> int:
    return -126 if x == 0 else max(math.frexp(x)[1] - 1, smallest)


def tensor_sum(pairs: list[tuple[float, float]], c: float, smallest: int, bits: int, half: bool) -> float:
    """c + Σ a·b: aligned to the largest exponent, cut to `bits` fraction bits, summed, rounded."""
    top = max(
        [exponent(a, smallest) + exponent(b, smallest) for a, b in pairs]
        + [exponent(c, -14 if half else -126)]
    )
    unit = Fraction(2) ** (top - bits)
    total = sum(math.trunc(Fraction(a) * Fraction(b) / unit) for a, b in pairs) + math.trunc(
        Fraction(c) / unit
    )
    exact = total * unit
    if half:
        return float(np.float64(float(exact)).astype(np.float16))
    nearest = np.float32(float(exact))
    if abs(Fraction(float(nearest))) > abs(exact):
        nearest = np.nextafter(nearest, np.float32(0))
    return float(nearest)


FORMS = {
    # type: element bits, numbers from storage, storage from normal numbers, smallest exponent, k of a whole
    # row
    "f16": (16, lambda w: w.view("f2").astype("f8"), lambda x: x.astype("f2").view("u2"), -14, 16),
    "bf16": (16, lambda w: from_bf16(w.view("i2")).astype("f8"), lambda x: to_bf16(x).view("u2"), -126, 16),
    "tf32": (
        32,
        lambda w: (w & np.uint32(0xFFFFE000)).view("f4").astype("f8"),
        lambda x: x.astype("f4").view("u4"),
        -126,
        8,
    ),
    "e4m3": (
        8,
        lambda w: small_floats.values("e4m3")[w].astype("f8"),
        lambda x: small_floats.encode(x, "e4m3"),
        -6,
        32,
    ),
    "e5m2": (
        8,
        lambda w: small_floats.values("e5m2")[w].astype("f8"),
        lambda x: small_floats.encode(x, "e5m2"),
        -14,
        32,
    ),
}


@pytest.mark.parametrize(
    "target, bits, split", [("sm_75", 24, False), ("sm_80", 24, True), ("sm_90", 25, False)]
)
@pytest.mark.parametrize(
    "type_, k, accumulator",
    [
        ("f16", 16, "f32"),
        ("f16", 8, "f32"),
        ("f16", 16, "f16"),
        ("bf16", 16, "f32"),
        ("bf16", 8, "f32"),
        ("tf32", 8, "f32"),
        ("tf32", 4, "f32"),
    ],
)
def test_mma_adds_as_the_tensor_cores_of_each_generation_do(type_, k, accumulator, target, bits, split):
    check_mma(type_, k, accumulator, target, bits, split)


def check_mma(
    type_: str, k: int, accumulator: str, target: str, bits: int, split: bool, spread: float = 6
) -> None:
    width, numbers, store, smallest, whole = FORMS[type_]
    per = 32 // width
    generator = np.random.default_rng(crc32(f"{type_} {k} {accumulator} {target}".encode()))
    half = accumulator == "f16"
    scale = 2.0 ** generator.uniform(-spread, spread / 2, (16, k))
    a = store(generator.standard_normal((16, k)) * scale)
    b = store(generator.standard_normal((k, 8)))
    c = generator.standard_normal((16, 8)).astype("f2" if half else "f4")
    a_count, b_count, c_count = 16 * k // 32 // per, 8 * k // 32 // per, 2 if half else 4
    fragments = [
        np.array(
            [[place_of(array, a_or_b(lane, i, width)) for i in range(count * per)] for lane in LANES]
        ).astype(array.dtype)
        for array, a_or_b, count in ((a, a_place, a_count), (b, b_place, b_count))
    ]
    c_fragment = np.array([[c[c_place(lane, i)] for i in range(4)] for lane in LANES], c.dtype)
    register = "r" if half else "f"
    body = [fragment(0, 0, a_count, "r", 4, True), fragment(1, 8, b_count, "r", 4, True)]
    body.append(fragment(2, 16, c_count, register, 4, True))
    d = braces(register, 24, c_count)
    operands = f"{d}, {braces('r', 0, a_count)}, {braces('r', 8, b_count)}, {braces(register, 16, c_count)}"
    body.append(f"mma.sync.aligned.m16n8k{k}.row.col.{accumulator}.{type_}.{type_}.{accumulator} {operands};")
    body.append(fragment(3, 24, c_count, register, 4, False))
    (found,) = run(kernel("\n".join(body), 4, target), [*fragments, c_fragment], [np.zeros((32, 4), c.dtype)])
    x, y = numbers(a.reshape(-1)).reshape(16, k), numbers(b.reshape(-1)).reshape(k, 8)
    for lane in range(0, 32, 5):
        for i in range(4):
            row, column = c_place(lane, i)
            pairs = list(zip(map(float, x[row]), map(float, y[:, column]), strict=True))
            parts = [pairs[: k // 2], pairs[k // 2 :]] if split and k == whole else [pairs]
            total = float(c[row, column])
            for part in parts:
                total = tensor_sum(part, total, smallest, bits, half)
            assert float(found[lane, i]) == total, (lane, i, found[lane, i], total)


def place_of(array: np.ndarray, place: tuple[int, int]):
    return array[place]


@pytest.mark.parametrize("type_", ["e4m3", "e5m2"])
def test_fp8_products_keep_13_bits_on_ada(type_):
    """Few enough bits that the sums stay exact: the cut itself is the rule of the 13 fraction bits."""
    _, numbers, store, _, _ = FORMS[type_]
    generator = np.random.default_rng(1)
    a, b = (
        store(generator.integers(-4, 5, (16, 32)).astype("f8")),
        store(generator.integers(-4, 5, (32, 8)).astype("f8")),
    )
    fa = np.array([[a[a_place(lane, i, 8)] for i in range(16)] for lane in LANES], "u1")
    fb = np.array([[b[b_place(lane, i, 8)] for i in range(8)] for lane in LANES], "u1")
    body = [fragment(0, 0, 4, "r", 4, True), fragment(1, 8, 2, "r", 4, True)]
    body += [f"mov.f32 %f{16 + i}, 0f00000000;" for i in range(4)]
    body.append(
        f"mma.sync.aligned.m16n8k32.row.col.f32.{type_}.{type_}.f32 {braces('f', 24, 4)}, "
        f"{braces('r', 0, 4)}, {braces('r', 8, 2)}, {braces('f', 16, 4)};"
    )
    body.append(fragment(2, 24, 4, "f", 4, False))
    (found,) = run(kernel("\n".join(body), 3, "sm_89"), [fa, fb], [np.zeros((32, 4), "f4")])
    exact = numbers(a.reshape(-1)).reshape(16, 32) @ numbers(b.reshape(-1)).reshape(32, 8)
    expected = np.array([[exact[c_place(lane, i)] for i in range(4)] for lane in LANES])
    assert np.array_equal(found, expected)


def test_integer_matrices_multiply_exactly_and_wrap():
    generator = np.random.default_rng(2)
    a, b = generator.integers(-128, 128, (16, 32), "i1"), generator.integers(-128, 128, (32, 8), "i1")
    c = generator.integers(-(2**31), 2**31, (16, 8), "i8").astype("i4")
    fa = np.array([[a[a_place(lane, i, 8)] for i in range(16)] for lane in LANES], "i1")
    fb = np.array([[b[b_place(lane, i, 8)] for i in range(8)] for lane in LANES], "i1")
    fc = np.array([[c[c_place(lane, i)] for i in range(4)] for lane in LANES], "i4")
    body = [
        fragment(0, 0, 4, "r", 4, True),
        fragment(1, 8, 2, "r", 4, True),
        fragment(2, 16, 4, "r", 4, True),
    ]
    body.append(
        f"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {braces('r', 24, 4)}, {braces('r', 0, 4)}, "
        f"{braces('r', 8, 2)}, {braces('r', 16, 4)};"
    )
    body.append(fragment(3, 24, 4, "r", 4, False))
    (found,) = run(kernel("\n".join(body), 4), [fa, fb, fc], [np.zeros((32, 4), "i4")])
    exact = (a.astype("i8") @ b.astype("i8") + c).astype("i4")
    assert np.array_equal(found, np.array([[exact[c_place(lane, i)] for i in range(4)] for lane in LANES]))


def test_double_precision_matrices_are_chains_of_fma():
    generator = np.random.default_rng(3)
    a, b, c = (
        generator.standard_normal((8, 4)),
        generator.standard_normal((4, 8)),
        generator.standard_normal((8, 8)),
    )
    fa = np.array([[a[lane // 4, lane % 4]] for lane in LANES])
    fb = np.array([[b[lane % 4, lane // 4]] for lane in LANES])
    fc = np.array([[c[lane // 4, lane % 4 * 2 + i] for i in range(2)] for lane in LANES])
    body = [fragment(0, 0, 1, "d", 8, True), fragment(1, 1, 1, "d", 8, True), fragment(2, 2, 2, "d", 8, True)]
    body.append("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d4, %d5}, {%d0}, {%d1}, {%d2, %d3};")
    body.append(fragment(3, 4, 2, "d", 8, False))
    (found,) = run(kernel("\n".join(body), 4), [fa, fb, fc], [np.zeros((32, 2))])
    for lane in range(32):
        for i in range(2):
            row, column = lane // 4, lane % 4 * 2 + i
            total = Fraction(c[row, column])
            for k in range(4):
                total = Fraction(float(Fraction(a[row, k]) * Fraction(b[k, column]) + total))
            assert found[lane, i] == float(total)


# ---- moving matrices ---------------------------------------------------------------------------------


def tile_through_shared(move: str) -> str:
    """Each lane stores 16 bytes of the input into shared memory, then `move` reads fragments."""
    return f"""
    mov.u64 %q5, tile;
    mad.wide.u32 %q4, %lane, 16, %p0;
    ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%q4];
    mad.wide.u32 %q6, %lane, 16, %q5;
    st.shared.v4.b32 [%q6], {{%r0, %r1, %r2, %r3}};
    bar.warp.sync -1;
    {move}
    """


@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_gives_each_lane_its_part_of_four_matrices(transposed):
    halves = np.arange(32 * 8, dtype="u2").reshape(4, 8, 8)  # four matrices of 8 rows of 16 bytes
    trans = ".trans" if transposed else ""
    move = f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%r8, %r9, %r10, %r11}}, [%q6];\n"
    move += fragment(1, 8, 4, "r", 4, False)
    counters = Counters()
    (found,) = run(
        kernel(tile_through_shared(move), 2, shared=512), [halves], [np.zeros((32, 8), "u2")], [counters]
    )
    source = halves.transpose(0, 2, 1) if transposed else halves
    expected = np.array(
        [[source[i // 2, lane // 4, lane % 4 * 2 + i % 2] for i in range(8)] for lane in LANES]
    )
    assert np.array_equal(found, expected)
    rows = [
        i for i, instruction in enumerate(counters.counts.instructions) if instruction.parts[0] == "ldmatrix"
    ]
    assert (
        counters.counts.table["wavefronts"][rows[0]] == 4
    )  # 8 rows of 16 bytes are one pass, four matrices four


def test_stmatrix_is_the_way_back():
    halves = np.arange(32 * 8, dtype="u2").reshape(4, 8, 8)
    move = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r8, %r9, %r10, %r11}, [%q6];\n"
    move += "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%q6], {%r8, %r9, %r10, %r11};\n"
    move += "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%q6];\n" + fragment(1, 0, 4, "r", 4, False)
    (found,) = run(kernel(tile_through_shared(move), 2, "sm_90", 512), [halves], [np.zeros((4, 8, 8), "u2")])
    assert np.array_equal(found, halves.transpose(0, 2, 1))


@pytest.mark.parametrize("count, transposed", [(1, ""), (2, ".trans"), (4, "")])
def test_stmatrix_takes_one_two_or_four_matrices_and_generic_addresses(count, transposed):
    halves = np.arange(32 * 8, dtype="u2").reshape(4, 8, 8)
    names = ", ".join(f"%r{8 + i}" for i in range(count))
    move = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r8, %r9, %r10, %r11}, [%q6];\n"
    move += "mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0;\n"
    move += "st.shared.v4.b32 [%q6], {%r0, %r1, %r2, %r3}; bar.warp.sync -1; cvta.shared.u64 %q7, %q6;\n"
    move += f"stmatrix.sync.aligned.m8n8.x{count}{transposed}.b16 [%q7], {{{names}}};\n"
    move += "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%q6];\n" + fragment(1, 0, 4, "r", 4, False)
    (found,) = run(kernel(tile_through_shared(move), 2, "sm_90", 512), [halves], [np.zeros((4, 8, 8), "u2")])
    expected = halves.transpose(0, 2, 1) if transposed else halves
    assert np.array_equal(found[:count], expected[:count])
    assert not found[count:].any()


def test_matrices_of_bytes_are_refused_with_the_capability_that_has_them():
    move = "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%q6], {%r8};"
    with pytest.raises(simt.UnsupportedInstruction, match=r"others need 10\.0"):
        run(kernel(move, 0, "sm_90"), [], [])


# ---- copies that arrive later -----------------------------------------------------------------------------


def copying(wait: str) -> str:
    return f"""
    mov.u64 %q5, tile;
    mad.wide.u32 %q4, %lane, 16, %p0;
    mad.wide.u32 %q6, %lane, 16, %q5;
    cp.async.cg.shared.global [%q6], [%q4], 16;
    cp.async.commit_group;
    {wait}
    ld.shared.b32 %r0, [%q6+4];
    {fragment(1, 0, 1, "r", 4, False)}
    """


@pytest.mark.parametrize(
    "wait, arrived",
    [
        ("cp.async.wait_group 0;", True),
        ("cp.async.wait_all;", True),
        ("cp.async.wait_group 1;", False),
        ("", False),
    ],
)
def test_an_asynchronous_copy_is_there_only_after_its_wait(wait, arrived):
    words = np.arange(128, dtype="i4")
    (found,) = run(kernel(copying(wait), 2, shared=512), [words], [np.zeros(32, "i4")])
    assert np.array_equal(found, LANES * 4 + 1 if arrived else np.full(32, -1))


def test_a_short_source_is_filled_up_with_zeros():
    body = copying("cp.async.wait_all;").replace("[%q4], 16;", "[%q4], 16, %r9;")
    body = "setp.lt.u32 %keep, %lane, 4; selp.b32 %r9, 16, 0, %keep;" + body
    text = kernel(body, 2, shared=512).replace(".reg .f32", ".reg .pred %keep; .reg .f32")
    (found,) = run(text, [np.arange(128, dtype="i4") + 7], [np.zeros(32, "i4")])
    assert np.array_equal(found, np.where(LANES < 4, LANES * 4 + 8, 0))
