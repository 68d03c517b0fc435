"""Blackwell's ``mma.sync`` of 8, 6 and 4 bits, ``ldmatrix`` and ``stmatrix`` of bytes: each element against a
scalar model written from the manual, each form given to the assembler."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.analysis.profile.matrix import matrix_dtype
from gpulab.simulator import ptx, simt
from gpulab.simulator.compile.ptxas import link
from gpulab.simulator.observe import Counters
from gpulab.simulator.simt import operations

from .test_matrix import braces, c_place, fragment, kernel, run, tile_through_shared
from .warpgroup_model import number, one_scaled_sum

TARGET = "sm_120a"
# Of a number: bits, bits of its exponent and mantissa, bias; where its byte has it.
FORMS = {"e2m3": (6, 2, 3, 1, 0), "e3m2": (6, 3, 2, 3, 0), "e2m1": (4, 2, 1, 1, 2)}
TYPES = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
SMALLEST = {"e4m3": -6, "e5m2": -14, "e2m3": 0, "e3m2": -2, "e2m1": 0}
SCALED = {  # kinds with block scales: how many a row has, and of which type
    "mxf8f6f4": [(1, "ue8m0")],
    "mxf4": [(2, "ue8m0")],
    "mxf4nvf4": [(2, "ue8m0"), (4, "ue4m3"), (4, "ue8m0")],
}


def value(code: int, type_: str) -> float:
    """The number in the bits `code`, from the formats' definition."""
    if type_ not in FORMS:
        return number(code, type_)
    _, exponent_bits, mantissa_bits, bias, _ = FORMS[type_]
    exponent = code >> mantissa_bits & (1 << exponent_bits) - 1
    fraction = (code & (1 << mantissa_bits) - 1) / (1 << mantissa_bits)
    size = math.ldexp(1 + fraction, exponent - bias) if exponent else math.ldexp(fraction, 1 - bias)
    return -size if code >> exponent_bits + mantissa_bits & 1 else size


def in_byte(octet: int, type_: str) -> float:
    """The number in a byte of a fragment."""
    if type_ not in FORMS:
        return number(octet, type_)
    bits, *_, shift = FORMS[type_]
    return value(octet >> shift & (1 << bits) - 1, type_)


def scale(code: int, type_: str) -> float:
    return 2.0 ** (code - 127) if type_ == "ue8m0" else number(code, "e4m3")


def scaled_sum(
    a: list[float], b: list[float], c: float, smallest: tuple[int, int], factor: Fraction, half: bool
) -> float:
    """c + factor · Σ a·b in one go: aligned, cut to 25 bits behind the largest exponent, added, rounded."""

    def exponent(x: float, least: int) -> int:
        return -126 if x == 0 else max(math.frexp(x)[1] - 1, least)

    moved = math.frexp(float(factor))[1] - 1
    top = [exponent(x, smallest[0]) + exponent(y, smallest[1]) + moved for x, y in zip(a, b, strict=True)]
    unit = Fraction(2) ** (max(*top, exponent(c, -14 if half else -126)) - 25)
    terms = [Fraction(x) * Fraction(y) * factor for x, y in zip(a, b, strict=True)] + [Fraction(c)]
    exact = sum(math.trunc(term / unit) for term in terms) * unit
    if half:
        with np.errstate(over="ignore"):
            return float(np.float64(float(exact)).astype(np.float16))
    if exact == 0:
        return 0.0
    kept = Fraction(2) ** (max(math.frexp(float(exact))[1] - 1, -126) - 23)
    return float(math.trunc(exact / kept) * kept)


def opcode(kind: str, a: str, b: str, d: str = "f32", count: int = 0, scales: str = "", sparse="") -> str:
    k = {"mxf4": 64, "mxf4nvf4": 64}.get(kind, 32) * (2 if sparse else 1)
    blocks = f".block_scale.scale_vec::{count}X" if count else ""
    return (
        f"mma{sparse}.sync.aligned.m16n8k{k}.row.col.kind::{kind}{blocks}.{d}.{a}.{b}.{d}"
        f"{'.' + scales if scales else ''}"
    )


