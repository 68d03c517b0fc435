"""Integer arithmetic as PTX defines it: wrapping, C's division, clamped shifts, bit fields."""

from __future__ import annotations

import numpy as np

from .types import UNSIGNED

Array = np.ndarray


def _unsigned(x: Array) -> Array:
    return x.view(UNSIGNED[x.dtype.itemsize])


def divide(a: Array, b: Array) -> Array:
    """Quotient toward zero. By zero: all bits set, as GPUs return."""
    if a.dtype.kind == "u":
        return np.where(b == 0, ~a.dtype.type(0), a // np.where(b == 0, b.dtype.type(1), b))
    safe = np.where(b == 0, b.dtype.type(1), b)
    return np.where(b == 0, a.dtype.type(-1), (a - np.fmod(a, safe)) // safe)


def remainder(a: Array, b: Array) -> Array:
    """Remainder with the sign of the dividend. By zero: the dividend."""
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, b.dtype.type(1), b)))


def multiply_wide(a: Array, b: Array) -> Array:
    """The whole product, in the type of twice the width."""
    wide = np.dtype(f"{a.dtype.kind}{a.dtype.itemsize * 2}")
    return np.multiply(a, b, dtype=wide)


def multiply_high(a: Array, b: Array) -> Array:
    """The upper half of the product."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        return (multiply_wide(a, b) >> multiply_wide(a, b).dtype.type(bits)).astype(a.dtype)
    half, low = np.uint64(32), np.uint64(0xFFFF_FFFF)
    x, y = a.view(np.uint64), b.view(np.uint64)
    x1, x0, y1, y0 = x >> half, x & low, y >> half, y & low
    middle = x1 * y0 + ((x0 * y0) >> half)
    high = x1 * y1 + (middle >> half) + ((x0 * y1 + (middle & low)) >> half)
    if a.dtype.kind == "i":  # from the unsigned to the signed product
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return high.view(a.dtype)


def shift_left(a: Array, n: Array) -> Array:
    """`n` is unsigned 32-bit; a shift by the width or more gives 0."""
    return (
        np.left_shift(a, n.astype(a.dtype)) if a.dtype.itemsize >= 4 else _narrow_shift(np.left_shift, a, n)
    )


def shift_right(a: Array, n: Array) -> Array:
    """Arithmetic for signed types, logical for unsigned; a shift by the width or more leaves only the
    sign."""
    return (
        np.right_shift(a, n.astype(a.dtype)) if a.dtype.itemsize >= 4 else _narrow_shift(np.right_shift, a, n)
    )


def _narrow_shift(shift: np.ufunc, a: Array, n: Array) -> Array:
    wide = a.astype(np.int64 if a.dtype.kind == "i" else np.uint64)
    return shift(wide, np.minimum(n, np.uint32(63)).astype(wide.dtype)).astype(a.dtype)


def funnel_left(a: Array, b: Array, n: Array) -> Array:
    """Upper word of (b:a) << n, n already clamped or wrapped to 0 … 32; all uint32."""
    both = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
    return ((both << n.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)


def funnel_right(a: Array, b: Array, n: Array) -> Array:
    """Lower word of (b:a) >> n, n already clamped or wrapped to 0 … 32; all uint32."""
    both = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
    return (both >> n.astype(np.uint64)).astype(np.uint32)


def add_saturated(a: Array, b: Array) -> Array:
    """32-bit signed addition that stops at the ends of the range (``add.sat.s32``)."""
    return np.clip(a.astype(np.int64) + b, -(2**31), 2**31 - 1).astype(np.int32)


def subtract_saturated(a: Array, b: Array) -> Array:
    """32-bit signed subtraction that stops at the ends of the range (``sub.sat.s32``)."""
    return np.clip(a.astype(np.int64) - b, -(2**31), 2**31 - 1).astype(np.int32)


# ---- chains with a carry. The carry is a boolean array -------------------------------------------


def add_carry(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """(a + b + carry, carry out)."""
    x, y = _unsigned(a), _unsigned(b)
    first = x + y
    total = first + carry.astype(x.dtype)
    return total.view(a.dtype), (first < x) | (total < first)


def subtract_borrow(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    """(a − b − borrow, borrow out)."""
    x, y = _unsigned(a), _unsigned(b)
    first = x - y
    total = first - borrow.astype(x.dtype)
    return total.view(a.dtype), (x < y) | (first < borrow.astype(x.dtype))


# ---- bits ----------------------------------------------------------------------------------------


def population(x: Array) -> Array:
    """Number of set bits, int32."""
    return np.bitwise_count(_unsigned(x)).astype(np.int32)


def leading_zeros(x: Array) -> Array:
    """Zeros above the highest set bit, int32; the width for 0."""
    y = _unsigned(x).copy()
    bits = x.dtype.itemsize * 8
    shift = 1
    while shift < bits:  # smear the highest set bit downwards, then count
        y |= y >> y.dtype.type(shift)
        shift *= 2
    return np.int32(bits) - np.bitwise_count(y).astype(np.int32)


def reverse_bits(x: Array) -> Array:
    """Bit 0 becomes the highest bit."""
    octets = np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, x.dtype.itemsize)
    turned = np.packbits(np.unpackbits(octets, axis=-1), axis=-1, bitorder="little")[..., ::-1]
    return np.ascontiguousarray(turned).view(x.dtype).reshape(x.shape)


def highest_bit(x: Array) -> Array:
    """Position of the highest bit that differs from the sign (``bfind``), int32; −1 where there is none."""
    magnitude = np.where(x < 0, ~x, x) if x.dtype.kind == "i" else x
    return np.int32(x.dtype.itemsize * 8 - 1) - leading_zeros(magnitude)


def extract_field(a: Array, start: Array, length: Array) -> Array:
    """``bfe``: `length` bits of a from bit `start`, sign-extended for signed types; out of range reads the
    sign."""
    bits = a.dtype.itemsize * 8
    start, length = start & np.int32(0xFF), length & np.int32(0xFF)
    x = _unsigned(a)
    kept = _low_mask(length, bits)
    field = np.where(start < bits, shift_right(x, start.astype(np.uint32)), x.dtype.type(0)) & kept
    if a.dtype.kind == "u":
        return field
    top = np.minimum(start + length - 1, bits - 1)
    sign = (shift_right(x, top.astype(np.uint32)) & x.dtype.type(1)).astype(bool) & (length > 0)
    return np.where(
        sign, field | ~_low_mask(np.minimum(length, np.maximum(bits - start, 0)), bits), field
    ).view(a.dtype)


def insert_field(a: Array, b: Array, start: Array, length: Array) -> Array:
    """``bfi``: the low `length` bits of a put into b at bit `start`."""
    bits = a.dtype.itemsize * 8
    start, length = start & np.int32(0xFF), length & np.int32(0xFF)
    at = start.astype(np.uint32)
    window = shift_left(_low_mask(length, bits), at)
    x, y = _unsigned(a), _unsigned(b)
    return ((shift_left(x, at) & window) | (y & ~window)).view(a.dtype)


def _low_mask(length: Array, bits: int) -> Array:
    kind = UNSIGNED[bits // 8].type
    return np.where(
        length >= bits,
        ~kind(0),
        shift_left(np.broadcast_to(kind(1), length.shape), length.astype(np.uint32)) - kind(1),
    )


def bit_mask(start: Array, length: Array, clamp: bool) -> Array:
    """``bmsk``: `length` ones from bit `start`; uint32."""
    limit = np.uint32(32)
    if not clamp:
        start, length = start & np.uint32(31), length & np.uint32(31)
    start, length = np.minimum(start, limit), np.minimum(length, limit)
    return shift_left(_low_mask(length.astype(np.int32), 32), start)


def permute_bytes(a: Array, b: Array, selector: Array) -> Array:
    """``prmt``: each nibble of the selector picks a byte of b:a; its top bit spreads that byte's sign.
    uint32."""
    both = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
    result = np.zeros(np.broadcast_shapes(both.shape, selector.shape), np.uint32)
    for i in range(4):
        nibble = (selector >> np.uint32(4 * i)) & np.uint32(0xF)
        octet = (
            (both >> ((nibble & np.uint32(7)) * np.uint32(8)).astype(np.uint64)) & np.uint64(0xFF)
        ).astype(np.uint32)
        spread = np.where(octet & np.uint32(0x80), np.uint32(0xFF), np.uint32(0))
        result |= np.where(nibble & np.uint32(8), spread, octet) << np.uint32(8 * i)
    return result


def logic3(a: Array, b: Array, c: Array, table: int) -> Array:
    """``lop3``: any function of three bits, its truth table in `table` (bit index a·4 + b·2 + c)."""
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), a.dtype)
    for row in range(8):
        if table >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


def dot4(a: Array, b: Array, c: Array, a_signed: bool, b_signed: bool) -> Array:
    """``dp4a``: four products of bytes added to c; int32 in and out."""
    total = c.astype(np.int64)
    for i in range(4):
        x = _byte(a, i, a_signed)
        total = total + x * _byte(b, i, b_signed)
    return total.astype(np.int32)


def dot2(a: Array, b: Array, c: Array, a_signed: bool, b_signed: bool, high: bool) -> Array:
    """``dp2a``: two products of a's half words with two bytes of b (the upper two with `high`)."""
    total = c.astype(np.int64)
    for i in range(2):
        half = (a.astype(np.int64) >> (16 * i)) & 0xFFFF
        if a_signed:
            half = np.where(half >= 0x8000, half - 0x10000, half)
        total = total + half * _byte(b, i + 2 * high, b_signed)
    return total.astype(np.int32)


def _byte(x: Array, i: int, signed: bool) -> Array:
    value = (x.astype(np.int64) >> (8 * i)) & 0xFF
    return np.where(value >= 0x80, value - 0x100, value) if signed else value


def absolute_sum(a: Array, b: Array, c: Array) -> Array:
    """``sad``: c + |a − b|."""
    return c + np.where(a < b, b - a, a - b)
