"""What torch.compile writes for a GPU, written and run without one."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import gpulab  # noqa: E402
from gpulab import cuda, triton  # noqa: E402
from gpulab.simulator.compile.inductor import inductor  # noqa: E402


def softmax(x):
    powers = torch.exp(x - x.amax(1, keepdim=True))
    return powers / powers.sum(1, keepdim=True)


def test_five_operators_become_one_kernel_that_is_right_and_reads_once():
    program = inductor(softmax, torch.empty(20, 100))
    assert len(program.steps) == 1 and list(program.kernels) == list(program.steps)
    kernel = program.kernels[program.steps[0]].define(triton)
    x = np.random.default_rng(1).standard_normal((20, 100)).astype(np.float32)
    out = cuda.device_array((20, 100), np.float32)
    report = gpulab.profile(kernel[(20,)], out, cuda.to_device(x), 20, 100, XBLOCK=1)
    powers = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out.copy_to_host(), powers / powers.sum(1, keepdims=True), rtol=1e-5)
    assert (report["global_load_bytes"], report["global_store_bytes"]) == (x.nbytes, x.nbytes)


def test_a_matrix_product_stays_with_the_library_and_what_follows_is_a_kernel():
    program = inductor(
        lambda x, w, b: torch.relu(torch.addmm(b, x, w)), *map(torch.empty, [(8, 8), (8, 8), 8])
    )
    assert program.steps[0] == "addmm" and "relu" in program.steps[1] and len(program.steps) == 2


def test_nothing_is_left_changed_behind_it():
    from torch._inductor.graph import GraphLowering

    before = GraphLowering.save_output_code
    inductor(torch.sin, torch.empty(4))
    assert GraphLowering.save_output_code is before
    assert torch.compile(torch.sin, backend="eager")(torch.zeros(2)).tolist() == [0, 0]


def test_an_error_of_the_function_itself_is_raised():
    with pytest.raises(RuntimeError, match="size"):
        inductor(torch.add, torch.empty(2), torch.empty(3))
