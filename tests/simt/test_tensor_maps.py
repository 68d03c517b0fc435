"""Tensor maps against one element at a time, the driver's documented rules, and what Triton replaces."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from cuda.bindings import driver
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator.simt.tensor_maps import (
    BYTES,
    DRIVER_TYPES,
    NUMBERS,
    REPLACED,
    TYPES,
    TensorMap,
    WrongTensorMap,
    decode,
    encode,
    encode_im2col,
    encode_tiled,
    im2col_tile,
    replaced,
    tile,
)

from .layouts import compiled_by_triton, swizzled_bit_by_bit

ADDRESS = 0x7_0000_0000
WHOLE_BYTES = [type_ for type_ in TYPES if type_.packs == 1]


@st.composite
def tiled_maps(draw) -> TensorMap:
    """Any tiled map that keeps the rules, with boxes of at most a few thousand elements."""
    type_ = draw(st.sampled_from(WHOLE_BYTES))
    rank = draw(st.integers(1, 5))
    span = draw(st.sampled_from([16, 32, 64, 128]))
    most = (span if span > 16 else 128) // 16
    inner = draw(st.integers(1, most)) * 16 // type_.itemsize
    box = (inner, *(draw(st.integers(1, 5)) for _ in range(rank - 1)))
    dimensions = tuple(draw(st.integers(1, 2 * size + 1)) for size in box)
    strides, stride = [], -(-dimensions[0] * type_.itemsize // 16) * 16
    for size in dimensions[1:]:
        strides.append(stride + 16 * draw(st.integers(0, 2)))
        stride = strides[-1] * size
    steps = tuple(draw(st.integers(1, 8)) for _ in range(rank))
    nan = draw(st.booleans()) and type_.is_float
    atomicity = draw(st.integers(0, 3)) if span == 128 else 0
    return TensorMap(
        ADDRESS, type_, dimensions, tuple(strides), box, steps, span, fills_nan=nan, atomicity=atomicity
    )


@st.composite
def im2col_maps(draw) -> TensorMap:
    type_, rank = draw(st.sampled_from(WHOLE_BYTES)), draw(st.integers(3, 5))
    dimensions = tuple(draw(st.integers(1, 6)) for _ in range(rank))
    lower = tuple(draw(st.integers(-3, 0)) for _ in range(rank - 2))
    upper = tuple(
        draw(st.integers(first - size + 1, 3)) for first, size in zip(lower, dimensions[1:], strict=False)
    )
    strides, stride = [], -(-dimensions[0] * type_.itemsize // 16) * 16
    for size in dimensions[1:]:
        strides.append(stride)
        stride *= size
    steps = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    channels = draw(st.integers(1, 2)) * 16 // type_.itemsize
    span = draw(st.sampled_from([16, 32, 64, 128]))
    return TensorMap(
        ADDRESS, type_, dimensions, tuple(strides), (), steps, span, im2col=True,
        lower=lower, upper=upper, channels=channels, pixels=draw(st.integers(1, 20)),
    )  # fmt: skip


# ---- bytes ---------------------------------------------------------------------------------------


@given(st.one_of(tiled_maps(), im2col_maps()))
def test_a_map_is_read_as_it_was_written(map_):
    data = encode(map_)
    assert len(data) == BYTES
    assert decode(data) == map_


@given(st.one_of(tiled_maps(), im2col_maps()))
def test_the_bit_that_hosts_clear_in_real_maps_changes_nothing(map_):
    words = np.frombuffer(encode(map_), np.uint64)
    assert not int(words[1]) >> 21 & 1


def test_the_two_ways_to_encode_give_what_was_asked_for():
    tiled = encode_tiled(
        "bf16", ADDRESS, (64, 9, 5), (128, 1152), (32, 3, 2), (1, 2, 1), span=64, promotion=2
    )
    assert decode(tiled) == TensorMap(
        ADDRESS, TYPES[NUMBERS["bf16"]], (64, 9, 5), (128, 1152), (32, 3, 2), (1, 2, 1), 64, promotion=2
    )
    pixels = encode_im2col("f16", ADDRESS, (64, 9, 9, 2), (128, 1152, 10368), (-1, -1), (1, 1), 32, 128)
    assert decode(pixels) == TensorMap(
        ADDRESS, TYPES[NUMBERS["f16"]], (64, 9, 9, 2), (128, 1152, 10368), (), (1, 1, 1, 1),
        im2col=True, lower=(-1, -1), upper=(1, 1), channels=32, pixels=128,
    )  # fmt: skip


def test_types_are_named_in_the_drivers_order_too():
    names = {
        "u": "UINT", "s": "INT", "f": "FLOAT", "bf": "BFLOAT", "tf": "TFLOAT",
    }  # fmt: skip
    small = {"b4x16": "16U4_ALIGN8B", "b4x16_p64": "16U4_ALIGN16B", "b6x16_p32": "16U6_ALIGN16B"}
    for number, name in enumerate(DRIVER_TYPES):
        kind = driver.CUtensorMapDataType(number).name.removeprefix("CU_TENSOR_MAP_DATA_TYPE_")
        if name in small:
            assert kind == small[name]
            continue
        letters, digits, ftz = re.fullmatch(r"([a-z]+)(\d+)(\.ftz)?", name).groups()
        assert kind == names[letters] + digits + ("_FTZ" if ftz else "")
    assert sorted(DRIVER_TYPES) == sorted(NUMBERS)


# ---- rules ---------------------------------------------------------------------------------------

GOOD = {
    "type_": "f16",
    "address": ADDRESS,
    "dimensions": (64, 128, 4),
    "strides": (128, 16384),
    "box": (64, 32, 1),
    "element_strides": (1, 1, 1),
    "span": 128,
}
PADDED = {"type_": "b4x16_p64", "dimensions": (256, 128, 4), "box": (128, 8, 1)}  # what differs from `GOOD`
GOOD_PIXELS = {
    "type_": "f16",
    "address": ADDRESS,
    "dimensions": (64, 16, 16, 4),
    "strides": (128, 2048, 32768),
    "lower": (-1, -1),
    "upper": (-1, -1),
    "channels": 64,
    "pixels": 128,
    "span": 128,
}


def test_the_maps_that_the_rules_are_broken_of_are_good():
    assert decode(encode_tiled(**GOOD)).copied == (64, 32, 1)
    padded = decode(encode_tiled(**GOOD | PADDED))
    assert (padded.copied, padded.nbytes, padded.room) == ((8, 8, 1), 512, 1024)
    assert decode(encode_im2col(**GOOD_PIXELS)).copied == (64, 128)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"type_": "f8"}, "knows the types u8, .*, but not f8"),
        ({"address": ADDRESS + 8}, "global address .* multiple of 16, but is 0x700000008"),
        (
            {"address": ADDRESS + 16, "interleave": 32, "span": 32},
            "global address .* multiple of 32, but is 0x700000010",
        ),
        ({"dimensions": (), "strides": (), "box": (), "element_strides": ()}, "1 to 5 dimensions, but has 0"),
        (
            {"dimensions": (8,) * 6, "strides": (16,) * 5, "box": (8,) * 6, "element_strides": (1,) * 6},
            "1 to 5 dimensions, but has 6",
        ),
        (
            {"dimensions": (8,) * 2, "strides": (16,), "box": (8,) * 2, "element_strides": (1,) * 2}
            | {"interleave": 16},
            "interleaved layout the tensor must have at least 3 dimensions, but has 2",
        ),
        ({"dimensions": (64, 0, 4)}, "Dimension 1 of the tensor must be 1 to 2³² elements, but is 0"),
        ({"dimensions": (64, 2**32 + 1, 4)}, "Dimension 1 .* but is 4,294,967,297"),
        ({"strides": (128, 16392)}, "stride of dimension 2 must be a multiple of 16 bytes, but is 16,392"),
        (
            {"strides": (144, 16384), "interleave": 32, "span": 32},
            "dimension 1 must be a multiple of 32 .*144",
        ),
        (
            {"strides": (128, 2**40)},
            "stride of dimension 2 must be less than 2⁴⁰ bytes, but is 1,099,511,627,776",
        ),
        ({"strides": (128,)}, "number of strides must be 2 for a tensor of rank 3, but is 1"),
        ({"box": (64, 257, 1)}, "Dimension 1 of the box must be 1 to 256 elements, but is 257"),
        ({"box": (64, 0, 1)}, "Dimension 1 of the box must be 1 to 256 elements, but is 0"),
        ({"box": (60, 32, 1)}, "multiple of 16 bytes, but 60 elements of 2 bytes take 120"),
        (
            {"box": (64, 32, 1), "span": 64},
            "fit the swizzle of 64 bytes, but 64 elements of 2 bytes take 128",
        ),
        ({"box": (128, 32, 1)}, "fit the swizzle of 128 bytes, but 128 elements of 2 bytes take 256"),
        ({"element_strides": (1, 9, 1)}, "element stride of dimension 1 must be 1 to 8, but is 9"),
        ({"element_strides": (1, 0, 1)}, "element stride of dimension 1 must be 1 to 8, but is 0"),
        ({"span": 96}, "swizzles within 32, 64 or 128 bytes, but not within 96"),
        ({"interleave": 8}, "interleaved by 16 or 32 bytes, but not by 8"),
        ({"interleave": 32}, "needs a swizzle of 32 bytes, but the swizzle is 128 bytes"),
        ({"interleave": 32, "span": 16}, "needs a swizzle of 32 bytes, but the swizzle is none"),
        ({"promotion": 4}, "promotion must be a number from 0 to 3, but is 4"),
        ({"type_": "s32", "box": (32, 1, 1), "fills_nan": True}, "can become NaN, but the type is s32"),
        ({"span": 64, "box": (32, 1, 1), "atomicity": 1}, "Only a swizzle of 128 bytes moves larger pieces"),
        (
            {"type_": "b4x16", "dimensions": (65, 128, 4)},
            "multiple of 2 numbers of the type b4x16, but is 65",
        ),
        (PADDED | {"address": ADDRESS + 16}, "global address .* multiple of 32"),
        (
            PADDED | {"strides": (144, 16384)},
            "stride of dimension 1 must be a multiple of 32 bytes, but is 144",
        ),
        (PADDED | {"box": (64, 8, 1)}, "must be 128 numbers of the type b4x16_p64, but is 64"),
        (PADDED | {"dimensions": (192, 8, 1)}, "must be a multiple of 128 numbers .*, but is 192"),
        (PADDED | {"span": 64}, "swizzled within 128 bytes, in pieces of 16 or 32 bytes, or not"),
        (PADDED | {"atomicity": 3}, "swizzled within 128 bytes, in pieces of 16 or 32 bytes, or not"),
    ],
)
def test_a_broken_rule_of_a_tiled_map_is_told_with_the_value(changes, message):
    with pytest.raises(WrongTensorMap, match=message):
        encode_tiled(**GOOD | changes)


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"lower": (-129, -1)},
            "4 dimensions, offsets of the lower corner must be -128 to 127, but one is -129",
        ),
        ({"upper": (-1, 128)}, "offsets of the upper corner must be -128 to 127, but one is 128"),
        (
            {"lower": (-1,)},
            "number of offsets of the lower corner must be 2 for a tensor of rank 4, but is 1",
        ),
        ({"upper": (-17, -1)}, "must not be empty, but along dimension 1 it goes from -1 to -2"),
        ({"channels": 257}, "1 to 256 channels of a pixel, but not 257"),
        ({"channels": 60}, "multiple of 16 bytes, but 60 elements of 2 bytes take 120"),
        ({"channels": 128}, "fit the swizzle of 128 bytes, but 128 elements of 2 bytes take 256"),
        ({"pixels": 1025}, "1 to 1,024 pixels, but not 1,025"),
        ({"pixels": 0}, "1 to 1,024 pixels, but not 0"),
        (
            {"dimensions": (64, 16), "strides": (128,), "lower": (), "upper": ()},
            "With im2col the tensor must have at least 3 dimensions, but has 2",
        ),
    ],
)
def test_a_broken_rule_of_an_im2col_map_is_told_with_the_value(changes, message):
    with pytest.raises(WrongTensorMap, match=message):
        encode_im2col(**GOOD_PIXELS | changes)


@pytest.mark.parametrize("rank, least, most", [(3, -32768, 32767), (4, -128, 127), (5, -16, 15)])
def test_corners_have_as_many_bits_as_the_rank_leaves(rank, least, most):
    def corners(lower: int, upper: int) -> bytes:
        count = rank - 2
        return encode_im2col(
            "f16", ADDRESS, (64,) + (2**17,) * count + (1,), (128,) * (rank - 1),
            (lower,) * count, (upper,) * count, 64, 1,
        )  # fmt: skip

    made = decode(corners(least, most))
    assert (made.lower[0], made.upper[0]) == (least, most)
    for lower, upper in ((least - 1, 0), (0, most + 1)):
        with pytest.raises(WrongTensorMap, match=f"must be {least} to {most}"):
            corners(lower, upper)


def test_an_element_stride_of_the_innermost_dimension_is_ignored():
    assert decode(encode_tiled(**GOOD | {"element_strides": (77, 2, 1)})).copied == (64, 16, 1)


@pytest.mark.parametrize(
    "data, message",
    [
        (bytes(64), "128 bytes, but 64 were given"),
        (b"\xff" * 128, "knows no tensor map of 8 dimensions with elements of type 15"),
        (b"\xfc" * 128, "bytes are no tensor map: the field type must be 0 to 15, but is 252"),
        (bytes(128), "Dimension 0 of the box must be 1 to 256 elements, but is 0"),
    ],
)
def test_bytes_that_are_no_map_are_told_apart(data, message):
    with pytest.raises(WrongTensorMap, match=message):
        decode(data)


# Words that CuTe DSL 4.8.1 wrote for tensors of 64 × 128 elements, behind the address.
HARDWARES = {
    "f16, 128-byte swizzle": (0x00046312, 128, ("f16", (64, 32), 128)),
    "f16, 32-byte swizzle": (0x00042312, 128, ("f16", (16, 32), 32)),
    "f32": (0x00040392, 256, ("f32", (64, 32), 16)),
    "bf16, bit 21 set": (0x00240512, 128, ("bf16", (64, 32), 16)),
}


def hardwares(kinds: int, stride: int, box: tuple[int, ...], address: int = 0x5_0000_0000) -> bytes:
    words = np.zeros(32, "<u4")
    words[:2] = address & 0xFFFFFFFF, address >> 32
    words[2:4] = kinds, stride // 16 & 0xFFFFFFFF
    words[7] = stride // 16 >> 32
    words[8:10] = 63, 127
    words[13:15] = box[0] - 1 << 24, box[1] - 1
    words[16:] = 0xDEADBEEF  # what lies behind is not part of it
    return words.tobytes()


@pytest.mark.parametrize("kinds, stride, says", HARDWARES.values(), ids=HARDWARES)
def test_the_hardwares_own_layout_is_read(kinds, stride, says):
    type_, box, span = says
    map_ = decode(hardwares(kinds, stride, box))
    assert (map_.type.name, map_.box, map_.span) == says
    assert (map_.address, map_.dimensions, map_.strides) == (0x5_0000_0000, (64, 128), (stride,))
    assert map_.element_strides == (1, 1)
    assert encode(map_) == encode_tiled(
        type_, 0x5_0000_0000, (64, 128), (stride,), box, span=span, promotion=2
    )


def test_a_stride_of_the_hardwares_layout_has_36_bits():
    assert decode(hardwares(0x00040312, 3 << 36, (64, 32))).strides == (3 << 36,)


def test_a_change_leaves_all_other_bytes_as_they_are():
    """Bytes that are no field tell our maps from the hardware's, so they must not pick up garbage."""
    kept = []
    for size in (1, 77, 128, 500):
        kept.append(np.full(size, 255, np.uint8))  # what is freed before is what a careless copy finds
        kept.clear()
        assert replaced(bytes(128), "global_address", 0x7_0000_0000) == (0x7_0000_0000).to_bytes(
            8, "little"
        ) + bytes(120)


