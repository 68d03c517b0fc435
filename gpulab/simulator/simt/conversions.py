"""``cvt``: between all integer and floating-point types, with PTX's rounding and saturation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .floats import flush, round_toward, saturate
from .types import DTYPES

Array = np.ndarray
TO_INTEGRAL: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
DIRECTED = ("rz", "rm", "rp")


def conversion(target: str, source: str, modifiers: frozenset[str]) -> Callable[[Array], Array]:
    """The function from arrays of PTX type `source` to arrays of PTX type `target`."""
    to, of = DTYPES[target], DTYPES[source]
    if of.kind == "f" and to.kind == "f":
        return _float_to_float(to, of, modifiers)
    if of.kind == "f":
        return _float_to_integer(to, modifiers)
    if to.kind == "f":
        return _integer_to_float(to, modifiers)
    return _integer_to_integer(to, of, modifiers)


def _integer_to_integer(to: np.dtype, of: np.dtype, modifiers: frozenset[str]) -> Callable[[Array], Array]:
    if "sat" in modifiers:
        limits, range_of = np.iinfo(to), np.iinfo(of)
        low = max(limits.min, range_of.min)
        high = min(limits.max, range_of.max)
        return lambda x: np.clip(x, of.type(low), of.type(high)).astype(to)
    return lambda x: x.astype(to)


def _float_to_integer(to: np.dtype, modifiers: frozenset[str]) -> Callable[[Array], Array]:
    whole = next((TO_INTEGRAL[m] for m in modifiers if m in TO_INTEGRAL), np.trunc)
    limits = np.iinfo(to)

    def run(x: Array) -> Array:
        y = whole((flush(x) if "ftz" in modifiers else x).astype(np.float64))
        inside = (y >= float(limits.min)) & (y < float(limits.max) + (1.0 if to.itemsize < 8 else 0.0))
        value = np.where(inside, y, 0.0).astype(to)
        return np.where(
            inside | np.isnan(y), value, np.where(y > 0, to.type(limits.max), to.type(limits.min))
        )

    return run


def _integer_to_float(to: np.dtype, modifiers: frozenset[str]) -> Callable[[Array], Array]:
    mode = next((m for m in modifiers if m in DIRECTED), None)

    def run(x: Array) -> Array:
        nearest = x.astype(to)
        if mode is not None:
            nearest = round_toward(nearest, _integer_error(x, nearest), mode)
        return saturate(nearest) if "sat" in modifiers else nearest

    return run


def _integer_error(x: Array, nearest: Array) -> Array:
    """Sign of x − nearest, exactly: x is cut into two parts that float64 holds."""
    high = (x >> x.dtype.type(32)).astype(np.float64) * 2.0**32 if x.dtype.itemsize == 8 else np.float64(0)
    low = (
        (x & x.dtype.type(0xFFFF_FFFF)).astype(np.float64) if x.dtype.itemsize == 8 else x.astype(np.float64)
    )
    return (high - nearest.astype(np.float64)) + low


def _float_to_float(to: np.dtype, of: np.dtype, modifiers: frozenset[str]) -> Callable[[Array], Array]:
    whole = next((TO_INTEGRAL[m] for m in modifiers if m in TO_INTEGRAL), None)
    mode = next((m for m in modifiers if m in DIRECTED), None)

    def run(x: Array) -> Array:
        if "ftz" in modifiers and of.itemsize == 4:
            x = flush(x)
        if whole is not None:
            x = whole(x)
        y = x.astype(to)
        if mode is not None and to.itemsize < of.itemsize:
            error = x.astype(np.float64) - y.astype(np.float64)
            y = round_toward(y, np.where(np.isnan(error), 0.0, error), mode)
        if "ftz" in modifiers and to.itemsize == 4:
            y = flush(y)
        return saturate(y) if "sat" in modifiers else y

    return run
