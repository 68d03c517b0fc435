"""``mma.sp``: a warp multiplies a matrix of which half is stored, against sums of single elements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.simulator import ptx, simt
from gpulab.simulator.compile.ptxas import link

from .test_matrix import a_place, b_place, braces, c_place, fragment, kernel, run, tensor_sum
from .warpgroup_model import BITS, SMALLEST, number
from .wgmma_kernels import random_words

FORMS = [  # type of A and B, k, sum, values of the sparsity selector
    ("f16", 16, "f32", 4),
    ("f16", 32, "f32", 2),
    ("f16", 32, "f16", 2),
    ("bf16", 16, "f32", 4),
    ("bf16", 32, "f32", 2),
    ("tf32", 8, "f32", 4),
    ("tf32", 16, "f32", 2),
    ("e4m3", 64, "f32", 1),
    ("e5m2", 64, "f32", 1),
    ("s8", 32, "s32", 2),
    ("u8", 64, "s32", 1),
]


def opcode(type_: str, k: int, total: str) -> str:
    return f"mma.sp::ordered_metadata.sync.aligned.m16n8k{k}.row.col.{total}.{type_}.{type_}.{total}"


def text(type_: str, k: int, total: str, selector: int, target: str) -> str:
    """Parameters are the fragments of A, B and C, the metadata, and D, laid out as [lane][register]."""
    a, b = k // 2 * 16 * BITS[type_] // 1024, k * 8 * BITS[type_] // 1024
    c, kind = (2, "r") if total == "f16" else (4, "f" if total == "f32" else "r")
    body = [fragment(0, 0, a, "r", 4, True), fragment(1, 8, b, "r", 4, True)]
    body += [fragment(2, 16, c, kind, 4, True), fragment(3, 30, 1, "r", 4, True)]
    body.append(
        f"{opcode(type_, k, total)} {braces(kind, 20, c)}, {braces('r', 0, a)}, {braces('r', 8, b)}, "
        f"{braces(kind, 16, c)}, %r30, {selector};"
    )
    body.append(fragment(4, 20, c, kind, 4, False))
    return kernel("\n".join(body), 5, target)


def place_of_code(bits: int, k: int, row: int, column: int, selector: int) -> tuple[int, int]:
    """(lane, lowest bit) of the four bits that tell of a column, from the manual's figures."""
    lower = row >= 8
    if bits == 8:
        which = 2 * (column // 32) if k == 64 else 2 * selector
        return 4 * (row % 8) + which + lower, column % 32 // 4 * 4
    width = 8 if bits == 32 else 16  # columns of which one register tells
    holders = k // width
    return 4 * (row % 8) + selector * holders + column // width, column % width // (
        width // 4
    ) * 4 + 16 * lower


@settings(max_examples=60)
@given(st.sampled_from(FORMS), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_a_sparse_product_is_the_sum_of_the_kept_elements(form, selector, seed):
    type_, k, total, ways = form
    selector %= ways
    generator = np.random.default_rng(seed)
    bits = BITS[type_]
    words = [
        random_words(generator, 32 * n // bits, type_).view(np.uint32).reshape(32, -1)
        for n in (k // 2 * 16 * bits // 32, k * 8 * bits // 32)
    ]
    kind = {"f32": "f4", "f16": "f2", "s32": "i4"}[total]
    c = (generator.standard_normal((32, 4)) * 100).astype(kind)
    metadata = np.zeros(32, np.uint32)
    columns = {}
    group = 2 if bits == 32 else 4
    for row in range(16):
        kept = []
        for chunk in range(0, k, group):
            chosen = sorted(generator.choice(group, group // 2, replace=False).tolist())
            code = {0: 0b0100, 1: 0b1110}[chosen[0]] if group == 2 else chosen[0] | chosen[1] << 2
            lane, bit = place_of_code(bits, k, row, chunk, selector)
            metadata[lane] |= np.uint32(code << bit)
            kept += [chunk + i for i in chosen]
        columns[row] = kept
    (found,) = run(
        text(type_, k, total, selector, "sm_90"),
        [*words, c, metadata.reshape(32, 1)],
        [np.zeros((32, 4), kind)],
    )
    a, b = np.zeros((16, k // 2)), np.zeros((k, 8))
    for matrix, packed, place in ((a, words[0], a_place), (b, words[1], b_place)):
        for lane in range(32):
            octets = packed[lane].tobytes()
            for i in range(len(octets) * 8 // bits):
                word = int.from_bytes(octets[i * bits // 8 : (i + 1) * bits // 8], "little")
                matrix[place(lane, i, bits)] = number(word, type_)
    for lane, i in generator.integers(0, (32, 4), (24, 2)).tolist():
        row, column = c_place(lane, i)
        pairs = [(float(a[row, j]), float(b[kept, column])) for j, kept in enumerate(columns[row])]
        if total == "s32":
            expected = int(sum(x * y for x, y in pairs) + c[lane, i])
        else:
            with np.errstate(over="ignore"):
                expected = tensor_sum(pairs, float(c[lane, i]), SMALLEST[type_], 25, total == "f16")
        assert found[lane, i] == expected


def test_the_assembler_takes_every_sparse_form_that_runs_here():
    for target, cc, types in (("sm_80", (8, 0), "f16 bf16 tf32 s8 u8"), ("sm_89", (8, 9), "e4m3 e5m2")):
        forms = [form for form in FORMS if form[0] in types.split()]
        texts = [text(*form[:3], selector, target) for form in forms for selector in range(form[3])]
        for number_, each in enumerate(texts):
            simt.load(ptx.parse(each))
            texts[number_] = each.replace("warp(", f"warp{number_}(")
        header, *_ = texts[0].partition(".visible")
        log, code = link(header.replace("8.0", "8.5") + "".join(t[len(header) :] for t in texts), cc)
        assert code, log


@pytest.mark.parametrize(
    "change, message",
    [
        (("k16.", "k64."), "16 rows of 32 or 64 bytes"),
        ((", 3;", ", 4;"), "sparsity selector is 4, and must be less than 4"),
    ],
)
def test_a_sparse_form_that_is_not_there_is_refused_in_words(change, message):
    with pytest.raises(simt.UnsupportedInstruction, match=message):
        simt.load(ptx.parse(text("f16", 16, "f32", 3, "sm_80").replace(*change)))