def test_a_map_in_the_hardwares_layout_can_be_changed_on_the_device():
    changed = decode(replaced(hardwares(0x00046312, 128, (64, 32)), "global_dim", 5, 1))
    assert (changed.dimensions, changed.span) == ((64, 5), 128)


def test_a_map_of_four_bit_numbers_in_the_hardwares_layout_can_be_changed_too():
    made = hardwares(0x00046592, 128, (64, 32))
    assert (decode(made).type.name, decode(made).dimensions, decode(made).box) == (
        "b4x16",
        (32, 128),
        (32, 32),
    )
    changed = decode(replaced(made, "global_dim", 5, 1))
    assert (changed.dimensions, changed.box) == ((32, 5), (32, 32))


# ---- replaced on the device ----------------------------------------------------------------------


def values_of(map_: TensorMap) -> list[tuple[str, int, int]]:
    """(field, value, ordinal) of every ``tensormap.replace`` that makes the map out of zeros."""
    spans = {16: 0, 32: 1, 64: 2, 128: 3}
    found = [("global_address", map_.address, 0), ("rank", map_.rank - 1, 0)]
    found += [("elemtype", TYPES.index(map_.type), 0), ("interleave_layout", 0, 0)]
    found += [("swizzle_mode", spans[map_.span], 0), ("fill_mode", int(map_.fills_nan), 0)]
    found += [("swizzle_atomicity", map_.atomicity, 0)]
    for field, values in (
        ("box_dim", map_.box),
        ("global_dim", map_.dimensions),
        ("global_stride", map_.strides),
        ("element_stride", map_.element_strides),
    ):
        found += [(field, value, ordinal) for ordinal, value in enumerate(values)]
    return found


