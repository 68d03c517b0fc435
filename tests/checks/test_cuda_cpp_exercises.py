"""Exercises in CUDA C++: a RawKernel is launched by its own manners, and its lines are quoted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpulab import cupy as cp
from gpulab.checks import Array, Case, Exercise, Scalar, Shape, check, registry
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.need import NotSolvedYet, need

KERNEL = Exercise(
    name="toy.twice",
    lab="99",
    correct_points=1,
    evidence=LaunchTrace(
        arguments=lambda sizes: (
            Array("x", (int(sizes["n"]),)),
            Array("y", (int(sizes["n"]),), role="out"),
            Scalar("n", int(sizes["n"]), "int32"),
        ),
        shape=lambda sizes: Shape((-(-int(sizes["n"]) // 256),), (256,)),
        face="cupy",
    ),
    cases=tuple(Case(str(n), {"n": n}) for n in (100, 0, 1025)),
)
HOST = Exercise(
    name="toy.twice_on_host",
    lab="99",
    correct_points=1,
    evidence=LaunchTrace(
        arguments=lambda sizes: (Array("x", (int(sizes["n"]),)), Array("y", (int(sizes["n"]),), role="out")),
        face="cupy",
    ),
    cases=(Case("100", {"n": 100}), Case("0", {"n": 0})),
)


@pytest.fixture(autouse=True)
def exercises() -> Iterator[None]:
    for exercise in (KERNEL, HOST):
        registry.add(exercise, lambda inputs, sizes: {"y": 2 * inputs["x"]})
    yield
    for exercise in (KERNEL, HOST):
        registry.remove(exercise.name)


def kernel(body: str) -> cp.RawKernel:
    head = 'extern "C" __global__ void twice(const float* x, float* y, int n) {\n'
    first = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    return cp.RawKernel(f"{head}{first}{body}\n}}", "twice")


def test_a_right_kernel_passes() -> None:
    assert check(KERNEL, kernel("if (i < n) y[i] = 2 * x[i];")).passed


def test_a_wrong_element_comes_with_its_line_of_cuda_cpp() -> None:
    text = str(check(KERNEL, kernel("if (i < n) y[i] = 2 * x[i] + (i == 5);")))
    assert "thread (5, 0, 0) of block (0, 0, 0) wrote it in line 3" in text
    assert "line 3   if (i < n) y[i] = 2 * x[i] + (i == 5);" in text


def test_a_fault_and_an_error_of_the_compiler_are_messages() -> None:
    assert "has 100 elements (float32)" in str(check(KERNEL, kernel("y[i] = 2 * x[i];")))
    assert 'identifier "k" is undefined' in str(check(KERNEL, kernel("y[k] = 2 * x[i];")))


def test_a_stub_is_empty_and_cells_that_need_it_say_so() -> None:
    stub = kernel("// YOUR CODE HERE")
    assert "`twice` is still empty: no thread writes anything" in str(check(KERNEL, stub))
    with pytest.raises(NotSolvedYet, match="write `twice` first"):
        need(stub)
    need(kernel("if (i < n) y[i] = 2 * x[i];"))


def test_a_kernel_that_leaves_elements_out_is_not_called_empty() -> None:
    text = str(check(KERNEL, kernel("if (i < n - 2000) y[i] = 2 * x[i];")))
    assert "still empty" not in text and "`y[0]` was never written" in text


def test_host_code_whose_kernel_is_empty_is_told_which() -> None:
    stub = kernel("// YOUR CODE HERE")
    text = " ".join(str(check(HOST, _launching(stub))).split())
    assert "the kernel `twice` runs and writes nothing: is its body still empty" in text
    assert "`host` is still empty" not in text and "no result yet" in text


def test_host_code_that_leaves_its_result_in_another_array_is_told_so() -> None:
    double = cp.ElementwiseKernel("float32 x", "float32 y", "y = 2 * x", "double_it")
    text = " ".join(str(check(HOST, lambda x, y: double(x))).split())
    assert "a kernel ran, but `y` was never written" in text and "still empty" not in text


def _launching(twice: cp.RawKernel):
    def host(x: cp.ndarray, y: cp.ndarray) -> None:
        if x.size:
            twice((1,), (128,), (x, y, cp.int32(x.size)))

    return host


def test_what_was_handed_in_instead_is_named() -> None:
    assert 'twice = cp.RawKernel(source, "twice")' in " ".join(str(check(KERNEL, _named("twice"))).split())
    assert "write `def twice(…)`" in " ".join(str(check(HOST, kernel(""))).split())


def _named(name: str):
    def fn(*arguments: object) -> None:
        raise AssertionError("is not called")

    fn.__name__ = name
    return fn


def test_host_code_gets_cupys_arrays() -> None:
    twice = kernel("if (i < n) y[i] = 2 * x[i];")

    def host(x: cp.ndarray, y: cp.ndarray) -> None:
        assert isinstance(x, cp.ndarray) and x.dtype == cp.float32
        if x.size:
            twice((-(-x.size // 128),), (128,), (x, y, cp.int32(x.size)))

    assert check(HOST, host).passed


def test_host_code_may_launch_what_cupy_generates_but_not_look_at_the_data() -> None:
    double = cp.ElementwiseKernel("float32 x", "float32 y", "y = 2 * x", "double_it")
    assert check(HOST, lambda x, y: double(x, y)).passed

    def looks(x: cp.ndarray, y: cp.ndarray) -> None:
        y[...] = 2 * x.get()

    assert "reads `x` on the host" in str(check(HOST, looks))
