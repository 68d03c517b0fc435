"""Kernels whose blocks wait for each other: cuda.cg.this_grid().sync()."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab import cuda
from gpulab.simulator.device import LaunchError


@cuda.jit
def shift_rows(rows):
    """Each row is the one before it, mirrored, plus one: every block needs what all others wrote."""
    grid, column = cuda.cg.this_grid(), cuda.grid(1)
    for row in range(1, rows.shape[0]):
        rows[row, column] = rows[row - 1, rows.shape[1] - 1 - column] + 1
        grid.sync()


@pytest.mark.parametrize("blocks", [1, 3, 8, 2])
def test_blocks_wait_for_each_other_in_grids_of_any_size(blocks):
    rows = np.zeros((5, blocks * 32), np.int32)
    shift_rows[blocks, 32](rows)
    np.testing.assert_array_equal(rows, np.repeat(np.arange(5), blocks * 32).reshape(rows.shape))


def test_a_kernel_knows_that_it_is_cooperative_and_how_many_blocks_fit():
    @cuda.jit("void(int32[:, ::1])")
    def kernel(rows):
        cuda.cg.this_grid().sync()

    (overload,) = kernel.overloads.values()
    assert overload.cooperative
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    fit = overload.max_cooperative_grid_blocks
    assert fit(1024) == fit((32, 32)) == 2 * sms


def test_more_blocks_than_the_gpu_holds_are_refused():
    with pytest.raises(LaunchError, match=r"syncs its whole grid, so all its 100,000 blocks"):
        shift_rows[100_000, 1024](cuda.device_array((1, 1), np.int32))
