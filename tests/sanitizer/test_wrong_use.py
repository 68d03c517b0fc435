"""What is no launch, or cannot be one, is said in one line."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab import cupy as cp
from gpulab.analysis.sanitizer import NotALaunch
from gpulab.foundation.errors import Message
from gpulab.simulator.device import LaunchError


@cuda.jit
def double(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = 2 * x[i]


@cuda.jit(device=True)
def twice(x):
    return 2 * x


X = np.ones(64, np.float32)


@pytest.mark.parametrize(
    ("run", "arguments", "error", "said"),
    [
        (double, (X, X.copy()), NotALaunch, "gpulab.sanitize(double[blocks, threads_per_block], …)"),
        (None, (), NotALaunch, "None, which is what a launch returns"),
        ("double", (X,), NotALaunch, "str is nothing that launches kernels"),
        (double[1, 64], (X,), LaunchError, "y missing"),
        (double[1, 64], (X, [1.0, 2.0]), LaunchError, "`y` is a list"),
        (double[1, 64], (X, "text"), LaunchError, "`y` is a str"),
        (double[1, 2000], (X, X.copy()), LaunchError, "2,000"),
    ],
    ids=["no launch shape", "a launch", "a name", "too few", "a list", "a string", "a big block"],
)
def test_wrong_use_is_one_line(run, arguments, error, said):
    with pytest.raises(error) as raised:
        gpulab.sanitize(run, *arguments)
    assert isinstance(raised.value, Message)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_device_function_cannot_be_launched():
    with pytest.raises(Message, match="twice"):
        gpulab.sanitize(twice, 1.0)


def test_an_error_of_the_host_code_comes_through():
    def host_code():
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        gpulab.sanitize(host_code)


def test_host_code_that_launches_nothing_has_no_findings():
    findings = gpulab.sanitize(lambda: None)
    assert not findings
    assert findings.looked == "`<lambda>` launched no kernel: there was nothing to look at"


ONE = cp.RawKernel('extern "C" __global__ void one(float* x) { x[threadIdx.x] = 1; }', "one")


@pytest.mark.parametrize("verb", ["sanitize", "trace"])
@pytest.mark.parametrize(
    ("run", "arguments", "named", "said"),
    [
        (double[1, 64], (X, X.copy()), {"block": 7}, "double cannot be called so: got an unexpected"),
        (double[1, 64], (X, X.copy()), {"block": 7}, "itself takes"),
        (ONE, (X,), {}, "(one, (blocks,), (threads,), (x, y, n))"),
        (lambda x: None, (), {}, "missing a required argument: 'x'"),
    ],
    ids=["a name of nothing", "names of its own", "CuPy's without a shape", "an argument too few"],
)
def test_arguments_that_do_not_fit_are_one_line(verb, run, arguments, named, said):
    with pytest.raises(Message) as raised:
        getattr(gpulab, verb)(run, *arguments, **named)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_arrays_hold_the_result_of_one_run_afterwards():
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)

    @cuda.jit
    def add(x, y):
        i = cuda.grid(1)
        y[i] += x[i]

    assert not gpulab.sanitize(add[1, 64], x, y)
    assert np.array_equal(y, x)


@pytest.mark.parametrize("step", [100_000_000, -3])
def test_an_index_far_outside_shared_memory_is_one_finding(step):
    @cuda.jit
    def scatter(x, step):
        tile = cuda.shared.array(64, np.float32)
        i = cuda.threadIdx.x
        tile[i * step] = x[i]

    (finding,) = gpulab.sanitize(scatter[1, 64], X, step)
    assert finding.kind == "memory"
    assert "the shared array tile, which has 64 elements" in str(finding)


def test_a_launch_after_a_finding_sees_no_tool():
    device = gpulab.simulator.device.current()
    gpulab.sanitize(double[1, 128], X, X.copy())
    assert device.observer_factories == ()
    assert device.options == {}


@cuda.jit
def pull(a):
    i = cuda.grid(1)
    if i + 1 < a.size:
        a[i] = a[i + 1]


def test_without_cures_only_what_was_seen_is_told():
    a = np.arange(256, dtype=np.float32)
    whole, puzzle = gpulab.sanitize(pull[1, 256], a), gpulab.sanitize(pull[1, 256], a, cures=False)
    assert "Usual cure" in str(whole)
    assert "Usual cure" not in str(puzzle) and "Nothing orders" not in str(puzzle)
    assert [(f.kind, f.lines) for f in puzzle] == [(f.kind, f.lines) for f in whole]
    assert "thread 31 of block 0 reads a[32]" in str(puzzle)


def test_other_orders_are_tried_only_where_they_can_give_another_result():
    @cuda.jit
    def tickets(out):
        out[cuda.atomic.add(out, 64, 1)] = cuda.grid(1)

    quiet = gpulab.sanitize(double[1, 64], X, X.copy())
    assert "every order gives the same result" in quiet.looked
    drawn = gpulab.sanitize(tickets[8, 8], np.zeros(65, np.int64))
    assert "2 orders of warps and blocks" in drawn.looked
    assert [f.kind for f in drawn] == ["order"]


@pytest.mark.parametrize("verb", ["sanitize", "trace", "show"])
def test_an_interrupt_is_one_line_and_leaves_the_device_as_it_was(verb):
    device = gpulab.simulator.device.current()
    before = list(device._executors), device.observer_factories, device.options

    @cuda.jit
    def says(x):
        print(x[cuda.grid(1)])

    def interrupt(text):
        raise KeyboardInterrupt

    with device.using(write=interrupt), pytest.raises(KeyboardInterrupt) as raised:
        getattr(gpulab, verb)(says[1, 4], X)
    assert str(raised.value) == "Kernel says was stopped before its end: its results are incomplete."
    assert (device._executors, device.observer_factories, device.options) == before
