"""Arrays as a compiled function reads them.

One that it was not made for is refused: it would misread it, and say nothing. Where it was compiled for a
fake tensor, a call fills in the sizes and strides that this one left open.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gpulab.frontends import driver
from gpulab.simulator.device import LaunchError

from .unseen import unseen

BYTE, WORD = 8, 32  # bits


@dataclass(frozen=True)
class Seen:
    """An array as the compiler sees it: numbers such as Float32, and sizes, None where any will do."""

    kind: Any
    sizes: tuple[int | None, ...]

    def __str__(self) -> str:
        return (
            f"{self.kind} of shape ({', '.join('any' if size is None else str(size) for size in self.sizes)})"
        )

    def stands_for(self, wanted: Seen) -> bool:
        """Its numbers are as wide and as whole as those that are wanted, and so are its sizes.

        Numbers of less than a byte lie in arrays of another type. Those of 8 and 16 bits may be given as
        whole numbers, because NumPy knows few of their types.
        """
        widths = self.kind.width, wanted.kind.width
        if min(widths) >= BYTE and widths[0] != widths[1]:
            return False
        if min(widths) >= WORD and self.kind.is_integer != wanted.kind.is_integer:
            return False
        return len(self.sizes) == len(wanted.sizes) and all(
            size in (None, given) for given, size in zip(self.sizes, wanted.sizes, strict=True)
        )


class Filled:
    """An array for a parameter that was compiled for `fake`: its address, and what that one left open."""

    def __init__(self, array: Any, fake: Any):
        from cutlass.cute.runtime import from_dlpack

        self._tensor = array if hasattr(array, "load_dltensor") else from_dlpack(array)
        known = zip((*fake.shape, *fake.stride), (*self._tensor.shape, *self._tensor.stride), strict=True)
        left_open = [(value, wanted.width) for wanted, value in known if hasattr(wanted, "width")]
        words = "".join("i" if width == WORD else "q" for _, width in left_open)
        values = [value for value, _ in left_open]
        self._bytes = ctypes.create_string_buffer(struct.pack(f"P{words}", self._tensor.data_ptr, *values))

    def __c_pointers__(self) -> list[int]:
        return [ctypes.addressof(self._bytes)]


# What functions were compiled for, and the fake tensors among that.
_wanted: weakref.WeakKeyDictionary[Any, tuple[Seen | None, ...]] = weakref.WeakKeyDictionary()
_fakes: weakref.WeakKeyDictionary[Any, dict[int, Any]] = weakref.WeakKeyDictionary()


def seen(value: Any, fixed: bool) -> Seen | None:
    """None for what is no array, or has nested sizes. With `fixed`, sizes that may vary are numbers, too."""
    from cutlass.cute.runtime import from_dlpack

    if driver.is_on_device(value) or driver.region_of(value) is not None:
        value = from_dlpack(value).mark_layout_dynamic()
    kind, shape = getattr(value, "element_type", None), getattr(value, "shape", None)
    free = getattr(value, "dynamic_shapes_mask", None)
    if not hasattr(kind, "width") or free is None or not isinstance(shape, tuple) or len(free) != len(shape):
        return None
    sizes = zip(shape, free, strict=True)
    return Seen(kind, tuple(None if varies and not fixed else size for size, varies in sizes))


def _compare(wanted: Iterable[Seen | None], arguments: Iterable[Any], names: Iterable[str]) -> None:
    for made_for, value, name in zip(wanted, arguments, names, strict=False):
        given = seen(value, fixed=True) if made_for else None
        if given is not None and made_for is not None and not given.stands_for(made_for):
            raise LaunchError(
                f"{name} is {given}; this function was compiled for {made_for}. Compile it for such an "
                f"array, or for any sizes: from_dlpack({name}).mark_layout_dynamic()."
            )


def install() -> None:
    """Make compiled functions take the arrays that they were compiled for, and refuse others."""
    from cutlass.base_dsl.jit_executor import ExecutionArgs
    from cutlass.cute.runtime import _FakeTensor

    record = ExecutionArgs.record_arg_specs_from_compile_args
    arguments_of = ExecutionArgs.generate_execution_args

    def record_arg_specs_from_compile_args(self: Any, args: Any, kwargs: Any) -> None:
        record(self, args, kwargs)
        _wanted[self] = tuple(seen(value, fixed=False) for value in args)
        _fakes[self] = {i: value for i, value in enumerate(args) if type(value) is _FakeTensor}

    @unseen
    def generate_execution_args(self: Any, args: Any, kwargs: Any) -> Any:
        _compare(_wanted.get(self, ()), args, self.signature.parameters)
        fakes = _fakes.get(self, {})
        filled = tuple(Filled(value, fakes[i]) if i in fakes else value for i, value in enumerate(args))
        pointers, kept = arguments_of(self, filled, kwargs)
        return pointers, [*kept, *filled]  # what the pointers lead to lives as long as the call

    ExecutionArgs.record_arg_specs_from_compile_args = record_arg_specs_from_compile_args
    ExecutionArgs.generate_execution_args = generate_execution_args
