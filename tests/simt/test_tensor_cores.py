"""``tcgen05`` as PTX: Tensor Memory, every form of the product against a scalar model, and what goes wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulab.simulator import ptx, simt
from gpulab.simulator.compile.ptxas import link
from gpulab.simulator.simt.errors import Endless, OutOfBounds, WrongBarrier, WrongMatrix, WrongTensorMemory
from gpulab.simulator.simt.matrix_descriptors import MatrixDescriptor

from .tensor_core_kernels import COLUMNS, SHARED_BYTES, instruction_descriptor, kernel, run, shared_descriptor
from .warpgroup_model import BITS, SMALLEST, in_shared, number, one_scaled_sum, one_sum
from .wgmma_kernels import random_words

MMA = "tcgen05.mma.cta_group::{group}.kind::{kind} [%tmem], %first, %second, %idesc, {more}%p;"
# (kind, its number for A and B, the name of the type), as in the manual's table of the instruction descriptor.
INPUTS = {
    "f16": ("f16", 0), "bf16": ("f16", 1), "tf32": ("tf32", 2), "e4m3": ("f8f6f4", 0), "e5m2": ("f8f6f4", 1),
    "u8": ("i8", 0), "s8": ("i8", 1),
}  # fmt: skip
D_NUMBERS = {"f16": 0, "f32": 1, "s32": 2}


def mma(kind: str = "f16", group: int = 1, more: str = "") -> str:
    return MMA.format(kind=kind, group=group, more=more)


def image_of(generator: np.random.Generator, type_: str, blocks: int = 1) -> np.ndarray:
    words = random_words(generator, blocks * SHARED_BYTES * 8 // BITS[type_], type_)
    return np.ascontiguousarray(words).view(np.uint8).reshape(blocks, SHARED_BYTES)


def lane_of(row: int, m: int) -> int:
    """The lane of a row of D in one block's Tensor Memory: layouts D (128 rows) and F (64) of the manual."""
    return row if m == 128 else row // 16 * 32 + row % 16


# ---- products ------------------------------------------------------------------------------------


@st.composite
def products(draw):
    a = draw(st.sampled_from(sorted(INPUTS)))
    kind = INPUTS[a][0]
    b = draw(st.sampled_from([name for name in INPUTS if INPUTS[name][0] == kind]))
    d = "s32" if kind == "i8" else draw(st.sampled_from(["f32", "f16"] if kind != "tf32" else ["f32"]))
    m = draw(st.sampled_from([64, 128]))
    n = draw(st.sampled_from(range(16, 257, 16) if m == 128 else range(8, 257, 8)))
    majors = tuple(draw(st.integers(0, 1)) if kind == "f16" else 0 for _ in range(2))
    shapes = [draw(descriptors(rows, not major)) for rows, major in zip((m, n), majors, strict=True)]
    negates = (draw(st.integers(0, 1)), draw(st.integers(0, 1))) if kind != "i8" else (0, 0)
    return a, b, d, m, n, majors, shapes, negates, draw(st.booleans()), draw(st.integers(0, 2**32 - 1))


@st.composite
def descriptors(draw, rows: int, k_major: bool) -> MatrixDescriptor:
    step = st.integers(1, 64).map(lambda units: 16 * units)
    return MatrixDescriptor(
        draw(st.integers(0, 256)) * 16, draw(step), draw(step), 0, draw(st.sampled_from([16, 32, 64, 128]))
    )


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(products())
def test_every_product_is_what_a_scalar_model_computes(drawn):
    a, b, d, m, n, majors, (first, second), negates, adds, seed = drawn
    generator = np.random.default_rng(seed)
    image = image_of(generator, a)
    if a != b:
        image &= 0x7B  # of one size, so any bits of the one are some of the other
    before = before_of(generator, d)
    kind = INPUTS[a][0]
    found = run(
        kernel(mma(kind)),
        image,
        before,
        first=shared_descriptor(first.start, first.leading, first.stride, first.span),
        second=shared_descriptor(second.start, second.leading, second.stride, second.span),
        descriptor=instruction_descriptor(m, n, D_NUMBERS[d], INPUTS[a][1], INPUTS[b][1], negates, majors),
        adds=adds,
    )[0]
    memory, size, k = image.tobytes(), BITS[a] // 8, 256 // BITS[a]
    signs = [-1 if negate else 1 for negate in negates]
    for row, column in generator.integers(0, (m, n), (6, 2)).tolist():
        left = [signs[0] * number(in_shared(memory, first, row, i, size, not majors[0]), a) for i in range(k)]
        right = [
            signs[1] * number(in_shared(memory, second, column, i, size, not majors[1]), b) for i in range(k)
        ]
        lane = lane_of(row, m)
        start = value_of(before[0, lane, column], d) if adds else 0.0
        assert same(value_of(found[lane, column], d), expected(left, right, start, a, b, d))
    others = np.ones(COLUMNS, bool)
    others[:n] = False
    assert (found[:, others] == before[0][:, others]).all(), "columns behind D stay as they were"