def product(name: str, d: str = "f32", places: tuple[int, int, int, int] | None = None) -> str:
    """Parameters are the fragments of A, B and C, with block scales those of A and B, and D."""
    kind, count = ("r", 2) if d == "f16" else ("f", 4)
    body = [fragment(0, 0, 4, "r", 4, True), fragment(1, 4, 2, "r", 4, True)]
    body.append(fragment(2, 16, count, kind, 4, True))
    more = ""
    if places is not None:
        body += [fragment(3, 30, 1, "r", 4, True), fragment(4, 31, 1, "r", 4, True)]
        byte_a, thread_a, byte_b, thread_b = places
        more = f", {{%r30}}, {{{byte_a}, {thread_a}}}, {{%r31}}, {{{byte_b}, {thread_b}}}"
    body.append(
        f"{name} {braces(kind, 20, count)}, {braces('r', 0, 4)}, {braces('r', 4, 2)}, "
        f"{braces(kind, 16, count)}{more};"
    )
    body.append(fragment(3 if places is None else 5, 20, count, kind, 4, False))
    text = kernel("\n".join(body), 4 if places is None else 6, TARGET)
    return text.replace(".version 8.0", ".version 9.1")


def octets_of(words: np.ndarray, rows: int, type_: str) -> list[list[float]]:
    """The 32 numbers of each row of A (16 rows) or column of B (8), of a byte each."""
    found = []
    for row in range(rows):
        line = []
        for k in range(32):
            register = k // 16 * (2 if rows > 8 else 1) + row // 8
            octet = int(words[row % 8 * 4 + k % 16 // 4, register]) >> 8 * (k % 4) & 255
            line.append(in_byte(octet, type_))
        found.append(line)
    return found


def nibbles_of(words: np.ndarray, rows: int) -> list[list[float]]:
    """The 64 numbers of 4 bits of each row of A or column of B."""
    found = []
    for row in range(rows):
        line = []
        for k in range(64):
            register = k // 32 * (2 if rows > 8 else 1) + row // 8
            line.append(value(int(words[row % 8 * 4 + k % 32 // 8, register]) >> 4 * (k % 8) & 15, "e2m1"))
        found.append(line)
    return found


def drawn_words(generator: np.random.Generator, registers: int) -> np.ndarray:
    """Fragments of any bits that make no NaN and no infinity in any type."""
    return generator.integers(0, 2**32, (32, registers), np.uint32) & np.uint32(0xBBBBBBBB)


@settings(max_examples=25)
@given(st.sampled_from(TYPES), st.sampled_from(TYPES), st.sampled_from(["f32", "f16"]), st.integers(0, 2**32))
def test_bytes_of_any_two_types_are_multiplied_and_summed_at_once(a, b, d, seed):
    generator = np.random.default_rng(seed)
    words = [drawn_words(generator, 4), drawn_words(generator, 2)]
    c = (generator.standard_normal((32, 4)) * 100).astype("f2" if d == "f16" else "f4")
    (found,) = run(product(opcode("f8f6f4", a, b, d), d), [*words, c], [np.zeros_like(c)])
    left, right = octets_of(words[0], 16, a), octets_of(words[1], 8, b)
    for lane, i in generator.integers(0, (32, 4), (16, 2)).tolist():
        row, column = c_place(lane, i)
        smallest = SMALLEST[a], SMALLEST[b]
        wanted = scaled_sum(left[row], right[column], float(c[lane, i]), smallest, Fraction(1), d == "f16")
        assert float(found[lane, i]) == wanted


@st.composite
def scaled(draw):
    kind = draw(st.sampled_from(list(SCALED)))
    count, type_ = draw(st.sampled_from(SCALED[kind]))
    a, b = (draw(st.sampled_from(TYPES if kind == "mxf8f6f4" else ("e2m1",))) for _ in range(2))
    bytes_ = st.sampled_from(range(0, 4, count))
    places = draw(st.tuples(bytes_, st.integers(0, 1), bytes_, st.integers(0, 3)))
    return kind, count, type_, a, b, places


@settings(max_examples=40)
@given(scaled(), st.integers(0, 2**32))
def test_block_scales_come_from_the_named_byte_of_the_named_thread(drawn, seed):
    kind, count, type_, a, b, places = drawn
    generator = np.random.default_rng(seed)
    words = [drawn_words(generator, 4), drawn_words(generator, 2)]
    c = generator.standard_normal((32, 4)).astype("f4")
    codes = generator.integers(*((110, 140) if type_ == "ue8m0" else (8, 127)), (2, 32, 4)).astype(np.uint8)
    held = [each.view(np.uint32) for each in codes]
    text = product(opcode(kind, a, b, "f32", count, type_), places=places)
    (found,) = run(text, [*words, c, *held], [np.zeros_like(c)])

    def scales(rows: int, codes: np.ndarray, byte: int, thread: int, row: int) -> list[float]:
        lane = row % 8 * 4 + (thread * 2 + row // 8 if rows == 16 else thread)
        return [scale(int(codes[lane, byte + i]), type_) for i in range(count)]

    for lane, i in generator.integers(0, (32, 4), (16, 2)).tolist():
        row, column = c_place(lane, i)
        of_a = scales(16, codes[0], places[0], places[1], row)
        of_b = scales(8, codes[1], places[2], places[3], column)
        start = float(c[lane, i])
        if kind == "mxf8f6f4":
            left, right = octets_of(words[0], 16, a)[row], octets_of(words[1], 8, b)[column]
            factor = Fraction(of_a[0]) * Fraction(of_b[0])
            wanted = scaled_sum(left, right, start, (SMALLEST[a], SMALLEST[b]), factor, False)
        else:
            left, right = nibbles_of(words[0], 16)[row], nibbles_of(words[1], 8)[column]
            wide = [[x for x in each for _ in range(64 // count)] for each in (of_a, of_b)]
            wanted = one_scaled_sum(left, right, *wide, start)
        assert float(found[lane, i]) == wanted


def test_a_scale_that_is_no_number_makes_its_row_none():
    words, c = [np.full((32, n), 0x22222222, np.uint32) for n in (4, 2)], np.ones((32, 4), "f4")
    held = [np.full((32, 1), 0x7F7F7F7F, np.uint32) for _ in range(2)]
    held[0][4 * 3] = 0xFF  # row 3 of A
    text = product(opcode("mxf4", "e2m1", "e2m1", "f32", 2, "ue8m0"), places=(0, 0, 0, 0))
    (found,) = run(text, [*words, c, *held], [np.zeros_like(c)])
    rows = {c_place(lane, i)[0] for lane, i in np.argwhere(np.isnan(found)).tolist()}
    assert rows == {3}


def test_a_sparse_a_of_bytes_is_spread_as_its_metadata_says():
    generator = np.random.default_rng(5)
    a, b = drawn_words(generator, 4), drawn_words(generator, 4)
    metadata = np.full((32, 1), 0x88888888, np.uint32)  # of every four columns the first and the third
    name = opcode("f8f6f4", "e2m1", "e3m2", sparse=".sp::ordered_metadata")
    body = [
        fragment(0, 0, 4, "r", 4, True),
        fragment(1, 4, 4, "r", 4, True),
        fragment(2, 30, 1, "r", 4, True),
    ]
    body += ["mov.f32 %f0, 0f00000000;" f"{name} {braces('f', 4, 4)}, {braces('r', 0, 4)}, "
             f"{braces('r', 4, 4)}, {{%f0, %f0, %f0, %f0}}, %r30, 0;"]  # fmt: skip
    body.append(fragment(3, 4, 4, "f", 4, False))
    text = kernel("\n".join(body), 4, TARGET).replace(".version 8.0", ".version 9.1")
    (found,) = run(text, [a, b, metadata], [np.zeros((32, 4), "f4")])
    left = octets_of(a, 16, "e2m1")
    right = [
        x + y for x, y in zip(octets_of(b[:, :2], 8, "e3m2"), octets_of(b[:, 2:], 8, "e3m2"), strict=True)
    ]
    kept = [k for k in range(64) if k % 4 in (0, 2)]
    for lane, i in generator.integers(0, (32, 4), (16, 2)).tolist():
        row, column = c_place(lane, i)
        chosen = [right[column][k] for k in kept]
        assert float(found[lane, i]) == scaled_sum(left[row], chosen, 0.0, (0, -2), Fraction(1), False)


def all_products() -> list[str]:
    texts = [product(opcode("f8f6f4", a, b, d), d) for a in TYPES for b in TYPES for d in ("f16", "f32")]
    for kind, forms in SCALED.items():
        for count, type_ in forms:
            a = "e3m2" if kind == "mxf8f6f4" else "e2m1"
            for byte in range(0, 4, count):
                places = (byte, 1, byte, 3)
                texts.append(product(opcode(kind, a, "e2m1", "f32", count, type_), places=places))
    return texts


def test_the_assembler_takes_every_product_that_runs_here():
    texts = all_products()
    for i, each in enumerate(texts):
        simt.load(ptx.parse(each))
        texts[i] = each.replace("warp(", f"warp{i}(")
    header, *_ = texts[0].partition(".visible")
    log, code = link(header + "".join(text[len(header) :] for text in texts), (12, 0))
    assert code, log


@pytest.mark.parametrize(
    ("name", "places", "message"),
    [
        ("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue4m3",
         (0, 0, 0, 0), "scale_vec::4X of ue4m3 or ue8m0"),
        (opcode("mxf4", "e2m1", "e2m1", "f32", 2, "ue8m0"), (1, 0, 0, 0), "byte of block scales is 1; there is 0, 2"),
        (opcode("mxf4", "e2m1", "e2m1", "f32", 2, "ue8m0"), (0, 2, 0, 0), "thread of block scales is 2"),
        (opcode("mxf8f6f4", "e4m3", "e4m3", "f32", 1, "ue8m0").replace("k32", "k64"), (0, 0, 0, 0), "m16n8k32"),
    ],
)  # fmt: skip
def test_a_product_that_is_not_there_is_refused_in_words_and_by_the_assembler(name, places, message):
    text = product(name, places=places)
    with pytest.raises(simt.UnsupportedInstruction, match=message):
        simt.load(ptx.parse(text))
    with pytest.raises(Exception, match="ptxas refuses"):
        link(text, (12, 0))


def test_a_product_counts_its_operations_under_the_width_of_its_numbers():
    for kind, dtype, k in (("f8f6f4", "float8", 32), ("mxf4", "float4", 64)):
        (multiply,) = (
            i
            for i in simt.load(
                ptx.parse(
                    product(opcode(kind, "e2m1", "e2m1", "f32", *((2, "ue8m0") if k == 64 else ())),
                            places=(0, 0, 0, 0) if k == 64 else None)
                )
            ).instructions
            if i.parts[0] == "mma"
        )  # fmt: skip
        assert matrix_dtype(multiply) == dtype
        assert operations.flops(multiply) * 32 == 2 * 16 * 8 * k


# ---- matrices of bytes ---------------------------------------------------------------------------

BITS = {"b8": 8, "b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}


def code(row: np.ndarray, column: int, bits: int) -> int:
    return int.from_bytes(row.tobytes(), "little") >> bits * column & (1 << bits) - 1


@pytest.mark.parametrize("form", BITS)
@pytest.mark.parametrize("count", [1, 2])
def test_a_transposed_load_gives_four_rows_of_a_column_to_a_register(form, count):
    octets = np.random.default_rng(1).integers(0, 256, (2, 16, 16), np.uint8)
    names = braces("r", 8, 2 * count)
    move = f"ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.{form} {names}, [%q6];\n"
    move += fragment(1, 8, 2 * count, "r", 4, False)
    counters = Counters()
    text = kernel(tile_through_shared(move), 2, TARGET, 512)
    (found,) = run(text, [octets], [np.zeros((32, 8 * count), np.uint8)], [counters])
    for lane in range(32):
        for i in range(8 * count):
            matrix, rest = divmod(i, 8)
            row, column = lane % 4 * 4 + rest % 4, lane // 4 + rest // 4 * 8
            assert found[lane, i] == code(octets[matrix, row], column, BITS[form])
    rows = [i for i, each in enumerate(counters.counts.instructions) if each.parts[0] == "ldmatrix"]
    assert counters.counts.table["wavefronts"][rows[0]] == 2 * count  # 16 rows of 16 bytes are two passes


@pytest.mark.parametrize("form", ["b8x16.b6x16_p32", "b8x16.b4x16_p64"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_numbers_side_by_side_are_unpacked_to_a_byte_each(form, count):
    octets = np.random.default_rng(2).integers(0, 256, (4, 8, 16), np.uint8)
    move = f"ldmatrix.sync.aligned.m8n16.x{count}.shared.{form} {braces('r', 8, count)}, [%q6];\n"
    move += fragment(1, 8, count, "r", 4, False)
    text = kernel(tile_through_shared(move), 2, TARGET, 512)
    (found,) = run(text, [octets], [np.zeros((32, 4 * count), np.uint8)])
    for lane in range(32):
        for i in range(4 * count):
            assert found[lane, i] == code(octets[i // 4, lane // 4], lane % 4 * 4 + i % 4, BITS[form])


def test_bytes_stored_transposed_are_rows_of_what_was_a_column():
    octets = np.arange(512, dtype=np.uint16).astype(np.uint8).reshape(32, 16)  # a lane's 16 bytes
    move = "bar.warp.sync -1;\nstmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%q6], {%r0, %r1, %r2, %r3};\n"
    move += "bar.warp.sync -1;\nld.shared.v4.b32 {%r8, %r9, %r10, %r11}, [%q6];\n"
    move += fragment(1, 8, 4, "r", 4, False)
    text = kernel(tile_through_shared(move), 2, TARGET, 512)
    (found,) = run(text, [octets], [np.zeros((32, 16), np.uint8)])
    for matrix in range(4):
        for row in range(8):
            for column in range(16):
                lane, i = column % 8 * 4 + row // 2, row % 2 + 2 * (column // 8)
                assert found[8 * matrix + row, column] == octets[lane, 4 * matrix + i]


def test_the_assembler_takes_every_move_of_bytes_that_runs_here():
    moves = [
        f"ldmatrix.sync.aligned.m16n16.x{n}.trans.shared.{form} {braces('r', 8, 2 * n)}, [%q6];"
        for n in (1, 2)
        for form in BITS
    ]
    moves += [
        f"ldmatrix.sync.aligned.m8n16.x{n}.shared.{form} {braces('r', 8, n)}, [%q6];"
        for n in (1, 2, 4)
        for form in list(BITS)[1:]
    ]
    moves += [
        f"stmatrix.sync.aligned.m16n8.x{n}.trans.shared.b8 [%q6], {braces('r', 8, n)};" for n in (1, 2, 4)
    ]
    text = kernel(tile_through_shared("\n".join(moves)), 2, TARGET, 512).replace("8.0", "8.8")
    simt.load(ptx.parse(text))
    for cc in ((12, 0), (10, 0)):
        log, found = link(text.replace(TARGET, f"sm_{cc[0]}{cc[1]}a"), cc)
        assert found, log


@pytest.mark.parametrize(
    "move",
    [
        "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r8, %r9}, [%q6];",
        "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r8, %r9, %r10, %r11}, [%q6];",
        "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b4x16_p64 {%r8}, [%q6];",
        "stmatrix.sync.aligned.m16n8.x1.shared.b8 [%q6], {%r8};",
    ],
)
def test_a_move_that_is_not_there_is_refused_here_and_by_the_assembler(move):
    text = kernel(tile_through_shared(move), 2, TARGET, 512).replace("8.0", "8.8")
    with pytest.raises(simt.UnsupportedInstruction, match="moves the matrices"):
        simt.load(ptx.parse(text))
    with pytest.raises(Exception, match="ptxas refuses"):
        link(text, (12, 0))
