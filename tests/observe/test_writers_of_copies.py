"""Elements that a copy engine wrote were written by the thread that sent the copy."""

from __future__ import annotations

import numpy as np

from gpulab import cupy as cp
from gpulab.checks.run import reference_device
from gpulab.simulator import device
from gpulab.simulator.observe.writers import Range, Writers

STORE = r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;
extern "C" __global__ void store(float* out) {
    __shared__ alignas(128) float tile[32];
    tile[threadIdx.x] = threadIdx.x;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 5) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + 64 * blockIdx.x + 8, tile, sizeof tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}
"""


def test_a_bulk_store_is_written_by_the_thread_that_sent_it() -> None:
    out = cp.zeros(128, cp.float32)
    writers = Writers({"out": Range(out.data.ptr, 128, 4)})
    with reference_device("H100"), device.current().observed(lambda launch: writers):
        cp.RawKernel(STORE, "store")((2,), (32,), (out,))
    written = np.zeros(128, bool)
    written[8:40] = written[72:104] = True
    assert (writers.written("out") == written).all()
    assert (writers.times("out") == written).all()
    writer = writers.of("out", 80)
    assert writer is not None and (writer.block, writer.thread) == ((1, 0, 0), (5, 0, 0))
    assert writers.launches[0].stores