@given(tiled_maps(), st.randoms(use_true_random=False))
def test_a_map_can_be_made_from_zeros_field_by_field_in_any_order(map_, random):
    steps = values_of(map_)
    random.shuffle(steps)
    data = bytes(128)
    for field, value, ordinal in steps:
        data = replaced(data, field, value, ordinal)
    assert decode(data) == map_


@pytest.mark.parametrize(
    "field, value, ordinal, message",
    [
        ("box_dim", 64, 5, "box_dim knows 0 to 4, but not 5"),
        ("global_stride", 64, 4, "global_stride knows 0 to 3, but not 4"),
        ("elemtype", 300, 0, "elemtype takes a number from 0 to 255, but got 300"),
    ],
)
def test_a_replacement_that_does_not_fit_is_refused(field, value, ordinal, message):
    with pytest.raises(WrongTensorMap, match=message):
        replaced(bytes(128), field, value, ordinal)


def test_only_a_swizzle_of_128_bytes_moves_larger_pieces():
    data = replaced(encode_tiled(**GOOD), "swizzle_atomicity", 1)
    with pytest.raises(WrongTensorMap, match=r"Only a swizzle of 128 bytes moves larger pieces"):
        decode(replaced(data, "swizzle_mode", 2))
    with pytest.raises(WrongTensorMap, match="the field atomicity must be 0 to 3, but is 4"):
        decode(replaced(data, "swizzle_atomicity", 4))


