"""PTX types as NumPy types. Registers keep integers signed: it is only operations that know a sign."""

from __future__ import annotations

import numpy as np

from .memory import FRESH

BOOL = np.dtype(bool)
B128 = np.dtype("c16")  # 16 bytes as one element, of which nothing is computed

# How an operation of a PTX type sees its operands.
DTYPES: dict[str, np.dtype] = {
    "pred": BOOL,
    **{f"s{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    **{f"u{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)},
    **{f"b{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    "f16": np.dtype("f2"),
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
}

# How a register declared with a PTX type is kept.
REGISTER_DTYPES: dict[str, np.dtype] = DTYPES | {
    **{f"u{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    "b128": B128,
    "f16": np.dtype("i2"),
    "bf16": np.dtype("i2"),
    "f16x2": np.dtype("i4"),
    "bf16x2": np.dtype("i4"),
}

SIGNED: dict[int, np.dtype] = {n: np.dtype(f"i{n}") for n in (1, 2, 4, 8)}
UNSIGNED: dict[int, np.dtype] = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}

I32 = SIGNED[4]
I64 = SIGNED[8]
U32 = UNSIGNED[4]


WIDEST = 16  # bytes of a register


class Filled(dict[str, np.ndarray]):
    """Registers (1, 1) that hold the first of these bytes, by the name that their dtype gives itself."""

    def __init__(self, octets: bytes) -> None:
        super().__init__()
        self._octets = np.frombuffer(octets, np.uint8)

    def __missing__(self, key: str) -> np.ndarray:
        dtype = np.dtype(key)
        octets = self._octets[: dtype.itemsize]
        value = self[key] = (octets & 1 == 1 if dtype.kind == "b" else octets.view(dtype)).reshape(1, 1)
        return value


ZERO = Filled(bytes(WIDEST))
UNWRITTEN = Filled(bytes([FRESH] * WIDEST))  # what nobody has written


def widened(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """`x` broadcast to `shape`; `x` itself where it has that shape already, as it mostly does.

    >>> widened(np.zeros((1, 4)), (2, 4)).shape
    (2, 4)
    """
    return x if x.shape == shape else np.broadcast_to(x, shape)


def size_of(ptx_type: str) -> int:
    """Bytes of a PTX type (``f16x2`` is 4, ``pred`` is 1)."""
    if ptx_type == "pred":
        return 1
    digits = ptx_type.lstrip("bfsu")
    bits, _, times = digits.partition("x")
    return int(bits) // 8 * int(times or 1)
