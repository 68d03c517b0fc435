"""Tensor maps: the 128 bytes that tell TMA how an array in global memory is cut into boxes.

The bytes of a ``CUtensorMap`` are opaque to programs, so the layout here (`LAYOUT`) is our own. Three things
are known of the real one and hold here as well. A map of nothing but zeros is where ``tensormap.replace``
starts: Triton clears a descriptor and then sets only some of its fields. ``tensormap.replace`` changes
fields by name. And CUTLASS and Triton clear bit 21 of the second 64-bit word on the host, which must change
nothing: that bit is not used.

CuTe DSL's compiled host code does not ask the driver for a map but writes the hardware's own 64 bytes. In
those, bit 65 is always set (`IS_HARDWARES`); ours leaves it 0. Such a map is translated when it is used.

Dimensions are counted as in CUDA, starting with the innermost: dimension 0 is contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .swizzles import CHUNK, swizzled

Array = np.ndarray

BYTES = 128
MOST_DIMENSIONS = 5
LAYOUT = np.dtype(
    {
        "names": [
            "address", "type", "rank", "interleave", "swizzle", "fill", "atomicity", "promotion", "im2col",
            "strides", "dimensions", "box", "element_strides", "lower", "upper", "channels", "pixels",
        ],
        "formats": [
            "u8", "u1", "u1", "u1", "u1", "u1", "u1", "u1", "u1",
            "(4,)u8", "(5,)u8", "(5,)u2", "(5,)u1", "(3,)i2", "(3,)i2", "u2", "u2",
        ],
        # Byte 8 is 0, which tells our maps from the hardware's; byte 10 holds the bit that must stay free.
        "offsets": [0, 17, 9, 11, 12, 13, 14, 15, 16, 24, 56, 96, 106, 112, 118, 124, 126],
        "itemsize": BYTES,
    }
)  # fmt: skip
IS_HARDWARES = 0x2  # in byte 8
HARDWARE_B4X16 = 11  # the type of numbers of 4 bits, 16 in 8 bytes; smaller ones are those of `TYPES`
HARDWARE_TF32 = 1 << 16  # the bit that makes tf32 of f32
# The hardware's tiled maps, as far as CuTe DSL 4.8.1 shows them: its host code was given tensors whose sizes,
# strides, types and swizzles differed one at a time. It makes no element strides, no filling with NaN and no
# interleaved layouts.
HARDWARE_LAYOUT = np.dtype(
    {
        "names": ["address", "kinds", "strides", "strides_high", "last", "box_0", "box"],
        "formats": ["<u8", "<u4", "(4,)<u4", "<u4", "(5,)<u4", "u1", "(4,)u1"],
        "offsets": [0, 8, 12, 28, 32, 55, 56],
        "itemsize": 64,
    }
)


@dataclass(frozen=True)
class Type:
    """An element type: its bytes and, of a floating-point type, the NaN that fills what lies outside.

    Numbers of 4 and 6 bits are moved by `packs`, which are one element here. Behind each there may be a `gap`
    of some bytes in shared memory.
    """

    name: str
    itemsize: int
    nan: int | None = None
    packs: int = 1
    gap: int = 0

    @property
    def is_float(self) -> bool:
        return self.nan is not None


# In the order of ``tensormap.replace.tile.elemtype``. Which NaN the hardware fills in is not documented: this
# is the one that PTX calls canonical.
TYPES = (
    Type("u8", 1),
    Type("u16", 2),
    Type("u32", 4),
    Type("s32", 4),
    Type("u64", 8),
    Type("s64", 8),
    Type("f16", 2, 0x7FFF),
    Type("f32", 4, 0x7FFFFFFF),
    Type("f32.ftz", 4, 0x7FFFFFFF),
    Type("f64", 8, 0x7FFFFFFFFFFFFFFF),
    Type("bf16", 2, 0x7FFF),
    Type("tf32", 4, 0x7FFFFFFF),
    Type("tf32.ftz", 4, 0x7FFFFFFF),
    Type("b4x16", 1, packs=2),
    Type("b4x16_p64", 8, packs=16, gap=8),
    Type("b6x16_p32", 12, packs=16, gap=4),
)
NUMBERS = {type_.name: number for number, type_ in enumerate(TYPES)}
# ``CUtensorMapDataType`` counts some of them in another order.
DRIVER_TYPES = (
    "u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz", "tf32", "tf32.ftz",
    "b4x16", "b4x16_p64", "b6x16_p32",
)  # fmt: skip
PADDED_BOX = 128  # numbers of a padded type that a box has along the innermost dimension
SPANS = (CHUNK, 32, 64, 128)  # bytes, by the number of the swizzle mode; 16 is none
# How Blackwell swizzles 128 bytes: pieces of so many bytes, and whether the halves of 16 bytes change places
# in every second line. By the number of the swizzle atomicity.
ATOMS = ((CHUNK, False), (32, False), (32, True), (64, False))
# (span, atomicity) by the number of ``CUtensorMapSwizzle``.
DRIVER_SWIZZLES = (*((span, 0) for span in SPANS), *((128, atomicity) for atomicity in (1, 2, 3)))
INTERLEAVES = (0, 16, 32)  # bytes of a slice of channels, by the number of the interleave layout
# Range of the corners of an im2col box, by the rank of the tensor.
CORNERS = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}


class WrongTensorMap(ValueError):
    """A tensor map that breaks a rule: the message names the rule and the value."""


@dataclass(frozen=True)
class TensorMap:
    """What a tensor map says. Sizes, innermost dimension first, count elements unless stated otherwise.

    `strides` are bytes, of all dimensions but the first. `span` is the swizzle's width in bytes (16: none),
    `interleave` the bytes of a slice of channels (0: none). With `im2col` there is no `box`: `lower` and
    `upper` are the offsets (w, h, d) of the corners of the pixels' bounding box, and a copy moves `pixels`
    pixels of `channels` channels. `atomicity` is a number of `ATOMS`. Coordinates along the innermost
    dimension count numbers, of which an element of a small type has several (see `Type`).
    """

    address: int
    type: Type
    dimensions: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    span: int = CHUNK
    interleave: int = 0
    fills_nan: bool = False
    promotion: int = 0
    im2col: bool = False
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    channels: int = 0
    pixels: int = 0
    atomicity: int = 0

    @property
    def rank(self) -> int:
        return len(self.dimensions)

    @property
    def copied(self) -> tuple[int, ...]:
        """Elements that a copy moves along each dimension; of an im2col copy (channels, pixels)."""
        if self.im2col:
            return self.channels, self.pixels
        # The hardware takes no steps along the innermost dimension.
        steps = (1, *self.element_strides[1:])
        return tuple(-(-size // step) for size, step in zip(self.box, steps, strict=True))

    @property
    def nbytes(self) -> int:
        """Bytes that one copy writes to shared memory, those outside the tensor included and gaps left out:
        what it adds to the count of its mbarrier."""
        return int(np.prod(self.copied)) * self.type.itemsize

    @property
    def room(self) -> int:
        """Bytes of shared memory that one copy takes, with the gaps between small numbers."""
        return int(np.prod(self.copied)) * (self.type.itemsize + self.type.gap)

    @property
    def fill(self) -> int:
        """The bits of an element outside the tensor."""
        return self.type.nan or 0 if self.fills_nan else 0


# ---- encode --------------------------------------------------------------------------------------


def encode_tiled(
    type_: str,
    address: int,
    dimensions: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    element_strides: Sequence[int] = (),
    *,
    interleave: int = 0,
    span: int = CHUNK,
    promotion: int = 0,
    fills_nan: bool = False,
    atomicity: int = 0,
) -> bytes:
    """The 128 bytes of a tiled map, as ``cuTensorMapEncodeTiled`` makes them. See `TensorMap`.

    `promotion` is the number of ``CUtensorMapL2promotion``. Raises WrongTensorMap.

    >>> made = encode_tiled("f16", 0x700000000, (64, 128), (128,), (64, 32), span=128)
    >>> decode(made).copied, decode(made).nbytes
    ((64, 32), 4096)
    """
    rank, kind = len(dimensions), _type(type_)
    made = TensorMap(
        address,
        kind,
        _in_elements(kind, dimensions, "of the tensor"),
        tuple(strides),
        _in_elements(kind, box, "of the box"),
        tuple(element_strides) or (1,) * rank,
        span,
        interleave,
        fills_nan,
        promotion,
        atomicity=atomicity,
    )
    return encode(made)


def encode_im2col(
    type_: str,
    address: int,
    dimensions: Sequence[int],
    strides: Sequence[int],
    lower: Sequence[int],
    upper: Sequence[int],
    channels: int,
    pixels: int,
    element_strides: Sequence[int] = (),
    *,
    interleave: int = 0,
    span: int = CHUNK,
    promotion: int = 0,
    fills_nan: bool = False,
    atomicity: int = 0,
) -> bytes:
    """The 128 bytes of an im2col map, as ``cuTensorMapEncodeIm2col`` makes them. See `TensorMap`.

    Raises WrongTensorMap.
    """
    rank, kind = len(dimensions), _type(type_)
    made = TensorMap(
        address,
        kind,
        _in_elements(kind, dimensions, "of the tensor"),
        tuple(strides),
        (),
        tuple(element_strides) or (1,) * rank,
        span,
        interleave,
        fills_nan,
        promotion,
        True,
        tuple(lower),
        tuple(upper),
        _in_elements(kind, (channels,), "of a pixel")[0],
        pixels,
        atomicity,
    )
    return encode(made)


def _in_elements(type_: Type, sizes: Sequence[int], whose: str) -> tuple[int, ...]:
    """Sizes that count numbers, the innermost of them in elements. Raises WrongTensorMap."""
    if sizes and sizes[0] % type_.packs:
        raise WrongTensorMap(
            f"Dimension 0 {whose} must be a multiple of {type_.packs} numbers of the type {type_.name}, "
            f"but is {sizes[0]:,}."
        )
    return (sizes[0] // type_.packs, *sizes[1:]) if sizes else ()


def _type(name: str) -> Type:
    if name not in NUMBERS:
        known = ", ".join(NUMBERS)
        raise WrongTensorMap(f"A tensor map of Hopper knows the types {known}, but not {name}.")
    return TYPES[NUMBERS[name]]


def encode(map_: TensorMap) -> bytes:
    """The 128 bytes of a map that keeps all rules. Raises WrongTensorMap."""
    check(map_)
    fields = np.zeros((), LAYOUT)
    fields["address"] = map_.address
    fields["type"] = NUMBERS[map_.type.name]
    fields["rank"] = map_.rank - 1
    fields["interleave"] = INTERLEAVES.index(map_.interleave)
    fields["swizzle"] = SPANS.index(map_.span)
    fields["fill"] = map_.fills_nan
    fields["promotion"] = map_.promotion
    fields["im2col"] = map_.im2col
    fields["channels"], fields["pixels"] = map_.channels * map_.type.packs, map_.pixels
    fields["atomicity"] = map_.atomicity
    for name in ("strides", "dimensions", "box", "element_strides", "lower", "upper"):
        values = getattr(map_, name)
        fields[name][: len(values)] = values
    for name in ("dimensions", "box"):  # the hardware counts numbers
        fields[name][0] *= map_.type.packs
    return fields.tobytes()


# ---- the rules -----------------------------------------------------------------------------------


def check(map_: TensorMap) -> None:
    """Hold a map to the rules of the CUDA driver API. Raises WrongTensorMap for the first that it breaks."""
    rank = map_.rank
    if not 1 <= rank <= MOST_DIMENSIONS:
        raise WrongTensorMap(f"The tensor of a tensor map must have 1 to 5 dimensions, but has {rank}.")
    lowest = 3 if map_.interleave or map_.im2col else 1
    if rank < lowest:
        why = "With im2col" if map_.im2col else "With an interleaved layout"
        raise WrongTensorMap(f"{why} the tensor must have at least 3 dimensions, but has {rank}.")
    _lengths(map_)
    if map_.interleave not in INTERLEAVES:
        raise WrongTensorMap(f"A layout is interleaved by 16 or 32 bytes, but not by {map_.interleave}.")
    if map_.span not in SPANS:
        raise WrongTensorMap(f"Hopper swizzles within 32, 64 or 128 bytes, but not within {map_.span}.")
    if map_.interleave == 32 and map_.span != 32:
        asked = f"{map_.span} bytes" if map_.span > CHUNK else "none"
        raise WrongTensorMap(
            f"A layout interleaved by 32 bytes needs a swizzle of 32 bytes, but the swizzle is {asked}."
        )
    if map_.atomicity and map_.span != 128:
        raise WrongTensorMap(
            f"Only a swizzle of 128 bytes moves larger pieces than {CHUNK} bytes (swizzle atomicity "
            f"{map_.atomicity}), but the swizzle is {map_.span} bytes."
        )
    if map_.promotion not in range(4):
        raise WrongTensorMap(f"The L2 promotion must be a number from 0 to 3, but is {map_.promotion}.")
    unit = 32 if map_.interleave == 32 or map_.type.gap else 16
    if map_.address % unit:
        raise WrongTensorMap(
            f"The global address of a tensor map must be a multiple of {unit}, but is {map_.address:#x}."
        )
    for i, size in enumerate(map_.dimensions):
        if not 1 <= size <= 2**32:
            raise WrongTensorMap(f"Dimension {i} of the tensor must be 1 to 2³² elements, but is {size:,}.")
    for i, stride in enumerate(map_.strides, 1):
        if stride % unit:
            raise WrongTensorMap(
                f"The stride of dimension {i} must be a multiple of {unit} bytes, but is {stride:,}."
            )
        if not 0 <= stride < 2**40:
            raise WrongTensorMap(
                f"The stride of dimension {i} must be less than 2⁴⁰ bytes, but is {stride:,}."
            )
    for i, step in enumerate(map_.element_strides):
        if not 1 <= step <= 8 and (i or map_.interleave):
            raise WrongTensorMap(f"The element stride of dimension {i} must be 1 to 8, but is {step}.")
    if map_.fills_nan and not map_.type.is_float:
        raise WrongTensorMap(
            "Only floating-point elements outside the tensor can become NaN, "
            f"but the type is {map_.type.name}."
        )
    (_check_pixels if map_.im2col else _check_box)(map_)


def _lengths(map_: TensorMap) -> None:
    corners = map_.rank - 2 if map_.im2col else 0
    wanted = {
        "strides": map_.rank - 1,
        "element_strides": map_.rank,
        "box": 0 if map_.im2col else map_.rank,
        "lower": corners,
        "upper": corners,
    }
    for name, count in wanted.items():
        _same_number(map_.rank, NAMES[name], count, len(getattr(map_, name)))


def _same_number(rank: int, what: str, wanted: int, found: int) -> None:
    if found != wanted:
        raise WrongTensorMap(
            f"The number of {what} must be {wanted} for a tensor of rank {rank}, but is {found}."
        )


NAMES = {
    "strides": "strides",
    "element_strides": "element strides",
    "box": "box sizes",
    "lower": "offsets of the lower corner",
    "upper": "offsets of the upper corner",
}


def _check_box(map_: TensorMap) -> None:
    for i, size in enumerate((map_.box[0] * map_.type.packs, *map_.box[1:])):
        if not 1 <= size <= 256:
            raise WrongTensorMap(f"Dimension {i} of the box must be 1 to 256 elements, but is {size:,}.")
    _check_inner(map_, "box", map_.box[0])


def _check_pixels(map_: TensorMap) -> None:
    low, high = CORNERS[map_.rank]
    for name, offsets in (("lower", map_.lower), ("upper", map_.upper)):
        for offset in offsets:
            if not low <= offset <= high:
                raise WrongTensorMap(
                    f"With {map_.rank} dimensions, offsets of the {name} corner must be {low} to {high}, "
                    f"but one is {offset}."
                )
    for i, (first, last) in enumerate(zip(map_.lower, map_.upper, strict=True), 1):
        if map_.dimensions[i] + last <= first:
            raise WrongTensorMap(
                f"The bounding box of the pixels must not be empty, but along dimension {i} it goes from "
                f"{first} to {map_.dimensions[i] - 1 + last}."
            )
    if not 1 <= map_.channels <= 256:
        raise WrongTensorMap(f"An im2col copy moves 1 to 256 channels of a pixel, but not {map_.channels}.")
    if not 1 <= map_.pixels <= 1024:
        raise WrongTensorMap(f"An im2col copy moves 1 to 1,024 pixels, but not {map_.pixels:,}.")
    _check_inner(map_, "column of pixels", map_.channels)


def _check_inner(map_: TensorMap, what: str, count: int) -> None:
    if map_.interleave:
        return
    if map_.type.gap:
        _check_padded(map_, what, count)
    inner = count * (map_.type.itemsize + map_.type.gap)
    said = f"{count} elements of {map_.type.itemsize} byte{'s' if map_.type.itemsize > 1 else ''}"
    if inner % 16:
        raise WrongTensorMap(
            f"The innermost dimension of the {what} must be a multiple of 16 bytes, but {said} take {inner}."
        )
    if CHUNK < map_.span < inner:
        raise WrongTensorMap(
            f"The innermost dimension of the {what} must fit the swizzle of {map_.span} bytes, "
            f"but {said} take {inner}."
        )


def _check_padded(map_: TensorMap, what: str, count: int) -> None:
    """The rules of numbers that lie with gaps in shared memory."""
    packs, name = map_.type.packs, map_.type.name
    if count * packs != PADDED_BOX:
        raise WrongTensorMap(
            f"The innermost dimension of the {what} must be {PADDED_BOX} numbers of the type {name}, "
            f"but is {count * packs}."
        )
    if map_.dimensions[0] * packs % PADDED_BOX:
        raise WrongTensorMap(
            f"Dimension 0 of the tensor must be a multiple of {PADDED_BOX} numbers of the type {name}, "
            f"but is {map_.dimensions[0] * packs:,}."
        )
    if map_.span not in (CHUNK, 128) or map_.atomicity > 1:
        raise WrongTensorMap(
            f"Numbers of the type {name} are swizzled within 128 bytes, in pieces of 16 or 32 bytes, or not."
        )


# ---- decode, and change on the device ------------------------------------------------------------

# How many numbers a field may hold; the first is 0.
LIMITS = {
    "type": len(TYPES),
    "rank": MOST_DIMENSIONS,
    "interleave": len(INTERLEAVES),
    "swizzle": len(SPANS),
    "atomicity": len(ATOMS),
    "fill": 2,
    "im2col": 2,
}


def decode(data: bytes) -> TensorMap:
    """What 128 bytes say. Raises WrongTensorMap where they break a rule, as bytes that no one encoded do."""
    if len(data) != BYTES:
        raise WrongTensorMap(f"A tensor map has 128 bytes, but {len(data)} were given.")
    if data[8] & IS_HARDWARES:
        return _decode_hardwares(data)
    fields = np.frombuffer(data, LAYOUT)[0]
    number, rank = int(fields["type"]), int(fields["rank"]) + 1
    for name, limit in LIMITS.items():
        if fields[name] >= limit:
            raise WrongTensorMap(
                f"The bytes are no tensor map: the field {name} must be 0 to {limit - 1}, "
                f"but is {fields[name]}."
            )

    def several(name: str, count: int) -> tuple[int, ...]:
        return tuple(int(x) for x in fields[name][: max(count, 0)])

    im2col, kind = bool(fields["im2col"]), TYPES[number]
    found = TensorMap(
        int(fields["address"]),
        kind,
        _in_elements(kind, several("dimensions", rank), "of the tensor"),
        several("strides", rank - 1),
        _in_elements(kind, several("box", 0 if im2col else rank), "of the box"),
        several("element_strides", rank),
        SPANS[fields["swizzle"]],
        INTERLEAVES[fields["interleave"]],
        bool(fields["fill"]),
        int(fields["promotion"]),
        im2col,
        several("lower", rank - 2 if im2col else 0),
        several("upper", rank - 2 if im2col else 0),
        int(fields["channels"]) // kind.packs,
        int(fields["pixels"]),
        int(fields["atomicity"]),
    )
    check(found if all(found.dimensions) else _without_empty(found))
    return found


def _decode_hardwares(data: bytes) -> TensorMap:
    """The same of a map in the hardware's own layout."""
    fields = np.frombuffer(data[: HARDWARE_LAYOUT.itemsize], HARDWARE_LAYOUT)[0]
    kinds, high = int(fields["kinds"]), int(fields["strides_high"])
    rank, number = (kinds >> 4 & 7) + 1, kinds >> 7 & 15
    if rank > MOST_DIMENSIONS or number > HARDWARE_B4X16:
        raise WrongTensorMap(
            f"The simulator knows no tensor map of {rank} dimensions with elements of type {number}."
        )
    name = "b4x16" if number == HARDWARE_B4X16 else "tf32" if kinds & HARDWARE_TF32 else TYPES[number].name
    packs = TYPES[NUMBERS[name]].packs
    strides = [int(low) | (high >> 4 * i & 15) << 32 for i, low in enumerate(fields["strides"])]
    dimensions = [int(last) + 1 for last in fields["last"][:rank]]
    box = [int(last) + 1 for last in (fields["box_0"], *fields["box"])][:rank]
    found = TensorMap(
        int(fields["address"]),
        TYPES[NUMBERS[name]],
        (dimensions[0] // packs, *dimensions[1:]),
        tuple(16 * stride for stride in strides[: rank - 1]),
        (box[0] // packs, *box[1:]),
        (1,) * rank,
        SPANS[kinds >> 13 & 3],
        promotion=kinds >> 17 & 3,
    )
    check(found)
    return found


def _without_empty(map_: TensorMap) -> TensorMap:
    """A map made on the device may have an empty dimension, all of whose elements lie outside the tensor."""
    return replace(map_, dimensions=tuple(max(size, 1) for size in map_.dimensions))


# Fields of ``tensormap.replace``: our field, whether an ordinal says which entry of it.
REPLACED = {
    "global_address": ("address", False),
    "rank": ("rank", False),
    "box_dim": ("box", True),
    "global_dim": ("dimensions", True),
    "global_stride": ("strides", True),
    "element_stride": ("element_strides", True),
    "elemtype": ("type", False),
    "interleave_layout": ("interleave", False),
    "swizzle_mode": ("swizzle", False),
    "swizzle_atomicity": ("atomicity", False),
    "fill_mode": ("fill", False),
}


def replaced(data: bytes, field: str, value: int, ordinal: int = 0) -> bytes:
    """The map after ``tensormap.replace.tile.<field>``. Nothing is checked before the map is used.

    `value` is the number in the instruction: a rank is one less than the number of dimensions. `ordinal`
    says which dimension, and for ``global_stride`` which dimension after the first.
    Raises WrongTensorMap for a value that the field cannot hold, KeyError for an unknown field.
    """
    name, several = REPLACED[field]
    if data[8] & IS_HARDWARES:
        data = encode(_decode_hardwares(data))
    new = bytearray(data)  # a copy by NumPy would leave bytes that are no field as they happen to be
    fields = np.frombuffer(new, LAYOUT)
    place = fields[name][0] if several else fields[name]
    if several and not 0 <= ordinal < place.size:
        raise WrongTensorMap(f"tensormap.replace of {field} knows 0 to {place.size - 1}, but not {ordinal}.")
    most = np.iinfo(place.dtype).max
    if not 0 <= value <= most:
        raise WrongTensorMap(
            f"tensormap.replace of {field} takes a number from 0 to {most:,}, but got {value:,}."
        )
    place[ordinal if several else 0] = value
    return bytes(new)


# ---- a box ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """Where the elements of one copy lie, the innermost dimension last; all arrays have the same shape.

    `address` holds byte addresses in global memory, meaningless where `inside` is False; `shared` byte
    offsets into shared memory. A load writes the map's `fill` where `inside` is False, a store skips it.
    """

    address: Array
    inside: Array
    shared: Array


def tile(map_: TensorMap, coordinates: Array, shared: Array | int = 0) -> Box:
    """The elements of boxes whose first element has the `coordinates`, innermost dimension first.

    `coordinates` has the shape (*S, rank) and `shared` the shape S: where each box begins in shared memory,
    a multiple of 128. The arrays of the result have the shape (*S, *reversed(map_.copied)).
    Raises WrongTensorMap.

    >>> made = decode(encode_tiled("f32", 4096, (6, 4), (32,), (4, 2)))
    >>> box = tile(made, np.array([4, 3]))
    >>> box.inside.astype(int)
    array([[1, 1, 0, 0],
           [0, 0, 0, 0]])
    >>> box.address[0, :2] - 4096
    array([112, 116])
    """
    coordinates = np.asarray(coordinates, np.int64)
    _check_copy(map_, coordinates, False)
    rank, copied = map_.rank, map_.copied
    address, inside = np.array(map_.address, np.int64), np.array(True)
    # The hardware takes no steps along the innermost dimension.
    for i, (size, step, stride) in enumerate(
        zip(copied, (1, *map_.element_strides[1:]), (map_.type.itemsize, *map_.strides), strict=True)
    ):
        first = coordinates[..., i, None]
        if not i:
            first = first // map_.type.packs
        index = first + np.arange(size, dtype=np.int64) * step
        index = index.reshape(*coordinates.shape[:-1], *(1,) * (rank - 1 - i), size, *(1,) * i)
        address = address + index * stride
        inside = inside & (index >= 0) & (index < map_.dimensions[i])
    return Box(address, inside, _in_shared(map_, copied[::-1], shared))


GATHERED = 4  # rows that ``tile::gather4`` and ``tile::scatter4`` name


def of_rows(map_: TensorMap) -> TensorMap:
    """The map of a copy of four rows that lie anywhere: one after the other they are its box.

    Raises WrongTensorMap for a map that has not two dimensions and a box of one row.
    """
    if map_.rank != 2 or map_.im2col or map_.box[1] != 1:
        what = f"{map_.rank} dimensions" if map_.rank != 2 else f"a box of {map_.copied[1]} rows"
        raise WrongTensorMap(
            f"tile::gather4 and tile::scatter4 take a map of 2 dimensions whose box is 1 row, not {what}."
        )
    return replace(map_, box=(map_.box[0], GATHERED), element_strides=(1, 1))


def rows_tile(map_: TensorMap, points: Array, shared: Array) -> Box:
    """The elements of four rows. `points` (n, 5) has the first column and then the rows, `map_` is one of
    `of_rows`. The arrays of the result have the shape (n, 4, columns)."""
    columns = np.broadcast_to(points[:, :1], (len(points), GATHERED))
    single = replace(map_, box=(map_.box[0], 1))
    found = tile(single, np.stack([columns, points[:, 1:]], axis=-1))
    shape = (len(points), GATHERED, map_.copied[0])
    places = _in_shared(map_, (GATHERED, map_.copied[0]), shared)
    return Box(found.address.reshape(shape), found.inside.reshape(shape), places)


def im2col_tile(map_: TensorMap, coordinates: Array, offsets: Array, shared: Array | int = 0) -> Box:
    """The elements of im2col copies; the arrays of the result have the shape (*S, pixels, channels).

    `coordinates` (c, w, h, d, n, as far as the rank goes), of shape (*S, rank), name the first channel and
    pixel. The next pixels follow along w, then h and d, within the bounding box, then in the next image.
    From each pixel the `offsets` (w, h, d: a place in the filter), of shape (*S, rank - 2), lead to the
    element that is copied. `shared` is as in `tile`. Raises WrongTensorMap.
    """
    coordinates, offsets = np.asarray(coordinates, np.int64), np.asarray(offsets, np.int64)
    _check_copy(map_, coordinates, True)
    count = map_.rank - 2
    _same_number(map_.rank, "im2col offsets", count, offsets.shape[-1])
    pixels = _pixels(map_, coordinates)
    for i in range(count):
        pixels[i] = pixels[i] + offsets[..., i, None]
    channel = (coordinates[..., 0, None] // map_.type.packs + np.arange(map_.channels, dtype=np.int64))[
        ..., None, :
    ]
    address = map_.address + channel * map_.type.itemsize
    inside = (channel >= 0) & (channel < map_.dimensions[0])
    for index, stride, size in zip(pixels, map_.strides, map_.dimensions[1:], strict=True):
        address = address + (index * stride)[..., None]
        inside = inside & ((index >= 0) & (index < size))[..., None]
    return Box(address, inside, _in_shared(map_, (map_.pixels, map_.channels), shared))


def _pixels(map_: TensorMap, coordinates: Array) -> list[Array]:
    """The coordinates (w, h, d, n) of each pixel, all of shape (*S, pixels)."""
    number = np.arange(map_.pixels, dtype=np.int64)
    found = []
    for i in range(1, map_.rank - 1):
        first, step = map_.lower[i - 1], map_.element_strides[i]
        across = -(-(map_.dimensions[i] + map_.upper[i - 1] - first) // step)  # pixels along this dimension
        begin, rest = np.divmod(coordinates[..., i] - first, step)
        wrong = (rest != 0) | (begin < 0) | (begin >= across)
        if wrong.any():
            raise WrongTensorMap(
                f"The first pixel of an im2col copy must be one of the bounding box: along dimension {i} "
                f"those are {first} to {first + (across - 1) * step} in steps of {step}, "
                f"but the copy begins at {coordinates[..., i][wrong].flat[0]}."
            )
        number, at = np.divmod(begin[..., None] + number, across)
        found.append(first + at * step)
    return [*found, coordinates[..., -1, None] + number]


def _check_copy(map_: TensorMap, coordinates: Array, im2col: bool) -> None:
    if map_.im2col != im2col:
        has, asked = ("im2col", "tiled") if map_.im2col else ("tiled", "im2col")
        raise WrongTensorMap(f"The tensor map is {has}, but the copy is {asked}.")
    if map_.interleave:
        raise WrongTensorMap(
            "The simulator copies no interleaved layouts, but the tensor map has one of "
            f"{map_.interleave} bytes."
        )
    _same_number(map_.rank, "coordinates", map_.rank, coordinates.shape[-1])


def _in_shared(map_: TensorMap, shape: tuple[int, ...], start: Array | int) -> Array:
    """Offsets of the elements in shared memory: one after the other, then swizzled. Shape (*S, *shape)."""
    start = np.asarray(start, np.int64)
    if (start % 128).any():
        raise WrongTensorMap(
            "A tensor copy needs a place in shared memory that is a multiple of 128, "
            f"but got {int(start[start % 128 != 0].flat[0]):,}."
        )
    offsets = np.arange(int(np.prod(shape)), dtype=np.int64) * (map_.type.itemsize + map_.type.gap)
    places = swizzled(start[..., None] + offsets, map_.span, 0, *ATOMS[map_.atomicity])
    return places.reshape(*start.shape, *shape)
