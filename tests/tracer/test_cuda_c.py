"""Stepping through kernels in CUDA C++."""

from __future__ import annotations

import numpy as np

import gpulab
from gpulab import cupy as cp
from gpulab.simulator import device

SOURCE = r"""
__constant__ float weights[4];

struct Pair { int low; int high; };

__device__ float twice(float v)
{
    float w = v + v;
    return w;
}

extern "C" __global__ void sums(const float* a, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float total = 0;
    for (int j = 0; j < n; ++j) {
        float term = a[i] * j;
        if (i % 2 == 0)
            total += twice(term);
        else
            total -= 1;
    }
    out[i] = total;
}

extern "C" __global__ void kinds(float* out)
{
    unsigned char small = 200 + threadIdx.x;
    bool odd = threadIdx.x % 2;
    double third = threadIdx.x / 3.0;
    Pair both = {(int)threadIdx.x, -1};
    float weight = weights[threadIdx.x % 4];
    out[threadIdx.x] = small + odd + third + both.high + weight;
}
"""


def sums(thread: int, n: int = 3):
    kernel = cp.RawKernel(SOURCE, "sums")
    a, out = cp.arange(8, dtype=cp.float32), cp.zeros(8, cp.float32)
    return gpulab.trace(kernel, (1,), (8,), (a, out, np.int32(n)), threads=thread), out.get()


def last_values(trace, line_begins):
    step = [s for s in trace.steps if s.text.startswith(line_begins)][-1]
    return {name: value for (fn, name), value in step.values[trace.threads[0]].items() if not fn}


def test_values_after_a_line_are_those_of_the_program():
    trace, out = sums(thread=2)
    totals = [
        float(step.values[trace.threads[0]]["", "total"])
        for step in trace.steps
        if step.text == "total += twice(term);"
    ]
    assert totals[-1] == out[2] == 12.0  # twice 2 · (0 + 1 + 2)
    assert list(dict.fromkeys(totals)) == [0.0, 4.0, 12.0]
    assert list(dict.fromkeys(v for v in trace.values("j") if v is not None)) == [0, 1, 2]
    assert trace.values("i")[-1] == 2


def test_a_branch_that_a_thread_does_not_take_has_no_row_of_it():
    trace, _ = sums(thread=3)
    texts = {step.text for step in trace.steps}
    assert "total -= 1;" in texts
    assert "total += twice(term);" not in texts
    assert next(s.mask for s in trace.steps if s.text == "total -= 1;") == 0xAA


def test_a_device_function_has_its_variables_while_it_runs():
    trace, _ = sums(thread=2)
    who = trace.threads[0]
    inside = [s.values[who].get(("twice", "w")) for s in trace.steps if s.text.startswith("float w")]
    assert list(map(float, inside)) == [0.0, 4.0, 8.0]
    outside = [s for s in trace.steps if s.text.startswith("out[i]")]
    assert ("twice", "w") not in outside[0].values[who]


def test_a_variable_of_a_loop_is_gone_behind_it():
    trace, _ = sums(thread=2)
    assert "term" in last_values(trace, "float term")
    assert "term" not in last_values(trace, "out[i]")


def test_small_numbers_and_structures_are_read_as_what_they_are():
    module = cp.RawModule(code=SOURCE)
    kernel = module.get_function("kinds")
    weights = cp.ndarray((4,), cp.float32, module.get_global("weights"))
    weights[...] = cp.asarray(np.array([0.5, 1.5, 2.5, 3.5], np.float32))
    out = cp.zeros(8, cp.float32)
    trace = gpulab.trace(kernel, (1,), (8,), (out,), threads=5)
    values = last_values(trace, "out[")
    assert values["small"] == 205
    assert bool(values["odd"]) is True
    assert values["third"] == 5 / 3.0
    assert values["both"] == (5, -1)
    assert values["weight"] == 1.5  # the module's own constant, not a copy of its own
    assert out.get()[5] == np.float32(205 + 1 + 5 / 3 - 1 + 1.5)


ROLES = r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;

extern "C" __global__ void doubled(const int* in, int* out)
{
    __shared__ alignas(128) int tile[2][32];
    __shared__ unsigned long long full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; s++) {
            ptx::mbarrier_init(&full[s], 1);
            ptx::mbarrier_init(&empty[s], 32);
        }
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    if (threadIdx.x == 32) {
        for (int i = 0; i < 4; i++) {
            int filled = i % 2;
            while (!ptx::mbarrier_try_wait_parity(&empty[filled], i / 2 % 2 ^ 1)) {}
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[filled], 128);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile[filled], in + 32 * i, 128, &full[filled]);
        }
    } else if (threadIdx.x < 32) {
        for (int i = 0; i < 4; i++) {
            int used = i % 2;
            while (!ptx::mbarrier_try_wait_parity(&full[used], i / 2 % 2)) {}
            int value = tile[used][threadIdx.x];
            out[32 * i + threadIdx.x] = 2 * value;
            ptx::mbarrier_arrive(&empty[used]);
        }
    }
}
"""


def test_each_role_of_specialised_warps_has_steps_of_its_own():
    before = device.current().gpu
    device.simulate("H100")
    try:
        given, out = cp.arange(128, dtype=cp.int32), cp.zeros(128, cp.int32)
        kernel = cp.RawKernel(ROLES, "doubled")
        trace = gpulab.trace(kernel, (1,), (64,), (given, out), threads=[5, 32])
    finally:
        device.current().gpu = before
    assert (out.get() == 2 * given.get()).all()
    consumer, producer = trace.threads

    def values(thread, begins, name):
        steps = [step for step in trace.steps if step.text.startswith(begins)]
        return [found[("", name)] for step in steps if (found := step.values.get(thread))]

    assert values(consumer, "out[32 * i", "value") == [5, 37, 69, 101]
    assert values(producer, "int filled", "filled") == [0, 1, 0, 1]
    assert not values(producer, "out[32 * i", "value") and not values(consumer, "int filled", "filled")
    # Two tiles: the third comes only behind the first arrival of those who read it.
    order = [step.text.split("(")[0] for step in trace.steps]
    third = [i for i, text in enumerate(order) if text == "ptx::cp_async_bulk"][2]
    assert order.index("ptx::mbarrier_arrive") < third
