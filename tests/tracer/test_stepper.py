"""What a trace shows in a notebook: a figure whose steps, lanes and cells are those of the run."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab import cupy as cp
from gpulab.plot.moving.figure import WEIGHT

ROWS = 8
WIDE = 33


@cuda.jit
def halves(a, out):
    tile = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    tile[t] = a[t]
    cuda.syncthreads()
    if t % 2 == 0:
        out[t] = tile[63 - t]
    else:
        out[t] = 0


@cuda.jit
def through_a_tile(a, out):
    tile = cuda.shared.array((ROWS, WIDE), np.int32)
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    tile[y, x] = a[y, x]
    cuda.syncthreads()
    out[x, y] = tile[y, x]


@cuda.jit
def walks(a, n):
    i = cuda.grid(1)
    for k in range(n):
        a[i] = a[i] + k


@cuda.jit
def beyond(a, out):
    i = cuda.grid(1)
    out[i] = a[i + 1]


def stepped(threads=(0, 32)):
    a = np.arange(64, dtype=np.float32)
    return gpulab.trace(halves[1, 64], a, np.zeros(64, np.float32), threads=threads), a


def steps_on(record, text):
    line = next(number for number, words in record["source"] if text in words)
    return [step for step in record["steps"] if step["line"] == line]


def cells(touch):
    return [first + step * i for first, step, count in touch["cells"] for i in range(count)]


def test_cells_that_a_line_reads_and_writes_are_painted_with_their_values():
    record = stepped()[0].figure().record
    names = [array["name"] for array in record["arrays"]]
    assert names == ["a", "tile", "out"]
    load = steps_on(record, "tile[t] = a[t]")[1]
    assert load["warp"] == 1
    read, write = load["touches"]
    assert (names[read["array"]], read["kind"], cells(read)) == ("a", "read", list(range(32, 64)))
    assert (names[write["array"]], write["kind"], cells(write)) == ("tile", "write", list(range(32, 64)))
    assert write["values"] == [f"{i}.0" for i in range(32, 64)]
    store = steps_on(record, "out[t] = tile[63 - t]")[0]
    assert cells(store["touches"][0]) == list(range(63, 32, -2))


def test_lanes_beside_the_watched_thread_run_too():
    record = stepped(threads=0)[0].figure().record
    assert [warp["label"] for warp in record["warps"]] == ["warp 0"]
    assert steps_on(record, "out[t] = tile")[0]["lanes"] == "10" * 16
    assert steps_on(record, "out[t] = 0")[0]["lanes"] == "01" * 16


def test_warps_wait_at_the_barrier_and_named_variables_have_the_values_of_their_thread():
    record = stepped(threads=[0, 33])[0].figure().record
    waits = steps_on(record, "cuda.syncthreads()")
    assert [(step["warp"], step["mark"]) for step in waits] == [(0, "barrier"), (1, "barrier")]
    assert record["watched"] == ["thread 0", "thread 33"]
    first, second = steps_on(record, "t = cuda.threadIdx.x")
    assert first["values"] == {"thread 0": {"t": "0"}}
    assert second["values"] == {"thread 33": {"t": "33"}}


def test_the_source_is_the_whole_function_from_its_decorator():
    source = [words.strip() for _, words in stepped()[0].figure().record["source"]]
    assert source[:2] == ["@cuda.jit", "def halves(a, out):"]
    assert source[-1] == "out[t] = 0"


def test_a_tile_of_shared_memory_has_the_shape_that_the_source_declares():
    a = np.arange(2 * 32, dtype=np.int32).reshape(2, 32)
    record = gpulab.trace(through_a_tile[1, (32, 2)], a, np.zeros((32, 2), np.int32)).figure().record
    tile = next(array for array in record["arrays"] if array["name"] == "tile")
    assert tile["shape"] == [ROWS, WIDE]
    assert tile["note"] == "int32 · shared"
    out = next(array for array in record["arrays"] if array["name"] == "out")
    assert out["shape"] == [32, 2]


def test_of_a_large_array_the_part_is_shown_that_the_warps_touch():
    a = np.zeros(5000, np.float32)
    record = gpulab.trace(walks[40, 128], a[: 40 * 128 // 4 * 4][:5000], 1, threads=1000).figure().record
    (part,) = record["arrays"]
    assert (part["first"], part["shape"]) == (992, [32])
    assert part["note"] == "float32 · global · a part of 5,000"
    assert "threads 992–1023" in record["steps"][0]["caption"]


def test_a_shared_array_of_cuda_c_has_its_name_and_shape():
    source = r"""
    extern "C" __global__ void swap(float* a)
    {
        __shared__ float tile[4][8];
        int t = threadIdx.x;
        tile[t / 8][t % 8] = a[t];
        __syncthreads();
        a[t] = tile[3 - t / 8][t % 8];
    }
    """
    kernel = cp.RawKernel(source, "swap")
    record = gpulab.trace(kernel, (1,), (32,), (cp.arange(32, dtype=cp.float32),)).figure().record
    tile = next(array for array in record["arrays"] if array["name"] == "tile")
    assert tile["shape"] == [4, 8]
    stored = next(s for s in record["steps"] if any(t["kind"] == "write" for t in s.get("touches", [])))
    assert stored["touches"][-1]["values"][:3] == ["0.0", "1.0", "2.0"]


def test_a_long_run_is_cut_so_that_the_figure_stays_light():
    figure = gpulab.trace(walks[1, 64], np.zeros(64), 3000, threads=[0, 32]).figure()
    assert 100 < len(figure.record["steps"]) <= 1500
    assert figure.weight <= WEIGHT


def test_a_fault_opens_on_the_step_where_it_happened():
    trace = gpulab.trace(beyond[1, 32], np.ones(32), np.zeros(32), threads=31)
    figure = trace.figure()
    assert figure.record["start"] == len(figure.record["steps"]) - 1
    assert "a[32]" in trace._repr_mimebundle_()["text/html"]


def test_a_notebook_gets_the_figure_and_a_terminal_the_table():
    trace = stepped()[0]
    shown = trace._repr_mimebundle_()
    assert shown["text/plain"] == str(trace)
    assert "ffffffff" in shown["text/plain"]
    assert 'data-scene="kernel steps"' in shown["text/html"]
    assert "ffffffff" not in shown["text/html"]


@pytest.mark.parametrize("threads", [[0, 32, 64, 96], [(0, 1), (1, 1), (2, 1)]])
def test_of_many_warps_the_first_two_are_shown(threads):
    record = gpulab.trace(walks[4, 128], np.zeros(512), 1, threads=threads).figure().record
    assert len(record["warps"]) == 2