def test_an_empty_dimension_made_on_the_device_leaves_everything_outside():
    data = replaced(encode_tiled(**GOOD), "global_dim", 0, 1)
    assert not tile(decode(data), np.array([0, 0, 0])).inside.any()


def test_triton_replaces_fields_that_are_known_here():
    """What Triton writes for a tile of 64 × 64 float16 whose rows are swizzled over 128 bytes."""
    ptx = compiled_by_triton(transposed=True)
    fields = re.findall(r"tensormap\.replace\.tile\.(\w+)\.\S+ \[ .* \], (?:(0x\w+), )?(\S+);", ptx)
    assert {name for name, _, _ in fields} <= REPLACED.keys()
    written = {(name, ordinal): value for name, ordinal, value in reversed(fields)}  # of the first map
    assert int(written["elemtype", ""], 16) == NUMBERS["f16"]
    assert int(written["rank", ""], 16) == 1
    made = encode_tiled("f16", ADDRESS, (64, 64), (128,), (64, 64), span=128)
    assert replaced(made, "swizzle_mode", int(written["swizzle_mode", ""], 16)) == made


# ---- boxes ---------------------------------------------------------------------------------------


def one_by_one(map_: TensorMap, coordinates: list[int], shared: int) -> list[tuple[int, bool, int]]:
    """(address, whether inside, place in shared memory) of the elements of a box, in order."""
    found: list[tuple[int, bool, int]] = []
    steps = [1, *map_.element_strides[1:]]
    walks = [range(0, size, step) for size, step in zip(map_.box, steps, strict=True)]
    for outer in product(*reversed(walks)):
        index = [c + x for c, x in zip(coordinates, reversed(outer), strict=True)]
        address = map_.address + index[0] * map_.type.itemsize
        for x, stride in zip(index[1:], map_.strides, strict=True):
            address += x * stride
        inside = all(0 <= x < size for x, size in zip(index, map_.dimensions, strict=True))
        place = swizzled_bit_by_bit(shared + len(found) * map_.type.itemsize, map_.span, map_.atomicity)
        found.append((address, inside, place))
    return found


