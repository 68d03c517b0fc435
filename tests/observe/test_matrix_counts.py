"""What a warp moves of a matrix with `wmma`, each number derived by hand: the matrix once, in the best order."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab import cupy as cp

KERNEL = r"""
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void product(const __half* a, const __half* b, float* c, int lead) {
    __shared__ __align__(32) __half tile[16 * ROW];
    for (int i = threadIdx.x; i < 16 * ROW; i += 32) tile[i] = a[i % 256];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::ORDER> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(left, tile, ROW);
    wmma::load_matrix_sync(right, b, lead);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}
"""


def counted(row: int = 16, order: str = "row_major", lead: int = 16, blocks: int = 1):
    """The rows of the report's lines that load a, load b, and store c."""
    source = KERNEL.replace("ROW", str(row)).replace("ORDER", order)
    numbers = np.random.default_rng(1)
    a, b = (cp.asarray(numbers.standard_normal((16, 64)).astype(np.float16)) for _ in range(2))
    c = cp.zeros((16, 16), cp.float32)
    kernel = cp.RawKernel(source, "product")
    return gpulab.profile(kernel, (blocks,), (32,), (a, b, c, np.int32(lead)))


@pytest.mark.parametrize("order", ["row_major", "col_major"])
@pytest.mark.parametrize("blocks", [1, 3])
def test_a_matrix_in_one_piece_counts_as_its_bytes_once(order, blocks):
    """16 · 16 halves are 512 bytes, 16 sectors, and no request moves more. As many floats are stored: 1,024
    bytes, 2 requests, 32 sectors. Filling the tile of 256 halves takes 8 requests of 64 bytes."""
    report = counted(order=order, blocks=blocks)
    assert report["global_load_requests"] == blocks * (1 + 8)
    assert report["global_load_bytes"] == blocks * 2 * 512
    assert report["global_load_sectors"] == blocks * 2 * 16
    assert report["global_load_excess"] == 1
    assert report["global_store_requests"] == blocks * 2
    assert report["global_store_bytes"] == blocks * 1024
    assert report["global_store_sectors"] == blocks * 32


def test_rows_that_lie_apart_move_their_sectors():
    """Rows of 16 halves, 24 halves apart: 32 bytes every 48 bytes. Every second one lies across two sectors."""
    report = counted(lead=24)
    assert report["global_load_sectors"] == 16 + 8 * 1 + 8 * 2


@pytest.mark.parametrize(("row", "wavefronts"), [(16, 4), (64, 16), (72, 4)])
def test_rows_of_a_shared_matrix_that_meet_in_the_same_banks_take_turns(row, wavefronts):
    """512 bytes are 4 wavefronts. Rows 32 words apart all lie in banks 0 to 7: 16 different words in each. Rows 36
    words apart move on by four banks: 16 · 8 words over 32 banks, 4 in each."""
    report = counted(row=row)
    assert report["shared_load_requests"] == 1
    assert report["shared_load_wavefronts"] == wavefronts
    assert report["shared_load_bank_conflict_ways"] == wavefronts / 4


def test_no_lane_is_said_to_move_an_element_of_a_fragment():
    """PTX leaves it open, so a picture of it would be made up. The stores of the tile are drawn."""
    requests = [request for launch in counted().launches for request in launch.recording.requests]
    assert {(request.kind, request.space) for request in requests} == {
        ("load", "global"),
        ("store", "shared"),
    }
