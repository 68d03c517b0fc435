"""C's types and NumPy's: which arrays fit which pointer, and what a dtype is called in CUDA C++."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Fits:
    """Arrays whose dtype has one of these kinds and this size fit. `dtype` is the one to recommend."""

    dtype: str
    kinds: str
    size: int

    def __call__(self, dtype: np.dtype) -> bool:
        return (
            dtype.kind in self.kinds + "V"
            and dtype.itemsize % self.size == 0
            and (dtype.kind == "V" or dtype.itemsize == self.size)
        )


INT8, INT16, INT32, INT64 = (Fits(f"int{8 * n}", "biu" if n == 1 else "iu", n) for n in (1, 2, 4, 8))
UINT8, UINT16, UINT32, UINT64 = (Fits(f"u{f.dtype}", f.kinds, f.size) for f in (INT8, INT16, INT32, INT64))
FLOAT32, FLOAT64 = Fits("float32", "f", 4), Fits("float64", "f", 8)
# NumPy has no bfloat16: such bits lie in arrays of uint16.
FLOAT16, BFLOAT16 = Fits("float16", "fiu", 2), Fits("uint16", "iu", 2)
COMPLEX64, COMPLEX128 = Fits("complex64", "c", 8), Fits("complex128", "c", 16)

POINTEES: dict[str, Fits] = {
    "bool": Fits("bool", "biu", 1),
    "char": INT8,
    "unsigned char": UINT8,
    "short": INT16,
    "unsigned short": UINT16,
    "int": INT32,
    "unsigned int": UINT32,
    "long": INT64,
    "unsigned long": UINT64,
    "long long": INT64,
    "unsigned long long": UINT64,
    "size_t": UINT64,
    "ptrdiff_t": INT64,
    "half": FLOAT16,
    "nv_bfloat16": BFLOAT16,
    "float": FLOAT32,
    "double": FLOAT64,
    **{f"int{n}_t": Fits(f"int{n}", "iu", n // 8) for n in (8, 16, 32, 64)},
    **{f"uint{n}_t": Fits(f"uint{n}", "iu", n // 8) for n in (8, 16, 32, 64)},
    **dict.fromkeys(("cuFloatComplex", "cuComplex", "complex<float>"), COMPLEX64),
    **dict.fromkeys(("cuDoubleComplex", "complex<double>"), COMPLEX128),
    **dict.fromkeys(("nv_fp8_e4m3", "nv_fp8_e5m2"), UINT8),
}
VECTORS = {
    "char": INT8, "uchar": UINT8, "short": INT16, "ushort": UINT16, "int": INT32, "uint": UINT32,
    "longlong": INT64, "ulonglong": UINT64, "float": FLOAT32, "double": FLOAT64,
}  # fmt: skip
HALVES = {"half2": FLOAT16, "nv_bfloat162": BFLOAT16}

# What the words of an integer type mean, in any order.
UNSIGNED = {"unsigned": "unsigned int", "signed": "int"}


def canonical(c_type: str) -> str:
    """A C type under one of its names: ``long unsigned`` → ``unsigned long``."""
    c_type = c_type.removeprefix("__").removeprefix("thrust::").removeprefix("cuda::std::")
    words = c_type.split()
    if set(words) <= {"unsigned", "signed", "int", "long", "short", "char"}:
        sign = ["unsigned"] if "unsigned" in words else []
        base = [w for w in words if w in ("char", "short", "long")] or ["int"]
        return " ".join(sign + base)
    return c_type


def fits(pointee: str) -> Fits | None:
    """Which arrays fit a pointer to this C type; None where any may, or where we do not know."""
    name = canonical(pointee)
    if name in HALVES:
        return HALVES[name]
    vector = re.fullmatch(r"(u?(?:char|short|int|longlong)|float|double)[1-4]", name)
    if vector:
        base = VECTORS[vector[1]]
        kinds = base.kinds + ("c" if name in ("float2", "double2") else "")
        return _Vector(base.dtype, kinds, base.size)
    return POINTEES.get(name)


class _Vector(Fits):
    """A vector type over an array of its elements, or of complex numbers for pairs."""

    def __call__(self, dtype: np.dtype) -> bool:
        return dtype.kind in self.kinds and dtype.itemsize == self.size * (1 + (dtype.kind == "c"))


C_NAMES = {
    "?": "bool", "b": "signed char", "B": "unsigned char", "h": "short", "H": "unsigned short", "i": "int",
    "I": "unsigned int", "l": "long long", "L": "unsigned long long", "q": "long long",
    "Q": "unsigned long long", "e": "float16", "f": "float", "d": "double", "F": "complex<float>",
    "D": "complex<double>",
}  # fmt: skip


def c_name(dtype: np.dtype) -> str:
    """What elements of a dtype are called in kernels that are written for the learner."""
    if dtype.char not in C_NAMES:
        raise TypeError(f"elements of dtype {dtype} have no type in CUDA C++ here.")
    return C_NAMES[dtype.char]
