"""A scalar model of swizzles and of wgmma's canonical layouts, one element at a time, from the PTX manual.

And a tile as a compiler lays it out, to compare with.
"""

from __future__ import annotations

from functools import cache

import pytest

# The address bits of the chunk within its span, and those of the line, bit by bit.
EXCHANGED = {16: [], 32: [(4, 7)], 64: [(4, 7), (5, 8)], 128: [(4, 7), (5, 8), (6, 9)]}

# Canonical layouts in chunks of 16 bytes as (mn part, k part): each part lists (extent, step) from the
# innermost on; S and L stand for the stride and leading byte offset. `e` counts single elements of a chunk.
K_MAJOR = {
    16: ([(8, 1), (0, "S")], [("e", 0), (0, "L")]),
    32: ([(8, 2), (0, "S")], [("e", 0), (2, 1)]),
    64: ([(8, 4), (0, "S")], [("e", 0), (4, 1)]),
    128: ([(8, 8), (0, "S")], [("e", 0), (8, 1)]),
}
MN_MAJOR = {
    16: ([("e", 0), (0, "S")], [(8, 1), (0, "L")]),
    32: ([("e", 0), (2, 1), (0, "L")], [(8, 2), (0, "S")]),
    64: ([("e", 0), (4, 1), (0, "L")], [(8, 4), (0, "S")]),
    128: ([("e", 0), (8, 1), (0, "L")], [(8, 8), (0, "S")]),
}


# By the swizzle's atomicity: pieces of 32 bytes, the same with the halves of 16 bytes exchanged, 64 bytes.
EXCHANGED_BY_ATOMICITY = {1: ((5, 7), (6, 8)), 2: ((5, 7), (6, 8), (3, 7)), 3: ((6, 7),)}


def swizzled_bit_by_bit(address: int, span: int, atomicity: int = 0) -> int:
    for chunk_bit, line_bit in EXCHANGED_BY_ATOMICITY.get(atomicity, EXCHANGED[span]):
        address ^= (address >> line_bit & 1) << chunk_bit
    return address


def canonical_one(mn: int, k: int, itemsize: int, span: int, k_major: bool, leading: int, stride: int) -> int:
    steps = {"S": stride, "L": leading}
    total = 0
    for rest, part in zip((mn, k), (K_MAJOR if k_major else MN_MAJOR)[span], strict=True):
        for extent, step in part:
            size = 16 // itemsize if extent == "e" else extent or rest + 1
            rest, digit = divmod(rest, size)
            total += digit * (itemsize if extent == "e" else steps[step] if step in steps else step * 16)
        assert rest == 0
    return total


@cache
def compiled_by_triton(transposed: bool) -> str:
    """PTX of a product of a 64 × 64 and a 64 × 128 tile of float16 for capability 9.0."""
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from .hopper_kernels import product

    signature = {name: "*fp16" for name in "abc"} | {"n": "i32", "k": "i32"}
    source = ASTSource(product, signature, {"transposed": transposed})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
