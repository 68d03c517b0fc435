"""CUDA graphs: captured launches run when the graph is launched, and not before."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab.frontends import cupy as cp
from gpulab.frontends.cupy.graphs import CaptureError

ADD = cp.RawKernel(
    'extern "C" __global__ void add(float* x, float by) { x[threadIdx.x] += by; }',
    "add",
)


def step(x: cp.ndarray) -> None:
    ADD((1,), (4,), (x, cp.float32(1)))
    ADD((1,), (4,), (x, cp.float32(10)))


def captured(x: cp.ndarray) -> cp.cuda.Graph:
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        assert stream.is_capturing
        step(x)
        graph = stream.end_capture()
    assert not stream.is_capturing
    return graph


def test_a_capture_runs_nothing_and_each_launch_of_the_graph_everything() -> None:
    x = cp.zeros(4, np.float32)
    graph = captured(x)
    assert x.get().tolist() == [0] * 4
    graph.launch()
    graph.launch(cp.cuda.Stream())
    assert x.get().tolist() == [22] * 4
    assert repr(graph) == "<Graph of 2 kernels>"


def test_a_graph_sees_what_the_memory_holds_when_it_is_launched() -> None:
    x = cp.zeros(4, np.float32)
    graph = captured(x)
    x[...] = 100
    graph.launch()
    assert x.get().tolist() == [111] * 4


def test_the_kernels_of_a_graph_are_counted() -> None:
    x = cp.zeros(4, np.float32)
    graph = captured(x)
    assert gpulab.profile(graph.launch)["launches"] == 2


def test_the_host_cannot_look_while_a_stream_captures() -> None:
    x = cp.zeros(4, np.float32)
    with cp.cuda.Stream() as stream:
        stream.begin_capture()
        try:
            with pytest.raises(CaptureError, match="the host reads device memory while a stream captures"):
                x.get()
            with pytest.raises(CaptureError, match="writes to"):
                x[...] = 1
        finally:
            stream.end_capture()
    assert x.get().tolist() == [0] * 4


def test_other_streams_go_on_while_one_captures() -> None:
    x = cp.zeros(4, np.float32)
    stream = cp.cuda.Stream(non_blocking=True)
    stream.begin_capture()
    step(x)
    assert x.get().tolist() == [11] * 4
    ADD((1,), (4,), (x, cp.float32(1)), stream=stream)
    assert x.get().tolist() == [11] * 4
    graph = stream.end_capture()
    graph.launch()
    assert x.get().tolist() == [12] * 4


def test_a_capture_that_an_error_left_open_swallows_no_other_launch() -> None:
    x = cp.zeros(4, np.float32)
    with pytest.raises(ZeroDivisionError), cp.cuda.Stream() as stream:
        stream.begin_capture()
        step(x)
        _ = 1 / 0
    step(x)
    assert x.get().tolist() == [11] * 4
    assert repr(stream.end_capture()) == "<Graph of 2 kernels>"


def test_captures_are_begun_and_ended_in_turn_and_not_on_a_default_stream() -> None:
    with pytest.raises(CaptureError, match="default stream"):
        cp.cuda.Stream.null.begin_capture()
    stream = cp.cuda.Stream()
    with pytest.raises(CaptureError, match="does not capture"):
        stream.end_capture()
    stream.begin_capture()
    with pytest.raises(CaptureError, match="captures already"):
        stream.begin_capture()
    assert repr(stream.end_capture()) == "<Graph of 0 kernels>"
