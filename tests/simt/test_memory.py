"""Loads, stores and atomics of every width in every space, on lanes that agree and lanes that do not."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings

from gpulab.simulator import ptx, simt

from .drawing import seeds
from .engines import each_engine as each_engine
from .launching import SCHEDULES, element, kernel, launch

both = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)


NARROW = [(t, r) for t in ("s8", "u8", "s16", "u16") for r in ("b16", "b32", "b64")]
NARROW += [(t, r) for t in ("s32", "u32") for r in ("b32", "b64")]


# ---- widths --------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", ["global", "shared", "local"])
@pytest.mark.parametrize(("type_", "register"), NARROW)
def test_narrow_loads_fill_a_wider_register_by_their_sign(type_, register, space):
    """The element goes through `space` on its way: stored from a wider register, loaded back from there."""
    size, width = int(type_[1:]) // 8, int(register[1:]) // 8
    dtype = np.dtype(f"{'i' if type_[0] == 's' else 'u'}{size}")
    x = np.random.default_rng(1).integers(0, 256, 64 * size, dtype=np.uint8).view(dtype)
    through = {
        "shared": f"mov.u64 %rd3, tile; mad.wide.u32 %rd3, %tid, {size}, %rd3;",
        "local": "mov.u64 %rd3, own;",
    }
    by_way_of = ""
    if space != "global":
        by_way_of = f"{through[space]} st.{space}.{type_} [%rd3], %v; mov.{register} %v, 0;"
        by_way_of += f"ld.{space}.{type_} %v, [%rd3];"
    body = f"""
        {element("x", size=size, into="%rd1")}
        {element("out", size=width, into="%rd2")}
        ld.global.{type_} %v, [%rd1];
        {by_way_of}
        st.global.{register} [%rd2], %v;
    """
    outside = ".shared .align 8 .b8 tile[512];"
    text = kernel(body, "x out", outside, f".reg .{register} %v; .local .align 8 .b8 own[8];")
    out = np.zeros(64, f"{dtype.kind}{width}")
    np.testing.assert_array_equal(launch(text, {"x": x, "out": out}, 1, 64)["out"], x.astype(out.dtype))


def test_a_shared_address_of_32_bits_may_come_back_from_below_zero():
    """A compiler takes the part of an index that is the same for all threads into the offset. What is left in
    the register may be negative, and the sum has 32 bits."""
    body = f"""
        {element("x", into="%rd1")}
        {element("out", into="%rd2")}
        ld.global.u32 %r1, [%rd1];
        mov.u32 %r2, tile;
        mad.lo.u32 %r2, %tid, 4, %r2;
        sub.u32 %r2, %r2, 64;
        st.shared.u32 [%r2+64], %r1;
        ld.shared.u32 %r3, [%r2+64];
        st.global.u32 [%rd2], %r3;
    """
    x = np.arange(32, dtype=np.uint32)
    text = kernel(body, "x out", ".shared .align 8 .b8 tile[128];")
    np.testing.assert_array_equal(launch(text, {"x": x, "out": np.zeros_like(x)}, 1, 32)["out"], x)


def test_a_narrow_store_cuts_off_and_leaves_its_neighbours_alone():
    x = np.random.default_rng(2).integers(0, 2**32, 32, dtype=np.uint32)
    body = f"""
        {element("x", into="%rd1")}
        {element("out", size=8, into="%rd2")}
        ld.global.u32 %r1, [%rd1];
        st.global.u8 [%rd2+1], %r1;
        st.global.u16 [%rd2+4], %r1;
    """
    found = launch(kernel(body, "x out"), {"x": x, "out": np.zeros(32, np.uint64)})["out"]
    np.testing.assert_array_equal(
        found, (x & 0xFF).astype(np.uint64) << 8 | (x & 0xFFFF).astype(np.uint64) << 32
    )


@pytest.mark.parametrize("space", ["global", "shared", "local"])
@pytest.mark.parametrize(
    ("type_", "count"), [("u8", 4), ("u16", 2), ("f32", 2), ("f32", 4), ("u32", 4), ("f64", 2), ("u64", 2)]
)
def test_vectors_are_neighbouring_elements_in_order(type_, count, space):
    """Loaded as a vector, stored reversed as a vector, in the space under test and out again."""
    size = int(type_[1:]) // 8
    kind = {"f": "f"}.get(type_[0], "b")
    register = "b16" if size < 4 else f"{kind}{8 * size}"
    names = [f"%v{i}" for i in range(count)]
    vector, reverse = "{" + ", ".join(names) + "}", "{" + ", ".join(names[::-1]) + "}"
    x = np.random.default_rng(3).integers(0, 200, 64 * count).astype(f"{type_[0]}{size}")
    by_way_of = {
        "global": "",
        "shared": f"mov.u64 %rd3, tile; mad.wide.u32 %rd3, %tid, {size * count}, %rd3;",
        "local": "mov.u64 %rd3, own;",
    }[space]
    if by_way_of:
        by_way_of += (
            f"st.{space}.v{count}.{type_} [%rd3], {vector}; ld.{space}.v{count}.{type_} {vector}, [%rd3];"
        )
    body = f"""
        {element("x", size=size * count, into="%rd1")}
        {element("out", size=size * count, into="%rd2")}
        ld.global.v{count}.{type_} {vector}, [%rd1];
        {by_way_of}
        st.global.v{count}.{type_} [%rd2], {reverse};
    """
    text = kernel(
        body,
        "x out",
        ".shared .align 16 .b8 tile[1024];",
        f".reg .{register} {', '.join(names)}; .local .align 16 .b8 own[16];",
    )
    found = launch(text, {"x": x, "out": np.zeros_like(x)}, 1, 64)["out"]
    np.testing.assert_array_equal(found.reshape(64, count), x.reshape(64, count)[:, ::-1])


def test_a_vector_load_may_drop_elements():
    x = np.arange(128, dtype=np.uint32)
    body = f"""
        {element("x", size=16, into="%rd1")}
        ld.global.v4.u32 {{_, %r1, _, %r2}}, [%rd1];
        add.u32 %r1, %r1, %r2;
        {element("out")}
        st.global.u32 [%rd31], %r1;
    """
    found = launch(kernel(body, "x out"), {"x": x, "out": np.zeros(32, np.uint32)})["out"]
    np.testing.assert_array_equal(found, x[1::4] + x[3::4])


# ---- spaces --------------------------------------------------------------------------------------

# %rd1 becomes a generic address: of x for lanes 0, 3, 6 …, of the tile for 1, 4, 7 …, of `own` for 2, 5, 8 …
THREE_SPACES = f"""
    mov.u64 %rd1, own;
    cvta.local.u64 %rd1, %rd1;
    mov.u64 %rd2, tile;
    mad.wide.u32 %rd2, %tid, 4, %rd2;
    cvta.shared.u64 %rd2, %rd2;
    {element("x", into="%rd3")}
    rem.u32 %r1, %tid, 3;
    setp.eq.u32 %p1, %r1, 1;
    selp.b64 %rd1, %rd2, %rd1, %p1;
    setp.eq.u32 %p2, %r1, 0;
    selp.b64 %rd1, %rd3, %rd1, %p2;