def before_of(generator: np.random.Generator, d: str) -> np.ndarray:
    values = generator.standard_normal((1, 128, COLUMNS)) * 100
    if d == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.uint32)
    return values.astype("f4" if d == "f32" else "i4").view(np.uint32)


def value_of(word: np.uint32, d: str) -> float:
    if d == "f16":
        return float(np.uint16(word & 0xFFFF).view(np.float16))
    return float(np.uint32(word).view(np.float32 if d == "f32" else np.int32))


def expected(left: list[float], right: list[float], start: float, a: str, b: str, d: str) -> float:
    if d == "s32":
        limit = 2**31
        return (int(sum(x * y for x, y in zip(left, right, strict=True)) + start) + limit) % 2**32 - limit
    return one_sum(left, right, start, (SMALLEST[a], SMALLEST[b], -14 if d == "f16" else -126), d, False)


def same(found: float, wanted: float) -> bool:
    return found == wanted or (math.isnan(found) and math.isnan(wanted))


PLAIN = {
    "first": shared_descriptor(0, 128, 256),
    "second": shared_descriptor(16384, 128, 256),
    "descriptor": instruction_descriptor(128, 64, 1, 0, 0),
}


def halves(seed: int = 1, blocks: int = 1) -> np.ndarray:
    """Small whole numbers as float16 all over shared memory."""
    values = np.random.default_rng(seed).integers(-3, 4, (blocks, SHARED_BYTES // 2)).astype(np.float16)
    return values.view(np.uint8).reshape(blocks, SHARED_BYTES)


def operand(image: np.ndarray, start: int, rows: int) -> np.ndarray:
    """A K-major operand (rows, 16) of float16 without a swizzle, its offsets 128 and 256."""
    words = image.view(np.float16)
    i, k = np.arange(rows)[:, None], np.arange(16)
    return words[(start + i // 8 * 256 + k // 8 * 128 + i % 8 * 16 + k % 8 * 2) // 2].astype(np.float64)


def test_a_in_tensor_memory_is_multiplied_as_it_is_in_shared_memory():
    image = halves()
    a, b = operand(image[0], 0, 128), operand(image[0], 16384, 64)
    before = np.zeros((1, 128, COLUMNS), np.uint32)
    before[0, :, 256:264] = a.astype(np.float16).view(np.uint32)  # two numbers in each word
    text = mma().replace("%first", "[%r7]")
    found = run(kernel("add.u32 %r7, %tmem, 256;\n" + text), image, before, **PLAIN)[0]
    assert (found[:, :64].view(np.float32) == a @ b.T).all()


def test_lanes_that_are_switched_off_keep_their_sums():
    image = halves()
    off = "mov.u32 %v0, 0x5; mov.u32 %v1, 0; mov.u32 %v2, -1; mov.u32 %v3, 0;"
    before = np.full((1, 128, COLUMNS), 7, np.float32).view(np.uint32)
    found = run(kernel(off + mma(more="{%v0, %v1, %v2, %v3}, ")), image, before, **PLAIN)[0].view(np.float32)
    kept = np.zeros(128, bool)
    kept[[0, 2, *range(64, 96)]] = True
    product = operand(image[0], 0, 128) @ operand(image[0], 16384, 64).T
    assert (found[kept, :64] == 7).all()
    assert (found[~kept, :64] == product[~kept]).all()


def test_d_can_be_scaled_before_it_is_added():
    image = halves()
    before = np.full((1, 128, COLUMNS), 48, np.float32).view(np.uint32)
    text = mma().replace("%p;", "%p, 3;")
    found = run(kernel(text), image, before, adds=True, **PLAIN)[0].view(np.float32)
    product = operand(image[0], 0, 128) @ operand(image[0], 16384, 64).T
    assert (found[:, :64] == product + 48 / 8).all()


@pytest.mark.parametrize("m", [128, 256])
def test_a_pair_of_blocks_multiplies_with_half_of_the_operands_each(m):
    """Layouts A (256 rows) and B (128 rows) of the manual."""
    n = 64
    image = halves(blocks=2)
    found = run(
        kernel(mma(group=2), group=2),
        image,
        np.zeros((2, 128, COLUMNS), np.uint32),
        **PLAIN | {"descriptor": instruction_descriptor(m, n, 1, 0, 0)},
    ).view(np.float32)
    b = np.concatenate([operand(image[i], 16384, n // 2) for i in range(2)])
    for block in range(2):
        product = operand(image[block], 0, m // 2) @ b.T
        if m == 256:
            assert (found[block, :, :n] == product).all()
        else:
            assert (found[block, :64, : n // 2] == product[:, : n // 2]).all()
            assert (found[block, 64:, : n // 2] == product[:, n // 2 :]).all()


@pytest.mark.parametrize(
    ("kind", "step", "scale", "codes"),
    [
        ("mxf4nvf4", 16, "ue4m3", (0x30, 0x40)),
        ("mxf4", 32, "ue8m0", (124, 131)),
        ("mxf4nvf4", 16, "ue4m3", (0x08, 0x7F)),  # from 2⁻⁶ to 448
        ("mxf4nvf4", 16, "ue8m0", (97, 157)),  # so far apart that smaller groups lose bits
        ("mxf4", 32, "ue8m0", (97, 157)),
    ],
)
def test_numbers_of_four_bits_are_scaled_by_blocks(kind, step, scale, codes):
    """The scales of row r are in lane r mod 32 and column r // 32, a byte for each block along k."""
    generator = np.random.default_rng(3)
    image = generator.integers(0, 256, (1, SHARED_BYTES), np.uint8)
    before = np.zeros((1, 128, COLUMNS), np.uint32)
    before[0, :, :64] = generator.standard_normal((128, 64)).astype(np.float32).view(np.uint32)
    codes = generator.integers(*codes, (192, 4))
    words = np.ascontiguousarray(codes.astype(np.uint8)).view(np.uint32)[:, 0]
    for row in range(128):
        before[0, row % 32, 256 + row // 32] = words[row]
    for row in range(64):
        before[0, row % 32, 260 + row // 32] = words[128 + row]
    magnitudes = [0, 0.5, 1, 1.5, 2, 3, 4, 6]

    def values(start: int, rows: int) -> np.ndarray:
        i, k = np.arange(rows)[:, None], np.arange(32)
        octets = image[0][start + i // 8 * 256 + k // 16 * 128 + i % 8 * 16 + k % 16]
        nibbles = np.stack([octets & 15, octets >> 4], axis=-1).reshape(rows, 64)
        return np.array([*magnitudes, *(-x for x in magnitudes)])[nibbles]

    def scales(rows: slice) -> np.ndarray:
        chosen = codes[rows, : 64 // step]
        found = (
            2.0 ** (chosen - 127)
            if scale == "ue8m0"
            else np.vectorize(lambda c: number(int(c), "e4m3"))(chosen)
        )
        return found.repeat(step, axis=1)

    blocks = ".block_scale" + (".block16" if step == 16 else ".block32")
    ask = (
        "add.u32 %v0, %tmem, 256; add.u32 %v1, %tmem, 260;\n"
        f"tcgen05.mma.cta_group::1.kind::{kind}{blocks} [%tmem], %first, %second, %idesc, [%v0], [%v1], %p;"
    )
    descriptor = instruction_descriptor(128, 64, 0, 1, 1) | (scale == "ue8m0") << 23
    found = run(kernel(ask), image, before, adds=True, **PLAIN | {"descriptor": descriptor})[0]
    a, of_a = values(0, 128).tolist(), scales(slice(0, 128)).tolist()
    b, of_b = values(16384, 64).tolist(), scales(slice(128, 192)).tolist()
    for i, j in generator.integers(0, (128, 64), (200, 2)).tolist():
        start = value_of(before[0, i, j], "f32")
        assert value_of(found[i, j], "f32") == one_scaled_sum(a[i], b[j], of_a[i], of_b[j], start)


# By their number in the descriptor: bits of a number, of its exponent and mantissa, and the exponent's bias.
SMALL = {3: (6, 2, 3, 1), 4: (6, 3, 2, 3), 5: (4, 2, 1, 1)}


def small_number(code: int, exponent_bits: int, mantissa_bits: int, bias: int) -> float:
    exponent = code >> mantissa_bits & (1 << exponent_bits) - 1
    fraction = (code & (1 << mantissa_bits) - 1) / (1 << mantissa_bits)
    size = math.ldexp(1 + fraction, exponent - bias) if exponent else math.ldexp(fraction, 1 - bias)
    return -size if code >> exponent_bits + mantissa_bits & 1 else size


def padded(image: np.ndarray, start: int, row: int, type_number: int) -> list[float]:
    """32 numbers of a row, 16 of them side by side at the beginning of each 16 bytes, the rest is padding."""
    found = []
    for k in range(32):
        piece = start + row // 8 * 256 + k // 16 * 128 + row % 8 * 16
        if type_number == 0:
            found.append(number(int(image[piece + k % 16]), "e4m3"))
            continue
        bits, *form = SMALL[type_number]
        word = int.from_bytes(image[piece : piece + 16].tobytes(), "little")
        found.append(small_number(word >> bits * (k % 16) & (1 << bits) - 1, *form))
    return found


@pytest.mark.parametrize(("of_a", "of_b"), [(3, 3), (4, 3), (5, 5), (5, 0), (0, 4), (3, 5)])
def test_numbers_of_six_and_four_bits_lie_padded_and_are_multiplied_as_those_of_eight(of_a, of_b):
    generator = np.random.default_rng(of_a + 10 * of_b)
    image = image_of(generator, "e4m3") & 0x7B  # no NaN where a type has one
    descriptor = instruction_descriptor(128, 64, 1, of_a, of_b)
    found = run(kernel(mma("f8f6f4")), image, **PLAIN | {"descriptor": descriptor})[0]
    least = [1 - SMALL[t][3] if t in SMALL else SMALLEST["e4m3"] for t in (of_a, of_b)]
    for i, j in generator.integers(0, (128, 64), (60, 2)).tolist():
        left, right = padded(image[0], 0, i, of_a), padded(image[0], 16384, j, of_b)
        assert value_of(found[i, j], "f32") == one_sum(left, right, 0.0, (*least, -126), "f32", False)


def test_numbers_of_eight_bits_are_scaled_by_blocks():
    """A block is the 32 elements along k of one product; the manual's scale-factor ID picks the scale's byte."""
    generator = np.random.default_rng(6)
    image = image_of(generator, "e4m3") & 0x7B  # no NaN
    before = np.zeros((1, 128, COLUMNS), np.uint32)
    codes = generator.integers(120, 135, (192, 4)).astype(np.uint8)
    words = codes.view(np.uint32)[:, 0]
    for row in range(192):
        before[0, row % 32, 256 + row // 32] = words[row]
    ask = (
        "add.u32 %v0, %tmem, 256; add.u32 %v1, %tmem, 260;\n"
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32 "
        "[%tmem], %first, %second, %idesc, [%v0], [%v1], %p;"
    )
    byte_of_a, byte_of_b = 2, 1
    descriptor = instruction_descriptor(128, 64, 0, 0, 0) | 1 << 23 | byte_of_a << 29 | byte_of_b << 4
    found = run(kernel(ask), image, before, **PLAIN | {"descriptor": descriptor})[0]

    def numbers(start: int, row: int) -> list[float]:
        octets = [image[0][start + row // 8 * 256 + k // 16 * 128 + row % 8 * 16 + k % 16] for k in range(32)]
        return [number(int(octet), "e4m3") for octet in octets]

    for i, j in generator.integers(0, (128, 64), (100, 2)).tolist():
        scale_a = 2.0 ** (int(codes[i, byte_of_a]) - 127)
        scale_b = 2.0 ** (int(codes[128 + j, byte_of_b]) - 127)
        left = [x * scale_a for x in numbers(0, i)]
        right = [x * scale_b for x in numbers(16384, j)]
        smallest = [round(math.log2(scale)) + SMALLEST["e4m3"] for scale in (scale_a, scale_b)]
        wanted = one_sum(left, right, 0.0, (*smallest, -126), "f32", False)
        assert value_of(found[i, j], "f32") == wanted


@pytest.mark.parametrize("shape", ["32x128b.warpx4", "warpx4.32x128b"], ids=["as PTX", "as Triton"])
def test_a_copy_brings_rows_to_all_four_warps(shape):
    image = np.random.default_rng(4).integers(0, 256, (1, SHARED_BYTES), np.uint8)
    found = run(kernel(f"tcgen05.cp.cta_group::1.{shape} [%tmem], %first;"), image, **PLAIN)[0]
    for lane in range(128):
        row = lane % 32
        start = row // 8 * 256 + row % 8 * 16
        assert found[lane, :4].tobytes() == image[0, start : start + 16].tobytes()


@pytest.mark.parametrize("shape", ["128x256b", "128x128b"])
def test_a_copy_brings_a_row_to_each_lane(shape):
    image = np.random.default_rng(5).integers(0, 256, (1, SHARED_BYTES), np.uint8)
    found = run(kernel(f"tcgen05.cp.cta_group::1.{shape} [%tmem], %first;"), image, **PLAIN)[0]
    for lane in range(128):
        for chunk in range(int(shape[4:7]) // 128):
            start = lane // 8 * 256 + chunk * 128 + lane % 8 * 16
            words = found[lane, 4 * chunk : 4 * chunk + 4]
            assert words.tobytes() == image[0, start : start + 16].tobytes()


# ---- when it happens -----------------------------------------------------------------------------


def test_a_sum_that_is_read_before_the_wait_is_still_the_old_one():
    image = halves()
    before = np.full((1, 128, COLUMNS), 7, np.float32).view(np.uint32)
    found = run(kernel(mma(), waits=""), image, before, **PLAIN)[0].view(np.float32)
    assert (found == 7).all()


def test_an_operand_that_is_overwritten_before_the_wait_is_lost():
    image = halves()
    spoil = "setp.eq.u32 %q, %t, 1; @%q st.shared.b16 [tile], 0x4500;"  # A[0, 0] = 5
    found = run(kernel(mma(), middle=spoil + "bar.sync 0;"), image, **PLAIN)[0].view(np.float32)
    a, b = operand(image[0], 0, 128), operand(image[0], 16384, 64)
    a[0, 0] = 5
    assert (found[:, :64] == a @ b.T).all()


def test_products_of_one_thread_are_added_in_order():
    image = halves()
    twice = mma() + "setp.eq.u32 %p, %t, %t;" + mma()
    found = run(kernel(twice), image, **PLAIN)[0].view(np.float32)
    product = operand(image[0], 0, 128) @ operand(image[0], 16384, 64).T
    assert (found[:, :64] == 2 * product).all()


# ---- between registers and Tensor Memory ---------------------------------------------------------


def place(shape: str, thread: int, register: int) -> tuple[int, int]:
    """(lane, column) of a register, from the manual's figures of the shapes."""
    if shape == "32x32b":
        return thread, register
    if shape == "16x64b":
        return thread // 4 + 8 * (thread % 2), 2 * register + thread // 2 % 2
    if shape == "16x128b":
        return thread // 4 + 8 * (register % 2), 4 * (register // 2) + thread % 4
    return thread // 4 + 8 * (register % 4 // 2), 8 * (register // 4) + 2 * (thread % 4) + register % 2


REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4}


@pytest.mark.parametrize(
    ("shape", "times", "packs"),
    [
        (shape, times, packs)
        for shape, count in REGISTERS.items()
        for times in (1, 2, 8)
        for packs in (False, True)
    ],
)
def test_each_register_of_a_shape_has_its_place(shape, times, packs):
    """Loaded with the shape and stored with 32x32b: `out` shows which place each register is."""
    held = REGISTERS[shape] * times
    names = "{" + ", ".join(f"%m{i}" for i in range(held)) + "}"
    moves = f"tcgen05.ld.sync.aligned.{shape}.x{times}{'.pack::16b' * packs}.b32 {names}, [%mine];"
    writes = "\n".join(
        f"add.u32 %r6, %mine, {256 + i};\ntcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], {{%m{i}}};"
        for i in range(held)
    )
    middle = f".reg .b32 %m<{held}>;\n{moves}\ntcgen05.wait::ld.sync.aligned;\n{writes}"
    before = np.arange(128 * COLUMNS, dtype=np.uint32).reshape(1, 128, COLUMNS)
    found = run(kernel("", middle=middle), halves(), before, **PLAIN)[0]
    for warp in range(4):
        for thread in range(32):
            words = []
            for lane, column in (place(shape, thread, i) for i in range(held)):
                row = before[0, 32 * warp + lane].tolist()
                both = row[2 * column] & 0xFFFF | (row[2 * column + 1] & 0xFFFF) << 16
                words.append(both if packs else row[column])
            assert found[32 * warp + thread, 256 : 256 + held].tolist() == words


def test_a_split_shape_reaches_the_same_lanes_twice():
    """Threads 0 to 15 have the lanes at the address, the others the same lanes 8 columns further on."""
    move = """
        .reg .b32 %m<2>;
        tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%m0, %m1}, [%mine], 8;
        add.u32 %r6, %mine, 256;
        tcgen05.st.sync.aligned.32x32b.x2.b32 [%r6], {%m0, %m1};
        add.u32 %r6, %mine, 300;
        tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%r6], 8, {%m0, %m1};"""
    before = np.arange(128 * COLUMNS, dtype=np.uint32).reshape(1, 128, COLUMNS)
    found = run(kernel("", middle=move), halves(), before, **PLAIN)[0].reshape(4, 32, COLUMNS)
    start = before.reshape(4, 32, COLUMNS)
    assert (found[:, :16, 256:258] == start[:, :16, :2]).all()
    assert (found[:, 16:, 256:258] == start[:, :16, 8:10]).all()
    assert (found[:, :16, 300:302] == start[:, :16, :2]).all()
    assert (found[:, :16, 308:310] == start[:, :16, 8:10]).all()


def test_what_is_stored_with_a_shape_is_loaded_with_it():
    moves = """
        .reg .b32 %m<8>;
        tcgen05.ld.sync.aligned.16x256b.x2.b32 {%m0, %m1, %m2, %m3, %m4, %m5, %m6, %m7}, [%mine];
        add.u32 %r6, %mine, 256;
        tcgen05.st.sync.aligned.16x256b.x2.b32 [%r6], {%m0, %m1, %m2, %m3, %m4, %m5, %m6, %m7};
        tcgen05.wait::st.sync.aligned;"""
    before = np.arange(128 * COLUMNS, dtype=np.uint32).reshape(1, 128, COLUMNS)
    found = run(kernel("", middle=moves), halves(), before, **PLAIN)[0].reshape(4, 32, COLUMNS)
    assert (found[:, :16, 256:272] == before.reshape(4, 32, COLUMNS)[:, :16, :16]).all()


# ---- the assembler as oracle ---------------------------------------------------------------------


def test_the_assembler_takes_all_that_runs_here():
    asks = [mma(kind) for kind in ("f16", "tf32", "f8f6f4", "i8")]
    asks += [
        mma(more="{%v0, %v1, %v2, %v3}, "),
        mma().replace("%p;", "%p, 3;"),
        mma().replace("%first", "[%v0]"),
    ]
    asks += [
        f"tcgen05.cp.cta_group::1.{shape} [%tmem], %first;"
        for shape in ("32x128b.warpx4", "128x256b", "128x128b")
    ]
    for kind, blocks in (("mxf4nvf4", ".block16"), ("mxf4", ".block32"), ("mxf8f6f4", ".block32")):
        asks.append(
            f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale{blocks} [%tmem], %first, %second, %idesc, "
            "[%v0], [%v1], %p;"
        )
    moves = ".reg .b32 %m<16>;"
    for shape, each in REGISTERS.items():
        for times in (1, 2, 4):
            names = "{" + ", ".join(f"%m{i}" for i in range(each * times)) + "}"
            moves += f"tcgen05.ld.sync.aligned.{shape}.x{times}.b32 {names}, [%mine];\n"
            moves += f"tcgen05.st.sync.aligned.{shape}.x{times}.b32 [%mine], {names};\n"
            moves += f"tcgen05.ld.sync.aligned.{shape}.x{times}.pack::16b.b32 {names}, [%mine];\n"
            moves += f"tcgen05.st.sync.aligned.{shape}.x{times}.unpack::16b.b32 [%mine], {names};\n"
    moves += "tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%m0, %m1}, [%mine], 8;\n"
    moves += "tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%mine], 8, {%m0, %m1};\n"
    moves += "tcgen05.ld.sync.aligned.16x32bx2.x2.pack::16b.b32 {%m0, %m1}, [%mine], 8;\n"
    text = kernel("\n".join(asks), middle=moves)
    simt.load(ptx.parse(text))
    _, code = link(text, (10, 0))
    assert code
    link(kernel(mma(group=2), group=2), (10, 0))


# ---- what goes wrong -----------------------------------------------------------------------------


def fault(text: str, kind: type[Exception], match: str, **named) -> None:
    with pytest.raises(kind, match=match):
        run(text, halves(), **PLAIN | named)


@pytest.mark.parametrize(
    ("replaced", "by", "match"),
    [
        ("[%r5], 512;", "[%r5], 48;", "names 48 columns"),
        ("[%r5], 512;", "[%r5], 1024;", "names 1024 columns"),
        (
            "[%r5], 512;",
            "[%r5], 64;",
            "writes columns 64 to 64 of Tensor Memory, but its block has allocated 64",
        ),
        ("%tmem, 512;", "%tmem, 256;", "frees 256 columns .* an allocation of 512 columns begins"),
        (
            "%mine, %mine, 16;",
            "%mine, %mine, 17;",
            "writes lanes 64 to 95 .* its warp reaches lanes 32 to 63",
        ),
        (
            "%mine, %mine, 16;",
            "%mine, %mine, 15;",
            "writes lanes 48 to 79 .* its warp reaches lanes 32 to 63",
        ),
    ],
)
def test_wrong_use_of_tensor_memory_is_named(replaced, by, match):
    text = kernel(mma())
    assert replaced in text
    fault(text.replace(replaced, by), WrongTensorMemory, match)


def test_an_address_without_a_warp_means_the_lanes_of_the_warp_that_uses_it():
    text = kernel(mma())
    assert "shl.b32 %mine, %mine, 16;" in text
    bare = text.replace("shl.b32 %mine, %mine, 16;", "mov.b32 %mine, 0;")
    image, before = halves(), np.arange(128 * COLUMNS, dtype=np.uint32).reshape(1, 128, COLUMNS)
    assert np.array_equal(run(bare, image, before, **PLAIN), run(text, image, before, **PLAIN))


def test_what_is_freed_twice_is_named():
    free = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tmem, 512;"
    fault(kernel(mma(), end=free + free), WrongTensorMemory, "where no allocation begins")


def test_what_is_never_freed_is_named():
    fault(kernel(mma(), end="mov.u32 %r8, 0;"), WrongTensorMemory, "still holds 512 columns")


def test_more_than_there_is_and_a_permit_given_up_are_named():
    more = "setp.lt.u32 %q, %t, 32; @!%q bra ON; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 32; ON:"
    fault(kernel(mma(), middle=more), WrongTensorMemory, "has given up the right to")
    text = kernel(mma(), middle=more).replace(
        "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;", ""
    )
    fault(text, WrongTensorMemory, "asks for 32 columns of Tensor Memory. Its block holds 512 of 512")


def test_a_warp_that_has_parted_cannot_use_tensor_memory():
    part = "setp.eq.u32 %q, %t, 5; @%q tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%mine];"
    lone = (
        "setp.ne.u32 %q, %t, 5; @%q bra BEHIND; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%mine]; BEHIND:"
    )
    fault(kernel(mma(), middle=lone), WrongTensorMemory, "while other threads of its warp do something else")
    fault(kernel(mma(), middle=part), WrongTensorMemory, "while other threads of its warp do something else")


@pytest.mark.parametrize(
    ("named", "match"),
    [
        (
            {"descriptor": instruction_descriptor(128, 64, 1, 2, 0)},
            r"types 0 \(f16\), 1 \(bf16\) of A, but .* says 2",
        ),
        (
            {"descriptor": instruction_descriptor(128, 64, 2, 0, 0)},
            "adds in f16 or f32, but the descriptor says s32",
        ),
        ({"descriptor": instruction_descriptor(96, 64, 1, 0, 0)}, "has 64 or 128 rows, not 96"),
        (
            {"descriptor": instruction_descriptor(128, 24, 1, 0, 0)},
            "a multiple of 16 columns up to 256, not 24",
        ),
        (
            {"descriptor": instruction_descriptor(128, 64, 1, 0, 0) | 4},
            "sparse product with an instruction for dense",
        ),
        ({"first": PLAIN["first"] & ~(1 << 46)}, "version and must be 1, but are 0"),
        ({"first": PLAIN["first"] | 3 << 61}, "layout of a shared-memory descriptor is 3: no layout"),
        ({"first": shared_descriptor(0xFFF0, 128, 256)}, "reaches up to byte 69,616 of shared memory"),
    ],
)
def test_a_descriptor_that_cannot_be_is_named_with_its_value(named, match):
    fault(kernel(mma()), WrongMatrix, match, **named)


def test_a_pair_needs_a_cluster_and_its_even_block():
    fault(kernel(mma(group=2)), WrongMatrix, "a cluster of 1 block has no pairs")
    second = kernel(mma(group=2), group=2).replace("setp.eq.u32 %q, %block, 0;", "setp.eq.u32 %q, %block, 1;")
    with pytest.raises(WrongMatrix, match="block 1 of its cluster, the second of a pair"):
        run(second, halves(blocks=2), **PLAIN)


def test_a_commit_needs_an_mbarrier():
    fault(
        kernel(mma()).replace("mbarrier.init.shared.b64 [%bar], 1;", "mov.u32 %r8, 0;"),
        WrongBarrier,
        "not initialised",
    )
    beyond = "mov.u32 %bar, 0x20000;"
    fault(kernel(mma() + beyond), OutOfBounds, "commits to an mbarrier at byte 131072")


def test_a_commit_of_a_pair_tells_the_blocks_in_its_mask_and_may_tell_none():
    text, image = kernel(mma(group=2), group=2), halves(blocks=2)
    descriptor = {"descriptor": instruction_descriptor(256, 64, 1, 0, 0)}
    commit = next(line for line in text.split("\n") if line.startswith("tcgen05.commit"))
    to_none = text.replace(commit, f"mov.u16 %all, 0; {commit} mov.u16 %all, 3; {commit}")
    found, wanted = (run(t, image, **PLAIN | descriptor) for t in (to_none, text))
    assert np.array_equal(found, wanted)
    with pytest.raises(OutOfBounds, match="commits to the blocks 0b100 of its cluster"):
        run(text.replace(commit, f"mov.u16 %all, 4; {commit}"), image, **PLAIN | descriptor)


def test_who_waits_for_a_product_that_nobody_committed_is_told_so():
    text = kernel(mma()).replace("tcgen05.commit", "// tcgen05.commit")
    fault(text, Endless, "lacks 1 of 1 arrival")