@given(tiled_maps(), st.data())
def test_boxes_are_cut_as_the_manual_says(map_, data):
    coordinates = [data.draw(st.integers(-size, 2 * size)) for size in map_.dimensions]
    shared = 128 * data.draw(st.integers(0, 20))
    box = tile(map_, np.array(coordinates), shared)
    assert box.address.shape == tuple(reversed(map_.copied))
    found = zip(box.address.flat, box.inside.flat, box.shared.flat, strict=True)
    assert [(int(a), bool(b), int(c)) for a, b, c in found] == one_by_one(map_, coordinates, shared)
    assert map_.nbytes == box.shared.size * map_.type.itemsize


def pixel_by_pixel(map_: TensorMap, coordinates: list[int], offsets: list[int]) -> list[tuple[int, bool]]:
    """(address, whether inside) of the elements of an im2col copy, walking from pixel to pixel."""
    found = []
    at = list(coordinates)
    for _ in range(map_.pixels):
        index = [0, *(x + offset for x, offset in zip(at[1:-1], offsets, strict=True)), at[-1]]
        for channel in range(map_.channels):
            index[0] = at[0] + channel
            address = map_.address + index[0] * map_.type.itemsize
            address += sum(x * stride for x, stride in zip(index[1:], map_.strides, strict=True))
            inside = all(0 <= x < size for x, size in zip(index, map_.dimensions, strict=True))
            found.append((address, inside))
        for i in range(1, map_.rank - 1):
            at[i] += map_.element_strides[i]
            if at[i] <= map_.dimensions[i] - 1 + map_.upper[i - 1]:
                break
            at[i] = map_.lower[i - 1]
        else:
            at[-1] += 1
    return found


