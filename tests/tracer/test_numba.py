"""What `gpulab.trace` shows of a numba kernel is what Python does, line by line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import gpulab
from gpulab import cuda

from . import kernels
from .plain import python_steps

KERNELS = {
    "a loop with a branch": (kernels.sums, np.float64),
    "a loop that ends when it is done": (kernels.collatz, np.int64),
    "calls": (kernels.calls, np.float64),
    "numbers of all kinds": (kernels.kinds, np.float64),
    "threads that leave": (kernels.leaves, np.float64),
}


def shown(trace, kernel, thread_number):
    """(line, variables of the kernel) of one thread, without the rows in which nothing is left to do."""
    code = kernel.py_func.__code__
    lines = {line for _, _, line in code.co_lines() if line} - {code.co_firstlineno}
    who = trace.threads[thread_number]
    return [
        (step.location.line, {name: value for (fn, name), value in step.values[who].items() if not fn})
        for step in trace.steps
        if who in step.values and step.location.line in lines
    ]


def merged(steps):
    """Rows of one line after each other as one: a line that the compiler runs in pieces, or a loop in one."""
    found = []
    for line, values in steps:
        if found and found[-1][0] == line:
            found[-1] = line, values
        else:
            found.append((line, values))
    return found


@pytest.mark.parametrize(("kernel", "dtype"), KERNELS.values(), ids=KERNELS)
@settings(max_examples=5, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    data=st.lists(st.integers(0, 12), min_size=8, max_size=8),
    n=st.integers(0, 5),
    thread=st.integers(0, 7),
)
def test_the_rows_are_what_python_does(kernel, dtype, data, n, thread):
    a = np.array(data, dtype)
    trace = gpulab.trace(kernel[2, 4], a.copy(), np.zeros(8), n, threads=thread)
    own = merged(shown(trace, kernel, 0))
    expected = merged(python_steps(kernel, thread, (a.copy(), np.zeros(8), n)))
    assert [line for line, _ in own] == [line for line, _ in expected], f"\n{trace}"
    for (line, values), (_, wanted) in zip(own, expected, strict=True):
        for name, value in wanted.items():
            assert values.get(name) == value, f"{name} after line {line}\n{trace}"


def test_the_launch_leaves_its_results():
    a, out, plain = np.arange(8.0), np.zeros(8), np.zeros(8)
    gpulab.trace(kernels.sums[2, 4], a, out, 3)
    kernels.sums[2, 4](a, plain, 3)
    assert np.array_equal(out, plain)


def test_the_mask_says_who_takes_part():
    trace = gpulab.trace(kernels.sums[1, 8], np.ones(8), np.zeros(8), 1, threads=[0, 1])
    text = {step.mask: step.text for step in trace.steps if step.text.startswith("total ")}
    assert text[0x55] == "total += term"
    assert text[0xAA] == "total -= 1"
    assert trace.steps[0].mask == 0xFF


def test_a_thread_that_takes_no_part_in_a_row_has_no_values_there():
    trace = gpulab.trace(kernels.sums[1, 8], np.ones(8), np.zeros(8), 1, threads=[0, 1])
    zero, one = trace.threads
    row = next(step for step in trace.steps if step.text == "total += term")
    assert zero in row.values
    assert one not in row.values


def test_threads_of_other_warps_and_blocks_have_tables_of_their_own():
    trace = gpulab.trace(kernels.leaves[2, 64], np.ones(128), np.zeros(128), 128, threads=[1, (1, 40)])
    assert "block 0 · warp 0" in str(trace)
    assert "block 1 · warp 1" in str(trace)
    assert trace.values("i", 0)[-1] == 1
    assert trace.values("i", 1)[-1] == 104


def test_the_variables_of_a_device_function_have_its_name():
    trace = gpulab.trace(kernels.calls[1, 4], np.arange(4.0), np.zeros(4), 1, threads=3)
    assert {"twice.v", "twice.w"} <= set(trace.variables)
    values = [step.values[trace.threads[0]].get(("twice", "w")) for step in trace.steps]
    assert [v for v in dict.fromkeys(values) if v is not None] == [6.0, 14.0]


def test_a_variable_has_no_value_before_it_is_set():
    trace = gpulab.trace(kernels.sums[1, 4], np.ones(4), np.zeros(4), 2, threads=0)
    assert trace.values("total")[0] is None
    assert trace.values("total")[-1] == 1.0


def test_a_tuple_is_shown_whole():
    trace = gpulab.trace(kernels.kinds[1, 4], np.ones(4), np.zeros(4), 2, threads=3)
    assert trace.values("pair")[-1] == (3, 4)
    assert trace.values("even")[-1] is False
    assert "(3, 4)" in str(trace)


def test_a_fault_ends_the_table():
    @cuda.jit
    def off_by_one(a):
        i = cuda.grid(1)
        j = i + 1
        a[j] = i

    trace = gpulab.trace(off_by_one[1, 32], np.zeros(32), threads=31)
    assert trace.fault is not None
    assert trace.steps[-1].text == "a[j] = i"
    assert trace.values("j")[-1] == 32
    assert "a[32]" in str(trace)


def test_more_rows_than_are_kept_are_counted():
    whole = gpulab.trace(kernels.sums[1, 4], np.ones(4), np.zeros(4), 5, threads=0)
    part = gpulab.trace(kernels.sums[1, 4], np.ones(4), np.zeros(4), 5, threads=0, rows=10)
    assert len(part.steps) == 10
    assert part.dropped == len(whole.steps) - 10
    assert f"{part.dropped:,} more rows" in str(part)


def test_host_code_is_followed_to_its_first_launch():
    def twice_launched(a, out):
        kernels.sums[1, 4](a, out, 1)
        kernels.sums[1, 4](a, out, 2)

    out = np.zeros(4)
    trace = gpulab.trace(twice_launched, np.ones(4), out, threads=1)
    assert set(trace.values("n")) == {1}
    assert out[1] == -2
