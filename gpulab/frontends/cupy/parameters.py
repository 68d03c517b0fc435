"""``'T x, raw float32 y'``: parameters of elementwise and reduction kernels, and their types in a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import borrow, check_dtype, ndarray
from .c_types import c_name
from .functions import OnHost
from .layouts import joined
from .texture import TextureObject

HANDLES = np.dtype(np.uint64)  # what cudaTextureObject_t is


@dataclass(frozen=True)
class Parameter:
    """One parameter. `ctype` is a placeholder, for which `dtype` is None, or the name of the type in C."""

    name: str
    ctype: str
    dtype: np.dtype | None = None
    raw: bool = False
    is_const: bool = True


def parse(text: str, is_const: bool) -> tuple[Parameter, ...]:
    """Parameters from a list such as ``'T x, raw float32 y'``. Raises ValueError for what is not one."""
    return tuple(_one(piece, is_const) for piece in text.split(",")) if text.strip() else ()


def _one(text: str, is_const: bool) -> Parameter:
    *keywords, type_, name = text.split() if len(text.split()) > 1 else ("", "", "")
    if not name:
        raise ValueError(
            f"Syntax error: {text!r} is no parameter; write a type and a name, as in 'float32 x'."
        )
    for keyword in keywords:
        if keyword not in ("raw", "_non_const"):
            raise ValueError(f"Unknown keyword {keyword!r} in {text.strip()!r}; the only one is 'raw'.")
    const = is_const and "_non_const" not in keywords
    if len(type_) == 1:
        return Parameter(name, type_, None, "raw" in keywords, const)
    try:
        dtype = check_dtype(type_)
    except (TypeError, ValueError):
        raise ValueError(
            f"{type_!r} in {text.strip()!r} is no type: write a dtype, such as float32, or one letter that "
            "stands for the dtype of an argument, such as T."
        ) from None
    return Parameter(name, c_name(dtype), dtype, "raw" in keywords, const)


@dataclass(frozen=True)
class Types:
    """The dtypes of a call, and what each placeholder stands for."""

    inputs: tuple[np.dtype, ...]
    outputs: tuple[np.dtype, ...]
    placeholders: tuple[tuple[str, np.dtype], ...]


def resolve(
    kernel: str,
    in_params: Sequence[Parameter],
    out_params: Sequence[Parameter],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
) -> Types:
    """Find the dtypes from the arrays: outputs first, then inputs. Raises TypeError where they contradict."""
    found: dict[str, tuple[np.dtype, str]] = {}  # placeholder → dtype, and the parameter that said so
    for parameter, value in [*zip(out_params, outputs, strict=False), *zip(in_params, inputs, strict=True)]:
        if isinstance(value, TextureObject):
            found.setdefault(parameter.ctype, (HANDLES, parameter.name))
        if not isinstance(value, ndarray):
            continue
        if parameter.dtype is not None:
            if value.dtype != parameter.dtype:
                raise TypeError(
                    f"Type is mismatched. {parameter.name} {value.dtype} {parameter.dtype}: {kernel} has "
                    f"`{parameter.name}` as {parameter.dtype}, but got an array of {value.dtype}; convert it "
                    f"with .astype(cupy.{parameter.dtype}), or declare it as T."
                )
            continue
        dtype, by = found.setdefault(parameter.ctype, (value.dtype, parameter.name))
        if dtype != value.dtype:
            raise TypeError(
                f"Type is mismatched. {parameter.name} {value.dtype} {dtype} {parameter.ctype}: in {kernel} "
                f"{parameter.ctype} stands for one type, and `{by}` is {dtype}. Convert with .astype(), or "
                "use another letter."
            )
    for parameter in (*in_params, *out_params):
        if parameter.dtype is None and parameter.ctype not in found:
            raise TypeError(
                f"{kernel}: the type {parameter.ctype} of `{parameter.name}` is not known: no array argument "
                "has it. Pass the output array too, or declare a dtype such as float32."
            )

    def dtype_of(p: Parameter) -> np.dtype:
        return p.dtype if p.dtype is not None else found[p.ctype][0]

    return Types(
        tuple(map(dtype_of, in_params)),
        tuple(map(dtype_of, out_params)),
        tuple(sorted((letter, dtype) for letter, (dtype, _) in found.items())),
    )


def arguments(kernel: str, values: Sequence[Any]) -> list[Any]:
    """Arguments as arrays and scalars. Raises TypeError for everything else."""
    return [_argument(kernel, value) for value in values]


def _argument(kernel: str, value: Any) -> Any:
    if isinstance(value, ndarray):
        return value
    if hasattr(value, "__cupy_get_ndarray__"):
        return value.__cupy_get_ndarray__()
    if hasattr(value, "__cuda_array_interface__"):
        return borrow(value.__cuda_array_interface__, value)
    if isinstance(value, bool | int | float | complex | np.generic | TextureObject):
        return value
    raise OnHost(kernel).refused(value)


def as_dtype(value: Any, dtype: np.dtype) -> Any:
    """A scalar as `dtype`, a texture as its handle. Raises OverflowError for a Python number that has no room
    in it."""
    if isinstance(value, TextureObject):
        return HANDLES.type(value.ptr)
    if isinstance(value, np.generic):
        with np.errstate(all="ignore"):
            return value.astype(dtype)
    return dtype.type(value)


def broadcast(
    params: Sequence[Parameter], values: list[Any], size: int | None
) -> tuple[list[Any], tuple[int, ...]]:
    """The values with all arrays that are not raw broadcast, and the shape of the loop. Raises ValueError."""
    shapes = [v.shape for p, v in zip(params, values, strict=False) if not p.raw and isinstance(v, ndarray)]
    if size is not None:
        if shapes:
            raise ValueError("Specified 'size' can be used only if all of the ndarray are 'raw'.")
        return values, (size,)
    if not shapes:
        raise ValueError("Loop size is undecided. All arrays are 'raw': pass size=….")
    shape = np.broadcast_shapes(*shapes)
    return [
        stretched(v, shape) if not p.raw and isinstance(v, ndarray) else v
        for p, v in zip(params, values, strict=False)
    ], shape


def stretched(array: ndarray, shape: tuple[int, ...]) -> ndarray:
    """The array, broadcast to a shape."""
    return array if array.shape == shape else array.part(np.broadcast_to(array.layout(), shape))


def with_few_dimensions(
    params: Sequence[Parameter], values: list[Any], shape: tuple[int, ...]
) -> tuple[list[Any], tuple[int, ...]]:
    """The arrays that are not raw with as few dimensions as they can be walked alike in, and their shape."""
    places = [
        i for i, (p, v) in enumerate(zip(params, values, strict=True)) if not p.raw and isinstance(v, ndarray)
    ]
    if not places:
        return values, shape
    smaller, strides = joined(shape, [values[i].strides for i in places])
    values = list(values)
    for i, steps in zip(places, strides, strict=True):
        old = values[i]
        values[i] = ndarray.__new__(ndarray)
        values[i]._place(old.data, smaller, old.dtype, steps, old)
    return values, smaller
