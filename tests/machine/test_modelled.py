"""Modelled times: the right part is the longest one, and times move as they must."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab import cupy as cp
from gpulab.analysis.machine import modelled, report
from gpulab.analysis.machine.warp import cycles, latency_of, registers
from gpulab.simulator.compile.machine_code import MachineInstruction
from gpulab.simulator.hardware import pipelines

LATENCY = latency_of(shared=23, memory=lambda line: 500)


@cuda.jit
def scale(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = 2 * x[i]


@cuda.jit
def strided(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i * 8]


@cuda.jit
def chain(x, out, times):
    i = cuda.grid(1)
    v = x[i]
    for _ in range(times):
        v = v * v + np.float32(0.5)
    out[i] = v


@cuda.jit
def conflicts(out, stride):
    tile = cuda.shared.array(4096, np.float32)
    t = cuda.threadIdx.x
    for k in range(64):
        tile[(t * stride + k) % 4096] = t
    out[t] = tile[t]


def code(*texts: str) -> list[MachineInstruction]:
    return [MachineInstruction(16 * n, text) for n, text in enumerate(texts)]


def on(gpu: str, configured, *args):
    return modelled(configured, *args, gpu=gpu)


def arrays(n: int, times: int = 1):
    return cuda.to_device(np.ones(n * times, np.float32)), cuda.device_array(n, np.float32)


def cycles_of(result, name: str) -> float:
    return next(term.cycles for term in result.terms if term.name == name)


def test_a_large_copy_is_bound_by_dram():
    n = 1 << 20
    assert on("T4", scale[n // 256, 256], *arrays(n)).bound.name == "DRAM"
    result = on("A100", scale[n // 256, 256], *arrays(n))
    read = n * 4  # what is written stays in the L2
    bandwidth = float(gpulab.hardware.find("A100").dram_seen or 0)
    assert cycles_of(result, "DRAM") == pytest.approx(read / bandwidth * result.clock, rel=1e-3)
    assert result.seconds > read / bandwidth


def test_reading_one_word_of_each_sector_takes_longer_than_reading_all():
    n = 1 << 18
    near = on("A100", scale[n // 256, 256], *arrays(n))
    far = on("A100", strided[n // 256, 256], *arrays(n, 8))
    assert 2 < cycles_of(far, "DRAM") / cycles_of(near, "DRAM") <= 8.001
    assert far.seconds > near.seconds


def test_a_chain_of_products_in_one_warp_waits_for_each():
    result = on("A100", chain[1, 32], *arrays(32), 1000)
    assert result.bound.name == "latency"
    assert cycles_of(result, "latency") >= 4 * 1000
    twice = on("A100", chain[1, 32], *arrays(32), 2000)
    assert cycles_of(twice, "latency") - cycles_of(result, "latency") == pytest.approx(
        cycles_of(result, "latency"), rel=0.2
    )


def test_bank_conflicts_cost_what_their_wavefronts_take():
    out = cuda.device_array(256, np.float32)
    straight, crossed = on("A100", conflicts[1, 256], out, 1), on("A100", conflicts[1, 256], out, 32)
    assert cycles_of(crossed, "shared memory") > 25 * cycles_of(straight, "shared memory")
    assert crossed.bound.name == "shared memory"


RATES = r"""
#include <cuda_fp16.h>
extern "C" __global__ void products(const int* x, int* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, m = x[0];
    int a = x[i], b = a + 1, c = a + 2, d = a + 3;
    for (int k = 0; k < 256; ++k) { a = a * m + 1; b = b * m + 2; c = c * m + 3; d = d * m + 4; }
    y[i] = a + b + c + d;
}
extern "C" __global__ void pairs(const __half2* x, __half2* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half2 m = x[0], a = x[i], b = __hadd2(a, m), c = __hadd2(b, m), d = __hadd2(c, m);
    for (int k = 0; k < 256; ++k) {
        a = __hfma2(a, m, m); b = __hfma2(b, m, m); c = __hfma2(c, m, m); d = __hfma2(d, m, m);
    }
    y[i] = __hadd2(__hadd2(a, b), __hadd2(c, d));
}"""


@pytest.mark.parametrize(("gpu", "lanes"), [("A100", 64), ("H100", 64), ("RTX 5090", 64)])
def test_integer_products_use_64_lanes_however_many_there_are_for_float32(gpu, lanes):
    kernel, x = cp.RawKernel(RATES, "products"), cp.ones(512, cp.int32)
    result = on(gpu, lambda: kernel((2,), (256,), (x, cp.zeros_like(x))))
    warps = 8  # of the busiest SM, which has one block of two
    least = 4 * 256 * warps * 32 / lanes
    assert least <= cycles_of(result, "integer products") < 1.05 * least
    assert result.bound.name in ("integer products", "fma", "latency", "launch")


@pytest.mark.parametrize(("gpu", "lanes"), [("T4", 64), ("A100", 128), ("L4", 64), ("H100", 128)])
def test_pairs_of_float16_use_as_many_lanes_as_nvidia_says(gpu, lanes):
    kernel, x = cp.RawKernel(RATES, "pairs"), cp.ones(1024, cp.float16)
    result = on(gpu, lambda: kernel((2,), (256,), (x, cp.zeros_like(x))))
    least = 4 * 256 * 8 * 32 / lanes
    assert least <= cycles_of(result, "fp16") < 1.05 * least


def test_shared_memory_of_turing_delivers_half_as_much_per_cycle():
    out = cuda.device_array(256, np.float32)
    turing, ampere = (on(gpu, conflicts[1, 256], out, 1) for gpu in ("T4", "A100"))
    assert cycles_of(turing, "shared memory") == 2 * cycles_of(ampere, "shared memory")


WMMA = r"""
#include <mma.h>
#include <cuda_fp16.h>
using namespace nvcuda::wmma;
extern "C" __global__ void product(const half* a, float* c) {
    fragment<matrix_a, 16, 16, 16, half, row_major> left;
    fragment<matrix_b, 16, 16, 16, half, col_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    load_matrix_sync(left, a, 16);
    load_matrix_sync(right, a, 16);
    fill_fragment(sum, 0.0f);
    for (int k = 0; k < 64; ++k) mma_sync(sum, left, right, sum);
    store_matrix_sync(c, sum, 16, mem_row_major);
}"""


@pytest.mark.parametrize(("name", "share"), [("A100", 1), ("H100", 0.629)])
def test_tensor_cores_are_no_faster_than_the_stated_peak(name, share):
    """With as many blocks as SMs each has one, and all together the peak of the data sheet, or the share of it that
    mma has been seen to reach on Hopper."""
    gpu = gpulab.hardware.find(name)
    kernel, a, c = cp.RawKernel(WMMA, "product"), cp.ones(256, cp.float16), cp.zeros(256, cp.float32)
    sms = int(gpu.sms)
    result = on(name, lambda: kernel((sms,), (32,), (a, c)))
    flops = sms * 64 * 2 * 16**3
    peak = float(gpu.tensor_dense["float16"])
    assert result.parts["tensor cores"] == pytest.approx(flops / (share * peak), rel=0.01)


def test_a_second_wave_of_blocks_takes_as_long_again():
    def latency(blocks: int) -> float:
        return cycles_of(on("A100", chain[blocks, 1024], *arrays(blocks * 1024), 50), "latency")

    sms, resident = 108, 2  # blocks of 1,024 threads on an SM
    nearly = {"rel": 1e-4}  # a few blocks find a sector that another one has fetched
    assert latency(sms * resident) == pytest.approx(latency(1), **nearly)
    assert latency(sms * resident + 1) == pytest.approx(2 * latency(1), **nearly)


@pytest.mark.parametrize(("slower", "faster"), [("T4", "A100"), ("A100", "H200"), ("L4", "H100")])
def test_a_gpu_with_more_bandwidth_copies_faster(slower, faster):
    n = 1 << 19
    run, given = scale[n // 256, 256], arrays(n)
    assert on(slower, run, *given).seconds > on(faster, run, *given).seconds


@cuda.jit
def all_on_one(bins, places):
    cuda.atomic.add(bins, places[cuda.threadIdx.x], 1)


@cuda.jit
def all_on_the_first(bins):
    cuda.atomic.add(bins, 0, 1)


@cuda.jit
def each_on_its_own(bins):
    cuda.atomic.add(bins, cuda.grid(1), 1)


@cuda.jit
def all_on_one_shared(out):
    tile = cuda.shared.array(32, np.int32)
    for _ in range(50):
        cuda.atomic.add(tile, cuda.threadIdx.x * out[1], 1)
    out[0] = tile[0]


def test_atomics_on_one_address_take_turns():
    bins, zeros = (cuda.to_device(np.zeros(64 * 256, np.int32)) for _ in range(2))
    together = on("A100", all_on_one[64, 256], bins, zeros)
    apart = on("A100", each_on_its_own[64, 256], bins)
    rate = float(pipelines.ATOMIC_RATE)
    assert cycles_of(together, "atomics") == 64 * 256 / rate
    assert cycles_of(apart, "atomics") == 4 / rate, "a warp's 32 words are four sectors of a line"
    assert together.bound.name == "atomics" and together.seconds > apart.seconds


def test_a_warp_adds_up_first_where_ptxas_sees_that_the_address_is_one():
    bins = cuda.to_device(np.zeros(4, np.int32))
    passes = cycles_of(on("A100", all_on_the_first[64, 256], bins), "atomics") * float(pipelines.ATOMIC_RATE)
    assert passes == 64 * 256 // 32


def test_atomics_on_one_word_of_shared_memory_take_turns():
    same, other = (
        on("A100", all_on_one_shared[1, 32], cuda.to_device(np.array([0, step], np.int32))) for step in (0, 1)
    )
    assert cycles_of(same, "shared memory") - cycles_of(other, "shared memory") == 50 * 31


def test_every_launch_starts_once_and_the_start_is_a_part():
    result = on("A100", scale[4, 256], *arrays(1024))
    assert result.parts["launch"] == pytest.approx(float(pipelines.LAUNCH))
    assert result.bound.name == "launch", "so little work takes less time than its start"


@pytest.mark.parametrize(
    ("blocks", "waves", "busiest", "tail"),
    [(216, 1.0, 2, 0.0), (217, 217 / 216, 3, 1 - 217 / 324), (54, 0.25, 1, 0.5)],
)
def test_waves_and_their_tail_are_said(blocks, waves, busiest, tail):
    result = on("A100", chain[blocks, 1024], *arrays(blocks * 1024), 1)
    (of,) = result.waves
    assert (of.resident, of.sms, of.busiest) == (2, 108, busiest)
    assert of.waves == pytest.approx(waves) and of.tail == pytest.approx(tail)
    assert f"{blocks:,} blocks, 2 at once on an SM" in " ".join(str(result).split())


def test_every_term_is_in_the_report_and_in_the_figure():
    n = 1 << 14
    result = on("A100", scale[n // 256, 256], *arrays(n))
    shown = [term for term in result.terms if term.cycles]
    assert all(f"\n{term.name} " in str(result) for term in shown)
    (ax,) = gpulab.plot.time_breakdown(result.parts, result.seconds, least=0).figure.axes
    assert {label.get_text() for label in ax.get_yticklabels()} == {term.name for term in shown}


def test_ptx_and_machine_code_stand_side_by_side_by_pipe():
    n = 1 << 14
    result = on("A100", scale[n // 256, 256], *arrays(n))
    warps = n // 32
    assert result.pipes["lsu"] == (2 * warps, 2 * warps)
    assert result.pipes["adu"][1] >= 2 * warps, "the two special registers"
    ptx, machine = result.instructions
    found = gpulab.sass(scale[n // 256, 256], *arrays(n))
    assert (ptx, machine) == (found.ptx_warps, found.total)
    assert "PTX: what you wrote" in str(result) and "what runs" in result._repr_html_()


def test_memory_is_in_the_report_with_bytes_and_hit_rates():
    n = 1 << 14
    result = on("A100", strided[n // 256, 256], *arrays(n, 8))
    text = " ".join(str(result).split())
    own = result.all_traffic.dram_bytes - n * 32
    assert 2500 < own < 4000, "the launch and its code"
    assert f"L1 {n * 32:,} B 0.0 %" in text
    assert f"L2 {n * 32:,} B {n * 4:,} B 0.0 %" in text
    assert f"DRAM {n * 32 + own:,} B 0 B" in text


def test_a_report_can_have_the_modelled_time_in_it():
    n = 1 << 14
    found = report(scale[n // 256, 256], *arrays(n), gpu="H200")
    alone = on("H200", scale[n // 256, 256], *arrays(n))
    assert found.modelled == alone
    assert found["global_load_sectors"] == n * 4 // 32
    assert str(alone) in str(found) and "modelled on H200" in found._repr_html_()
    assert type(found).from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert gpulab.profile(scale[n // 256, 256], *arrays(n)).modelled is None


def test_launches_add_up():
    n = 1 << 14
    given = arrays(n)

    def three():
        for _ in range(3):
            scale[n // 256, 256](*given)

    one, all_ = on("A100", scale[n // 256, 256], *given), modelled(three, gpu="A100")
    assert all_.launches == 3
    assert math.isclose(all_.seconds, 3 * one.seconds)
    assert len(all_.traffic) == 3


def test_independent_instructions_follow_each_other_and_dependent_ones_wait():
    apart = code("FFMA R0, R1, R2, R3", "FFMA R4, R5, R6, R7", "FFMA R8, R9, R10, R11")
    chained = code("FFMA R0, R1, R2, R3", "FFMA R0, R0, R2, R3", "FFMA R0, R0, R2, R3")
    assert cycles(apart, LATENCY) == 3
    assert cycles(chained, LATENCY) == 1 + 4 + 4
    assert cycles(code("LDG.E R0, [R2.64]", "FADD R1, R0, R0"), LATENCY) == 1 + 500


def test_loads_in_a_row_wait_together():
    loads = code("LDG.E R0, [R2.64]", "LDG.E R1, [R4.64]", "FADD R6, R0, R1")
    assert cycles(loads, LATENCY) == 2 + 500


@pytest.mark.parametrize(
    ("text", "written", "read"),
    [
        ("FFMA R0, R1, R2, R3", ["R0"], ["R1", "R2", "R3"]),
        ("@!P0 LDG.E.64 R4, [R2.64]", ["R4", "R5"], ["P0", "R2", "R3"]),
        ("STG.E.128 [R2.64], R4", [], ["R2", "R3", "R4", "R5", "R6", "R7"]),
        ("ISETP.GE.AND P0, PT, R0, c[0x0][0x178], PT", ["P0", "PT"], ["R0"]),
        ("IADD3.X R4, P1, R5, R6, RZ, P0, !PT", ["R4", "P1"], ["R5", "R6", "P0"]),
        ("EXIT", [], []),
    ],
)
def test_what_an_instruction_writes_and_reads(text, written, read):
    (instruction,) = code(text)
    found = registers(instruction)
    assert found[0] == written
    assert found[1] == read


def test_it_says_that_it_is_modelled_and_by_what():
    text = str(on("H200", scale[4, 256], *arrays(1024)))
    assert "modelled on H200" in text and "not measured" in text
    assert "latency" in text and "cycles" in text


def test_wrong_use_is_told():
    with pytest.raises(LookupError):
        on("H2000", scale[4, 256], *arrays(1024))
    with pytest.raises(gpulab.profile.NothingLaunched):
        modelled(None)
    with pytest.raises(gpulab.profile.NothingLaunched):
        modelled(lambda: None)
