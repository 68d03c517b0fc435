"""What elementwise and reduction kernels have in common: their text, how arrays get into it, launching."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arguments import Structure, label_of
from .arrays import ndarray
from .c_types import c_name
from .parameters import Parameter, Types
from .raw import RawKernel

NARROW = 1 << 31  # bytes: below, offsets fit 32 bits

HEADERS = {"float16": "<cupy/float16.cuh>", "complex<": "<cupy/complex.cuh>"}


@dataclass(frozen=True)
class Kind:
    """What the text of a kernel depends on in an argument: `ndim` is None for a scalar."""

    dtype: np.dtype
    ndim: int | None = None
    contiguous: bool = True
    narrow: bool = True


def kind_of(value: Any, dtype: np.dtype) -> Kind:
    """The kind of an array, or of a scalar that is passed as `dtype`."""
    if not isinstance(value, ndarray):
        return Kind(dtype)
    return Kind(value.dtype, value.ndim, value.flags.c_contiguous, reach(value) < NARROW)


def reach(array: ndarray) -> int:
    """How many bytes apart the first and the last element are."""
    return sum((n - 1) * abs(s) for n, s in zip(array.shape, array.strides, strict=True)) + array.itemsize


def parameter_text(parameter: Parameter, kind: Kind) -> str:
    """The parameter in the kernel's list: an array by way of its description, a scalar by value."""
    const = "const " if parameter.is_const else ""
    if kind.ndim is None:
        return f"const {parameter.ctype} {parameter.name}"
    flags = f"{kind.ndim}, {_c(kind.contiguous)}, {_c(kind.narrow)}"
    name = parameter.name if parameter.raw else f"_raw_{parameter.name}"
    return f"const CArray<{const}{parameter.ctype}, {flags}> {name}"


def elements_text(params: Sequence[Parameter], kinds: Sequence[Kind], index: str) -> list[str]:
    """Lines that name the element of each array at an index."""
    return [
        f"{'const ' if p.is_const else ''}{p.ctype}& {p.name} = _raw_{p.name}[{index}.get()];"
        for p, kind in zip(params, kinds, strict=True)
        if kind.ndim is not None and not p.raw
    ]


def indexer_text(name: str, ndim: int, narrow: bool) -> str:
    return f"CIndexer<{ndim}, {_c(narrow)}> {name}"


def head_text(types: Types, dtypes: Sequence[np.dtype], preamble: str, body: str) -> list[str]:
    """What stands before the kernel: headers that it needs, the placeholders, the learner's preamble."""
    used = " ".join([*map(c_name, dtypes), preamble, body])
    headers = [f"#include {file}" for word, file in HEADERS.items() if word in used and file not in preamble]
    aliases = [f"typedef {c_name(dtype)} {letter};" for letter, dtype in types.placeholders]
    return ["#include <cupy/carray.cuh>", *headers, *aliases, *preamble.splitlines()]


def described(array: ndarray, name: str) -> Structure:
    """What a CArray holds: address, number of elements, shape, strides."""
    numbers = (array.size, *array.shape, *array.strides)
    content = struct.pack(f"<Q{len(numbers)}q", array.data.ptr, *numbers)
    return Structure(content, label_of(array, name))


def indexer(shape: tuple[int, ...]) -> Structure:
    """What a CIndexer holds: number of elements, shape, room for the index."""
    numbers = (int(np.prod(shape, dtype=np.int64)), *shape, *(0 for _ in shape))
    return Structure(struct.pack(f"<{len(numbers)}q", *numbers))


def launch(
    text: str,
    name: str,
    options: tuple[str, ...],
    grid: int,
    block: int,
    params: Sequence[Parameter],
    values: Sequence[Any],
    more: Sequence[Any],
) -> None:
    """Launch a kernel of generated text: arrays as descriptions, scalars as they are, then `more`."""
    packed = [
        described(v, p.name) if isinstance(v, ndarray) else v for p, v in zip(params, values, strict=True)
    ]
    RawKernel(text, name, options)((grid,), (block,), (*packed, *more))


def _c(flag: bool) -> str:
    return "true" if flag else "false"
