"""Every kind of fault with its whole message, as a learner reads it."""

from __future__ import annotations

import pickle
import struct

import numpy as np
import pytest

from gpulab import cuda
from gpulab.simulator import ptx, simt
from gpulab.simulator.simt.memory import GUARD

from .engines import each_engine as each_engine
from .launching import SCHEDULES, element, kernel, launch

SOURCE = ["def step(x, out):", "    i = cuda.grid(1)", "    out[i] = x[i + 1]", "    tile[i] = x[i]"]


@pytest.fixture
def source(tmp_path) -> str:
    """The directive that names a source file whose line 3 is ``out[i] = x[i + 1]``."""
    path = tmp_path / "learner.py"
    path.write_text("\n".join(SOURCE) + "\n")
    return f'.file 1 "{path}"\n'


class Device:
    """Memory with labelled arrays; `run` launches on it and returns the lines of the fault."""

    def __init__(self, **arrays: np.ndarray):
        self.memory = simt.Memory()
        self.places, self.labels = {}, []
        for name, array in arrays.items():
            place = self.memory.allocate(array.nbytes, name)
            place.data[:] = array.view(np.uint8).reshape(-1)
            self.places[name] = place
            self.labels.append(
                simt.ArrayLabel(
                    name, place.address, array.shape, array.strides, str(array.dtype), array.itemsize
                )
            )

    def launch(self, text: str, *arguments: int, grid=(1, 1, 1), block=(32, 1, 1), **options) -> None:
        program = simt.load(ptx.parse(text), display_name="step")
        packed = struct.pack(f"<{len(arguments)}q", *arguments)
        simt.launch(program, grid, block, packed, self.memory, arrays=tuple(self.labels), **options)

    def fault(self, kind: type, text: str, *arguments: int, **options) -> list[str]:
        with pytest.raises(kind) as caught:
            self.launch(text, *arguments, **options)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        return str(caught.value).splitlines()


def copies(line: int, source: str, shift: int = 0, size: int = 4) -> str:
    """out[i] = x[i + shift] with `size` bytes an element, at a source line."""
    body = f"""
        .loc 1 {line} 0
        add.s32 %r1, %at, {shift};
        {element("x", "%r1", size, "%rd1")}
        {element("out", "%at", size, "%rd2")}
        ld.global.b{8 * size} %{"rd3" if size == 8 else "r3"}, [%rd1];
        st.global.b{8 * size} [%rd2], %{"rd3" if size == 8 else "r3"};
    """
    return kernel(body, "x out", source)


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_reading_behind_the_end(source, schedule):
    device = Device(x=np.zeros(64, np.float32), out=np.zeros(64, np.float32))
    addresses = [p.address for p in device.places.values()]
    lines = device.fault(
        simt.OutOfBounds, copies(3, source, 1), *addresses, block=(64, 1, 1), schedule=schedule
    )
    assert lines == [
        "OutOfBounds in kernel step, line 3",
        "    3 │ out[i] = x[i + 1]",
        "thread (63, 0, 0) of block (0, 0, 0) read x[64]; x has 64 elements (float32).",
        "Does a guard keep every index inside the array?",
    ]


def test_writing_behind_the_end_counts_the_other_threads(source):
    """100 threads write to 40 elements: 60 are outside, the first is 40 = 1 · 32 + 8."""
    device = Device(x=np.zeros(128, np.float64), out=np.zeros(40, np.float64))
    addresses = [p.address for p in device.places.values()]
    lines = device.fault(
        simt.OutOfBounds, copies(3, source, size=8), *addresses, grid=(4, 1, 1), block=(25, 1, 1)
    )
    assert lines == [
        "OutOfBounds in kernel step, line 3",
        "    3 │ out[i] = x[i + 1]",
        "thread (15, 0, 0) of block (1, 0, 0) wrote out[40]; out has 40 elements (float64).",
        "59 more threads did so.",
        "Does a guard keep every index inside the array?",
    ]


def test_reading_before_the_start_is_no_negative_index(source):
    device = Device(x=np.zeros(64, np.float32), out=np.zeros(64, np.float32))
    addresses = [p.address for p in device.places.values()]
    assert device.fault(simt.OutOfBounds, copies(3, source, -2), *addresses)[2:] == [
        "thread (0, 0, 0) of block (0, 0, 0) read x[-2]; x has 64 elements (float32).",
        "1 more thread did so.",
        "The index is negative. Did a product overflow, or a difference fall below 0?",
    ]


