"""The two descriptors of ``tcgen05.mma``: of its operands in shared memory, and of the product itself.

PTX ISA, "Shared memory descriptor" and "Instruction descriptor" of the fifth generation of tensor cores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from . import matrix_descriptors
from .matrix_descriptors import MatrixDescriptor
from .swizzles import CHUNK, NO_SWIZZLE

VERSION = 1  # of a shared-memory descriptor of Blackwell
# By bits 61 to 63: the span of the swizzle, and the bytes that it moves as one piece.
LAYOUTS = {0: (NO_SWIZZLE, CHUNK), 1: (128, 32), 2: (128, CHUNK), 4: (64, CHUNK), 6: (32, CHUNK)}

# Types of A and B by kind and number. Those of 4 and 6 bits of (mx)f8f6f4 lie padded in shared memory.
_F8F6F4 = {0: "e4m3", 1: "e5m2", 3: "e2m3_p32", 4: "e3m2_p32", 5: "e2m1_p64"}
TYPES: dict[str, dict[int, str]] = {
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": _F8F6F4,
    "i8": {0: "u8", 1: "s8"},
    "mxf8f6f4": _F8F6F4,
    "mxf4": {1: "e2m1"},
    "mxf4nvf4": {1: "e2m1"},
}
RESULTS = {0: "f16", 1: "f32", 2: "s32"}
RESULTS_OF_KIND: dict[str, tuple[str, ...]] = {
    "f16": ("f16", "f32"),
    "f8f6f4": ("f16", "f32"),
    "i8": ("s32",),
}
DEPTH = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}  # k
SCALED = ("mxf8f6f4", "mxf4", "mxf4nvf4")  # kinds with block scales
# Rows and columns of weight-stationary products, which keep B in the tensor core while A changes.
STATIONARY_ROWS, STATIONARY_COLUMNS = (32, 64, 128), (64, 128, 256)


@lru_cache(maxsize=4096)
def decode_shared(word: int) -> MatrixDescriptor:
    """The fields of a shared-memory descriptor of 64 bits, most of which are where ``wgmma`` has them.

    Raises ValueError for a version or a layout that is none.
    """
    version, layout = word >> 46 & 3, word >> 61 & 7
    if version != VERSION:
        raise ValueError(
            "Bits 46 and 47 of a shared-memory descriptor of Blackwell are its version and must be 1, "
            f"but are {version}."
        )
    if layout not in LAYOUTS:
        raise ValueError(f"The layout of a shared-memory descriptor is {layout}: no layout.")
    span, atom = LAYOUTS[layout]
    return replace(matrix_descriptors.decode(word), span=span, atom=atom)


@dataclass(frozen=True)
class ProductDescriptor:
    """What a product is: types of D, A and B, its shape, what is negated, and which way A and B lie.

    `m` and `n` count all rows and columns, also where two blocks share them. `scale_a` and `scale_b` are the
    bytes of a scale's word at which the scales of this product begin, `scale_type` their type. A `sparse` A
    stores half of its k columns, and the `selector` says which metadata tell of them.
    """

    d_type: str
    a_type: str
    b_type: str
    m: int
    n: int
    k: int
    negates: tuple[bool, bool] = (False, False)
    k_major: tuple[bool, bool] = (True, True)
    saturates: bool = False
    sparse: bool = False
    scale_a: int = 0
    scale_b: int = 0
    scale_type: str = ""
    selector: int = 0

    @property
    def stored(self) -> int:
        """How many elements of a row of A are stored."""
        return self.k // 2 if self.sparse else self.k


@lru_cache(maxsize=1024)
def decode_product(word: int, kind: str, blocks: int, stationary: bool = False) -> ProductDescriptor:
    """The fields of an instruction descriptor of 32 bits, for a `kind`, 1 or 2 `blocks` and ``.ws``.

    Raises ValueError for types and shapes that the kind does not have.

    >>> decode_product(0x8400010, "f16", 1)
    ProductDescriptor(d_type='f32', a_type='f16', b_type='f16', m=128, n=256, k=16, ...
    """
    scaled = kind in SCALED
    types = TYPES[kind]
    names = []
    for what, first in (("A", 7), ("B", 10)):
        number = word >> first & 7
        if number not in types:
            known = ", ".join(f"{value} ({name})" for value, name in types.items())
            raise ValueError(
                f"With kind::{kind} the simulator knows the types {known} of {what}, but the descriptor says "
                f"{number}."
            )
        names.append(types[number])
    d_type = "f32" if scaled else RESULTS.get(word >> 4 & 3, "")
    if d_type not in RESULTS_OF_KIND.get(kind, ("f32",)):
        allowed = " or ".join(RESULTS_OF_KIND.get(kind, ("f32",)))
        raise ValueError(
            f"kind::{kind} adds in {allowed}, but the descriptor says {d_type or word >> 4 & 3} for D."
        )
    m, n = (word >> 24 & 31) * 16, (word >> 17 & 63) * 8
    if stationary:
        _check_stationary(m, n)
    else:
        _check_shape(m, n, blocks)
    sparse = bool(word >> 2 & 1)
    return ProductDescriptor(
        d_type,
        names[0],
        names[1],
        m,
        n,
        DEPTH[kind] * (2 if sparse else 1),
        (bool(word >> 13 & 1), bool(word >> 14 & 1)),
        (not word >> 15 & 1, not word >> 16 & 1),
        bool(word >> 3 & 1) and not scaled,
        sparse,
        word >> 29 & 3 if scaled else 0,
        word >> 4 & 3 if scaled else 0,
        ("ue8m0" if word >> 23 & 1 else "ue4m3") if scaled else "",
        word & 3 if sparse else 0,
    )


def _check_stationary(m: int, n: int) -> None:
    for what, value, known in (("rows", m, STATIONARY_ROWS), ("columns", n, STATIONARY_COLUMNS)):
        if value not in known:
            several = ", ".join(map(str, known[:-1]))
            raise ValueError(f"A product with .ws has {several} or {known[-1]} {what}, not {value}.")


def _check_shape(m: int, n: int, blocks: int) -> None:
    rows = (64, 128) if blocks == 1 else (128, 256)
    if m not in rows:
        raise ValueError(
            f"A product of {'one block' if blocks == 1 else 'two blocks'} has {rows[0]} or {rows[1]} rows, "
            f"not {m}."
        )
    step = 16 * blocks if m == rows[1] else 8 if blocks == 1 else 16
    if not step <= n <= 256 or n % step:
        raise ValueError(f"A product with {m} rows has a multiple of {step} columns up to 256, not {n}.")
