"""Wrong kernels with bulk copies, mbarriers, clusters and wgmma, in CUDA C++ for a GPU of capability 9.0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..pairs import Pair
from .data import ramp, zeros
from .in_cuda_c import i
from .newer import Folder

GPU = "H100"
FOLDER = Folder("cuda_hopper", GPU)


def _pair(
    name: str,
    kind: str,
    arguments: Callable[[], tuple[Any, ...]],
    says: str = "",
    grid: int = 1,
    block: int = 64,
    file: str = "copies.cu",
    shared: int = 0,
) -> Pair:
    return FOLDER.pair(name, kind, arguments, says, file=file, grid=grid, block=block, shared=shared)


def _x() -> tuple[Any, ...]:
    return ramp(64), zeros(64)


def _warpgroup(name: str, kind: str, says: str = "", shared: int = 0) -> Pair:
    """A kernel in which 128 threads multiply."""
    return _pair(name, kind, _halves, says, block=128, file="warpgroups.cu", shared=shared)


def _halves() -> tuple[Any, ...]:
    return (np.arange(1024) % 8).astype(np.float16), zeros(512)


def _rounds() -> tuple[Any, ...]:
    return ramp(256), zeros(256), i(4)


def _of_two() -> tuple[Any, ...]:
    return (zeros(128),)


def _of_cluster() -> tuple[Any, ...]:
    return ramp(64), zeros(128)


PAIRS = [
    _pair("one_warp_waits_for_a_bulk_copy", "race", _x, "barriers do not wait for it"),
    _pair("a_barrier_of_the_block_is_taken_for_a_wait", "race", _x, "wait for the mbarrier that counts"),
    _pair("a_parity_is_one_round_ahead", "race", _x, "sends a bulk copy to"),
    _pair(
        "too_few_bytes_are_announced",
        "barrier",
        lambda: (ramp(128), zeros(128)),
        "sees its phase end before it has come: too few bytes were announced",
        block=128,
    ),
    _pair("too_many_bytes_are_announced", "endless", _x, "lacks 16 bytes that were announced"),
    _pair("a_stage_is_filled_while_others_read_it", "race", _rounds, "of the next pass through the loop"),
    _pair("a_bulk_store_lacks_a_proxy_fence", "proxy", _x, "fence.proxy.async"),
    _pair("one_thread_fences_for_all_before_they_meet", "proxy", _x, "every thread that wrote"),
    _pair("a_source_changes_before_it_is_read", "barrier", _rounds, "overwrites what it has still to read"),
    _pair(
        "a_block_returns_before_its_copy_was_read", "barrier", _x, "its block's shared memory goes with it"
    ),
    _pair("a_bulk_copy_has_an_odd_size", "memory", _x, "of 252 bytes; the size must be a multiple of 16"),
    _pair("a_bulk_copy_goes_to_an_odd_place", "memory", _x, "which is no multiple of 16"),
    _pair("a_copy_names_no_mbarrier", "memory", _x, "an mbarrier that is not initialised"),
    _pair("every_thread_announces_the_bytes", "endless", _x, "bytes that were announced"),
    _pair("an_mbarrier_counts_threads_that_never_arrive", "endless", _x, "lacks 32 of 64 arrivals"),
    _pair("one_warp_arrives_for_two_that_write", "race", _x),
    _pair("a_consumer_never_gives_a_stage_back", "endless", _rounds, "lacks 32 of 32 arrivals"),
    _pair(
        "a_producer_begins_with_the_parity_of_a_consumer",
        "endless",
        _rounds,
        "Is the parity of the wait right?",
    ),
    _pair("a_stage_is_given_back_before_it_is_read", "race", _rounds),
    _pair(
        "a_store_is_not_committed_before_the_wait", "barrier", _rounds, "overwrites what it has still to read"
    ),
    _pair("a_wait_leaves_the_last_copy_on_its_way", "barrier", _x, "its block's shared memory goes with it"),
    _pair("another_thread_waits_for_the_store", "barrier", _x, "its block's shared memory goes with it"),
    _pair("a_value_is_left_with_a_neighbour_that_does_not_wait", "race", _of_two, "cluster.sync()", 2),
    _pair("a_copy_is_sent_to_more_blocks_than_there_are", "memory", _of_cluster, "which has 2 blocks", 2),
    _pair("a_copy_reaches_one_block_and_two_wait", "endless", _of_cluster, "lacks 256 bytes", 2),
    _pair(
        "a_neighbour_is_read_before_the_cluster_meets", "race", _of_two, "cluster.sync() (barrier.cluster)", 2
    ),
    _pair("a_neighbour_has_left", "memory", _of_two, "its shared memory is gone", 2),
    _pair("neighbours_leave_when_they_have_read", "memory", _of_two, "its shared memory is gone", 2),
    _pair("a_rank_is_too_large", "memory", _of_two, "block 2 of its cluster, which has 2 blocks", 2),
    _warpgroup("a_sum_is_read_before_its_product_is_there", "barrier", "touches its accumulator too early"),
    _warpgroup("a_wait_leaves_one_product_too_many", "barrier", "touches its accumulator too early"),
    _warpgroup("an_accumulator_is_cleared_without_a_fence", "barrier", "wgmma.fence"),
    _warpgroup("a_in_registers_has_no_fence", "barrier", "wgmma.fence"),
    _warpgroup("a_tile_is_not_fenced_for_the_tensor_cores", "proxy", "fence.proxy.async"),
    _warpgroup("a_tile_is_filled_again_before_the_wait", "barrier", "overwrites an operand in shared memory"),
    _warpgroup("a_tile_comes_again_before_the_wait", "barrier", "overwrites an operand in shared memory"),
    _warpgroup("a_tile_has_no_barrier", "race", "__syncthreads()"),
    _warpgroup("a_descriptor_steps_too_far", "uninitialised"),
    _warpgroup("a_tile_reaches_beyond_shared_memory", "memory", "reaches up to byte", shared=2304),
    _warpgroup("one_warp_of_a_warpgroup_has_left", "barrier", "four whole warps"),
    _pair(
        "warpgroups_take_more_registers_than_there_are",
        "barrier",
        lambda: (zeros(384),),
        "more registers",
        block=384,
        file="warpgroups.cu",
    ),
    # right as they are
    _warpgroup("products_of_one_shape_need_no_fence_between_them", ""),
    _warpgroup("those_who_read_fence_what_others_wrote", ""),
    _warpgroup("the_older_of_two_products_is_used", ""),
    _warpgroup("a_lane_gives_back_what_its_warp_has_multiplied", ""),
    _warpgroup("another_stage_is_filled_during_a_product", ""),
    _pair("one_thread_waits_and_the_block_meets", "", _x),
    _pair("two_copies_complete_at_one_mbarrier", "", _x),
    _pair("two_stores_share_a_wait", "", _x),
    _pair("the_sender_fences_after_all_have_met", "", _x),
    _pair("a_ring_of_stages_with_two_roles", "", _rounds),
    _pair("sums_go_around_a_cluster", "", lambda: (zeros(256),), grid=4),
]