def test_a_wide_access_that_leaves_an_array_says_how_wide_it_is(source):
    body = """
        .loc 1 3 0
        ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%x];
    """
    text = kernel(body, "x", source)
    device = Device(x=np.zeros(1, np.float32))
    assert device.fault(simt.OutOfBounds, text, device.places["x"].address)[2:] == [
        "thread (0, 0, 0) of block (0, 0, 0) read 16 bytes at x[0]; x has 1 element (float32).",
        "31 more threads did so.",
        "Do all 16 bytes lie inside the array?",
    ]


@pytest.mark.parametrize(
    ("line", "from_the_end"), [("out[i] = x[i, 1]", True), ("out[i] = x[i * 4 + 1];", False)]
)
def test_only_a_line_with_several_indices_may_count_from_the_end(tmp_path, line, from_the_end):
    path = tmp_path / "learner.py"
    path.write_text(f"\n\n{line}\n\n")
    device = Device(x=np.zeros(16, np.float32), out=np.zeros(64, np.float32))
    device.labels[0] = simt.ArrayLabel("x", device.places["x"].address, (4, 4), (16, 4), "float32", 4)
    addresses = [p.address for p in device.places.values()]
    lines = device.fault(simt.OutOfBounds, copies(3, f'.file 1 "{path}"\n'), *addresses)
    assert any("counts from the end" in said for said in lines) is from_the_end


@pytest.mark.parametrize(
    ("strides", "where"), [((16, 4), "[4, 0]"), ((4, 16), "[0, 4]")], ids=["rows first", "columns first"]
)
def test_an_array_of_two_dimensions_is_named_with_two_indices(source, strides, where):
    device = Device(x=np.zeros(16, np.float32), out=np.zeros(64, np.float32))
    device.labels[0] = simt.ArrayLabel("x", device.places["x"].address, (4, 4), strides, "float32", 4)
    addresses = [p.address for p in device.places.values()]
    lines = device.fault(simt.OutOfBounds, copies(3, source), *addresses)
    assert lines[2] == f"thread (16, 0, 0) of block (0, 0, 0) read x{where}; x is 4 × 4 (float32)."
    assert any(line.startswith("The index is worked out from the address") for line in lines)


def test_the_place_is_told_in_three_dimensions(source):
    """Blocks of 4 × 2 × 2 in a grid of 3 × 2 × 2: linear thread 5 is (1, 1, 0), linear block 7 (1, 0, 1)."""
    body = f"""
        .loc 1 3 0
        mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ctaid.z; mov.u32 %r3, %ctaid.x;
        mad.lo.u32 %r1, %r2, 2, %r1; mad.lo.u32 %r1, %r1, 3, %r3;
        mov.u32 %r4, %tid.y; mov.u32 %r5, %tid.z;
        mad.lo.u32 %r4, %r5, 2, %r4; mad.lo.u32 %r4, %r4, 4, %tid;
        mad.lo.u32 %r6, %r1, 16, %r4;
        setp.lt.u32 %p1, %r6, 117;
        @%p1 bra END;
        {element("x", "%r6")}
        ld.global.b32 %r7, [%rd31];
        END:
    """
    device = Device(x=np.zeros(100, np.float32))
    lines = device.fault(
        simt.OutOfBounds,
        kernel(body, "x", source),
        device.places["x"].address,
        grid=(3, 2, 2),
        block=(4, 2, 2),
    )
    assert lines[2] == "thread (1, 1, 0) of block (1, 0, 1) read x[117]; x has 100 elements (float32)."
    assert lines[3] == f"{12 * 16 - 118:,} more threads did so."


def test_an_empty_array_is_a_null_pointer(source):
    device = Device(out=np.zeros(64, np.float32))
    assert device.fault(simt.OutOfBounds, copies(3, source), 0, device.places["out"].address) == [
        "OutOfBounds in kernel step, line 3",
        "    3 │ out[i] = x[i + 1]",
        "thread (0, 0, 0) of block (0, 0, 0) read address 0x0: a null pointer.",
        "31 more threads did so.",
        "Did an empty or missing array reach the kernel?",
    ]


def test_an_allocation_of_no_bytes_holds_nothing(source):
    device = Device(x=np.zeros(0, np.float32), out=np.zeros(32, np.float32))
    addresses = [p.address for p in device.places.values()]
    lines = device.fault(simt.OutOfBounds, copies(3, source), *addresses)
    assert lines[2] == "thread (0, 0, 0) of block (0, 0, 0) read x[0]; x has 0 elements (float32)."


