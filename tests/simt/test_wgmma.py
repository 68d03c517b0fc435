"""``wgmma`` as PTX: every form against a scalar model, when it reads and writes, and who must meet."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulab.simulator import ptx, simt
from gpulab.simulator.compile.ptxas import link
from gpulab.simulator.simt.errors import WrongMatrix
from gpulab.simulator.simt.matrix_descriptors import MatrixDescriptor, encode
from gpulab.simulator.simt.warpgroup_matrices import FLOATING_COLUMNS, INTEGER_COLUMNS, RESULTS

from .launching import SCHEDULES, launch
from .warpgroup_model import (
    BITS,
    SMALLEST,
    in_registers,
    in_shared,
    number,
    one_sum,
    place_of_code,
    place_of_result,
)
from .wgmma_kernels import SHARED_BYTES, Form, kernel, random_words

F16 = Form(16, "f32", "f16", "f16")
TYPES = [
    (d, a, b) for together, results in RESULTS.items() for a in together for b in together for d in results
]


def signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def run(form: Form, image: np.ndarray, words: np.ndarray, c: np.ndarray, **named) -> np.ndarray:
    """D as the registers of each thread hold it (128, registers)."""
    text = kernel(
        form, named.pop("middle", ""), **({"waits": named.pop("waits")} if "waits" in named else {})
    )
    arrays = {
        "image": image,
        "left": words,
        "c": c,
        "out": np.zeros_like(c),
        "metadata": named.pop("metadata", np.zeros(128, np.uint32)),
        "first": signed(encode(named.pop("first", MatrixDescriptor(0, 128, 256)))),
        "second": signed(encode(named.pop("second", MatrixDescriptor(8192, 128, 256)))),
        "adds": int(named.pop("adds", True)),
    }
    return launch(text, arrays, block=128, shared_bytes=SHARED_BYTES, **named)["out"]


# ---- every form ----------------------------------------------------------------------------------


@st.composite
def descriptors(draw, rows: int, row_bytes: int, k_major: bool) -> MatrixDescriptor:
    spans = [16, 32, 64, 128] if not k_major else [16, *(s for s in (32, 64, 128) if s >= row_bytes)]
    step = st.integers(1, 64).map(lambda units: 16 * units)
    return MatrixDescriptor(
        draw(st.integers(0, 512)) * 16, draw(step), draw(step), 0, draw(st.sampled_from(spans))
    )


@st.composite
def products(draw):
    d, a, b = draw(st.sampled_from(TYPES))
    columns = INTEGER_COLUMNS if d == "s32" else FLOATING_COLUMNS
    held, sparse = draw(st.booleans()), draw(st.booleans())
    majors = tuple(draw(st.integers(0, 1)) if a in ("f16", "bf16") else 0 for _ in range(2))
    form = Form(
        draw(st.sampled_from(columns)),
        d,
        a,
        b,
        held,
        sparse,
        tuple(draw(st.sampled_from([1, -1])) for _ in range(2)),
        (0 if held else majors[0], majors[1]),
        d == "s32" and draw(st.booleans()),
        draw(st.integers(0, 1)) if sparse and BITS[a] > 8 else 0,
    )
    first = draw(descriptors(64, 32, not form.mn_major[0]))
    second = draw(descriptors(form.n, 64 if sparse else 32, not form.mn_major[1]))
    return form, first, second, draw(st.booleans()), draw(st.integers(0, 2**32 - 1))


def stored_columns(form: Form, metadata: np.ndarray, row: int) -> list[int]:
    """The column of the full A of each stored element of a row."""
    if not form.sparse:
        return list(range(form.k))
    found = []
    group = 2 if form.a == "tf32" else 4
    for chunk in range(0, form.k, group):
        thread, bit = place_of_code(form.a, row, chunk, form.selector)
        code = int(metadata[thread]) >> bit & 15
        found += (
            [chunk + {0b0100: 0, 0b1110: 1}[code]]
            if group == 2
            else [chunk + (code & 3), chunk + (code >> 2)]
        )
    return found


def random_metadata(generator: np.random.Generator, form: Form) -> np.ndarray:
    codes = [0b0100, 0b1110] if form.a == "tf32" else [i | j << 2 for i in range(4) for j in range(i + 1, 4)]
    nibbles = generator.choice(codes, (128, 8))
    return (nibbles << 4 * np.arange(8)).sum(axis=1).astype(np.uint32)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(products())
def test_every_form_computes_what_a_scalar_model_does(drawn):
    agrees(*drawn)


@pytest.mark.parametrize("d, a, b", [t for t in TYPES if t[1] == t[2]])
def test_every_number_of_columns_computes_what_a_scalar_model_does(d, a, b):
    """All n in turn; A from shared memory and from registers, dense and sparse, every major and swizzle."""
    majors = [(0, 0), (0, 1), (1, 0), (1, 1)] if a in ("f16", "bf16") else [(0, 0)]
    for i, n in enumerate(INTEGER_COLUMNS if d == "s32" else FLOATING_COLUMNS):
        held, sparse = bool(i % 2), bool(i // 2 % 2)
        first, second = majors[i // 4 % len(majors)]
        form = Form(n, d, a, b, held, sparse, mn_major=(0 if held else first, second))
        span = (16, 64, 128)[i % 3]
        descriptor = MatrixDescriptor(1024, 128, 8 * span, 0, span)
        agrees(form, descriptor, MatrixDescriptor(4096, 512, 8 * span, 0, span), i % 5 > 0, i, samples=4)


def agrees(
    form: Form, first: MatrixDescriptor, second: MatrixDescriptor, adds: bool, seed: int, samples: int = 8
) -> None:
    """Compare some elements of D with a scalar model, on random bits."""
    generator = np.random.default_rng(seed)
    image = random_words(generator, SHARED_BYTES * 8 // BITS[form.a], form.a)
    if form.b != form.a:  # of one size, so any bits of the one are some of the other
        image &= 0x7B
    words = random_words(generator, 512 * 32 // BITS[form.a], form.a).view(np.uint32).reshape(128, 4)
    elements = 64 * form.n // 128
    kind = {"f32": "f4", "f16": "f2", "s32": "i4"}[form.d]
    c = (generator.standard_normal((128, elements)) * 100).astype(kind)
    metadata = random_metadata(generator, form)
    schedule = SCHEDULES[("lockstep", "warp after warp")[seed % 2]]
    stored = np.ascontiguousarray(c).view(np.uint32)
    with np.errstate(over="ignore"):
        found = run(
            form,
            image,
            words,
            stored,
            first=first,
            second=second,
            adds=adds,
            metadata=metadata,
            schedule=schedule,
        ).view(kind)
    memory, size = image.tobytes(), BITS[form.a] // 8
    for row, column in generator.integers(0, (64, form.n), (samples, 2)).tolist():
        left, right = [], []
        for i, k in enumerate(stored_columns(form, metadata, row)):
            if form.held:
                a = in_registers(words, row, i, BITS[form.a])
            else:
                a = in_shared(memory, first, row, i, size, not form.mn_major[0])
            left.append(form.negates[0] * number(a, form.a) if form.d != "s32" else number(a, form.a))
            b = number(in_shared(memory, second, column, k, size, not form.mn_major[1]), form.b)
            right.append(form.negates[1] * b if form.d != "s32" else b)
        thread, i = place_of_result(row, column)
        start = float(c[thread, i]) if adds else 0.0
        if form.d == "s32":
            exact = int(sum(x * y for x, y in zip(left, right, strict=True)) + start)
            limit = 2**31
            expected = (
                max(-limit, min(limit - 1, exact)) if form.saturates else (exact + limit) % 2**32 - limit
            )
        else:
            lowest = SMALLEST[form.a], SMALLEST[form.b], -14 if form.d == "f16" else -126
            expected = one_sum(left, right, start, lowest, form.d, BITS[form.a] == 8)
        assert float(found[thread, i]) == expected or (math.isnan(expected) and np.isnan(found[thread, i]))


@pytest.mark.parametrize("d, a, b", TYPES)
def test_the_assembler_takes_every_shape_and_type_that_runs_here(d, a, b):
    """ptxas is the oracle of which forms there are: each of them once, in one kernel."""
    majors = [(0, 0), (1, 0), (0, 1), (1, 1)] if a in ("f16", "bf16") else [(0, 0)]
    sizes = INTEGER_COLUMNS if d == "s32" else FLOATING_COLUMNS
    forms = [Form(n, d, a, b, held=n % 16 == 0, sparse=n % 32 == 8) for n in sizes]
    forms += [Form(16, d, a, b, mn_major=major, negates=(-1, 1)) for major in majors]
    forms += [Form(16, d, a, b, saturates=True)] if d == "s32" else []
    for form in forms:
        simt.load(ptx.parse(kernel(form)))
    body = [form.text() for form in forms]
    most = max(forms, key=lambda form: form.registers)
    log, code = link(kernel(most, "wgmma.fence.sync.aligned;\n" + "\n".join(body)), (9, 0))
    assert code, log


@pytest.mark.parametrize(
    "opcode, message",
    [
        ("m64n12k16.f32.f16.f16", "a multiple of 8 up to 256 columns, not 12"),
        ("m64n16k16.f16.bf16.bf16", "adds products of bf16 and bf16 in f32, not in f16"),
        ("m64n16k8.f32.f16.f16", "has the shape m64n16k16, not m64n16k8"),
        ("m64n32k16.f32.f16.f16", "D takes 16 registers, not 8"),
    ],
)
def test_a_form_that_is_not_there_is_refused_in_words(opcode, message):
    text = kernel(F16).replace(F16.opcode, f"wgmma.mma_async.sync.aligned.{opcode}")
    with pytest.raises(simt.UnsupportedInstruction, match=message):
        simt.load(ptx.parse(text))


# ---- when it reads and writes --------------------------------------------------------------------

ONES = np.full(SHARED_BYTES // 2, 0x3C00, np.uint16)  # every element 1: each sum is 16
WORDS = np.zeros((128, 4), np.uint32)
C = np.full((128, 8), 2.0, np.float32)
each_schedule = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
# All of B, overwritten by zeros.
OVERWRITE = "mov.b32 %r3, 0; add.u32 %r4, %r1, 8192; mad.lo.u32 %r4, %t, 4, %r4; st.shared.b32 [%r4], %r3;"
NO_WAIT = "mov.b32 %r3, 0;"


@each_schedule
def test_a_product_appears_at_the_wait(schedule):
    assert (run(F16, ONES, WORDS, C, schedule=schedule) == 18).all()


@each_schedule
def test_accumulators_hold_what_they_held_until_the_wait(schedule):
    assert (run(F16, ONES, WORDS, C, waits=NO_WAIT, schedule=schedule) == 2).all()


@each_schedule
def test_an_operand_that_is_overwritten_before_the_wait_is_read_as_it_is_then(schedule):
    found = run(F16, ONES, WORDS, C, middle=OVERWRITE + "bar.sync 0;", schedule=schedule)
    assert (found == 2).all()


@each_schedule
def test_a_in_registers_is_read_when_the_product_is_asked_for(schedule):
    form = Form(16, "f32", "f16", "f16", held=True)
    words = np.full((128, 4), 0x3C003C00, np.uint32)
    found = run(form, ONES, words, C, middle="mov.b32 %a0, 0;", schedule=schedule)
    assert (found == 18).all()


@each_schedule
@pytest.mark.parametrize("allowed, expected", [(0, 34.0), (1, 18.0), (2, 2.0), (7, 2.0)])
def test_a_wait_leaves_as_many_groups_on_their_way_as_it_says(allowed, expected, schedule):
    again = f"{F16.text()}\nwgmma.commit_group.sync.aligned;"
    wait = f"wgmma.wait_group.sync.aligned {allowed};"
    assert (run(F16, ONES, WORDS, C, middle=again, waits=wait, schedule=schedule) == expected).all()


def test_a_product_that_is_in_no_group_is_not_waited_for():
    assert (run(F16, ONES, WORDS, C, middle=F16.text()) == 18).all()


def test_products_of_one_group_add_to_each_other():
    middle = "\n".join([F16.text()] * 3 + ["wgmma.commit_group.sync.aligned;"])
    assert (run(F16, ONES, WORDS, C, middle=middle) == 2 + 4 * 16).all()


@each_schedule
def test_a_copy_of_an_accumulator_on_its_way_gets_the_product_too(schedule):
    """As compilers copy registers between two products: the second one adds to the copy."""
    again = F16.text().replace("%d", "%e")
    middle = " ".join(f"mov.f32 %e{i}, %d{i}; mov.b32 %g{i}, %e{i};" for i in range(8))
    middle += f"\n{again.replace('%e', '%g')}\nwgmma.commit_group.sync.aligned;"
    back = "wgmma.wait_group.sync.aligned 0;" + " ".join(f"mov.b32 %d{i}, %g{i};" for i in range(8))
    text = kernel(F16, middle, back).replace(".reg .f32 %d<8>;", ".reg .f32 %d<8>, %e<8>; .reg .b32 %g<8>;")
    found = launch(
        text,
        arguments(np.zeros((2, 128, 8), "f4"), 256),
        block=256,
        shared_bytes=SHARED_BYTES,
        schedule=schedule,
    )["out"]
    assert (found == 2 + 16 + 16).all()


def test_blocks_have_products_of_their_own():
    """Each of three blocks reads its own shared memory, through descriptors that differ."""
    text = kernel(F16).replace(
        "setp.ne.u64 %p, %adds, 0;",
        "mov.u32 %r5, %ctaid.x; mul.lo.u32 %r6, %r5, 32; cvt.u64.u32 %w3, %r6; add.u64 %second, %second, %w3;"
        "mul.lo.u32 %r6, %r5, 4096; cvt.u64.u32 %w3, %r6; add.u64 %wo, %wo, %w3; setp.ne.u64 %p, %adds, 0;",
    )
    image = ONES.copy()
    for block in range(3):
        start = 4096 + block * 256
        image[start : start + 256] = np.float16(block + 1).view(np.uint16)
    first, second = (signed(encode(MatrixDescriptor(s, 128, 256))) for s in (0, 8192))
    arrays = {"image": image, "left": WORDS, "c": C, "out": np.zeros((3, 128, 8), "f4")}
    arrays |= {"metadata": np.zeros(128, "u4"), "first": first, "second": second, "adds": 1}
    found = launch(text, arrays, grid=3, block=128, shared_bytes=SHARED_BYTES)["out"]
    assert [set(part.ravel()) for part in found] == [{18.0}, {34.0}, {50.0}]


# ---- who must meet -------------------------------------------------------------------------------


def branched(condition: str) -> str:
    """The kernel whose warps for which `condition` holds leave before the product."""
    leave = f"shr.u32 %r5, %t, 5; {condition} @%q bra DONE;\nwgmma.fence.sync.aligned;"
    return kernel(F16).replace("wgmma.fence.sync.aligned;", leave).replace("ret;", "DONE:\nret;")


def arguments(out: np.ndarray, threads: int) -> dict:
    first, second = (signed(encode(MatrixDescriptor(s, 128, 256))) for s in (0, 8192))
    arrays = {"image": ONES, "left": np.zeros((threads, 4), "u4"), "c": np.full((threads, 8), 2.0, "f4")}
    return arrays | {
        "out": out,
        "metadata": np.zeros(threads, "u4"),
        "first": first,
        "second": second,
        "adds": 1,
    }


@each_schedule
@pytest.mark.parametrize(
    "threads, text",
    [(96, kernel(F16)), (128, branched("setp.eq.u32 %q, %r5, 2;"))],
    ids=["three warps", "a warp that has left"],
)
def test_a_warpgroup_that_is_not_whole_is_a_fault(threads, text, schedule):
    with pytest.raises(simt.DivergentBarrier, match=r"(?s)operation of a warpgroup.*four whole warps"):
        launch(
            text,
            arguments(np.zeros((threads, 8), "f4"), threads),
            block=threads,
            shared_bytes=SHARED_BYTES,
            schedule=schedule,
        )


@each_schedule
def test_one_of_two_warpgroups_may_multiply_alone(schedule):
    """The other has left; and both together get both products."""
    for text, expected in ((branched("setp.ge.u32 %q, %r5, 4;"), [18, 0]), (kernel(F16), [18, 18])):
        found = launch(
            text,
            arguments(np.zeros((2, 128, 8), "f4"), 256),
            block=256,
            shared_bytes=SHARED_BYTES,
            schedule=schedule,
        )["out"]
        assert [set(part.ravel()) for part in found] == [{expected[0]}, {expected[1]}]


@each_schedule
def test_warpgroups_may_multiply_in_different_branches(schedule):
    """Their products are waited for at different times and land in the registers of their own."""
    other = F16.text().replace("%d", "%e").replace("%second", "%first")
    text = kernel(F16, waits="").replace(F16.text(), f"setp.ge.u32 %q, %t, 128; @%q bra OTHER;\n{F16.text()}")
    text = text.replace("wgmma.commit_group.sync.aligned;", "", 1).replace(
        "st.global.f32 [%wo+0], %d0;",
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; bra TOGETHER;\n"
        f"OTHER:\nmov.f32 %e0, 7.0; {' '.join(f'mov.f32 %e{i}, 7.0;' for i in range(1, 8))}\n"
        f"wgmma.fence.sync.aligned; {other}\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
        + " ".join(f"mov.f32 %d{i}, %e{i};" for i in range(8))
        + "\nTOGETHER:\nst.global.f32 [%wo+0], %d0;",
    )
    text = text.replace(".reg .f32 %d<8>;", ".reg .f32 %d<8>, %e<8>;")
    found = launch(
        text,
        arguments(np.zeros((2, 128, 8), "f4"), 256),
        block=256,
        shared_bytes=SHARED_BYTES,
        schedule=schedule,
    )["out"]
    assert [set(part.ravel()) for part in found] == [{18.0}, {23.0}]


# ---- wrong operands ------------------------------------------------------------------------------


def test_a_matrix_beyond_shared_memory_is_a_fault():
    with pytest.raises(simt.OutOfBounds, match=r"reaches up to byte 66,048 .*its block has 65,536"):
        run(F16, ONES, WORDS, C, second=MatrixDescriptor(SHARED_BYTES, 128, 256))


def test_a_descriptor_that_names_no_such_operand_is_a_fault():
    form = Form(16, "f32", "f16", "f16", sparse=True)
    with pytest.raises(WrongMatrix, match=r"(?s)matrix descriptor 0x.*must fit the swizzle of 32 bytes"):
        run(form, ONES, WORDS, C, second=MatrixDescriptor(8192, 128, 256, span=32))


@pytest.mark.parametrize(
    "change, what",
    [
        ("mad.wide.u32 %second, %t, 2, %second;", "a matrix descriptor of B"),
        ("mad.wide.u32 %first, %t, 2, %first;", "a matrix descriptor of A"),
        ("setp.lt.u32 %p, %t, 64;", "a scale of D"),
    ],
)
def test_threads_of_a_warpgroup_must_give_the_same_operands(change, what):
    text = kernel(F16).replace("wgmma.fence.sync.aligned;", f"{change}\nwgmma.fence.sync.aligned;")
    with pytest.raises(WrongMatrix, match=f"gives {what} that is not the same in all threads"):
        launch(text, arguments(np.zeros((128, 8), "f4"), 128), block=128, shared_bytes=SHARED_BYTES)
