"""Kernels of Triton itself, as a learner has them on a machine with a GPU, run on the simulator."""

from __future__ import annotations

import numpy as np
import pytest

triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

from gpulab.analysis.profile.onto_simulator import onto_simulator  # noqa: E402
from gpulab.frontends import triton as simulated_triton  # noqa: E402
from gpulab.frontends.cuda import to_device  # noqa: E402


@triton.jit
def doubled(x):
    return 2 * x


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, doubled(tl.load(x + i, mask=i < n)), mask=i < n)


tuned = triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 512})], key=["n"])(double)


def launch(x, out):
    double[(triton.cdiv(x.size, 64),)](x, out, x.size, BLOCK=64)


def launch_tuned(x, out):
    tuned[lambda given: (triton.cdiv(x.size, given["BLOCK"]),)](x, out, x.size)


@pytest.mark.parametrize("host", [launch, launch_tuned])
def test_host_code_with_kernels_of_triton_runs_simulated(host):
    x, out = to_device(np.arange(70, dtype=np.float32)), to_device(np.zeros(70, np.float32))
    onto_simulator(host)(x, out)
    assert np.array_equal(out.copy_to_host(), 2 * np.arange(70))
    assert not isinstance(double, simulated_triton.Kernel)


def test_a_kernel_with_its_grid_runs_simulated():
    x, out = to_device(np.arange(64, dtype=np.float32)), to_device(np.zeros(64, np.float32))
    onto_simulator(double[(1,)])(x, out, 64, BLOCK=64)
    assert np.array_equal(out.copy_to_host(), 2 * np.arange(64))


def test_a_simulated_kernel_is_left_alone():
    kernel = simulated_triton.jit(double.fn)
    assert onto_simulator(kernel) is kernel
