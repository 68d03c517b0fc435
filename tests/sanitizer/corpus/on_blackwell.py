"""Wrong kernels with Tensor Memory and tcgen05, in CUDA C++ for a GPU of capability 10.0."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..pairs import Pair
from .data import zeros
from .newer import Folder

GPU = "B200"
FOLDER = Folder("cuda_blackwell", GPU)


def _halves() -> tuple[Any, ...]:
    return (np.arange(1024) % 8).astype(np.float16), zeros(256)


def _product(name: str, kind: str, says: str = "", grid: int = 1) -> Pair:
    return FOLDER.pair(name, kind, _halves, says, file="tensor_memory.cu", grid=grid, block=128)


SUM, OPERAND = (
    "touches its sum in Tensor Memory too early",
    "overwrites an operand in shared memory too early",
)
PAIRS = [
    _product("a_sum_is_read_before_its_product_is_there", "barrier", SUM),
    _product("a_parity_is_one_round_ahead", "barrier", SUM),
    _product("a_product_is_asked_for_behind_the_commit", "barrier", SUM),
    _product("a_product_of_the_second_round_is_not_waited_for", "barrier", SUM),
    _product("a_tile_is_filled_again_before_the_wait", "barrier", OPERAND),
    _product("a_stage_is_filled_by_a_copy_before_the_wait", "barrier", OPERAND),
    _product("a_loaded_register_is_used_before_the_wait", "barrier", "tcgen05.wait::ld"),
    _product("an_a_is_multiplied_before_it_is_stored", "barrier", "tcgen05.wait::st"),
    _product("a_sum_is_cleared_during_its_product", "barrier", SUM),
    _product("a_tile_is_not_fenced_for_the_tensor_cores", "proxy", "fence.proxy.async"),
    _product("the_asking_thread_fences_before_the_others_have_met", "proxy", "every thread that wrote"),
    _product("columns_are_never_freed", "memory", "still holds 32 columns"),
    _product("columns_are_freed_twice", "memory", "where no allocation begins"),
    _product("fewer_columns_are_freed_than_were_allocated", "memory", "an allocation of 128 columns begins"),
    _product("as_many_columns_are_allocated_as_are_needed", "memory", "names 48 columns"),
    _product("more_columns_are_allocated_than_there_are", "memory", "holds 256 of 512"),
    _product("columns_are_allocated_when_the_permit_is_given_up", "memory", "has given up the right"),
    _product("columns_are_freed_during_a_product", "memory", "has allocated none"),
    _product("each_warp_loads_the_lanes_of_the_third", "memory", "its warp reaches lanes 0 to 31"),
    _product("a_sum_needs_more_columns_than_are_allocated", "memory", "columns 28 to 35"),
    _product("lanes_of_a_warp_load_by_themselves", "memory", "other threads of its warp"),
    _product("a_descriptor_is_one_of_hopper", "memory", "version and must be 1"),
    _product("a_tile_reaches_beyond_shared_memory", "memory", "reaches up to byte"),
    _product("a_product_has_rows_that_no_product_has", "memory", "has 64 or 128 rows, not 32"),
    _product("sums_of_halves_are_asked_for_in_integers", "memory", "adds in f16 or f32"),
    _product("nobody_commits", "endless", "lacks 1 of 1 arrival"),
    _product("a_commit_names_no_mbarrier", "memory", "not initialised"),
    _product(
        "an_mbarrier_waits_for_every_thread_and_only_one_commits", "endless", "lacks 127 of 128 arrivals"
    ),
    _product("the_second_block_of_a_pair_asks", "memory", "the second of a pair", 2),
    _product("a_commit_reaches_one_block_of_a_pair", "endless", "lacks 1 of 1 arrival", 2),
    _product("a_block_of_a_pair_does_not_wait", "barrier", SUM, 2),
    # right as they are
    _product("products_of_one_thread_need_no_wait_between_them", ""),
    _product("another_sum_is_read_during_a_product", ""),
    _product("another_stage_is_filled_during_a_product", ""),
    _product("one_thread_waits_for_the_product_and_the_block_meets", ""),
    _product("two_loads_have_one_wait", ""),
    _product("a_commit_gives_a_tile_back", ""),
    _product("a_copy_replaces_what_no_fence_followed", ""),
]
