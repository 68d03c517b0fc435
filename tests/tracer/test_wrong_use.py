"""What cannot be stepped through is said in one line."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab import cupy as cp
from gpulab.analysis.tracer import CannotTrace
from gpulab.foundation.errors import Message
from gpulab.simulator.compile import cuda_c_module
from gpulab.simulator.device import LaunchError

from .kernels import leaves, twice

X = np.ones(64)
LAUNCH = leaves[(2, 1), (8, 4)]


@pytest.mark.parametrize(
    ("threads", "said"),
    [
        (64, "there is no thread 64: the launch has 64 threads, 0 to 63"),
        (-1, "there is no thread -1"),
        ([], "threads=[] names no thread"),
        ("0", "threads='0' names no threads"),
        (None, "threads=None names no threads"),
        ([1.5], "1.5 names no thread"),
        ([True], "True names no thread"),
        (range(20), "20 threads are too many"),
        ([(2, 0)], "there is no block 2: the grid has 2 blocks"),
        ([(0, (8, 0))], "there is no thread (8, 0): in x they run from 0 to 7"),
        ([(0, (0, "y"))], "is no index of a thread"),
        ([(0, 1, 2)], "names no thread"),
    ],
)
def test_threads_that_are_not_there(threads, said):
    with pytest.raises(CannotTrace) as raised:
        gpulab.trace(LAUNCH, X, X.copy(), 5, threads=threads)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("threads", "block", "thread"),
    [(33, 1, 1), ([(1, 1)], 1, 1), ([((1,), (1, 0))], 1, 1), ([(0, (7, 3))], 0, 31)],
)
def test_the_ways_to_name_a_thread(threads, block, thread):
    trace = gpulab.trace(LAUNCH, X, X.copy(), 5, threads=threads)
    assert [(c.block, c.thread) for c in trace.threads] == [(block, thread)]


@pytest.mark.parametrize(
    ("run", "arguments", "error", "said"),
    [
        (leaves, (X, X.copy(), 1), CannotTrace, "gpulab.trace(leaves[blocks, threads_per_block], …)"),
        (None, (), CannotTrace, "None, which is what a launch returns"),
        (3, (), CannotTrace, "int is nothing that launches kernels"),
        (lambda: None, (), CannotTrace, "launched no kernel"),
        (leaves[1, 64], (X,), LaunchError, "out, n missing"),
        (leaves[0, 64], (X, X.copy(), 1), LaunchError, "empty"),
        (leaves[1, 4096], (X, X.copy(), 1), LaunchError, "4,096"),
        (leaves[100_000, 256], (X, X.copy(), 1), CannotTrace, "25,600,000 threads"),
    ],
    ids=["no shape", "a launch", "a number", "no launch", "too few", "empty grid", "a big block", "huge"],
)
def test_wrong_use_is_one_line(run, arguments, error, said):
    with pytest.raises(error) as raised:
        gpulab.trace(run, *arguments)
    assert isinstance(raised.value, Message)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_device_function_is_no_kernel():
    with pytest.raises(Message, match="twice"):
        gpulab.trace(twice, 1.0)


def test_a_kernel_without_source_says_what_can_be_stepped_through(tmp_path):
    path = tmp_path / "square.ptx"
    code = 'extern "C" __global__ void square(float* x) { x[threadIdx.x] *= x[threadIdx.x]; }'
    path.write_text(re.sub(r"(?m)^\s*\.loc\s.*$", "", cuda_c_module(code).ptx))
    square = cp.RawModule(path=str(path)).get_function("square")
    with pytest.raises(CannotTrace, match="PTX of square does not say which source lines"):
        gpulab.trace(square, (1,), (4,), (cp.ones(4, cp.float32),))


def test_an_unknown_variable_lists_the_known_ones():
    trace = gpulab.trace(LAUNCH, X, X.copy(), 5)
    with pytest.raises(CannotTrace, match="no variable 'j'; there are n, i"):
        trace.values("j")


def test_threads_that_run_no_line_have_an_empty_table(tmp_path):
    @cuda.jit
    def nothing():
        pass

    trace = gpulab.trace(nothing[1, 1])
    assert "def nothing():" in str(trace) or "no step" in str(trace)


def test_a_stopped_run_leaves_the_device_as_it_was():
    device = gpulab.simulator.device.current()
    before = list(device._executors)

    def stopped():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gpulab.trace(stopped)
    assert device._executors == before
    assert device.options == {}


@pytest.mark.parametrize("name", ["steps.html", "steps.txt", "steps.png"])
def test_a_trace_can_be_saved(tmp_path, name):
    trace = gpulab.trace(LAUNCH, X, X.copy(), 5, threads=[0, 40])
    trace.save(tmp_path / name)
    written = (tmp_path / name).read_bytes()
    assert written.startswith(b"\x89PNG") if name.endswith(".png") else b"limit" in written


def test_a_file_of_an_unknown_kind_is_refused(tmp_path):
    trace = gpulab.trace(LAUNCH, X, X.copy(), 5)
    with pytest.raises(CannotTrace, match=r"\.html, \.png or \.txt"):
        trace.save(tmp_path / "steps.gif")


def test_html_and_text_have_the_same_lines_and_variables():
    trace = gpulab.trace(LAUNCH, X, X.copy(), 5, threads=[0, 40])
    html = trace._repr_html_()
    for step in trace.steps:
        assert step.text in str(trace)
    for name in trace.variables:
        assert f'"{name}"' in html
    assert "\\u003c" in html  # the source of `if limit < 2` ends no element
