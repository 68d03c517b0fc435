"""Stretches in one pass against their steps one by one: results, counts and faults, bit for bit."""

from __future__ import annotations

import struct
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.simulator import ptx, simt
from gpulab.simulator.observe import Counters
from gpulab.simulator.simt import compiled, stretches
from tests.observe.counting import same_table

BLOCKS, ELEMENTS, ROUNDS, REGISTERS = 3, 64, 3, 8
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 1e-42, 3.4e38, 1 / 3]

# What a line of a stretch may be: {d} is a register that it writes, {a}, {b} and {c} are registers or numbers.
ARITHMETIC = [
    "fma.rn.{t} {d}, {a}, {b}, {c};",
    "mul.rn.{t} {d}, {a}, {b};",
    "mul.{t} {d}, {a}, {b};",
    "add.{t} {d}, {a}, {b};",
    "sub.rn.{t} {d}, {a}, {b};",
    "mov.{t} {d}, {r};",
]
# Addresses in shared memory, as elements: one for all, the lane's own, the last ones first, pairs, sixteens.
ADDRESSES = ["0", "%t", "63 - %t % 64", "%t / 2", "%t % 16"]


def kernel(body: list[str], kind: str, skip: bool) -> str:
    """A kernel that fills shared memory from `given`, runs the lines three times, and stores all registers."""
    size = 8 if kind == "f64" else 4
    lines = [".version 8.0", ".target sm_80", ".address_size 64"]
    lines += [".visible .entry go(.param .u64 given, .param .u64 made) {"]
    lines += [f".reg .{kind} %f<{REGISTERS}>;", ".reg .b64 %at, %own, %a<5>;", ".reg .b32 %i<9>, %t, %n;"]
    lines += [".reg .pred %p, %q;", f".shared .align 16 .b8 tile[{(ELEMENTS + 4) * size}];"]
    lines += ["mov.u32 %t, %tid.x;", "mov.u32 %i1, %ctaid.x;", "mov.u32 %i2, %ntid.x;"]
    lines += ["setp.ge.u32 %p, %t, 68;", "@%p bra FILLED;", "mad.lo.u32 %i3, %i1, 68, %t;"]
    lines += [
        "ld.param.u64 %at, [given];",
        f"mad.wide.u32 %at, %i3, {size}, %at;",
        f"ld.global.{kind} %f0, [%at];",
    ]
    lines += [f"mul.wide.u32 %own, %t, {size};", "mov.u64 %a0, tile;", "add.u64 %own, %own, %a0;"]
    lines += [f"st.shared.{kind} [%own], %f0;", "FILLED:", "bar.sync 0;", "and.b32 %i4, %t, 63;"]
    lines += ["mov.u32 %i3, 0;", "sub.u32 %i5, 63, %i4;", "shr.u32 %i6, %i4, 1;", "and.b32 %i7, %t, 15;"]
    for n, register in enumerate(["%i3", "%i4", "%i5", "%i6", "%i7"]):
        lines += [
            f"mul.wide.u32 %a{n}, {register}, {size};",
            "mov.u64 %at, tile;",
            f"add.u64 %a{n}, %a{n}, %at;",
        ]
    lines += [f"cvt.rn.{kind}.u32 %f{n}, %t;" for n in range(REGISTERS)]
    if skip:
        lines += ["setp.gt.u32 %q, %t, 20;", "@%q bra DONE;"]
    lines += [
        "mov.u32 %n, 0;",
        "AGAIN:",
        *body,
        "add.u32 %n, %n, 1;",
        f"setp.lt.u32 %p, %n, {ROUNDS};",
        "@%p bra AGAIN;",
    ]
    lines += ["DONE:", "ld.param.u64 %at, [made];", "mad.lo.u32 %i3, %i1, %i2, %t;"]
    lines += [f"mad.wide.u32 %at, %i3, {size * REGISTERS}, %at;"]
    lines += [f"st.global.{kind} [%at+{n * size}], %f{n};" for n in range(REGISTERS)]
    return "\n".join([*lines, "ret;", "}"])


