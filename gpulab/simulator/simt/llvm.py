"""What compiled code takes from LLVM, because numba has no function for it.

Import it only where something is compiled, because it imports the compiler. Its functions are defined at
module level: numba finds a compiled function on disk again only if that function refers to nothing that is
created anew in each process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

OCTET = 8


@intrinsic
def fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c, rounded once. It becomes the processor's own instruction, or a call of libm's."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return a(a, b, c), build


@intrinsic
def keep_largest_products(
    typing_context: Any, to: Any, like: Any, depth: Any, x: Any, x_step: Any, factors: Any, step: Any
) -> Any:
    """Make each of the eight numbers at address `to` at least the largest of `depth` products. The first is
    that of the number at address `x` and its factor among the eight at address `factors`; the next ones are
    `x_step` and `step` bytes further. None is NaN."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, _, depth, *places = arguments
        octet, every = _kept_octet(context, builder, like.dtype, to), cgutils.for_range(builder, depth)
        with octet as kept, every as loop:
            product = _product(context, builder, like.dtype, loop.index, *places)
            largest = builder.load(kept)
            is_larger = builder.fcmp_ordered(">", product, largest)
            builder.store(builder.select(is_larger, product, largest), kept)
        return context.get_dummy_value()

    return types.void(to, like, depth, x, x_step, factors, step), build


@intrinsic
def add_cut_products(
    typing_context: Any,
    to: Any,
    like: Any,
    depth: Any,
    x: Any,
    x_step: Any,
    factors: Any,
    step: Any,
    scales: Any,
) -> Any:
    """Add to each of the eight numbers at address `to` what is before the point of `depth` products times its
    scale, among the eight at address `scales`. The products are those of `keep_largest_products`."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, _, depth, *places, scales = arguments
        eight = _octet(context, like.dtype)[2]
        scale = builder.load(builder.inttoptr(scales, eight.as_pointer()), align=8)
        name, function = f"llvm.trunc.v{OCTET}f64", ir.FunctionType(eight, [eight])
        truncate = builder.module.declare_intrinsic(name, fnty=function)
        octet, every = _kept_octet(context, builder, like.dtype, to), cgutils.for_range(builder, depth)
        with octet as kept, every as loop:
            product = _product(context, builder, like.dtype, loop.index, *places)
            cut = builder.call(truncate, [builder.fmul(product, scale)])
            builder.store(builder.fadd(builder.load(kept), cut), kept)
        return context.get_dummy_value()

    return types.void(to, like, depth, x, x_step, factors, step, scales), build


@contextmanager
def _kept_octet(context: Any, builder: Any, element: Any, at: Any) -> Iterator[Any]:
    """Eight numbers from an address, as a variable that LLVM keeps in registers; they are written back."""
    size, _, eight = _octet(context, element)
    there = builder.inttoptr(at, eight.as_pointer())
    kept = cgutils.alloca_once_value(builder, builder.load(there, align=size))
    yield kept
    builder.store(builder.load(kept), there, align=size)


def _product(
    context: Any, builder: Any, element: Any, n: Any, x: Any, x_step: Any, factors: Any, step: Any
) -> Any:
    """The number n steps from address `x` times the eight that are n steps from `factors`."""
    size, one, eight = _octet(context, element)
    at, of_row = (
        builder.inttoptr(builder.add(start, builder.mul(n, by)), kind.as_pointer())
        for start, by, kind in ((x, x_step, one), (factors, step, eight))
    )
    return builder.fmul(_eight_times(builder, builder.load(at)), builder.load(of_row, align=size))


def multiply_add(a: Any, b: Any, c: Any) -> Any:
    return fused(a, b, c)


@intrinsic
def pointer(typing_context: Any, address: Any, like: Any) -> Any:
    """The address as a pointer to elements such as those of the array `like`."""
    target = types.CPointer(like.dtype)

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(target))

    return target(address, like), build


@intrinsic
def fill(typing_context: Any, to: Any, at: Any, like: Any) -> Any:
    """Write eight copies of the element at address `at` to address `to`: LLVM does not see by itself that one
    store is enough."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size, one, eight = _octet(context, like.dtype)
        value = builder.load(builder.inttoptr(arguments[1], one.as_pointer()), align=size)
        builder.store(
            _eight_times(builder, value), builder.inttoptr(arguments[0], eight.as_pointer()), align=size
        )
        return context.get_dummy_value()

    return types.void(to, at, like), build


@intrinsic
def copy(typing_context: Any, to: Any, at: Any, like: Any) -> Any:
    """Copy the eight elements at address `at` to address `to`."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size, _, eight = _octet(context, like.dtype)
        target, source = (builder.inttoptr(each, eight.as_pointer()) for each in arguments[:2])
        builder.store(builder.load(source, align=size), target, align=size)
        return context.get_dummy_value()

    return types.void(to, at, like), build


def _octet(context: Any, element: Any) -> tuple[int, Any, Any]:
    """The bytes of an element, its type, and that of eight of them."""
    one = context.get_value_type(element)
    return element.bitwidth // 8, one, ir.VectorType(one, OCTET)


def _eight_times(builder: Any, value: Any) -> Any:
    empty = ir.Constant(ir.VectorType(value.type, OCTET), ir.Undefined)
    first = builder.insert_element(empty, value, ir.IntType(32)(0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), OCTET), [0] * OCTET)
    return builder.shuffle_vector(first, first, everywhere)
