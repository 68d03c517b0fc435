"""Tensor descriptors that a program makes and passes to a kernel, as Triton's launcher passes them on.

A kernel that moves tiles with TMA gets a tensor map of 128 bytes, made from the descriptor and the box that
the compiler chose; any other kernel gets the pointer and what else it needs to work out addresses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpulab.simulator.device import LaunchError
from gpulab.simulator.simt import tensor_maps

# Triton's names of elements → those of tensor maps, which move all other types as bits.
TYPES = {"fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64"}
BITS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
MAP_ALIGNMENT = 64


class Image(NamedTuple):
    """What a descriptor of images (im2col) says beyond a tiled one: the corners of the box of pixels, and a
    step for each dimension."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    steps: tuple[int, ...]


class Described(NamedTuple):
    """A descriptor whose array begins at `address` on the device; strides count elements."""

    address: int
    element: str  # as Triton calls it
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    fills_nan: bool
    rounds: bool  # float32 to the nearest TF32
    image: Image | None = None


class Piece(NamedTuple):
    """A number of the argument buffer in a format of `struct`, or a tensor map."""

    format: str
    value: Any


def is_descriptor(value: Any) -> bool:
    """Whether an argument is a `TensorDescriptor` of Triton or Gluon."""
    return type(value).__name__.startswith("TensorDescriptor") and hasattr(value, "block_shape")


def type_of(value: Any) -> str:
    """Triton's name of a descriptor's type."""
    from triton.runtime.jit import mangle_type

    return str(mangle_type(value))


def described(name: str, kernel: str, value: Any, address: int, element: str) -> Described:
    """A descriptor as data."""
    shape, strides = (tuple(int(n) for n in values) for values in (value.shape, value.strides))
    image = None
    if getattr(value, "mode", "tiled") == "im2col":
        steps = value.element_strides or (1,) * len(shape)
        corners = (value.pixel_box_lower_corner, value.pixel_box_upper_corner, steps)
        image = Image(*(tuple(int(n) for n in each) for each in corners))
    rounds = bool(value.round_f32_to_tf32)
    return Described(address, element, shape, strides, value.padding == "nan", rounds, image)


def pieces(name: str, kernel: str, given: Described, box: Mapping[str, Any] | None) -> list[Piece]:
    """What the kernel gets for a descriptor: with `box`, Triton's account of what TMA is to move, a map."""
    shape, strides = given.shape, given.strides
    if box is None:
        first = [Piece("Q", given.address)]
        first += [Piece("q", n) for n in (*shape, *strides)]
        first += [Piece("?", given.fills_nan), Piece("?", given.rounds)]
    else:
        first = [Piece("map", _map(name, kernel, given, box))]
    return [*first, *(Piece("i", n) for n in shape), *(Piece("q", n) for n in strides)]


def _map(name: str, kernel: str, given: Described, box: Mapping[str, Any]) -> bytes:
    size = int(box["elem_size"])
    type_ = "tf32" if given.rounds else TYPES.get(given.element, BITS[size])
    if box.get("fp4_padded"):  # two numbers in each byte, which lie with gaps in shared memory
        type_ = "b4x16_p64"

    def inner_first(values: Sequence[Any]) -> tuple[int, ...]:
        return tuple(int(n) for n in reversed(values))

    padded = 2 if type_ == "b4x16_p64" else 1
    dimensions = inner_first([*given.shape[:-1], given.shape[-1] * padded])
    strides = inner_first([n * size for n in given.strides[:-1]])
    span = tensor_maps.SPANS[int(box["swizzle"])]
    try:
        if given.image is not None:
            pixels, channels = (int(n) for n in box["block_size"])
            lower, upper, steps = map(inner_first, given.image)
            return tensor_maps.encode_im2col(
                type_, given.address, dimensions, strides, lower, upper, channels, pixels, steps,
                span=span, fills_nan=given.fills_nan,
            )  # fmt: skip
        return tensor_maps.encode_tiled(
            type_,
            given.address,
            dimensions,
            strides,
            inner_first(box["block_size"]),
            span=span,
            fills_nan=given.fills_nan,
        )
    except tensor_maps.WrongTensorMap as error:
        raise LaunchError(f"{kernel}: the tensor descriptor {name} cannot be: {error}") from None
