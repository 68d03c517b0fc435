"""How long a learner waits. Processor time, in a fresh process: what else the machine does is not counted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PRELUDE = """
import time
import numpy as np
from gpulab import cupy as cp
start = time.process_time()
"""
SAXPY = """
source = '''extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}'''
x, y = cp.ones(4096, cp.float32), cp.ones(4096, cp.float32)
cp.RawKernel(source, "saxpy")((16,), (256,), (cp.float32(2), x, y, 4096))
assert float(y.sum()) == 3 * 4096
print(time.process_time() - start)
"""
SOFTMAX = """
from test_kernels import SOFTMAX
x = cp.asarray(np.random.default_rng(0).normal(size=(1024, 1024)).astype(np.float32))
y = cp.empty_like(x)
cp.RawKernel(SOFTMAX, "softmax")((1024,), (256,), (x, y, 1024))
assert abs(float(y.sum()) - 1024) < 1e-2
print(time.process_time() - start)
"""


def seconds(code: str) -> float:
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code],
        env=os.environ | {"PYTHONPATH": path, "GPULAB_SIMULATE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def test_a_first_small_kernel_is_compiled_and_run_in_half_a_second() -> None:
    assert seconds(SAXPY) < 0.5


def test_a_softmax_over_a_million_elements_takes_less_than_three_seconds() -> None:
    assert seconds(SOFTMAX) < 3