def launched(text: str, kind: str, threads: int, engine: str) -> tuple[bytes, object]:
    """What the kernel stores, and its counts."""
    dtype = np.dtype(np.float64 if kind == "f64" else np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_accesses", sys.maxsize)
        patch.setattr(compiled, "BY_NUMPY", engine == "numpy")
        memory = simt.Memory()
        rng = np.random.default_rng(len(text))
        values = np.where(
            rng.random(BLOCKS * 68) < 0.1, rng.choice(SPECIAL, BLOCKS * 68), rng.normal(size=BLOCKS * 68)
        )
        given = memory.allocate(values.size * dtype.itemsize, "given")
        given.data.view(dtype)[:] = values
        made = memory.allocate(BLOCKS * threads * REGISTERS * dtype.itemsize, "made")
        counters = Counters()
        arguments = struct.pack("<qq", given.address, made.address)
        simt.launch(
            simt.load(ptx.parse(text)),
            (BLOCKS, 1, 1),
            (threads, 1, 1),
            arguments,
            memory,
            observers=[counters],
        )
        return made.data.tobytes(), counters.counts


def drawn_line(draw, kind: str) -> str:
    register = st.integers(0, REGISTERS - 1).map("%f{}".format)
    if draw(st.booleans()):
        at, off = draw(st.integers(0, 4)), draw(st.integers(0, 3)) * (8 if kind == "f64" else 4)
        return f"ld.shared.{kind} {draw(register)}, [%a{at}+{off}];"
    number = st.sampled_from(
        ["0d3FF8000000000000", "0dC000000000000000"] if kind == "f64" else ["0f3FC00000", "0fFF800000"]
    )
    form = draw(st.sampled_from(ARITHMETIC))
    a, b, c = (draw(st.one_of(register, register, number)) for _ in range(3))
    return form.format(t=kind, d=draw(register), a=a, b=b, c=c, r=draw(register))


@st.composite
def bodies(draw):
    kind = draw(st.sampled_from(["f32", "f32", "f64"]))
    return kind, [drawn_line(draw, kind) for _ in range(draw(st.integers(stretches.FEWEST, 24)))]


@settings(max_examples=40)
@given(drawn=bodies(), threads=st.sampled_from([32, 64, 96, 70]), skip=st.booleans())
def test_a_stretch_leaves_and_counts_what_its_steps_do(drawn, threads, skip):
    kind, body = drawn
    text = kernel(body, kind, skip)
    by_numpy, its_counts = launched(text, kind, threads, "numpy")
    in_one_pass, counts = launched(text, kind, threads, "compiled")
    assert in_one_pass == by_numpy
    same_table(counts, its_counts)


PRODUCT = ["ld.shared.f32 %f1, [%a0+4];", "ld.shared.f32 %f2, [%a1];", "fma.rn.f32 %f0, %f1, %f2, %f0;"] * 4


@pytest.fixture
def sweeps(monkeypatch):
    """How often a stretch was made in one pass."""
    made = []
    sweep = stretches._sweep
    monkeypatch.setattr(stretches, "_sweep", lambda dtype: made.append(dtype) or sweep(dtype))
    return made


def test_the_first_round_of_a_loop_checks_addresses_and_the_others_are_made_in_one_pass(sweeps):
    launched(kernel(PRODUCT, "f32", skip=False), "f32", 64, "compiled")
    assert len(sweeps) == ROUNDS - 1


def test_numpy_makes_every_step_where_it_is_asked_to(sweeps):
    launched(kernel(PRODUCT, "f32", skip=False), "f32", 64, "numpy")
    assert not sweeps


def test_registers_that_nobody_else_reads_are_not_written():
    text = kernel([*PRODUCT, "mov.f32 %f1, %f0;", "mov.f32 %f2, %f0;"], "f32", skip=False)
    (stretch,) = [
        step
        for steps in simt.load(ptx.parse(text)).steps
        for step in steps
        if isinstance(step, stretches.Stretch)
    ]
    hidden = ["ld.shared.f32 %g1, [%a0];", "ld.shared.f32 %g2, [%a1];", "fma.rn.f32 %f0, %g1, %g2, %f0;"] * 3
    inner = text.replace("\n".join(PRODUCT), "\n".join(hidden)).replace(
        ".reg .pred", ".reg .f32 %g<3>;\n.reg .pred"
    )
    (other,) = [
        step
        for steps in simt.load(ptx.parse(inner)).steps
        for step in steps
        if isinstance(step, stretches.Stretch)
    ]
    assert len(stretch._outputs) == 3
    assert len(other._outputs) == 3  # f0, and f1 and f2, which get copies of it


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_an_address_beyond_shared_memory_is_the_same_fault(engine):
    body = [*PRODUCT[:6], "ld.shared.f32 %f3, [%a1+100000];", *PRODUCT[:6]]
    with pytest.raises(simt.OutOfBounds) as caught:
        launched(kernel(body, "f32", skip=False), "f32", 64, engine)
    assert "100000" in str(caught.value) or "25000" in str(caught.value)
    assert caught.value.thread == (0, 0, 0)


def test_a_program_that_observers_look_into_has_no_stretches():
    program = simt.load(ptx.parse(kernel(PRODUCT, "f32", skip=False)), stops=())
    assert not any(isinstance(step, stretches.Stretch) for steps in program.steps for step in steps)
