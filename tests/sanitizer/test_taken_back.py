"""Every run of gpulab.sanitize starts from the same, by whatever door memory was written to; what is kept for that
is in proportion to what the run touches."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import gpulab
from gpulab import cuda, cupy, triton
from gpulab.triton import language as tl

N = 3000  # more than one page


@cuda.jit
def add_up(x, total):
    """By an atomic sum of floats: other orders are tried."""
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1
        cuda.atomic.add(total, 0, x[i])


ADD_ONE = cupy.RawModule(
    code="""
    __device__ float held[3000];
    extern "C" __global__ void add_one(float *x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) { held[i] += 1; x[i] += held[i]; }
    }"""
)


def copied_over(x):
    host = x.copy_to_host()
    x.copy_to_device(host + 1)


def in_part(x):
    x[7] = x[7] + 1
    x[100:2000].copy_to_device(x[100:2000].copy_to_host() + 1)


def by_cupy(x):
    cupy.asarray(x)[:] += 1


def by_a_ufunc_of_cupy(x):
    there = cupy.asarray(x)
    cupy.add(there, 1, out=there)


def by_a_copy_of_bytes(x):
    there = cupy.asarray(x)
    more = there + 1
    there.data.copy_from_device(more.data, there.nbytes)


def by_a_kernel_with_a_variable(x):
    ADD_ONE.get_function("add_one")((12,), (256,), (cupy.asarray(x), np.int32(N)))


@pytest.mark.parametrize(
    "change",
    [copied_over, in_part, by_cupy, by_a_ufunc_of_cupy, by_a_copy_of_bytes, by_a_kernel_with_a_variable],
)
def test_what_host_code_writes_is_taken_back_before_the_next_run(change):
    def code(x, total):
        change(x)
        add_up[12, 256](x, total)

    start = np.zeros(N, np.float32)
    once, twice = ((cuda.to_device(start), cuda.to_device(np.zeros(1))) for _ in range(2))
    change(once[0])  # and any variable of a module is 1 from now on
    add_up[12, 256](*once)
    if change is by_a_kernel_with_a_variable:
        start -= 1
        twice[0].copy_to_device(start)
    findings = gpulab.sanitize(code, *twice)
    assert not findings, f"\n{findings}"
    assert "orders of warps and blocks" in findings.looked
    assert np.array_equal(twice[0].copy_to_host(), once[0].copy_to_host())


def test_a_mapped_array_is_taken_back_although_the_host_writes_to_it_unseen():
    x, total = cuda.managed_array(N, np.float32), cuda.to_device(np.zeros(1))
    x[:] = 0

    def code():
        x[:] += 1
        add_up[12, 256](x, total)

    assert not gpulab.sanitize(code)
    assert np.array_equal(x, np.full(N, 2))


def test_host_arrays_hold_the_first_result_and_one_that_cannot_be_written_is_left_alone():
    x, total, given = np.zeros(N), np.zeros(1), np.arange(3)
    given.flags.writeable = False

    def code(x, total, given, objects):
        add_up[12, 256](x, total)

    assert not gpulab.sanitize(code, x, total, given, np.array([None, "text"]))
    assert np.array_equal(x, np.ones(N)) and total == N


@cuda.jit
def tickets(out):
    out[1 + cuda.grid(1)] = cuda.atomic.add(out, 0, 1)


@pytest.mark.parametrize("there", [np.asarray, cuda.to_device, cupy.asarray])
def test_an_element_that_differs_is_named_and_the_first_result_stays(there):
    given = there(np.zeros(2049, np.int64))
    (finding,) = gpulab.sanitize(tickets[16, 128], given)
    assert "out[1] is once 0 and once 2047" in str(finding)
    kept = (
        given
        if isinstance(given, np.ndarray)
        else given.get()
        if hasattr(given, "get")
        else given.copy_to_host()
    )
    assert np.array_equal(kept[1:], np.arange(2048))


@triton.jit
def count_up(x, total, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) + 1)
    tl.atomic_add(total, 1.0)


def test_a_tensor_that_holds_nan_does_not_differ_from_itself():
    import torch

    x, total = torch.full((64,), float("nan")), torch.zeros(1)
    assert not gpulab.sanitize(count_up[(4,)], x, total, N=64).of("order")
    assert total.item() == 4


PROGRAM = """
    import resource
    import numpy as np
    import gpulab
    from gpulab import cuda

    MIB = 1 << 20

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # MiB

    @cuda.jit
    def touch(large, parts, small):
        i = cuda.grid(1)
        large[i] += 1
        parts[4096 + i] = large[i]  # the same memory, in smaller elements
        small[i] = large[i]
        cuda.atomic.add(large, large.size - 1, 1)  # and the page at the far end

    def with_parts(large):
        return large, large.view(np.{part}), cuda.to_device(np.zeros(256))

    large = cuda.device_array(256 * MIB // {itemsize}, np.{dtype})
    gpulab.sanitize(touch[1, 256], *with_parts(cuda.to_device(np.zeros(9999, np.{dtype}))))
    large[:] = 0
    before = peak()
    findings = gpulab.sanitize(touch[1, 256], *with_parts(large))
    assert not findings, findings
    assert "orders" in findings.looked
    print(peak() - before)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no resource")
@pytest.mark.parametrize(("dtype", "part"), [("float32", "uint8"), ("float64", "float64")])
def test_a_kernel_that_touches_little_of_a_large_array_costs_little_memory(dtype, part):
    program = textwrap.dedent(PROGRAM.format(dtype=dtype, itemsize=np.dtype(dtype).itemsize, part=part))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 16, f"{done.stdout} MiB for 2 KiB of an array of 256 MiB"
