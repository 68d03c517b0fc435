"""Further forms of ``tcgen05``: weight-stationary and sparse products, A of 6 and 4 bits in Tensor Memory,
copies that unpack, and loads that reduce. Each is held against a scalar model and given to the assembler."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulab.simulator import ptx, simt
from gpulab.simulator.compile.ptxas import link
from gpulab.simulator.simt.errors import WrongMatrix, WrongTensorMemory

from .tensor_core_kernels import COLUMNS, SHARED_BYTES, instruction_descriptor, kernel, run, shared_descriptor
from .test_tensor_cores import (
    D_NUMBERS,
    INPUTS,
    PLAIN,
    SMALL,
    before_of,
    expected,
    fault,
    halves,
    image_of,
    operand,
    same,
    small_number,
    value_of,
)
from .warpgroup_model import BITS, SMALLEST, number, one_sum

WS = "tcgen05.mma.ws.cta_group::1.kind::{kind} [%tmem], {a}, %second, %idesc, %p;"
SP = "tcgen05.mma.sp.cta_group::1.kind::{kind} [%tmem], {a}, %second, [%v0], %idesc, %p;"


def element(image: np.ndarray, start: int, row: int, k: int, type_: str, across: int) -> float:
    """An element of a K-major operand without a swizzle: pieces of 16 bytes of 8 rows, `across` in a row."""
    size = BITS[type_] // 8
    at = start + row // 8 * 128 * across + k * size // 16 * 128 + row % 8 * 16 + k * size % 16
    return number(int.from_bytes(image[at : at + size].tobytes(), "little"), type_)


# ---- weight-stationary ---------------------------------------------------------------------------


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(INPUTS)),
    st.sampled_from([32, 64, 128]),
    st.sampled_from([64, 128, 256]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_a_stationary_product_spreads_its_columns_over_lanes_that_have_no_rows(a, m, n, adds, seed):
    generator = np.random.default_rng(seed)
    kind, number_of_type = INPUTS[a]
    d = "s32" if kind == "i8" else "f32"
    image, before = image_of(generator, a), before_of(generator, d)
    descriptor = instruction_descriptor(m, n, D_NUMBERS[d], number_of_type, number_of_type)
    text = kernel(WS.format(kind=kind, a="%first"))
    found = run(text, image, before, **PLAIN | {"descriptor": descriptor, "adds": adds})[0]
    width = n * m // 128  # columns of D in each part of the lanes
    for row, column in generator.integers(0, (m, n), (8, 2)).tolist():
        k = range(256 // BITS[a])
        left = [element(image[0], 0, row, i, a, 2) for i in k]
        right = [element(image[0], 16384, column, i, a, 2) for i in k]
        lane, place = row + column // width * m, column % width
        start = value_of(before[0, lane, place], d) if adds else 0.0
        assert same(value_of(found[lane, place], d), expected(left, right, start, a, a, d))
    assert (found[:, width:] == before[0][:, width:]).all(), "columns behind D stay as they were"


@pytest.mark.parametrize("m", [32, 64, 128])
def test_each_part_of_a_stationary_product_reads_the_a_of_its_own_lanes(m):
    image, n = halves(), 128
    generator = np.random.default_rng(4)
    held = generator.integers(-3, 4, (128, 16)).astype(np.float16)  # another A for each part
    before = np.zeros((1, 128, COLUMNS), np.uint32)
    before[0, :, 256:264] = held.view(np.uint32)
    text = "add.u32 %r7, %tmem, 256;\n" + WS.format(kind="f16", a="[%r7]")
    named = PLAIN | {"descriptor": instruction_descriptor(m, n, 1, 0, 0)}
    found = run(kernel(text), image, before, **named)[0].view(np.float32)
    b = operand(image[0], 16384, n)
    width = n * m // 128
    for part in range(128 // m):
        a = held[part * m : (part + 1) * m].astype(np.float64)
        wanted = a @ b[part * width : (part + 1) * width].T
        assert (found[part * m : (part + 1) * m, :width] == wanted).all()


@pytest.mark.parametrize(
    ("more", "descriptor", "match"),
    [
        ("", instruction_descriptor(96, 64, 1, 0, 0), "with .ws has 32, 64 or 128 rows, not 96"),
        ("", instruction_descriptor(64, 32, 1, 0, 0), "with .ws has 64, 128 or 256 columns, not 32"),
        (", %first", instruction_descriptor(64, 64, 1, 0, 0), "gives a zero-column mask"),
    ],
)
def test_a_stationary_product_that_is_not_there_is_named(more, descriptor, match):
    text = kernel(WS.format(kind="f16", a="%first").replace("%p;", f"%p{more};"))
    fault(text, WrongMatrix, match, descriptor=descriptor)


# ---- sparse --------------------------------------------------------------------------------------


def place_of_code(type_: str, row: int, column: int) -> tuple[int, int, int]:
    """(lane, word, lowest bit) of the four bits that tell of a column of A."""
    if BITS[type_] == 8:
        return row, column // 32, column % 32 // 4 * 4
    across = 8 if type_ == "tf32" else 16  # columns of which one lane tells
    return (
        row % 8 + row // 16 * 16 + column // across * 8,
        0,
        row // 8 % 2 * 16 + column % across // (across // 4) * 4,
    )


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(INPUTS)), st.integers(0, 1), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_sparse_product_is_the_sum_of_what_its_metadata_keep(a, selector, in_tensor_memory, seed):
    generator = np.random.default_rng(seed)
    kind, number_of_type = INPUTS[a]
    d = "s32" if kind == "i8" else "f32"
    image, before = image_of(generator, a), before_of(generator, d)
    k, group = 512 // BITS[a], 2 if a == "tf32" else 4
    kept: dict[int, list[int]] = {}
    before[0, :, 256:260] = 0
    for row in range(128):
        kept[row] = []
        for chunk in range(0, k, group):
            chosen = sorted(generator.choice(group, group // 2, replace=False).tolist())
            code = {0: 0b0100, 1: 0b1110}[chosen[0]] if group == 2 else chosen[0] | chosen[1] << 2
            lane, word, bit = place_of_code(a, row, chunk)
            before[0, lane, 256 + selector + word] |= np.uint32(code << bit)
            kept[row] += [chunk + i for i in chosen]
    ask, first = "add.u32 %v0, %tmem, 256;\n", "%first"
    if in_tensor_memory:
        words = image[0].view(np.uint32)[: 128 * 8].reshape(128, 8)
        before[0, :, 264:272] = words
        ask, first = ask + "add.u32 %v1, %tmem, 264;\n", "[%v1]"
    descriptor = instruction_descriptor(128, 64, D_NUMBERS[d], number_of_type, number_of_type) | 4 | selector
    found = run(
        kernel(ask + SP.format(kind=kind, a=first)),
        image,
        before,
        **PLAIN | {"second": shared_descriptor(16384, 128, 512), "descriptor": descriptor},
    )[0]
    for row, column in generator.integers(0, (128, 64), (8, 2)).tolist():
        stored = range(k // 2)
        if in_tensor_memory:
            size = BITS[a] // 8
            octets = words[row].tobytes()
            left = [number(int.from_bytes(octets[i * size : (i + 1) * size], "little"), a) for i in stored]
        else:
            left = [element(image[0], 0, row, i, a, 2) for i in stored]
        right = [element(image[0], 16384, column, i, a, 4) for i in kept[row]]
        assert same(value_of(found[row, column], d), expected(left, right, 0.0, a, a, d))


@pytest.mark.parametrize(
    ("descriptor", "match"),
    [
        (instruction_descriptor(128, 64, 1, 0, 0), "dense product with an instruction for sparse ones"),
        (instruction_descriptor(64, 64, 1, 0, 0) | 4, "a sparse A of 64 rows"),
        (instruction_descriptor(128, 64, 1, 0, 0) | 4 | 2, "gives the sparsity selector 2"),
    ],
)
def test_a_sparse_product_that_is_not_there_is_named(descriptor, match):
    text = kernel("add.u32 %v0, %tmem, 256;\n" + SP.format(kind="f16", a="%first"))
    fault(text, WrongMatrix, match, descriptor=descriptor)


# ---- a byte for each number ----------------------------------------------------------------------


@pytest.mark.parametrize("of_a", SMALL)
def test_an_a_of_six_or_four_bits_in_tensor_memory_has_a_byte_for_each_number(of_a):
    generator = np.random.default_rng(of_a)
    image = image_of(generator, "e4m3") & 0x7B
    bits, *form = SMALL[of_a]
    shift = 2 if bits == 4 else 0
    octets = generator.integers(0, 256, (128, 32), np.uint8)
    before = np.zeros((1, 128, COLUMNS), np.uint32)
    before[0, :, 256:264] = octets.view(np.uint32)
    ask = (
        "add.u32 %r7, %tmem, 256;\ntcgen05.mma.cta_group::1.kind::f8f6f4 [%tmem], [%r7], %second, %idesc, %p;"
    )
    named = PLAIN | {"descriptor": instruction_descriptor(128, 64, 1, of_a, 0)}
    found = run(kernel(ask), image, before, **named)[0]
    for row, column in generator.integers(0, (128, 64), (40, 2)).tolist():
        left = [small_number(int(x) >> shift & (1 << bits) - 1, *form) for x in octets[row]]
        right = [element(image[0], 16384, column, i, "e4m3", 2) for i in range(32)]
        least = (1 - form[2], SMALLEST["e4m3"], -126)
        assert value_of(found[row, column], "f32") == one_sum(left, right, 0.0, least, "f32", False)


@pytest.mark.parametrize(("form", "bits", "shift"), [("b4x16_p64", 4, 2), ("b6x16_p32", 6, 0)])
def test_a_copy_unpacks_numbers_to_the_bytes_from_which_they_are_multiplied(form, bits, shift):
    image = np.random.default_rng(7).integers(0, 256, (1, SHARED_BYTES), np.uint8)
    text = kernel(f"tcgen05.cp.cta_group::1.128x256b.b8x16.{form} [%tmem], %first;")
    found = run(text, image, **PLAIN)[0]
    for lane in range(128):
        for chunk in range(2):
            start = lane // 8 * 256 + chunk * 128 + lane % 8 * 16
            word = int.from_bytes(image[0, start : start + 16].tobytes(), "little")
            wanted = [(word >> bits * i & (1 << bits) - 1) << shift for i in range(16)]
            assert list(found[lane, 4 * chunk : 4 * chunk + 4].tobytes()) == wanted


@pytest.mark.parametrize(("pairs", "row_of"), [
    ("02_13", lambda lane: lane % 64),
    ("01_23", lambda lane: lane // 64 * 32 + lane % 32),
])  # fmt: skip
def test_a_copy_of_64_rows_reaches_two_warps_with_each(pairs, row_of):
    image = np.random.default_rng(8).integers(0, 256, (1, SHARED_BYTES), np.uint8)
    found = run(kernel(f"tcgen05.cp.cta_group::1.64x128b.warpx2::{pairs} [%tmem], %first;"), image, **PLAIN)[
        0
    ]
    for lane in range(128):
        row = row_of(lane)
        start = row // 8 * 256 + row % 8 * 16
        assert found[lane, :4].tobytes() == image[0, start : start + 16].tobytes()


@pytest.mark.parametrize("lane", [0, 31])
def test_a_copy_of_four_rows_brings_one_to_each_warp(lane):
    """As CUTLASS lays them out: where rows have been shifted, the last of each warp is filled again."""
    image = np.random.default_rng(8).integers(0, 256, (1, SHARED_BYTES), np.uint8)
    before = np.arange(128 * COLUMNS, dtype=np.uint32).reshape(1, 128, COLUMNS)
    ask = f"add.u32 %v0, %tmem, {lane << 16 | 16}; tcgen05.cp.cta_group::1.4x256b [%v0], %first;"
    found = run(kernel(ask), image, before, **PLAIN)[0]
    wanted = before[0].copy()
    for row in range(4):
        parts = [image[0, start : start + 16] for start in (16 * row, 128 + 16 * row)]
        wanted[32 * row + lane, 16:24] = np.concatenate(parts).view(np.uint32)
    assert np.array_equal(found, wanted)


# ---- loads that reduce ---------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "choose"), [
    ("min.u32", lambda words: min(words.tolist())),
    ("max.s32", lambda words: max(words.view(np.int32).tolist()) & 0xFFFFFFFF),
    ("max.f32", lambda words: int(np.fmax.reduce(words.view(np.float32)).view(np.uint32))),
    ("min.abs.f32", lambda words: int(np.fmin.reduce(abs(words.view(np.float32))).view(np.uint32))),
    ("max.NaN.f32", lambda words: 0x7FFFFFFF if np.isnan(words.view(np.float32)).any()
     else int(words.view(np.float32).max().view(np.uint32))),
])  # fmt: skip
def test_a_load_brings_the_smallest_or_largest_of_what_it_loads(how, choose):
    generator = np.random.default_rng(9)
    values = generator.standard_normal((1, 128, COLUMNS)).astype(np.float32)
    values[0, ::7, 1] = np.nan
    before = values.view(np.uint32)
    move = f"""
    .reg .b32 %m<9>;
    tcgen05.ld.red.sync.aligned.32x32b.x4.{how} {{%m0, %m1, %m2, %m3}}, %m4, [%mine];
    add.u32 %v5, %mine, 256; tcgen05.st.sync.aligned.32x32b.x1.b32 [%v5], {{%m4}};
    add.u32 %v5, %mine, 260; tcgen05.st.sync.aligned.32x32b.x4.b32 [%v5], {{%m0, %m1, %m2, %m3}};
    """
    found = run(kernel("", middle=move), halves(), before, **PLAIN)[0]
    for lane in range(128):
        assert int(found[lane, 256]) == choose(before[0, lane, :4])
    assert (found[:, 260:264] == before[0, :, :4]).all()


# ---- rows that move ------------------------------------------------------------------------------

SHIFT = "tcgen05.shift.cta_group::{group}.down [{place}];"


def shifted(words: np.ndarray) -> np.ndarray:
    """Rows of Tensor Memory as a B200 shifts them: each gets the next one, but the last of 32 stays."""
    return np.stack([words[lane if lane % 32 == 31 else lane + 1] for lane in range(len(words))])


@pytest.mark.parametrize(("warp", "column"), [(0, 0), (2, 40)])
def test_a_shift_moves_32_bytes_of_each_of_32_rows(warp, column):
    before = np.arange(128 * COLUMNS, dtype=np.uint32).reshape(1, 128, COLUMNS)
    place = f"add.u32 %v0, %tmem, {warp * 32 << 16 | column};\n"
    found = run(kernel(place + SHIFT.format(group=1, place="%v0")), halves(), before, **PLAIN)[0]
    wanted, lanes, columns = before[0].copy(), slice(32 * warp, 32 * warp + 32), slice(column, column + 8)
    wanted[lanes, columns] = shifted(before[0, lanes, columns])
    assert np.array_equal(found, wanted)


def test_a_shift_of_a_pair_moves_the_rows_of_both_blocks():
    before = np.arange(2 * 128 * COLUMNS, dtype=np.uint32).reshape(2, 128, COLUMNS)
    text = kernel(SHIFT.format(group=2, place="%tmem"), group=2)
    found = run(text, halves(blocks=2), before, **PLAIN)
    for block in range(2):
        assert np.array_equal(found[block, :32, :8], shifted(before[block, :32, :8]))
        assert np.array_equal(found[block, 32:], before[block, 32:])


def test_the_rows_of_a_move_when_the_product_is_done_and_the_next_product_reads_them():
    image = halves()
    a, b = operand(image[0], 0, 128), operand(image[0], 16384, 64)
    before = np.zeros((1, 128, COLUMNS), np.uint32)
    before[0, :, 256:264] = a.astype(np.float16).view(np.uint32)
    one = "tcgen05.mma.cta_group::1.kind::f16{how} [{d}], [%r7], %second, %idesc, %p;\n"
    both = "add.u32 %r7, %tmem, 256; add.u32 %r8, %tmem, 64;\n"
    both += one.format(how=".ashift.collector::a::fill", d="%tmem") + one.format(how="", d="%r8")
    found = run(kernel(both), image, before, **PLAIN)[0]
    assert (found[:, :64].view(np.float32) == a @ b.T).all()
    assert (found[:, 64:128].view(np.float32) == shifted(a) @ b.T).all()


@pytest.mark.parametrize(("more", "match"), [
    (16 << 16, "shifts rows of Tensor Memory from lane 16 on"),
    (508, "shifts columns 508 to 515 of Tensor Memory"),
])  # fmt: skip
def test_a_shift_that_cannot_be_is_named(more, match):
    place = f"add.u32 %v0, %tmem, {more};\n"
    fault(kernel(place + SHIFT.format(group=1, place="%v0")), WrongTensorMemory, match)


# ---- the assembler -------------------------------------------------------------------------------


def test_the_assembler_takes_all_of_these_forms():
    kinds = ("f16", "tf32", "f8f6f4")
    asks = ["mov.u32 %v0, %tmem; mov.u64 %w8, 0;"]
    asks += [WS.format(kind=kind, a=a) for kind in (*kinds, "i8") for a in ("%first", "[%v0]")]
    asks += [
        WS.format(kind="f16", a="%first").replace("::f16", f"::f16.collector::b{i}::{how}")
        for i, how in enumerate(("fill", "use", "lastuse", "discard"))
    ]
    asks.append(WS.format(kind="f16", a="%first").replace("%p;", "%p, %w8;"))
    asks += [SP.format(kind=kind, a=a) for kind in (*kinds, "i8") for a in ("%first", "[%v0]")]
    asks += [
        f"tcgen05.cp.cta_group::1.{shape}{form} [%tmem], %first;"
        for shape in (
            "4x256b",
            "128x256b",
            "128x128b",
            "32x128b.warpx4",
            "64x128b.warpx2::02_13",
            "64x128b.warpx2::01_23",
        )
        for form in ("", ".b8x16.b4x16_p64", ".b8x16.b6x16_p32")
    ]
    asks.append(SHIFT.format(group=1, place="%tmem"))
    asks.append("tcgen05.mma.cta_group::1.kind::f16.ashift [%tmem], [%v0], %second, %idesc, %p;")
    text = kernel("\n".join(asks))
    simt.load(ptx.parse(text))
    log, code = link(text, (10, 0))
    assert code, log


def test_the_assembler_has_loads_that_reduce_for_the_b300_alone():
    moves = ".reg .b32 %m<9>;\n" + "\n".join(
        f"tcgen05.ld.red.sync.aligned.32x32b.x2.{how} {{%m0, %m1}}, %m4, [%mine];"
        for how in ("min.u32", "max.s32", "max.f32", "min.abs.f32", "max.abs.NaN.f32")
    )
    moves += "\ntcgen05.ld.red.sync.aligned.16x32bx2.x2.min.s32 {%m0, %m1}, %m4, [%mine], 4;\n"
    text = kernel("", middle=moves).replace(".version 8.8", ".version 9.0")
    simt.load(ptx.parse(text))
    log, code = link(text.replace("sm_100a", "sm_103a"), (10, 3))
    assert code, log
    with pytest.raises(Exception, match=r"not supported on .target 'sm_100a'"):
        link(text, (10, 0))


def test_what_is_not_simulated_is_refused_in_words():
    scaled = (
        "tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale [%tmem], %first, %second, [%v0], %idesc, "
        "[%v1], [%v2], %p;"
    )
    with pytest.raises(
        simt.UnsupportedInstruction, match="Sparse products with block scales are not simulated"
    ):
        simt.load(ptx.parse(kernel(scaled)))
