"""`cupy.cuda`: devices, streams, the runtime; and which CuPy a learner gets."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from gpulab.frontends import cupy as cp
from gpulab.frontends.cupy.runtime import CUDARuntimeError


def test_the_device_is_the_simulated_gpu() -> None:
    device = cp.cuda.Device(0)
    with device:
        device.synchronize()
    assert device.compute_capability == "80"
    assert device.attributes["MultiProcessorCount"] == 108
    assert device.attributes["MaxThreadsPerBlock"] == 1024
    free, total = device.mem_info
    assert 0 < free <= total == 80 * 10**9
    assert cp.cuda.is_available()
    assert cp.cuda.runtime.getDeviceCount() == 1
    with pytest.raises(CUDARuntimeError, match="there is one simulated device, number 0; 1 does not exist"):
        cp.cuda.Device(1)


def test_streams_are_entered_and_left() -> None:
    assert cp.cuda.get_current_stream() == cp.cuda.Stream.null
    with cp.cuda.Stream(non_blocking=True) as stream:
        assert cp.cuda.get_current_stream() is stream
        x = cp.ones(4)
        event = stream.record()
        event.synchronize()
        assert stream.done
    assert cp.cuda.get_current_stream() == cp.cuda.Stream.null
    assert float(x.sum()) == 4


def test_the_runtime_answers_from_the_data_sheet() -> None:
    properties = cp.cuda.runtime.getDeviceProperties(0)
    assert properties["name"] == b"A100 SXM4 80 GB (simulated)"
    assert (properties["major"], properties["minor"]) == (8, 0)
    assert properties["sharedMemPerBlock"] == 48 * 1024
    runtime = cp.cuda.runtime
    assert runtime.deviceGetAttribute(runtime.cudaDevAttrWarpSize, 0) == 32
    assert runtime.runtimeGetVersion() >= 12000


def test_the_runtime_copies_bytes() -> None:
    runtime = cp.cuda.runtime
    host, back = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    address = runtime.malloc(32)
    runtime.memcpy(address, host.ctypes.data, 32, runtime.memcpyHostToDevice)
    runtime.memset(address, 0, 4)
    runtime.memcpy(back.ctypes.data, address, 32, runtime.memcpyDeviceToHost)
    assert back.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    with pytest.raises(CUDARuntimeError, match=r"36 bytes at 0x.* are not device memory"):
        runtime.memcpy(back.ctypes.data, address, 36, runtime.memcpyDeviceToHost)
    runtime.free(address)


def run(code: str, **environment: str) -> str:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GPULAB")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_without_a_gpu_the_faces_are_the_simulated_ones() -> None:
    code = "from gpulab import cupy, cupyx; print(cupy.__name__, cupyx.__name__)"
    assert run(code, GPULAB_SIMULATE="1") == "gpulab.frontends.cupy gpulab.analysis.cupyx"


def test_the_benchmark_can_be_imported_from_its_place() -> None:
    code = "from gpulab.cupyx.profiler import benchmark; print(benchmark.__name__)"
    assert run(code, GPULAB_SIMULATE="1") == "benchmark"


def test_a_small_kernel_needs_neither_numba_nor_cupy() -> None:
    code = """
import sys
from gpulab import cupy as cp
source = 'extern "C" __global__ void f(float a, float* x) { x[threadIdx.x] += a * x[threadIdx.x]; }'
k = cp.RawKernel(source, "f")
x = cp.ones(32, cp.float32)
k((1,), (32,), (cp.float32(2), x))
print(float(x.sum()), [m for m in ("numba", "cupy", "torch", "pandas") if m in sys.modules])
"""
    assert run(code, GPULAB_SIMULATE="1") == "96.0 []"


def test_another_gpu_gets_other_code_and_other_limits() -> None:
    code = """
from gpulab import cupy as cp
k = cp.RawKernel('extern "C" __global__ void f(float* x) { x[0] = __CUDA_ARCH__; }', "f")
x = cp.ones(1, cp.float32)
k((1,), (1,), (x,))
k.max_dynamic_shared_size_bytes = 220_000
print(float(x[0]), cp.cuda.Device().compute_capability, k.ptx_version)
"""
    assert run(code, GPULAB_GPU="H100") == "900.0 90 90"
