"""TMA's copies of boxes against one element at a time, maps that are changed on the device, and wrong ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator import ptx, simt
from gpulab.simulator.compile.kernel import CompileError
from gpulab.simulator.compile.ptxas import link
from gpulab.simulator.simt.errors import Misaligned, OutOfBounds, WrongDescriptor
from gpulab.simulator.simt.tensor_maps import NUMBERS, TYPES, TensorMap, decode, encode, encode_tiled

from .launching import SCHEDULES, kernel, launch
from .test_tensor_maps import im2col_maps, one_by_one, pixel_by_pixel, swizzled_bit_by_bit, tiled_maps

EVERY = [*SCHEDULES.values(), simt.BACKWARDS, simt.two_teams(5)]
START = 256  # where the box lies in shared memory
ROOM = 1 << 15


def box_at(rank: int) -> str:
    """Loads of the coordinates, and the braces that name them."""
    return "{" + ", ".join(f"%r{10 + i}" for i in range(rank)) + "}"


def program(map_: TensorMap, what: str, offsets: int = 0) -> str:
    """One block: shared memory is filled from `data`, one thread does `what`, and shared memory is copied back."""
    loads = "".join(f"ld.global.s32 %r{10 + i}, [%at_+{4 * i}];\n" for i in range(map_.rank + offsets))
    body = f"""
    mov.u64 %rd0, bar;
    mov.u64 %rd1, tile;
    mov.u32 %r0, %tid;
    FILL:
    mad.wide.u32 %rd2, %r0, 4, %data; mad.wide.u32 %rd3, %r0, 4, %rd1;
    ld.global.u32 %r1, [%rd2]; st.shared.u32 [%rd3], %r1;
    add.u32 %r0, %r0, 128; setp.lt.u32 %p1, %r0, {ROOM // 4}; @%p1 bra FILL;
    setp.ne.u32 %p2, %tid, 0;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p2 bra DONE;
    {loads}
    mbarrier.init.shared.b64 [%rd0], 1;
    fence.mbarrier_init.release.cluster;
    {what}
    DONE:
    bar.sync 0;
    mov.u32 %r0, %tid;
    BACK:
    mad.wide.u32 %rd2, %r0, 4, %data; mad.wide.u32 %rd3, %r0, 4, %rd1;
    ld.shared.u32 %r1, [%rd3]; st.global.u32 [%rd2], %r1;
    add.u32 %r0, %r0, 128; setp.lt.u32 %p1, %r0, {ROOM // 4}; @%p1 bra BACK;
    """
    declared = f".shared .align 8 .b64 bar;\n.shared .align 1024 .b8 tile[{ROOM}];"
    return kernel(body, "map tensor at_ data", declarations=declared)


WAIT = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%rd0], 0; @!%p3 bra WAIT;"


def load(map_: TensorMap, mode: str = "tile", offsets: str = "") -> str:
    copy = (
        f"cp.async.bulk.tensor.{map_.rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes "
        f"[%rd1+{START}], [%map, {box_at(map_.rank)}], [%rd0]{offsets};"
    )
    return f"mbarrier.arrive.expect_tx.shared.b64 _, [%rd0], {map_.nbytes};\n{copy}\n{WAIT}"


def store(map_: TensorMap, how: str = "cp", operation: str = "", mode: str = "tile") -> str:
    return (
        f"{how}.async.bulk.tensor.{map_.rank}d.global.shared::cta{operation}.{mode}.bulk_group "
        f"[%map, {box_at(map_.rank)}], [%rd1+{START}];\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
    )


def extent(map_: TensorMap) -> int:
    """Bytes of the tensor in global memory."""
    last = sum((n - 1) * s for n, s in zip(map_.dimensions[1:], map_.strides, strict=True))
    return last + map_.dimensions[0] * map_.type.itemsize


def run(
    text: str, map_: TensorMap, point: list[int], tensor: np.ndarray, shared: np.ndarray, schedule
) -> dict:
    """The tensor's bytes and those of shared memory after the launch. The map's address is put in place."""
    memory = simt.Memory()
    there = memory.allocate(tensor.nbytes, "tensor")
    there.data[:] = tensor
    described = np.frombuffer(encode(replace(map_, address=there.address)), np.uint8)
    arrays = {"map": described, "tensor": there.address, "at_": np.array(point, np.int32), "data": shared}
    found = launch(text, arrays, 1, 128, memory=memory, schedule=schedule)
    return {"tensor": there.data.copy(), "shared": found["data"]}


def contents(map_: TensorMap, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    return draw.integers(0, 256, extent(map_), np.uint8), draw.integers(0, 256, ROOM, np.uint8)


points = st.integers(-4, 9)


@given(tiled_maps(), st.data(), st.integers(0, 99), st.sampled_from(EVERY))
def test_a_load_brings_each_element_to_its_place(map_, data, seed, schedule) -> None:
    point = [data.draw(points) for _ in range(map_.rank)]
    tensor, shared = contents(map_, seed)
    found = run(program(map_, load(map_)), map_, point, tensor, shared, schedule)
    size, wanted = map_.type.itemsize, shared.copy()
    fill = np.frombuffer(map_.fill.to_bytes(size, "little"), np.uint8)
    for address, inside, place in one_by_one(replace(map_, address=0), point, START):
        wanted[place : place + size] = tensor[address : address + size] if inside else fill
    assert np.array_equal(found["shared"], wanted)
    assert np.array_equal(found["tensor"], tensor)


@given(tiled_maps(), st.data(), st.integers(0, 99), st.sampled_from(EVERY))
def test_a_store_leaves_alone_what_lies_outside(map_, data, seed, schedule) -> None:
    point = [data.draw(points) for _ in range(map_.rank)]
    tensor, shared = contents(map_, seed)
    found = run(program(map_, store(map_)), map_, point, tensor, shared, schedule)
    size, wanted = map_.type.itemsize, tensor.copy()
    for address, inside, place in one_by_one(replace(map_, address=0), point, START):
        if inside:
            wanted[address : address + size] = shared[place : place + size]
    assert np.array_equal(found["tensor"], wanted)
    assert np.array_equal(found["shared"], shared)


# ---- numbers of 4 and 6 bits ---------------------------------------------------------------------

BITS = {"b4x16": 4, "b4x16_p64": 4, "b6x16_p32": 6}
ROOMS = {"b4x16": 8, "b4x16_p64": 16, "b6x16_p32": 16}  # bytes of shared memory that 16 numbers take


@given(
    st.sampled_from(sorted(BITS)), st.data(), st.sampled_from([16, 128]), st.integers(0, 99),
    st.sampled_from(EVERY),
)  # fmt: skip
def test_small_numbers_lie_side_by_side_or_with_gaps(name, data, span, seed, schedule) -> None:
    """16 numbers at a time: those outside are zeros, and gaps keep what they held."""
    bits, room = BITS[name], ROOMS[name]
    atomicity = data.draw(st.integers(0, 1)) if span == 128 else 0
    rows, dimensions = data.draw(st.integers(1, 6)), (256, data.draw(st.integers(2, 9)))
    stride = 256 * bits // 8 + 32 * data.draw(st.integers(0, 1))
    made = decode(
        encode_tiled(name, 0x7000, dimensions, (stride,), (128, rows), span=span, atomicity=atomicity)
    )
    point = [128 * data.draw(st.integers(0, 2)), data.draw(points)]
    tensor, shared = contents(made, seed)
    found = run(program(made, load(made)), made, point, tensor, shared, schedule)
    wanted, size = shared.copy(), 2 * bits
    for row in range(rows):
        for group in range(8):
            first = (point[1] + row) * stride + (point[0] + 16 * group) * bits // 8
            inside = 0 <= point[1] + row < dimensions[1] and point[0] + 16 * group < 256
            octets = tensor[first : first + size] if inside else np.zeros(size, np.uint8)
            for i, octet in enumerate(octets):
                at = START + row * 8 * room + group * room + i
                wanted[swizzled_bit_by_bit(at, span, atomicity)] = octet
    assert np.array_equal(found["shared"], wanted)
    assert made.nbytes == rows * 128 * bits // 8


WHOLE = {"u32": "u4", "s32": "i4", "u64": "u8"}


@given(
    tiled_maps(), st.data(), st.integers(0, 99), st.sampled_from(["add", "min", "max", "and", "or", "xor"])
)
def test_a_reduction_combines_element_by_element(map_, data, seed, operation) -> None:
    type_ = data.draw(st.sampled_from(sorted(WHOLE)))
    if operation in ("and", "or", "xor") and type_ == "s32":
        type_ = "u32"
    chosen = TYPES[NUMBERS[type_]]
    per = 16 // chosen.itemsize
    inner = max(map_.box[0] * map_.type.itemsize // 16, 1) * per
    room = map_.strides[0] // chosen.itemsize if map_.strides else inner
    map_ = replace(
        map_,
        type=chosen,
        box=(inner, *map_.box[1:]),
        dimensions=(min(map_.dimensions[0], room), *map_.dimensions[1:]),
        fills_nan=False,
    )
    point = [data.draw(points) for _ in range(map_.rank)]
    tensor, shared = contents(map_, seed)
    text = program(map_, store(map_, "cp.reduce", f".{operation}"))
    found = run(text, map_, point, tensor, shared, simt.LOCKSTEP)
    dtype, wanted = np.dtype(WHOLE[type_]), tensor.copy()
    call = {"add": lambda a, b: a + b, "min": min, "max": max, "and": lambda a, b: a & b}
    call |= {"or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}
    for address, inside, place in one_by_one(replace(map_, address=0), point, START):
        if inside:
            old = int(wanted[address : address + dtype.itemsize].copy().view(dtype)[0])
            new = int(shared[place : place + dtype.itemsize].copy().view(dtype)[0])
            bits = call[operation](old, new) & ((1 << 8 * dtype.itemsize) - 1)
            wanted[address : address + dtype.itemsize] = list(bits.to_bytes(dtype.itemsize, "little"))
    assert np.array_equal(found["tensor"], wanted)


@given(im2col_maps(), st.data(), st.integers(0, 99), st.sampled_from(EVERY))
def test_an_im2col_load_brings_pixel_after_pixel(map_, data, seed, schedule) -> None:
    point = [data.draw(st.integers(-1, map_.dimensions[0]))]
    for i in range(1, map_.rank - 1):
        pixels = range(map_.lower[i - 1], map_.dimensions[i] + map_.upper[i - 1], map_.element_strides[i])
        point.append(data.draw(st.sampled_from(pixels)))
    point.append(data.draw(st.integers(0, map_.dimensions[-1])))
    shifts = [data.draw(st.integers(0, 4)) for _ in range(map_.rank - 2)]
    names = ", ".join(f"%h{i}" for i in range(len(shifts)))
    narrow = "".join(f"cvt.u16.u32 %h{i}, %r{10 + map_.rank + i};\n" for i in range(len(shifts)))
    text = program(map_, narrow + load(map_, "im2col", f", {{{names}}}"), len(shifts))
    tensor, shared = contents(map_, seed)
    found = run(text, map_, point + shifts, tensor, shared, schedule)
    size, wanted = map_.type.itemsize, shared.copy()
    fill = np.frombuffer(map_.fill.to_bytes(size, "little"), np.uint8)
    for number, (address, inside) in enumerate(pixel_by_pixel(replace(map_, address=0), point, shifts)):
        place = swizzled_bit_by_bit(START + number * size, map_.span)
        wanted[place : place + size] = tensor[address : address + size] if inside else fill
    assert np.array_equal(found["shared"], wanted)


@given(im2col_maps(), st.data(), st.integers(0, 99))
def test_an_im2col_store_has_no_offsets(map_, data, seed) -> None:
    map_ = replace(map_, element_strides=(1,) * map_.rank)
    point = [0, *map_.lower, 0]
    tensor, shared = contents(map_, seed)
    text = program(map_, store(map_, mode="im2col_no_offs"))
    found = run(text, map_, point, tensor, shared, simt.LOCKSTEP)
    size, wanted = map_.type.itemsize, tensor.copy()
    for number, (address, inside) in enumerate(
        pixel_by_pixel(replace(map_, address=0), point, [0] * (map_.rank - 2))
    ):
        place = swizzled_bit_by_bit(START + number * size, map_.span)
        if inside:
            wanted[address : address + size] = shared[place : place + size]
    assert np.array_equal(found["tensor"], wanted)


# ---- maps made on the device ---------------------------------------------------------------------


def test_a_map_is_made_in_shared_memory_and_copied_to_global_memory() -> None:
    """As Triton does: a warp clears 128 bytes, one thread sets the fields, and the warp copies them."""
    fields = [
        ("global_address", "b64", "%tensor", ""),
        ("rank", "b32", "1", ""),
        ("box_dim", "b32", "32", "0"),
        ("box_dim", "b32", "8", "1"),
        ("global_dim", "b32", "40", "0"),
        ("global_dim", "b32", "20", "1"),
        ("global_stride", "b64", "160", "0"),
        ("element_stride", "b32", "1", "0"),
        ("element_stride", "b32", "1", "1"),
        ("elemtype", "b32", "7", None),
        ("interleave_layout", "b32", "0", None),
        ("swizzle_mode", "b32", "3", None),
        ("fill_mode", "b32", "0", None),
    ]
    replaces = []
    for name, bits, value, ordinal in fields:
        where = f", {ordinal}" if ordinal else ""
        replaces.append(f"tensormap.replace.tile.{name}.shared::cta.b1024.{bits} [%rd4]{where}, {value};")
    body = f"""
    mov.u64 %rd0, bar; mov.u64 %rd1, tile; mov.u64 %rd4, made;
    mad.wide.u32 %rd3, %tid, 4, %rd4; mov.u32 %r0, 0; st.shared.u32 [%rd3], %r0;
    bar.warp.sync -1;
    setp.ne.u32 %p2, %tid, 0;
    @%p2 bra SET;
    {" ".join(replaces)}
    mbarrier.init.shared.b64 [%rd0], 1;
    SET:
    bar.warp.sync -1;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [%rd4], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%map], 128;
    prefetch.tensormap [%map];
    @%p2 bra DONE;
    mbarrier.arrive.expect_tx.shared.b64 _, [%rd0], 1024;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%rd1], [%map, {{8, 13}}], [%rd0], 0x1000000000000000;
    {WAIT}
    DONE:
    bar.warp.sync -1;
    mov.u32 %r5, 0;
    BACK:
    mad.lo.u32 %r6, %r5, 32, %tid;
    mad.wide.u32 %rd2, %r6, 4, %out; mad.wide.u32 %rd3, %r6, 4, %rd1;
    ld.shared.u32 %r1, [%rd3]; st.global.u32 [%rd2], %r1;
    add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 8; @%p1 bra BACK;
    """
    declared = (
        ".shared .align 8 .b64 bar; .shared .align 128 .b8 made[128]; .shared .align 1024 .b8 tile[1024];"
    )
    tensor = np.arange(800, dtype=np.float32).reshape(20, 40)
    arrays = {"map": np.zeros(128, np.uint8), "tensor": tensor, "out": np.zeros((8, 32), np.float32)}
    found = launch(kernel(body, "map tensor out", declarations=declared), arrays)["out"]
    rows = np.arange(8)[:, None]
    chunks = np.arange(8)[None, :] ^ rows
    plain = found.reshape(8, 8, 4)[rows, chunks].reshape(8, 32)
    wanted = np.zeros((8, 32), np.float32)
    wanted[:7] = tensor[13:20, 8:40]
    assert np.array_equal(plain, wanted)


# ---- four rows from anywhere ---------------------------------------------------------------------


@st.composite
def maps_of_rows(draw) -> TensorMap:
    map_ = draw(tiled_maps().filter(lambda m: m.rank == 2))
    return replace(map_, box=(map_.box[0], 1), element_strides=(1, 1), dimensions=(map_.dimensions[0], 12))


def rows_program(map_: TensorMap, what: str) -> str:
    """`program`, with all five numbers of a column and four rows in registers."""
    return program(map_, what, offsets=3)


def gather(map_: TensorMap) -> str:
    text = load(replace(map_, box=(map_.box[0], 4)), "tile::gather4")
    return text.replace(box_at(2), box_at(5))


def scatter(map_: TensorMap) -> str:
    return store(map_, mode="tile::scatter4").replace(box_at(2), box_at(5))


def four_rows(map_: TensorMap, points: list[int]) -> list[tuple[int, bool, int]]:
    """The elements of four rows, each a box of its own, which lie in shared memory as if they were one box."""
    found = []
    for row in points[1:]:
        found += one_by_one(map_, [points[0], row], 0)
    size = map_.type.itemsize
    return [
        (address, inside, swizzled_bit_by_bit(START + i * size, map_.span, map_.atomicity))
        for i, (address, inside, _) in enumerate(found)
    ]


@given(maps_of_rows(), st.data(), st.integers(0, 99), st.sampled_from(EVERY))
def test_a_gather_brings_four_rows_that_lie_anywhere(map_, data, seed, schedule) -> None:
    points = [data.draw(st.integers(-4, 9)), *(data.draw(st.integers(-2, 13)) for _ in range(4))]
    tensor, shared = contents(map_, seed)
    found = run(rows_program(map_, gather(map_)), map_, points, tensor, shared, schedule)
    expected, size = shared.copy(), map_.type.itemsize
    fill = np.frombuffer(map_.fill.to_bytes(size, "little"), np.uint8)
    for address, inside, place in four_rows(map_, points):
        at = address - map_.address
        expected[place : place + size] = tensor[at : at + size] if inside else fill
    assert np.array_equal(found["shared"], expected)


@given(maps_of_rows(), st.data(), st.integers(0, 99), st.sampled_from(EVERY))
def test_a_scatter_leaves_four_rows_where_it_is_told(map_, data, seed, schedule) -> None:
    rows = data.draw(st.lists(st.integers(-2, 13), min_size=4, max_size=4, unique=True))
    points = [data.draw(st.integers(-4, 9)), *rows]
    tensor, shared = contents(map_, seed)
    found = run(rows_program(map_, scatter(map_)), map_, points, tensor, shared, schedule)
    expected, size = tensor.copy(), map_.type.itemsize
    for address, inside, place in four_rows(map_, points):
        if inside:
            at = address - map_.address
            expected[at : at + size] = shared[place : place + size]
    assert np.array_equal(found["tensor"], expected)


def test_the_assembler_takes_gathers_and_scatters_for_blackwell_alone() -> None:
    map_ = decode(encode_tiled("f32", 0, (40, 20), (160,), (32, 1), span=128))
    many = gather(map_).replace("[%rd0];", "[%rd0], %h0;").replace("::bytes", "::bytes.multicast::cluster")
    ahead = f"cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%map, {box_at(5)}];"
    text = rows_program(map_, "\n".join([gather(map_), scatter(map_), many.replace("WAIT", "AGAIN"), ahead]))
    simt.load(ptx.parse(text))
    text = (
        text.replace("%tid", "%place").replace("%place.x", "%tid.x").replace(".version 8.0", ".version 8.8")
    )
    for target, cc in (("sm_100a", (10, 0)), ("sm_103a", (10, 3))):
        log, code = link(text.replace("sm_80", target), cc)
        assert code, log
    with pytest.raises(CompileError, match="ptxas refuses"):
        link(text.replace("sm_80", "sm_90a"), (9, 0))


# ---- wrong use -----------------------------------------------------------------------------------

GOOD = decode(encode_tiled("f32", 0, (40, 20), (160,), (32, 8), span=128))


@pytest.mark.parametrize(
    "change, what, error, words",
    [
        ({}, load(GOOD).replace(f"+{START}", "+64"), Misaligned, "which is no multiple of 128"),
        ({}, load(GOOD).replace("[%map,", "[%tensor,"), WrongDescriptor, "uses a tensor map that breaks a rule"),
        ({}, load(GOOD).replace("[%map,", "[%map+16,"), OutOfBounds, "uses a tensor map at 0x"),
        ({}, load(GOOD, "im2col", ", {}"), WrongDescriptor, "The tensor map is tiled, but the copy is im2col"),
        ({}, gather(GOOD), WrongDescriptor, "whose box is 1 row, not a box of 8 rows"),
        ({"dimensions": (40, 2000)}, load(GOOD), OutOfBounds, "begins in tensor and runs 128 bytes behind its end"),
        ({}, load(GOOD).replace(f"+{START}", f"+{ROOM - 128}"), OutOfBounds, "of 1,024 bytes at byte"),
    ],
    ids=["shared", "no map", "place of the map", "mode", "rows", "tensor too large", "box too large"],
)  # fmt: skip
def test_a_wrong_tensor_copy_is_told(change, what, error, words) -> None:
    map_ = replace(GOOD, **change)
    tensor, shared = contents(GOOD, 0)
    with pytest.raises(error) as caught:
        run(program(map_, what), map_, [0, 13], tensor, shared, simt.LOCKSTEP)
    assert words in str(caught.value)


def test_a_function_that_is_inlined_keeps_the_coordinates() -> None:
    """As compilers write it without optimisation, to be stepped through."""
    copy = (
        load(GOOD).replace("%r1", "%q1").replace("%map", "%place").replace("%rd0", "%b").replace("%rd1", "%t")
    )
    outside = f"""
    .func send(.param .u64 p_place, .param .u64 p_b, .param .u64 p_t, .param .u32 p_x, .param .u32 p_y) {{
    .reg .b32 %q<16>; .reg .b64 %place, %b, %t; .reg .pred %p<4>;
    ld.param.u64 %place, [p_place]; ld.param.u64 %b, [p_b]; ld.param.u64 %t, [p_t];
    ld.param.u32 %q10, [p_x]; ld.param.u32 %q11, [p_y];
    {copy}
    ret;
    }}"""
    call = """
    { .param .u64 a; .param .u64 b; .param .u64 c; .param .u32 d; .param .u32 e;
    st.param.u64 [a], %map; st.param.u64 [b], %rd0; st.param.u64 [c], %rd1;
    st.param.u32 [d], %r10; st.param.u32 [e], %r11;
    call.uni send, (a, b, c, d, e); }"""
    text = program(GOOD, call).replace(".visible .entry", outside + "\n.visible .entry", 1)
    tensor, shared = contents(GOOD, 0)
    found = run(text, GOOD, [8, 3], tensor, shared, simt.LOCKSTEP)
    assert np.array_equal(
        found["shared"], run(program(GOOD, load(GOOD)), GOOD, [8, 3], tensor, shared, simt.LOCKSTEP)["shared"]
    )