"""
TILE = ".shared .align 16 .b8 tile[512];"
OWN = ".local .align 16 .b8 own[16];"


@both
def test_one_instruction_reaches_three_spaces_through_generic_addresses(schedule):
    body = f"""
        {THREE_SPACES}
        add.u32 %r2, %at, 100;
        st.u32 [%rd1], %r2;
        atom.add.u32 %r3, [%rd1], 1000;
        ld.u32 %r4, [%rd1];
        add.u32 %r5, %r3, %r4;
        {element("out")}
        st.global.u32 [%rd31], %r5;
    """
    arrays = {"x": np.zeros(128, np.uint32), "out": np.zeros(128, np.uint32)}
    found = launch(kernel(body, "x out", TILE, OWN), arrays, 2, 64, schedule=schedule)
    at = np.arange(128)
    np.testing.assert_array_equal(found["out"], 2 * (at + 100) + 1000)
    np.testing.assert_array_equal(found["x"], np.where(at % 64 % 3 == 0, at + 1100, 0))


def test_an_address_knows_its_space_and_converts_back():
    """Bits 0, 1, 2: is it global, shared, local; then the shared address converted there and back."""
    body = f"""
        {THREE_SPACES}
        isspacep.global %p3, %rd1; selp.u32 %r2, 1, 0, %p3;
        isspacep.shared %p4, %rd1; selp.u32 %r3, 2, 0, %p4;
        isspacep.local %p5, %rd1; selp.u32 %r4, 4, 0, %p5;
        add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4;
        cvta.to.shared.u64 %rd4, %rd2;
        cvt.u32.u64 %r5, %rd4;
        mad.lo.u32 %r2, %r5, 16, %r2;
        {element("out")}
        st.global.u32 [%rd31], %r2;
    """
    arrays = {"x": np.zeros(64, np.uint32), "out": np.zeros(64, np.uint32)}
    found = launch(kernel(body, "x out", TILE, OWN), arrays, 1, 64)["out"]
    tid = np.arange(64)
    np.testing.assert_array_equal(found, np.array([1, 2, 4])[tid % 3] + 16 * 4 * tid)


def test_one_instruction_reaches_two_arrays():
    body = f"""
        and.b32 %r1, %tid, 1;
        setp.eq.u32 %p1, %r1, 0;
        selp.b64 %a, %a, %b, %p1;
        {element("a", into="%rd1")}
        ld.global.u32 %r2, [%rd1];
        add.u32 %r3, %r2, 1;
        st.global.u32 [%rd1], %r3;
        atom.global.add.u32 %r4, [%rd1], 1;
        {element("out")}
        st.global.u32 [%rd31], %r4;
    """
    a, b = np.arange(64, dtype=np.uint32), np.arange(64, dtype=np.uint32) * 10
    found = launch(kernel(body, "a b out"), {"a": a, "b": b, "out": np.zeros(64, np.uint32)}, 1, 64)
    even = np.arange(64) % 2 == 0
    np.testing.assert_array_equal(found["out"], np.where(even, a, b) + 1)
    np.testing.assert_array_equal(found["a"], np.where(even, a + 2, a))
    np.testing.assert_array_equal(found["b"], np.where(even, b, b + 2))


def test_unwritten_shared_and_local_memory_is_all_ones():
    body = f"""
        mov.u64 %rd1, own; ld.local.u32 %r1, [%rd1];
        mov.u64 %rd2, tile; ld.shared.u32 %r2, [%rd2];
        and.b32 %r1, %r1, %r2;
        {element("out")}
        st.global.u32 [%rd31], %r1;
    """
    found = launch(kernel(body, outside=TILE, declarations=OWN), {"out": np.zeros(32, np.uint32)})["out"]
    assert (found == 0xFFFFFFFF).all()


def test_each_block_has_its_own_shared_and_each_thread_its_own_local_memory():
    """Blocks and threads write the same addresses; each reads back what it wrote."""
    body = f"""
        mov.u64 %rd1, own; st.local.u32 [%rd1+4], %at;
        mov.u32 %r9, %ctaid.x;
        mov.u64 %rd2, tile; st.shared.u32 [%rd2+8], %r9;
        bar.sync 0;
        ld.local.u32 %r1, [%rd1+4];
        ld.shared.u32 %r2, [%rd2+8];
        mad.lo.u32 %r1, %r2, 1000, %r1;
        {element("out")}
        st.global.u32 [%rd31], %r1;
    """
    text = kernel(body, outside=TILE, declarations=OWN)
    found = launch(text, {"out": np.zeros(256, np.uint32)}, 4, 64)["out"]
    np.testing.assert_array_equal(found, np.arange(256) + np.arange(256) // 64 * 1000)


def test_shared_arrays_of_a_kernel_lie_side_by_side():
    body = f"""
        mov.u64 %rd1, first; mad.wide.u32 %rd1, %tid, 4, %rd1;
        mov.u64 %rd2, second; mad.wide.u32 %rd2, %tid, 4, %rd2;
        mov.u64 %rd3, third; mad.wide.u32 %rd3, %tid, 4, %rd3;
        st.shared.u32 [%rd1], 1; st.shared.u32 [%rd2], 20; st.shared.u32 [%rd3], 300;
        ld.shared.u32 %r1, [%rd1]; ld.shared.u32 %r2, [%rd2]; ld.shared.u32 %r3, [%rd3];
        add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;
        {element("out")}
        st.global.u32 [%rd31], %r1;
    """
    outside = ".shared .align 4 .b8 first[128]; .extern .shared .align 16 .b8 third[];"
    text = kernel(body, "out", outside, ".shared .align 4 .b8 second[128];")
    found = launch(text, {"out": np.zeros(32, np.uint32)}, shared_bytes=128)["out"]
    assert (found == 321).all()


def test_a_volatile_load_sees_what_another_warp_wrote():
    """Without a barrier: thread 0 waits until thread 32 has written."""
    body = """
        mov.u64 %rd1, tile;
        setp.eq.u32 %p1, %tid, 32;
        @%p1 bra WRITE;
    WAIT:
        ld.volatile.shared.s32 %r1, [%rd1];
        setp.lt.s32 %p2, %r1, 0;
        @%p2 bra WAIT;
        st.global.u32 [%out], %r1;
        bra END;
    WRITE:
        st.volatile.shared.u32 [%rd1], 42;
    END:
    """
    for schedule in SCHEDULES.values():
        found = launch(kernel(body, outside=TILE), {"out": np.zeros(1, np.int32)}, 1, 64, schedule=schedule)
        assert found["out"][0] == 42


# ---- variables of the module and parameters ------------------------------------------------------

VARIABLES = """
.visible .global .align 4 .u32 counter = 5;
.visible .const .align 4 .f32 table[4] = {0f3F800000, 0f40000000, 0f40400000, 0f40800000};
.visible .global .align 1 .b8 text[6] = {104, 97, 108, 108, 111, 0};
.visible .global .align 8 .u64 place = generic(counter);
.visible .global .align 4 .u32 room[32];
"""


def test_variables_of_a_module_begin_with_their_values_and_keep_what_was_written():
    body = f"""
        and.b32 %r1, %tid, 3;
        mov.u64 %rd1, table; mad.wide.u32 %rd1, %r1, 4, %rd1; ld.const.f32 %f1, [%rd1];
        cvt.rzi.u32.f32 %r2, %f1;
        ld.global.u8 %r3, [text+1];
        ld.global.u64 %rd2, [place];
        ld.u32 %r4, [%rd2];
        mov.u64 %rd3, room; mad.wide.u32 %rd3, %tid, 4, %rd3;
        ld.global.u32 %r6, [%rd3];
        mad.lo.u32 %r2, %r3, 1000, %r2;
        mad.lo.u32 %r2, %r4, 1000000, %r2;
        add.u32 %r2, %r2, %r6;
        {element("out")}
        st.global.u32 [%rd31], %r2;
        setp.eq.u32 %p1, %tid, 0;
        @%p1 atom.global.add.u32 %r5, [counter], 1;
    """
    program = simt.load(ptx.parse(kernel(body, outside=VARIABLES)))
    lane = np.arange(32) % 4 + 1

    def run(memory: simt.Memory) -> np.ndarray:
        out = memory.allocate(128)
        simt.launch(program, (1, 1, 1), (32, 1, 1), struct.pack("<q", out.address), memory)
        return out.data.view(np.uint32)

    memory = simt.Memory()
    np.testing.assert_array_equal(run(memory), lane + 97_000 + 5_000_000)
    np.testing.assert_array_equal(run(memory), lane + 97_000 + 6_000_000)
    np.testing.assert_array_equal(run(simt.Memory()), lane + 97_000 + 5_000_000)


def test_parameters_lie_at_their_own_alignment():
    """A byte, a double, a short, a struct of 20 bytes: offsets 0, 8, 16, 20."""
    text = kernel("").replace(
        ".param .u64 p_out",
        ".param .u64 p_out, .param .u8 a, .param .f64 b, .param .u16 c, .param .align 4 .b8 d[20]",
    )
    body = f"""
        ld.param.u8 %r1, [a]; ld.param.f64 %fd1, [b]; ld.param.u16 %r2, [c]; ld.param.u32 %r3, [d+16];
        cvt.rzi.u32.f64 %r4, %fd1;
        add.u32 %r1, %r1, %r2; add.u32 %r3, %r3, %r4; add.u32 %r1, %r1, %r3;
        {element("out")}
        st.global.u32 [%rd31], %r1;
        ret;
    """
    program = simt.load(ptx.parse(text.replace("ret;", body)))
    assert [(offset, size) for _, offset, size in program.parameters] == [
        (0, 8),
        (8, 1),
        (16, 8),
        (24, 2),
        (28, 20),
    ]
    memory = simt.Memory()
    out = memory.allocate(128)
    packed = struct.pack("<qB7xdH2x16xI", out.address, 7, 30.0, 500, 6000)
    simt.launch(program, (1, 1, 1), (32, 1, 1), packed, memory)
    assert (out.data.view(np.uint32) == 6537).all()


def test_32_bits_of_a_parameters_address_are_enough():
    """LLVM chooses between parameters by the lower half of their addresses, and loads the chosen one."""
    text = kernel(
        f"""
        setp.ge.u32 %p1, %tid, 16;
        mov.b32 %r1, first; mov.b32 %r2, second;
        selp.b32 %r3, %r2, %r1, %p1;
        ld.param.b32 %r4, [%r3];
        {element("out")} st.global.u32 [%rd31], %r4;
        """
    ).replace(".param .u64 p_out", ".param .u64 p_out, .param .b32 first, .param .b32 second")
    memory = simt.Memory()
    out = memory.allocate(128)
    packed = struct.pack("<Qii", out.address, 11, -22)
    simt.launch(simt.load(ptx.parse(text)), (1, 1, 1), (32, 1, 1), packed, memory)
    assert out.data.view(np.int32).tolist() == [11] * 16 + [-22] * 16


def test_the_address_of_a_parameter_can_be_taken():
    """A struct that is indexed at run time: each thread takes the element of its own number."""
    text = kernel(
        f"""
        mov.b64 %rd1, s;
        and.b32 %r1, %tid, 3;
        mad.wide.u32 %rd2, %r1, 4, %rd1;
        ld.param.u32 %r2, [%rd2];
        {element("out")}
        st.global.u32 [%rd31], %r2;
        """
    ).replace(".param .u64 p_out", ".param .u64 p_out, .param .align 4 .b8 s[16]")
    memory = simt.Memory()
    program = simt.load(ptx.parse(text))
    out = memory.allocate(128)
    for values in ([1, 2, 3, 4], [50, 60, 70, 80]):
        packed = struct.pack("<q4I", out.address, *values)
        simt.launch(program, (1, 1, 1), (32, 1, 1), packed, memory)
        np.testing.assert_array_equal(out.data.view(np.uint32), np.tile(values, 8))


# ---- atomics -------------------------------------------------------------------------------------


def wrapped(value: int, dtype: np.dtype) -> int:
    return int(np.array(value % 2 ** (8 * dtype.itemsize), f"u{dtype.itemsize}").view(dtype))


ATOMICS = {
    "add": lambda old, a, b: old + a,
    "min": lambda old, a, b: min(old, a),
    "max": lambda old, a, b: max(old, a),
    "and": lambda old, a, b: old & a,
    "or": lambda old, a, b: old | a,
    "xor": lambda old, a, b: old ^ a,
    "exch": lambda old, a, b: a,
    "inc": lambda old, a, b: 0 if old >= a else old + 1,
    "dec": lambda old, a, b: a if old == 0 or old > a else old - 1,
    "cas": lambda old, a, b: b if old == a else old,
}
ROWS = [(name, t) for name in ("add", "min", "max") for t in ("s32", "u32", "u64")]
ROWS += [("min", "s64"), ("max", "s64"), ("inc", "u32"), ("dec", "u32")]
ROWS += [(name, t) for name in ("and", "or", "xor", "exch", "cas") for t in ("b32", "b64")]
ROWS += [("add", "f32"), ("add", "f64"), ("cas", "b16")]


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize(("name", "type_"), ROWS, ids=[f"{n}.{t}" for n, t in ROWS])
@settings(max_examples=4)
@given(seed=seeds)
def test_atomics_happen_one_after_the_other_in_the_order_of_lanes(name, type_, space, seed):
    """Many threads on few words. Values are small, so that minima, limits and expectations meet them."""
    generator = np.random.default_rng(seed)
    kind = {"s": "i", "u": "u", "b": "u", "f": "f"}[type_[0]]
    size = int(type_[1:]) // 8
    dtype = np.dtype(f"{kind}{size}")
    words = int(generator.choice([1, 3, 40]))
    low = -3 if kind in "if" else 0
    data = generator.integers(low, 4, words).astype(dtype)
    a, b = (generator.integers(low, 4, 96).astype(dtype) for _ in range(2))
    if name == "add" and kind != "f":
        a[::7] = wrapped(2 ** (8 * size - 1), dtype)
    index = generator.integers(0, words, 96).astype(np.uint32)
    register = f"f{8 * size}" if kind == "f" else f"b{8 * size}"
    operands = "%a, %b" if name == "cas" else "%a"
    atom = f"atom.{space}.{name}.{type_}"
    copy_in, copy_out, base = "", "", "%data"
    if space == "shared":
        base = "%rd20"
        copy = f"mad.wide.u32 %rd21, %tid, {size}, %rd20; mad.wide.u32 %rd22, %tid, {size}, %data;"
        copy_in = f"""
            mov.u64 %rd20, tile;
            setp.ge.u32 %p1, %tid, {words};
            @%p1 bra COPIED;
            {copy} ld.global.{register} %old, [%rd22]; st.shared.{register} [%rd21], %old;
            COPIED: bar.sync 0;"""
        copy_out = f"""
            bar.sync 0;
            @%p1 bra END;
            {copy} ld.shared.{register} %old, [%rd21]; st.global.{register} [%rd22], %old;
            END:"""
    body = f"""
        {copy_in}
        {element("index", into="%rd1")} ld.global.u32 %r1, [%rd1];
        {element("in_a", size=size, into="%rd2")} ld.global.{register} %a, [%rd2];
        {element("in_b", size=size, into="%rd3")} ld.global.{register} %b, [%rd3];
        mad.wide.u32 %rd4, %r1, {size}, {base};
        {atom} %old, [%rd4], {operands};
        {element("out", size=size)}
        st.global.{register} [%rd31], %old;
        {copy_out}
    """
    text = kernel(
        body, "data index in_a in_b out", ".shared .align 8 .b8 tile[512];", f".reg .{register} %a, %b, %old;"
    )
    arrays = {"data": data, "index": index, "in_a": a, "in_b": b, "out": np.zeros(96, dtype)}
    found = launch(text, arrays, 1, 96)
    memory, old = data.tolist(), []
    for place, x, y in zip(index, a.tolist(), b.tolist(), strict=True):
        old.append(memory[place])
        value = ATOMICS[name](memory[place], x, y)
        memory[place] = value if kind == "f" else wrapped(value, dtype)
    np.testing.assert_array_equal(found["out"], np.array(old, dtype))
    np.testing.assert_array_equal(found["data"], np.array(memory, dtype))


@pytest.mark.parametrize("name", ["add", "min", "max"])
@pytest.mark.parametrize("type_", ["bf16", "f16x2", "bf16x2"])
def test_atomics_of_short_and_packed_floats_round_each_sum(name, type_):
    """1 + 2⁻⁸ is no bfloat16 and 1 + 2⁻¹¹ no half: added one by one they are lost, together they would not be."""
    half, count = (2.0**-11, 2) if type_ == "f16x2" else (2.0**-8, 2)
    numbers = [half] * count if name == "add" else [-3.5, 2.5]
    width = 16 if type_ == "bf16" else 32

    def bits(x):
        short = np.float16(x).view(np.uint16) if type_ == "f16x2" else np.float32(x).view(np.uint32) >> 16
        return int(short) * (0x10001 if width == 32 else 1)

    text = kernel(
        f"""
        mad.wide.u32 %rd1, %tid, {width // 8}, %given; ld.global.b{width} %v, [%rd1];
        atom.global.{name}.noftz.{type_} %old, [%sum], %v;
        """,
        "given sum",
        "",
        f".reg .b{width} %v, %old;",
    )
    dtype = np.dtype(f"u{width // 8}")
    arrays = {"given": np.array([bits(x) for x in numbers], dtype), "sum": np.array([bits(1.0)], dtype)}
    found = launch(text, arrays, 1, count)["sum"]
    expected = {"add": 1.0, "min": -3.5, "max": 2.5}[name]
    assert found.tolist() == [bits(expected)]


@both
@pytest.mark.parametrize(
    "operation", ["red.global.add.u32 [%rd1], 1;", "atom.global.inc.u32 %r9, [%rd1], -1;"]
)
def test_a_histogram_over_many_blocks_counts_every_thread(operation, schedule):
    generator = np.random.default_rng(4)
    index = generator.integers(0, 10, 40 * 64).astype(np.uint32)
    body = f"{element('index')} ld.global.u32 %r1, [%rd31]; {element('bins', '%r1', into='%rd1')} {operation}"
    arrays = {"index": index, "bins": np.zeros(10, np.uint32)}
    found = launch(kernel(body, "index bins"), arrays, 40, 64, schedule=schedule)["bins"]
    np.testing.assert_array_equal(found, np.bincount(index, minlength=10))


def test_a_float_minimum_by_compare_and_swap_finds_it():
    """As numba writes it: read, compare, swap if nobody was faster, else again."""
    x = np.random.default_rng(5).standard_normal(1024).astype(np.float32)
    body = f"""
        {element("x")}
        ld.global.f32 %f1, [%rd31];
        ld.volatile.global.u32 %r1, [%low];
    AGAIN:
        mov.b32 %f2, %r1;
        setp.le.f32 %p1, %f2, %f1;
        @%p1 bra DONE;
        mov.b32 %r2, %f1;
        atom.global.cas.b32 %r3, [%low], %r1, %r2;
        setp.eq.b32 %p2, %r3, %r1;
        mov.u32 %r1, %r3;
        @!%p2 bra AGAIN;
    DONE:
    """
    low = np.array([np.inf], np.float32)
    for schedule in SCHEDULES.values():
        found = launch(kernel(body, "x low"), {"x": x, "low": low}, 8, 128, schedule=schedule)["low"]
        assert found[0] == x.min()


def test_values_without_a_sign_enter_wider_registers_with_zeros():
    """``ld.b8`` and its kin; ``ld.s8`` brings the sign along."""
    body = """
        ld.global.b8 %r1, [%a];
        ld.global.b16 %rd1, [%a];
        ld.global.s8 %r2, [%a];
        st.global.u32 [%out], %r1;
        st.global.u32 [%out+4], %rd1;
        st.global.u32 [%out+8], %r2;
    """
    arrays = {"a": np.array([0xECC1], np.uint16), "out": np.zeros(3, np.uint32)}
    found = launch(kernel(body, "a out"), arrays, 1, 1)["out"]
    assert [hex(value) for value in found] == ["0xc1", "0xecc1", "0xffffffc1"]