@given(im2col_maps(), st.data())
def test_im2col_copies_walk_through_the_bounding_box(map_, data):
    coordinates = [data.draw(st.integers(-1, map_.dimensions[0]))]
    for i in range(1, map_.rank - 1):
        pixels = range(map_.lower[i - 1], map_.dimensions[i] + map_.upper[i - 1], map_.element_strides[i])
        coordinates.append(data.draw(st.sampled_from(pixels)))
    coordinates.append(data.draw(st.integers(0, map_.dimensions[-1])))
    offsets = [data.draw(st.integers(0, 4)) for _ in range(map_.rank - 2)]
    box = im2col_tile(map_, np.array(coordinates), np.array(offsets), 256)
    assert box.address.shape == (map_.pixels, map_.channels)
    found = zip(box.address.flat, box.inside.flat, strict=True)
    assert [(int(a), bool(b)) for a, b in found] == pixel_by_pixel(map_, coordinates, offsets)
    places = [swizzled_bit_by_bit(256 + i * map_.type.itemsize, map_.span) for i in range(box.shared.size)]
    assert box.shared.ravel().tolist() == places


def test_an_im2col_map_makes_a_convolution_of_a_matrix_product():
    """One filter tap of a 3 × 3 convolution with padding 1 and stride 2 is one copy."""
    image = np.arange(2 * 6 * 6 * 8, dtype=np.float16).reshape(2, 6, 6, 8)
    made = decode(
        encode_im2col("f16", 0, (8, 6, 6, 2), (16, 96, 576), (-1, -1), (-1, -1), 8, 18, (1, 2, 2, 1))
    )
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))
    for dy, dx in product(range(3), range(3)):
        box = im2col_tile(made, np.array([0, -1, -1, 0]), np.array([dx, dy]))
        found = np.where(box.inside, image.ravel()[np.where(box.inside, box.address, 0) // 2], 0)
        assert np.array_equal(found.reshape(2, 3, 3, 8), padded[:, dy : dy + 6 : 2, dx : dx + 6 : 2])


@pytest.mark.parametrize("first", [-2, 0, 5, 7])
def test_an_im2col_copy_begins_at_a_pixel_of_its_box(first):
    made = decode(
        encode_im2col("f16", 0, (8, 6, 6, 2), (16, 96, 576), (-1, -1), (-1, -1), 8, 18, (1, 2, 2, 1))
    )
    message = f"along dimension 1 those are -1 to 3 in steps of 2, but the copy begins at {first}"
    with pytest.raises(WrongTensorMap, match=message):
        im2col_tile(made, np.array([0, first, -1, 0]), np.array([0, 0]))


@given(tiled_maps(), st.integers(0, 2**32 - 1))
def test_many_boxes_are_cut_at_once(map_, seed):
    generator = np.random.default_rng(seed)
    coordinates = generator.integers(-3, 9, (2, 3, map_.rank))
    shared = generator.integers(0, 64, (2, 3)) * 128
    all_ = tile(map_, coordinates, shared)
    for place in np.ndindex(2, 3):
        one = tile(map_, coordinates[place], int(shared[place]))
        for name in ("address", "inside", "shared"):
            assert np.array_equal(getattr(all_, name)[place], getattr(one, name))


def test_a_copied_tile_is_read_by_wgmma_as_it_was():
    """TMA's swizzle and the matrix descriptor's are the same."""
    from gpulab.simulator.simt.matrix_descriptors import MatrixDescriptor, element_addresses

    matrix = np.arange(128 * 64, dtype=np.uint16).reshape(128, 64)
    for span in (32, 64, 128):
        columns = span // 2
        made = decode(encode_tiled("u16", 0, (64, 128), (128,), (columns, 64), span=span))
        box = tile(made, np.array([0, 64]), 1024)
        shared = np.zeros(8192, np.uint16)
        shared[box.shared // 2] = matrix.ravel()[box.address // 2]
        for step in range(columns // 16):
            descriptor = MatrixDescriptor(1024 + 32 * step, 0, 8 * span, span=span)
            found = shared[element_addresses(descriptor, 64, 16, 2) // 2]
            assert np.array_equal(found, matrix[64:, 16 * step : 16 * step + 16])


@pytest.mark.parametrize(
    "type_, bits",
    [
        ("f16", 0x7FFF),
        ("bf16", 0x7FFF),
        ("f32", 0x7FFFFFFF),
        ("tf32", 0x7FFFFFFF),
        ("f64", 0x7FFFFFFFFFFFFFFF),
    ],
)
def test_what_lies_outside_is_zero_or_nan(type_, bits):
    size = 16 // TYPES[NUMBERS[type_]].itemsize
    assert decode(encode_tiled(type_, ADDRESS, (size,), (), (size,))).fill == 0
    filled = decode(encode_tiled(type_, ADDRESS, (size,), (), (size,), fills_nan=True))
    assert filled.fill == bits
    if type_ not in ("bf16", "tf32"):
        width = TYPES[NUMBERS[type_]].itemsize
        assert np.isnan(np.array(bits, f"u{width}").view(f"f{width}"))


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda m: tile(m, np.array([0, 0])),
            "number of coordinates must be 3 for a tensor of rank 3, but is 2",
        ),
        (lambda m: tile(m, np.array([0, 0, 0]), 64), "a multiple of 128, but got 64"),
        (lambda m: im2col_tile(m, np.zeros(3), np.zeros(1)), "map is tiled, but the copy is im2col"),
    ],
)
def test_a_copy_that_does_not_fit_its_map_is_refused(call, message):
    with pytest.raises(WrongTensorMap, match=message):
        call(decode(encode_tiled(**GOOD)))


def test_interleaved_layouts_are_encoded_but_not_copied():
    made = decode(encode_tiled(**GOOD | {"interleave": 32, "span": 32}))
    with pytest.raises(WrongTensorMap, match=r"no interleaved layouts.*32 bytes"):
        tile(made, np.array([0, 0, 0]))
