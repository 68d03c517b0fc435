"""Arrays that a compiled function was not made for: it would misread them, and say nothing."""

from __future__ import annotations

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


_wanted: weakref.WeakKeyDictionary[Any, tuple[Seen | None, ...]] = weakref.WeakKeyDictionary()


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
    """Make compiled functions refuse arrays that they were not compiled for."""
    from cutlass.base_dsl.jit_executor import ExecutionArgs

    record = ExecutionArgs.record_arg_specs_from_compile_args
    arguments_of = ExecutionArgs.generate_execution_args

    def record_arg_specs_from_compile_args(self: Any, args: Any, kwargs: Any) -> None:
        record(self, args, kwargs)
        _wanted[self] = tuple(seen(value, fixed=False) for value in args)

    @unseen
    def generate_execution_args(self: Any, args: Any, kwargs: Any) -> Any:
        _compare(_wanted.get(self, ()), args, self.signature.parameters)
        return arguments_of(self, args, kwargs)

    ExecutionArgs.record_arg_specs_from_compile_args = record_arg_specs_from_compile_args
    ExecutionArgs.generate_execution_args = generate_execution_args
