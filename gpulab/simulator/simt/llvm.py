"""What compiled code takes from LLVM, because numba has no function for it.

Import it only where something is compiled, because it imports the compiler. Its functions are defined at
module level: numba finds a compiled function on disk again only if that function refers to nothing that is
created anew in each process.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

OCTET = 8


@intrinsic
def fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c, rounded once. It becomes the processor's own instruction, or a call of libm's."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return a(a, b, c), build


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
        first = builder.insert_element(ir.Constant(eight, ir.Undefined), value, ir.IntType(32)(0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), OCTET), [0] * OCTET)
        value = builder.shuffle_vector(first, first, everywhere)
        builder.store(value, builder.inttoptr(arguments[0], eight.as_pointer()), align=size)
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
