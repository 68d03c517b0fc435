"""A cell that builds on a puzzle says so while the puzzle is empty."""

import pytest

import gpulab
from gpulab import cuda
from gpulab.checks.need import NotSolvedYet


@cuda.jit
def written(a):
    a[0] = 1


@cuda.jit
def empty_kernel(a):
    raise NotImplementedError()


def empty(a):
    raise NotImplementedError()


def test_what_is_written_goes_on() -> None:
    gpulab.need(written, len)


def test_what_is_empty_is_named_in_one_line() -> None:
    with pytest.raises(NotSolvedYet) as caught:
        gpulab.need(written, empty_kernel, empty)
    assert str(caught.value) == "write `empty_kernel` first, then run this cell again"
