"""Operations between the lanes of a warp: shuffle, vote, match, reduce. Arrays have shape (B, W, 32)."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

WARP = 32  # lanes
LANE = np.arange(WARP, dtype=np.int32)
NAN = np.uint32(0x7FFFFFFF).view(np.float32)  # as PTX writes it
LANE_BIT = np.uint32(1) << LANE.astype(np.uint32)


def pack(lanes: Array) -> Array:
    """Booleans (…, 32) → one uint32 mask a warp (…, 1)."""
    return np.packbits(lanes, axis=-1, bitorder="little").view(np.uint32)


def unpack(masks: Array) -> Array:
    """uint32 masks (…, n) → booleans: bit l of each lane's own mask … (…, n, 32)."""
    return (masks[..., None] & LANE_BIT) != 0


def source_lanes(mode: str, b: Array, c: Array) -> tuple[Array, Array]:
    """``shfl.sync``: (lane that each lane reads, its own where that is out of range; whether it was in
    range). b, c int32, as the PTX manual defines them."""
    b, clamp, segment = b & 31, c & 31, (c >> 8) & 31
    top = (LANE & segment) | (clamp & ~segment)
    bottom = LANE & segment
    if mode == "up":
        source = LANE - b
        valid = source >= top
    elif mode == "down":
        source = LANE + b
        valid = source <= top
    elif mode == "bfly":
        source = LANE ^ b
        valid = source <= top
    else:
        source = bottom | (b & ~segment)
        valid = source <= top
    return np.where(valid, source, LANE), valid


def shuffle(mode: str, value: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """``shfl.sync``: (value of the source lane, whether it was in range)."""
    source, valid = source_lanes(mode, b, c)
    shape = np.broadcast_shapes(value.shape, source.shape)
    source = np.broadcast_to(source, shape).astype(np.int64)
    return np.take_along_axis(np.broadcast_to(value, shape), source, axis=-1), np.broadcast_to(valid, shape)


def vote(mode: str, predicate: Array, members: Array) -> Array:
    """``vote.sync``: booleans for all, any and uni, uint32 for ballot; over the lanes in `members`."""
    if mode == "ballot":
        return pack(predicate & members)
    if mode == "any":
        return (predicate & members).any(axis=-1, keepdims=True)
    every = (predicate | ~members).all(axis=-1, keepdims=True)
    if mode == "all":
        return every
    return every | ~(predicate & members).any(axis=-1, keepdims=True)


def match_any(value: Array, members: Array) -> Array:
    """``match.any.sync``: for each lane the mask of members with the same value, uint32."""
    same = (value[..., :, None] == value[..., None, :]) & members[..., None, :]
    return np.packbits(same, axis=-1, bitorder="little").view(np.uint32)[..., 0]


def match_all(value: Array, members: Array) -> tuple[Array, Array]:
    """``match.all.sync``: (the mask of all members or 0, whether all had one value)."""
    first = np.take_along_axis(value, members.argmax(axis=-1)[..., None], axis=-1)
    equal = ((value == first) | ~members).all(axis=-1, keepdims=True)
    return np.where(equal, pack(members), np.uint32(0)), equal


REDUCTIONS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def reduce_floats(name: str, value: Array, members: Array, absolute: bool, keeps_nan: bool) -> Array:
    """``redux.sync`` of float32: ``min`` or ``max``, one result a warp.

    +0 counts as larger than -0. With `keeps_nan` one NaN makes the result NaN, without it only numbers count.
    """
    if absolute:
        value = np.abs(value)
    nan = np.isnan(value)
    # As integers, floats of one sign are in their own order: so -0 comes before +0.
    bits = value.view(np.int32)
    order = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits)
    chosen = reduce(name, order, members & ~nan)
    result = np.where(chosen < 0, chosen ^ np.int32(0x7FFFFFFF), chosen).view(np.float32)
    spoiled = (nan & members).any(axis=-1, keepdims=True) if keeps_nan else False
    return np.where(spoiled | ~(members & ~nan).any(axis=-1, keepdims=True), NAN, result)


def reduce(name: str, value: Array, members: Array) -> Array:
    """``redux.sync`` over the lanes in `members`; one result a warp."""
    function = REDUCTIONS[name]
    limits = np.iinfo(value.dtype)
    neutral = {
        "add": 0,
        "min": limits.max,
        "max": limits.min,
        "and": -1 if limits.min else limits.max,
        "or": 0,
        "xor": 0,
    }
    filled = np.where(members, value, value.dtype.type(neutral[name]))
    return function.reduce(filled, axis=-1, keepdims=True, dtype=value.dtype)