def test_an_array_that_was_freed_is_gone(source):
    device = Device(x=np.zeros(64, np.float32), out=np.zeros(64, np.float32))
    addresses = [p.address for p in device.places.values()]
    device.launch(copies(3, source), *addresses)
    device.memory.free(device.places["x"])
    device.labels.pop(0)
    assert device.fault(simt.OutOfBounds, copies(3, source), *addresses) == [
        "OutOfBounds in kernel step, line 3",
        "    3 │ out[i] = x[i + 1]",
        f"thread (0, 0, 0) of block (0, 0, 0) read 4 bytes at {addresses[0]:#x}, which belongs to no array.",
        "31 more threads did so.",
        "Was the array freed, does an index run far beyond it, or did a product overflow?",
    ]


def test_between_two_arrays_lies_a_gap_that_no_small_mistake_crosses(source):
    """An index that is off by less than 1 MiB hits no other array."""
    device = Device(x=np.zeros(64, np.float32), out=np.zeros(64, np.float32))
    x, out = (p.address for p in device.places.values())
    for shift in (64, 1000, GUARD // 8):
        lines = device.fault(simt.OutOfBounds, copies(3, source, shift), x, out)
        assert lines[2].endswith(f"read x[{shift}]; x has 64 elements (float32).")
    for shift in (GUARD // 4 - 1, 64 - GUARD // 4):
        device.fault(simt.OutOfBounds, copies(3, source, shift), *((x, out) if shift > 0 else (out, x)))


def test_a_misaligned_access(source):
    device = Device(x=np.zeros(64, np.float32), out=np.zeros(64, np.float32))
    x, out = (p.address for p in device.places.values())
    assert device.fault(simt.Misaligned, copies(3, source), x + 2, out) == [
        "Misaligned access in kernel step, line 3",
        "    3 │ out[i] = x[i + 1]",
        f"thread (0, 0, 0) of block (0, 0, 0) used 4 bytes at global address {x + 2:#x}, "
        "which is no multiple of 4.",
        "31 more threads did so.",
        "Accesses of 4 bytes must start at a multiple of 4 bytes.",
    ]


def test_a_vector_access_must_be_aligned_as_a_whole():
    body = "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%x+8];"
    device = Device(x=np.zeros(64, np.float32))
    x = device.places["x"].address
    lines = device.fault(simt.Misaligned, kernel(body, "x"), x)
    assert lines[1].endswith(f"used 16 bytes at global address {x + 8:#x}, which is no multiple of 16.")


SHARED = ".shared .align 16 .b8 tile[128];"


def in_shared(line: int, operation: str, first: str = "%tid") -> str:
    return f"""
        .loc 1 {line} 0
        mov.u32 %r1, tile;
        mad.lo.s32 %r2, {first}, 4, %r1;
        {operation}
    """


@pytest.mark.parametrize(
    ("operation", "did"),
    [
        ("st.shared.u32 [%r2], %r1;", "wrote"),
        ("ld.shared.u32 %r3, [%r2];", "read"),
        ("atom.shared.add.u32 %r3, [%r2], 1;", "wrote"),
    ],
    ids=["store", "load", "atomic"],
)
def test_outside_shared_memory(source, operation, did):
    """40 threads and 32 elements. The name is the one before a bracket that is no argument's."""
    device = Device(x=np.zeros(8, np.float32))
    text = kernel(in_shared(4, operation), "x", source + SHARED)
    assert device.fault(simt.OutOfBounds, text, device.places["x"].address, block=(40, 1, 1)) == [
        "OutOfBounds in kernel step, line 4",
        "    4 │ tile[i] = x[i]",
        f"thread (32, 0, 0) of block (0, 0, 0) {did} element 32 of the shared array tile, "
        "which has 32 elements of 4 bytes.",
        "7 more threads did so.",
        "Is the index into the shared array smaller than its size for every thread?",
    ]


def test_before_shared_memory_and_without_a_source():
    text = kernel(in_shared(1, "ld.shared.u32 %r3, [%r2+-8];").replace(".loc 1 1 0", ""), "x", SHARED)
    assert Device().fault(simt.OutOfBounds, text, 0) == [
        "OutOfBounds in kernel step",
        "thread (0, 0, 0) of block (0, 0, 0) read element -2 of a shared array, "
        "which has 32 elements of 4 bytes.",
        "1 more thread did so.",
        "Is the index into the shared array smaller than its size for every thread?",
    ]


def test_misaligned_in_shared_memory(source):
    text = kernel(in_shared(4, "ld.shared.u32 %r3, [%r2+2];"), "x", source + SHARED)
    assert Device().fault(simt.Misaligned, text, 0)[2:] == [
        "thread (0, 0, 0) of block (0, 0, 0) used 4 bytes at shared address 0x2, which is no multiple of 4.",
        "31 more threads did so.",
        "Accesses of 4 bytes must start at a multiple of 4 bytes.",
    ]


@pytest.mark.parametrize(
    ("shift", "lead", "says"),
    [
        (16, 16, "starts at address {:#x}, which is no multiple of 32 bytes."),
        (0, 20, "has rows (or columns) that lie 40 bytes apart, which is no multiple of 16 bytes."),
        (32, 24, ""),
    ],
    ids=["start", "rows", "allowed"],
)
def test_the_matrix_of_a_fragment_must_be_aligned(shift, lead, says):
    registers = "{" + ", ".join(f"%r{i}" for i in range(1, 9)) + "}"
    body = f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {registers}, [%x+{shift}], {lead};"
    device = Device(x=np.zeros(1024, np.float16))
    x = device.places["x"].address
    if not says:
        device.launch(kernel(body, "x"), x)
        return
    lines = device.fault(simt.Misaligned, kernel(body, "x"), x)
    assert lines[1] == ("thread (0, 0, 0) of block (0, 0, 0) named a matrix that " + says.format(x + shift))
    assert lines[2] == "31 more threads did so."
    assert lines[3].endswith("8 halves or 4 floats.")


DYNAMIC = ".extern .shared .align 16 .b8 tile[];"
STATIC = ".shared .align 16 .b8 fixed[64];"


def test_dynamic_shared_memory_is_as_large_as_the_launch_says(source):
    text = kernel(in_shared(4, "st.shared.u32 [%r2], %r1;"), "x", source + DYNAMIC)
    Device().launch(text, 0, shared_bytes=128)
    assert Device().fault(simt.OutOfBounds, text, 0, shared_bytes=124)[2:] == [
        "thread (31, 0, 0) of block (0, 0, 0) wrote element 31 of a shared array, "
        "which has 31 elements of 4 bytes.",
        "Is the index into the shared array smaller than its size for every thread?",
    ]
    assert Device().fault(simt.OutOfBounds, text, 0)[-1] == (
        "The launch gave the block no dynamic shared memory."
    )


def test_dynamic_shared_memory_begins_behind_the_static_arrays(source):
    text = kernel(in_shared(4, "st.shared.u32 [%r2], %r1;"), "x", source + DYNAMIC + STATIC)
    text = text.replace(
        "mov.u32 %r1, tile;", "mov.u32 %r1, fixed; st.shared.u32 [%r1], 1; mov.u32 %r1, tile;"
    )
    Device().launch(text, 0, shared_bytes=128)
    assert Device().fault(simt.OutOfBounds, text, 0, shared_bytes=124)[2] == (
        "thread (31, 0, 0) of block (0, 0, 0) wrote element 31 of a shared array, "
        "which has 31 elements of 4 bytes."
    )


def test_outside_local_memory(source):
    """9 elements are 36 bytes; the room up to the next multiple of 16 is nobody's."""
    body = """
        .loc 1 4 0
        mov.u64 %rd1, stack;
        mul.wide.u32 %rd2, %tid, 4;
        add.s64 %rd1, %rd1, %rd2;
        st.local.u32 [%rd1], %tid;
    """
    text = kernel(body, "x", source, ".local .align 4 .b8 stack[36];")
    Device().launch(text, 0, block=(9, 1, 1))
    assert Device().fault(simt.OutOfBounds, text, 0)[2:] == [
        "thread (9, 0, 0) of block (0, 0, 0) wrote 4 bytes at byte 36 of local memory; "
        "the thread has 36 bytes.",
        "22 more threads did so.",
        "Is the index into the local array smaller than its size for every thread?",
    ]


CONSTANT = ".const .align 4 .u32 table[4] = {10, 11, 12, 13};"


def test_reading_behind_a_constant_array(source):
    body = ".loc 1 4 0\nmov.u64 %rd1, table; mad.wide.u32 %rd1, %tid, 4, %rd1; ld.const.u32 %r1, [%rd1];"
    text = kernel(body, "x", source + CONSTANT)
    Device().launch(text, 0, block=(4, 1, 1))
    device = Device(x=np.zeros(1, np.uint32), tile=np.zeros(1, np.uint32))
    assert device.fault(simt.OutOfBounds, text, 0)[2:] == [
        "thread (4, 0, 0) of block (0, 0, 0) read element 4 of a constant array, "
        "which has 4 elements of 4 bytes.",
        "27 more threads did so.",
        "Does a guard keep every index inside the array?",
    ]


@pytest.mark.parametrize(("space", "words"), [("const", "constants"), ("param", "parameters")])
def test_reading_an_array_as_if_it_were_constant(source, space, words):
    body = f".loc 1 4 0\n{element('x', '%tid', 4, '%rd1')} ld.{space}.u32 %r1, [%rd1];"
    device = Device(x=np.zeros(32, np.uint32))
    said = device.fault(simt.OutOfBounds, kernel(body, "x", source + CONSTANT), device.places["x"].address)
    assert said[2].endswith(f"read 4 bytes of global memory with an instruction for {words}.")


def test_writing_to_constant_memory(source):
    body = ".loc 1 4 0\nmov.u64 %rd1, table; cvta.const.u64 %rd1, %rd1; st.global.u32 [%rd1], 1;"
    assert Device().fault(simt.OutOfBounds, kernel(body, "x", source + CONSTANT), 0)[2:] == [
        "thread (0, 0, 0) of block (0, 0, 0) wrote to a constant array.",
        "31 more threads did so.",
        "A kernel can only read constant memory.",
    ]


def test_a_trap_and_a_failed_condition(source):
    body = ".loc 1 4 0\nsetp.eq.u32 %p1, %tid, 5; @%p1 trap;"
    assert Device().fault(simt.Trap, kernel(body, "x", source), 0) == [
        "Stopped in kernel step, line 4",
        "    4 │ tile[i] = x[i]",
        "thread (5, 0, 0) of block (0, 0, 0) reached a trap: the kernel stopped itself.",
    ]


@pytest.mark.parametrize(
    "line", ["wiggle.s32 %r1, %r2;", "add.s128 %r1, %r2, %r3;", "mad.lo.sat.q16 %r1, %r2, 1, 2;"]
)
def test_an_unknown_instruction_is_named_with_its_line(source, line):
    text = kernel(f".loc 1 3 0\n{line}", "x", source)
    with pytest.raises(simt.UnsupportedInstruction) as refusal:
        simt.load(ptx.parse(text), display_name="step")
    place = text.splitlines().index(line) + 1
    assert str(refusal.value) == (
        "step, line 3: out[i] = x[i + 1] — the simulator does not know the PTX instruction "
        f"{line.split()[0]} (PTX line {place})."
    )
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)


def test_lanes_outside_the_branch_do_no_harm():
    """Only lanes with an index inside the array reach the load, though all hold an address."""
    body = f"""
        setp.ge.u32 %p1, %tid, 5;
        {element("x", "%tid")}
        @%p1 bra END;
        ld.global.u32 %r1, [%rd31];
        st.global.u32 [%rd31], %tid;
        red.global.add.u32 [%rd31], 1;
        END:
    """
    found = launch(kernel(body, "x"), {"x": np.zeros(5, np.uint32)})
    np.testing.assert_array_equal(found["x"], np.arange(5) + 1)


def test_what_was_done_before_a_fault_stays_done():
    body = f"{element('x')} st.global.u32 [%rd31], 7; trap;"
    device = Device(x=np.zeros(32, np.uint32))
    with pytest.raises(simt.Trap):
        device.launch(kernel(body, "x"), device.places["x"].address)
    assert (device.places["x"].data.view(np.uint32) == 7).all()


@cuda.jit
def look_back(x, out, distance):
    i = cuda.grid(1)
    out[i] = x[i - distance]


def test_a_negative_index_counts_from_the_end_once():
    """numba adds the size to an index below zero: up to 32 back all is well, 40 back is 8 before the start."""
    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    look_back[1, 32](x, out, 5)
    np.testing.assert_array_equal(out, np.roll(x, 5))
    with pytest.raises(simt.OutOfBounds) as fault:
        look_back[1, 32](x, out, 40)
    assert str(fault.value).splitlines()[2:] == [
        "thread (0, 0, 0) of block (0, 0, 0) read x[-8]; x has 32 elements (float32).",
        "7 more threads did so.",
        "The index is negative. Did a product overflow, or a difference fall below 0?",
    ]
