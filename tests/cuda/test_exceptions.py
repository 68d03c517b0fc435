"""Kernels compiled with ``debug=True`` raise as Python does, and say in which thread."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from gpulab import cuda


class Unlucky(Exception):
    pass


@cuda.jit(debug=True)
def checked(a, number):
    i = cuda.grid(1)
    if i == number:
        raise Unlucky("this one")  # here
    a[i] = 1


def test_an_exception_comes_to_the_host_with_its_line_thread_and_block() -> None:
    lines, first = inspect.getsourcelines(checked.py_func)
    line = first + next(i for i, text in enumerate(lines) if "here" in text)
    with pytest.raises(Unlucky) as caught:
        checked[4, 32](np.zeros(128), 70)
    assert str(caught.value).startswith("In function 'checked', file ")
    assert str(caught.value).endswith(f", line {line}, tid=[0, 0, 6] ctaid=[0, 0, 2]: this one")


def test_the_other_threads_go_on_and_a_later_launch_starts_without_it() -> None:
    a = cuda.to_device(np.zeros(128))
    with pytest.raises(Unlucky):
        checked[4, 32](a, 70)
    found = a.copy_to_host()
    assert found[70] == 0 and found.sum() == 127
    checked[4, 32](a, -1)
    assert a.copy_to_host().all()


def test_numbas_own_exceptions_are_raised_in_debug_mode_only() -> None:
    def divides(a):
        a[0] = 1 // a[1]

    a = np.zeros(2, np.int64)
    with pytest.raises(ZeroDivisionError):
        cuda.jit(debug=True)(divides)[1, 1](a)
    cuda.jit(divides)[1, 1](a)


def test_an_argument_without_a_byte_can_be_passed() -> None:
    """numba itself divides by its size when it writes down the lines of the kernel."""

    @cuda.jit
    def lengths(out, nothing):
        out[0] = len(nothing)
        out[1] = len(nothing[0])

    out = np.ones(2, np.int64)
    lengths[1, 1](out, ((), (), ()))
    assert out.tolist() == [3, 0]


@pytest.mark.parametrize("kernel_debug", [True, False])
@pytest.mark.parametrize("function_debug", [True, False])
def test_a_function_that_is_called_twice_over_is_linked_once(kernel_debug, function_debug) -> None:
    """numba hands over what a device function calls together with it, and once more by itself."""

    @cuda.jit(device=True, debug=function_debug, opt=False)
    def inner(x):
        return x + 1

    @cuda.jit(device=True, opt=False)
    def outer(x, y):
        return x - inner(y)

    @cuda.jit(debug=kernel_debug, opt=False)
    def kernel(a):
        a[0] = outer(a[0], a[1]) + inner(a[2])

    a = np.array([10, 3, 5])
    kernel[1, 1](a)
    assert a[0] == 10 - 4 + 6
