"""Machine code and how often it runs: exact where that can be known, and never more loads than there are."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab import cupy as cp
from gpulab.analysis.machine import PIPES, pipe_of, pipe_of_ptx, sass
from gpulab.analysis.machine.basic_blocks import split
from gpulab.analysis.machine.executed import Line, executed, marked
from gpulab.simulator import ptx
from gpulab.simulator.compile.cuda_c import cuda_c_module
from gpulab.simulator.compile.machine_code import MachineInstruction
from gpulab.simulator.compile.machine_code import sass as machine_code


@cuda.jit
def double(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = 2 * x[i]


SUM = r"""
extern "C" __global__ void sum(const float* x, float* out, int n) {
    float total = 0;
    for (int i = 0; i < n; ++i) total += x[i * 64 + threadIdx.x];
    out[threadIdx.x] = total;
}"""

DIVIDE = r"""
extern "C" __global__ void divide(const float* x, float* out) {
    out[threadIdx.x] = x[threadIdx.x] / x[threadIdx.x + 32];
}"""

TWO_WAYS = r"""
extern "C" __global__ void two_ways(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
    if (i < n) { for (int k = 0; k < 100; ++k) v = v * v + 0.5f; } else { v = sqrtf(v); }
    out[i] = v;
}"""


def instructions(*texts: str) -> list[MachineInstruction]:
    """A listing; ``3 .L_x_0: FADD R0, R0, R1`` comes from line 3 and is the target of branches."""
    found = []
    for n, text in enumerate(texts):
        line, _, rest = text.partition(" ")
        label, colon, code = rest.partition(": ")
        found.append(MachineInstruction(16 * n, code if colon else rest, int(line), label if colon else ""))
    return found


def whole_warps(lines: dict[int, int]) -> dict[int, Line]:
    return {line: Line(warps, 32 * warps) for line, warps in lines.items()}


def test_every_opcode_has_one_pipe():
    listed = [name for _, names in PIPES.values() for name in names]
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    ("opcode", "pipe"),
    [
        ("FFMA", "fma"),
        ("IMAD.WIDE.U32", "fma"),
        ("IADD3.X", "alu"),
        ("DFMA", "fp64"),
        ("HMMA.16816.F32", "tensor"),
        ("MUFU.RCP", "xu"),
        ("LDG.E.128", "lsu"),
        ("ULDC.64", "other"),
        ("BAR.SYNC.DEFER_BLOCKING", "adu"),  # Nsight Compute: constants and barriers of blocks
        ("LDC.64", "adu"),
        ("S2R", "adu"),  # Nsight Compute: special register reads, too
        ("NEVER_HEARD_OF", "other"),
    ],
)
def test_an_opcode_runs_on_its_pipe(opcode, pipe):
    assert pipe_of(opcode) == pipe


@pytest.mark.parametrize(
    ("text", "pipe"),
    [
        ("fma.rn.f32 %f1, %f2, %f3, %f4", "fma"),
        ("mad.lo.s32 %r1, %r2, %r3, %r4", "fma"),
        ("mul.wide.u32 %rd1, %r2, 4", "fma"),
        ("setp.lt.f32 %p1, %f1, %f2", "alu"),
        ("add.s64 %rd1, %rd2, %rd3", "alu"),
        ("mov.u32 %r1, %tid.x", "alu"),
        ("fma.rn.f64 %fd1, %fd2, %fd3, %fd4", "fp64"),
        ("fma.rn.f16x2 %r1, %r2, %r3, %r4", "fp16"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1}", "tensor"),
        ("ex2.approx.f32 %f1, %f2", "xu"),
        ("cvt.rn.f32.s32 %f1, %r1", "xu"),
        ("cvt.u64.u32 %rd1, %r1", "alu"),
        ("ld.global.f32 %f1, [%rd1]", "lsu"),
        ("ld.param.u64 %rd1, [x]", "other"),
        ("shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1", "lsu"),
        ("bar.sync 0", "adu"),
        ("vote.sync.ballot.b32 %r1, %p1, -1", "alu"),
    ],
)
def test_an_instruction_of_ptx_keeps_a_pipe_busy(text, pipe):
    head = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x) {\n"
    registers = ".reg .f32 %f<5>; .reg .f64 %fd<5>; .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .pred %p<3>;\n"
    module = ptx.parse(f"{head}{registers}{text};\nret;\n}}")
    assert pipe_of_ptx(module.functions["k"].blocks[0].instructions[0]) == pipe


def test_all_warps_run_code_without_branches():
    x = np.arange(256, dtype=np.float32)
    found = sass(double[2, 128], x, np.zeros_like(x))
    *body, last = zip(found.instructions, found.warps, strict=True)
    assert last[0].text == "EXIT"
    assert {warps for _, warps in body} == {8}
    assert found.total == 8 * len(found.instructions)
    assert sum(found.pipes.values()) == found.total


def test_several_launches_add_up():
    x = np.arange(256, dtype=np.float32)

    def twice(x, out):
        double[2, 128](x, out)
        double[1, 64](x, out)

    once = sass(double[2, 128], x, np.zeros_like(x))
    assert sass(twice, x, np.zeros_like(x)).total == once.total * 10 // 8


@pytest.mark.parametrize("n", [1, 3, 4, 7, 16, 18, 100])
def test_an_unrolled_loop_loads_each_element_once(n):
    kernel = cp.RawKernel(SUM, "sum")
    x, out = cp.ones(n * 64, cp.float32), cp.zeros(64, cp.float32)
    found = sass(lambda: kernel((1,), (64,), (x, out, n)))
    assert len([i for i in found.instructions if i.text.startswith(("LDG", "@"))]) > 1, "it is unrolled"
    assert found.by_opcode["LDG"] == 2 * n
    assert found.by_opcode["FADD"] == 2 * n
    assert found.by_opcode["STG"] == 2


def test_an_unrolled_loop_takes_fewer_instructions_an_element_than_a_short_one():
    kernel = cp.RawKernel(SUM, "sum")
    totals = []
    for n in (101, 201, 301):
        x, out = cp.ones(n * 64, cp.float32), cp.zeros(64, cp.float32)
        totals.append(sass(lambda x=x, out=out, n=n: kernel((1,), (64,), (x, out, n))).total)
    assert totals[2] - totals[1] == totals[1] - totals[0]
    assert (totals[1] - totals[0]) / (2 * 100) < 6, "a load, an addition, a part of the loop's own work"


def test_the_slow_path_of_a_division_is_not_taken():
    kernel = cp.RawKernel(DIVIDE, "divide")
    x, out = cp.ones(64, cp.float32), cp.zeros(32, cp.float32)
    found = sass(lambda: kernel((1,), (32,), (x, out)))
    zero = [i for i, n in zip(found.instructions, found.warps, strict=True) if n == 0]
    assert any("CALL" in i.text for i in zero), "what is there for denormal numbers"
    assert found.by_opcode["MUFU"] == 1


def test_each_way_of_a_branch_runs_for_its_warps():
    kernel = cp.RawKernel(TWO_WAYS, "two_ways")
    x, out = cp.ones(256, cp.float32), cp.zeros(256, cp.float32)
    found = sass(lambda: kernel((2,), (128,), (x, out, 96)))
    assert found.by_opcode["FFMA"] >= 3 * 100, "three of eight warps go round"
    assert found.by_opcode["FFMA"] < 3 * 100 + 8 * 8
    assert found.by_opcode["STG"] == 8


def test_a_tiled_product_has_as_many_loads_and_products_as_its_ptx():
    @cuda.jit
    def tiled(a, b, c):
        ta = cuda.shared.array((8, 8), np.float32)
        tb = cuda.shared.array((8, 8), np.float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        s = np.float32(0)
        for p in range(a.shape[1] // 8):
            ta[ty, tx] = a[y, p * 8 + tx]
            tb[ty, tx] = b[p * 8 + ty, x]
            cuda.syncthreads()
            for k in range(8):
                s += ta[ty, k] * tb[k, tx]
            cuda.syncthreads()
        c[y, x] = s

    a = np.ones((16, 40), np.float32)
    found = sass(tiled[(2, 2), (8, 8)], a, a.T.copy(), np.zeros((16, 16), np.float32))
    warps = 4 * 2
    assert found.by_opcode["LDG"] == 2 * 5 * warps
    assert found.by_opcode["STS"] == 2 * 5 * warps
    assert found.by_opcode["FFMA"] == 8 * 5 * warps
    assert found.by_opcode["BAR"] == 2 * 5 * warps


def test_blocks_end_at_branches_and_begin_at_labels():
    blocks = split(
        instructions("1 MOV R1, RZ", "2 .L_x_0: FADD R0, R0, R1", "3 @P0 BRA `(.L_x_0)", "4 EXIT", "4 NOP")
    )
    assert [len(block.instructions) for block in blocks] == [1, 2, 1, 1]
    assert [block.reached for block in blocks] == [True, True, True, False]


def test_a_loop_in_two_copies_and_one_shares_what_its_line_counts():
    """Each of 10 warps goes round 7 times: three times through two copies, once through the one."""
    listing = instructions(
        "1 MOV R1, RZ",
        "2 .L_x_0: LDG.E R0, [R2]",
        "2 LDG.E R3, [R2+4]",
        "3 @P0 BRA `(.L_x_0)",
        "2 .L_x_1: LDG.E R0, [R2]",
        "3 @P1 BRA `(.L_x_1)",
        "4 EXIT",
    )
    lines = whole_warps({1: 10, 2: 70, 3: 70, 4: 10})
    assert executed(listing, lines, 320) == [10, 30, 30, 30, 10, 10, 10]


def test_a_test_between_two_copies_of_a_loop_runs_as_often_as_branches_lead_there():
    """ptxas has made 16 rounds into four of four; line 3, the loop's own test, stands in both blocks. Between
    the copies it runs once, although the PTX ran it 16 times."""
    listing = instructions(
        "1 MOV R1, RZ",
        "2 .L_x_0: FFMA R0, R0, R1, 1",
        "2 FFMA R0, R0, R1, 1",
        "2 FFMA R0, R0, R1, 1",
        "2 FFMA R0, R0, R1, 1",
        "3 @P0 BRA `(.L_x_0)",
        "3 ISETP.NE.AND P1, PT, R4, RZ, PT",
        "3 @!P1 BRA `(.L_x_2)",
        "2 .L_x_1: FFMA R0, R0, R1, 1",
        "3 @P1 BRA `(.L_x_1)",
        "4 .L_x_2: EXIT",
    )
    lines = whole_warps({1: 10, 2: 160, 3: 160, 4: 10})
    assert executed(listing, lines, 320) == [10, *[40] * 5, 10, 10, 0, 0, 10]


def test_where_lanes_meet_again_the_warp_is_whole():
    """BSYNC has the line before the meeting, which one lane of each of 10 warps ran."""
    listing = instructions(
        "1 BSSY B0, `(.L_x_0)",
        "1 @P0 BRA `(.L_x_0)",
        "2 STS [R0], R1",
        "2 .L_x_0: BSYNC B0",
        "3 EXIT",
    )
    lines = whole_warps({1: 10, 3: 10}) | {2: Line(10, 10)}
    assert executed(listing, lines, 320) == [10] * 5


def test_what_only_a_call_leads_to_and_a_branch_of_lanes_apart_do_not_run():
    listing = instructions(
        "1 MOV R1, RZ",
        "2 BRA.DIV ~URZ, `(.L_x_9)",
        "2 SHFL.DOWN PT, R4, R19, 0x10, 0x1f",
        "3 @P0 BRA `(.L_x_1)",
        "4 CALL.REL.NOINC `($kernel$__internal_0)",
        "5 .L_x_1: EXIT",
        "2 .L_x_9: SHFL.DOWN PT, R4, R19, 0x10, 0x1f",
    )
    assert executed(listing, whole_warps(dict.fromkeys(range(1, 6), 6)), 192) == [6, 6, 6, 6, 0, 6, 0]


def test_a_branch_whose_condition_is_an_operand_may_not_be_taken():
    """From 10.0 on a branch of a whole warp has its predicate behind the opcode."""
    listing = instructions("1 MOV R1, RZ", "2 .L_x_0: FADD R0, R0, R1", "3 BRA.U !UP0, `(.L_x_0)", "4 EXIT")
    assert [block.reached for block in split(listing)] == [True, True, True]
    always = instructions("1 MOV R1, RZ", "2 BRA `(.L_x_1)", "3 FADD R0, R0, R1", "4 .L_x_1: EXIT")
    assert [block.reached for block in split(always)] == [True, False, True]


def test_it_says_what_it_found_and_that_it_is_an_estimate():
    x = np.arange(256, dtype=np.float32)
    text = str(gpulab.sass(double[2, 128], x, np.zeros_like(x)))
    assert "double" in text and "machine code 8.0" in text
    assert "lsu" in text and "loads, stores" in text
    assert "estimated" in text


def test_a_launch_that_has_run_already_is_refused_with_the_right_form():
    with pytest.raises(gpulab.profile.NothingLaunched, match=r"kernel\[blocks, threads\]"):
        sass(None)
    with pytest.raises(gpulab.profile.NothingLaunched, match="launched no kernel"):
        sass(lambda: None)


UNROLLED = r"""
__device__ float deep(float v, int n) { for (int k = 0; k < n; ++k) v = sinf(v); return v; }
extern "C" __global__ void __launch_bounds__(64, 4) unrolled(const float* x, float* out, int n) {
    float total = 0;
    #pragma unroll 1
    for (int i = 0; i < n; ++i) total += deep(x[i * 64 + threadIdx.x], n);
    for (int i = 0; i < n; ++i) total = total / x[i];
    out[threadIdx.x] = total;
}"""


@pytest.mark.parametrize("cc", [(8, 0), (9, 0), (10, 0), (12, 0)], ids=str)
@pytest.mark.parametrize(
    ("source", "entry"),
    [(SUM, "sum"), (DIVIDE, "divide"), (TWO_WAYS, "two_ways"), (UNROLLED, "unrolled")],
    ids=lambda text: text if len(text) < 10 else "",
)
def test_marking_instructions_changes_no_machine_code(source, entry, cc):
    text = cuda_c_module(source, cc).ptx
    assert [i.text for i in machine_code(marked(text), cc, entry)] == [
        i.text for i in machine_code(text, cc, entry)
    ]


def test_nearly_every_machine_instruction_comes_from_an_instruction_of_the_ptx():
    text = cuda_c_module(UNROLLED, (9, 0)).ptx
    lines = text.splitlines()
    listing = machine_code(marked(text), (9, 0), "unrolled")
    named = [i for i in listing if i.line]
    assert len(named) > 0.98 * len(listing)
    assert all(lines[i.line - 1].rstrip().endswith((";", ",")) for i in named)
