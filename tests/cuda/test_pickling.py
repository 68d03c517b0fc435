"""Kernels travel between processes, as numba's do."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from gpulab import cuda
from gpulab.simulator.device import LaunchTypeError

STEP = 3


@cuda.jit(device=True)
def stepped(x):
    return x + STEP


@cuda.jit
def step_all(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] = stepped(a[i])


ANOTHER_PROCESS = """
import pickle, sys, numpy as np
a = np.zeros(5, np.int32)
pickle.loads(sys.stdin.buffer.read())(a)
assert a.tolist() == [3] * 5, a
"""


def test_a_configured_kernel_runs_in_another_process_with_its_device_functions_and_globals() -> None:
    configured = pickle.dumps(step_all[2, 32])
    subprocess.run([sys.executable, "-c", ANOTHER_PROCESS], input=configured, check=True)


def test_what_a_kernel_closes_over_goes_with_it() -> None:
    factor = 7

    @cuda.jit
    def scale(a):
        a[0] *= factor

    a = np.ones(1)
    pickle.loads(pickle.dumps(scale))[1, 1](a)
    assert a[0] == 7


def test_signatures_still_bind() -> None:
    @cuda.jit("void(float32[::1])")
    def first(a):
        a[0] = 1

    again = pickle.loads(pickle.dumps(first))
    assert list(again.overloads) == list(first.overloads)
    with pytest.raises(LaunchTypeError):
        again[1, 1](np.zeros(1, np.complex128))
