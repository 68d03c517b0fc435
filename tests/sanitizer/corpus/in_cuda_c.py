"""The half of the corpus in CUDA C: what the kernels of `cuda_c/*.cu` are launched with and must be told."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gpulab import cupy as cp

from ..pairs import Pair, marked_lines
from .data import bins, ramp, uneven, zeros

FOLDER = Path(__file__).parent / "cuda_c"
INT = np.int32


class Raw:
    """A kernel of a file, with numba's way of saying the launch: ``kernel[grid, block, stream, shared]``."""

    def __init__(self, file: str, name: str, mended: bool):
        options = ("-DMENDED",) if mended else ()
        self.kernel = cp.RawKernel(_text(file), name, options)

    def __getitem__(self, shape: tuple) -> Callable[..., None]:
        grid, block, _, shared = shape

        def launch(*arguments: Any) -> None:
            self.kernel(_tuple(grid), _tuple(block), arguments, shared_mem=shared)

        launch.__name__ = self.kernel.name
        return launch


def _tuple(size: int | tuple[int, ...]) -> tuple[int, ...]:
    return size if isinstance(size, tuple) else (size,)


@cache
def _text(file: str) -> str:
    return (FOLDER / file).read_text()


def _lines(file: str, name: str) -> tuple[int, ...]:
    """The marked lines of one kernel."""
    text = _text(file)
    start = text.index(f"void {name}(")
    body = text[start : text.index("\n}", start)]
    return marked_lines(body, text.count("\n", 0, start) + 1)


def _pair(
    file: str,
    name: str,
    kind: str,
    arguments: Callable[[], tuple[Any, ...]],
    grid: Any = 1,
    block: Any = 64,
    shared: int = 0,
    says: str = "",
) -> Pair:
    def given() -> tuple[Any, ...]:
        return tuple(cp.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments())

    def make(mended: bool) -> Raw:
        return Raw(file, name, mended)

    spoken = name.replace("_", " ")
    return Pair(spoken, kind, says, make, grid, block, given, shared, _lines(file, name), "CUDA C")


def i(value: int) -> Any:
    return np.int32(value)


X = (ramp(64), zeros(64))
FLAG = (zeros(1), zeros(1, dtype=INT), zeros(1))
LOCK = (zeros(1, dtype=INT), zeros(1, dtype=INT))


def _twice() -> tuple[Any, ...]:
    """One array under two names, and another one."""
    x = cp.zeros(64, np.float32)
    return x, x, zeros(64)


PAIRS = [
    _pair("block.cu", "a_dynamic_tile_has_no_barrier", "race", lambda: X, shared=256, says="__syncthreads()"),
    _pair(
        "block.cu",
        "a_tiled_product_lacks_its_second_barrier",
        "race",
        lambda: (ramp(8 * 32), ramp(8 * 32), zeros(64), i(32)),
        block=(8, 8),
        says="of the next pass through the loop",
    ),
    _pair("block.cu", "the_last_warp_sums_without_syncwarp", "race", lambda: X, says="__syncwarp()"),
    _pair(
        "block.cu",
        "shared_counters_are_read_before_all_have_counted",
        "race",
        lambda: (bins(64), zeros(8, dtype=INT)),
    ),
    _pair("block.cu", "two_carved_arrays_overlap", "race", lambda: (*X, i(64)), shared=512),
    _pair("block.cu", "two_threads_write_one_byte", "race", lambda: (zeros(64, dtype=np.uint8),)),
    _pair("block.cu", "a_copy_is_read_before_it_has_come", "barrier", lambda: X, says="not waited for"),
    _pair("block.cu", "a_wait_leaves_one_copy_too_many", "barrier", lambda: (ramp(256), zeros(64), i(4))),
    _pair("block.cu", "a_waited_copy_of_another_thread_has_no_barrier", "race", lambda: X),
    _pair(
        "block.cu",
        "a_short_warp_shuffles_with_a_full_mask",
        "barrier",
        lambda: (ramp(48), zeros(2)),
        block=48,
        says="inactive",
    ),
    _pair(
        "block.cu",
        "a_barrier_that_counts_stands_in_a_branch",
        "barrier",
        lambda: (ramp(64), zeros(64, dtype=INT)),
    ),
    _pair("block.cu", "a_named_barrier_waits_for_too_many", "barrier", lambda: X, says="but only 64 come"),
    _pair("block.cu", "a_value_is_taken_before_it_is_announced", "race", lambda: X),
    _pair("block.cu", "a_box_is_filled_before_it_is_empty", "race", lambda: (ramp(128), zeros(128), i(4))),
    _pair(
        "block.cu",
        "two_sides_count_on_different_numbers",
        "barrier",
        lambda: X,
        says="counts on 96 threads at barrier 1, others there on 64",
    ),
    _pair("block.cu", "a_barrier_is_announced_twice", "barrier", lambda: X, says="before it is complete"),
    _pair(
        "block.cu",
        "a_local_array_is_filled_in_part",
        "uninitialised",
        lambda: (ramp(64, INT), zeros(64, dtype=INT), i(5)),
        says="of local memory",
    ),
    _pair(
        "grid.cu",
        "the_last_block_sums_without_a_fence",
        "race",
        lambda: (ramp(128), zeros(4), zeros(1, dtype=np.uint32), zeros(1)),
        grid=4,
        block=32,
    ),
    _pair("grid.cu", "a_volatile_flag_is_raised_without_a_fence", "race", lambda: FLAG, grid=2, block=1),
    _pair("grid.cu", "a_fence_reaches_only_its_block", "race", lambda: FLAG, grid=2, block=1),
    _pair("grid.cu", "an_atomic_of_one_block_serves_many", "race", lambda: (zeros(1, dtype=INT),), grid=2),
    _pair(
        "grid.cu",
        "a_counter_is_reset_by_one_block",
        "race",
        lambda: (zeros(1, dtype=INT), zeros(1, dtype=INT)),
        grid=2,
    ),
    _pair(
        "grid.cu",
        "a_variable_of_the_module_counts_without_an_atomic",
        "race",
        lambda: (ramp(128), zeros(1, dtype=INT)),
        grid=2,
        says="hits",
    ),
    _pair(
        "grid.cu",
        "blocks_share_the_sums_of_the_module",
        "race",
        lambda: (ramp(16), zeros(16)),
        grid=2,
        block=8,
        says="sums[",
    ),
    _pair(
        "grid.cu",
        "half_precision_neighbours_go_through_words",
        "race",
        lambda: (zeros(64, dtype=np.uint16),),
        grid=2,
        block=32,
    ),
    _pair(
        "memory.cu",
        "a_vector_is_read_from_an_odd_place",
        "memory",
        lambda: (ramp(72), zeros(16)),
        block=16,
        says="multiple of 16",
    ),
    _pair(
        "memory.cu",
        "bytes_are_read_as_words",
        "memory",
        lambda: (ramp(64, np.uint8), zeros(16, dtype=INT)),
        block=16,
        says="multiple of 4",
    ),
    _pair(
        "memory.cu",
        "a_missing_array_is_read",
        "memory",
        lambda: (ramp(64), np.uint64(0), zeros(64)),
        says="null pointer",
    ),
    _pair(
        "memory.cu",
        "a_constant_array_is_too_short",
        "memory",
        lambda: (ramp(72), zeros(64), i(5)),
        says="element 4 of the constant array weights",
    ),
    _pair("memory.cu", "the_launch_gives_no_dynamic_shared_memory", "memory", lambda: X, says="tile"),
    _pair(
        "memory.cu",
        "a_local_array_is_overrun",
        "memory",
        lambda: (ramp(64, INT), zeros(64, dtype=INT)),
        says="local",
    ),
    _pair("memory.cu", "a_halo_reads_before_the_array", "memory", lambda: (*X, i(64)), says="[-1]"),
    _pair("memory.cu", "an_assertion_fails", "stopped", lambda: (*X, i(50)), says="assertion"),
    _pair(
        "block.cu",
        "the_tail_of_a_tile_stays_unwritten",
        "uninitialised",
        lambda: (*X, i(40)),
        says="of shared memory",
    ),
    _pair("block.cu", "a_barrier_stands_in_a_branch", "barrier", lambda: X),
    _pair("block.cu", "two_barriers_pair_by_accident", "barrier", lambda: X, says="another one"),
    _pair("block.cu", "threads_return_before_a_barrier", "barrier", lambda: (*X, i(40)), says="had returned"),
    _pair(
        "block.cu",
        "a_shuffle_reads_lanes_outside_its_mask",
        "barrier",
        lambda: X,
        block=32,
        says="outside its mask",
    ),
    _pair(
        "block.cu",
        "a_lane_calls_a_vote_that_does_not_name_it",
        "barrier",
        lambda: (ramp(32), zeros(32, dtype=INT)),
        block=32,
        says="does not name itself",
    ),
    _pair(
        "grid.cu",
        "two_blocks_write_one_element",
        "race",
        lambda: (ramp(128), zeros(128)),
        grid=2,
        says="Nothing orders two blocks",
    ),
    _pair(
        "grid.cu",
        "a_block_reads_what_another_one_writes",
        "race",
        lambda: (ramp(128), zeros(128), zeros(128), i(128)),
        grid=2,
    ),
    _pair(
        "grid.cu",
        "nobody_raises_the_flag_that_is_waited_for",
        "endless",
        lambda: (zeros(2, dtype=INT), zeros(1)),
        grid=2,
        block=1,
        says="no other thread",
    ),
    _pair(
        "grid.cu",
        "floats_are_added_in_any_order",
        "order",
        lambda: (uneven(256), zeros(1), i(256)),
        grid=4,
        says="round",
    ),
    _pair(
        "grid.cu",
        "places_are_taken_first_come_first_served",
        "order",
        lambda: (ramp(256), zeros(1, dtype=INT), zeros(256)),
        grid=4,
    ),
    _pair(
        "memory.cu", "the_last_block_has_no_guard", "memory", lambda: (ramp(100), zeros(128), i(100)), grid=2
    ),
    _pair(
        "memory.cu",
        "a_fresh_array_is_added_to",
        "uninitialised",
        lambda: (ramp(64), cp.empty(64, np.float32)),
        says="[0]",
    ),
    _pair("block.cu", "volatile_is_no_syncwarp", "race", lambda: (ramp(64), zeros(1)), block=32),
    _pair(
        "block.cu",
        "a_consumer_waits_at_the_wrong_barrier",
        "race",
        lambda: (ramp(64), zeros(32)),
        says="at which both threads wait",
    ),
    _pair("block.cu", "a_shuffle_stands_in_a_divergent_branch", "barrier", lambda: X, block=32),
    _pair(
        "block.cu",
        "a_plain_store_meets_shared_atomics",
        "race",
        lambda: (ramp(64, INT), zeros(64, dtype=INT)),
    ),
    _pair("block.cu", "the_rows_of_a_tile_overlap_by_a_wrong_pitch", "race", lambda: X, block=(8, 8)),
    _pair(
        "block.cu",
        "a_local_array_is_unset_on_one_path",
        "uninitialised",
        lambda: (ramp(64, INT), zeros(64, dtype=INT), i(5)),
        says="31 more threads",
    ),
    _pair(
        "block.cu",
        "half_a_warp_votes_while_the_other_waits",
        "barrier",
        lambda: (ramp(32), zeros(32, dtype=INT)),
        block=32,
        says="Others wait at line",
    ),
    _pair("block.cu", "partial_sums_of_warps_are_added_after_a_syncwarp", "race", lambda: X),
    _pair(
        "grid.cu",
        "each_block_adds_what_the_one_before_left",
        "race",
        lambda: (ramp(8), zeros(8), i(8)),
        grid=8,
        block=32,
    ),
    _pair(
        "grid.cu",
        "the_reader_of_a_flag_has_no_fence",
        "race",
        lambda: FLAG,
        grid=2,
        block=1,
        says="after it is seen",
    ),
    _pair("grid.cu", "the_reader_fences_only_for_its_block", "race", lambda: FLAG, grid=2, block=1),
    _pair("grid.cu", "a_lock_has_no_fences", "race", lambda: LOCK, grid=4, block=32, says="or taken"),
    _pair("grid.cu", "a_lock_of_the_block_has_no_fences", "race", lambda: LOCK[:1], block=128),
    _pair("grid.cu", "a_fence_is_no_barrier", "race", lambda: X),
    _pair("grid.cu", "the_read_only_path_reads_what_was_written", "race", _twice),
    _pair(
        "memory.cu",
        "a_vector_of_shared_memory_begins_at_an_odd_place",
        "memory",
        lambda: X,
        says="of 16 bytes",
    ),
    _pair(
        "memory.cu",
        "a_product_of_indices_overflows",
        "memory",
        lambda: (zeros(64), i(123456789)),
        says="Did a product overflow",
    ),
    _pair(
        "groups.cu",
        "a_field_of_a_shared_struct_is_read_too_early",
        "race",
        lambda: X,
        says="bytes 1008 to 1011 of near",
    ),
    _pair("groups.cu", "a_tile_of_a_group_waits_where_the_block_must", "race", lambda: X),
    _pair(
        "groups.cu",
        "a_small_tile_waits_and_a_lane_outside_it_reads",
        "race",
        lambda: X,
        block=32,
        says="at which both threads wait",
    ),
    _pair(
        "groups.cu", "a_two_stage_pipeline_waits_too_little", "barrier", lambda: (ramp(256), zeros(64), i(4))
    ),
    _pair(
        "groups.cu",
        "a_single_buffer_is_filled_by_copies_while_it_is_read",
        "race",
        lambda: (ramp(256), zeros(64), i(4)),
    ),
    _pair(
        "groups.cu",
        "an_atomic_ref_of_one_block_counts_for_all",
        "race",
        lambda: (zeros(1, dtype=INT),),
        grid=2,
    ),
    _pair("groups.cu", "a_relaxed_flag_hands_nothing_over", "race", lambda: FLAG, grid=2, block=1),
    # right as they are
    _pair(
        "block.cu",
        "halves_of_a_block_have_their_own_barriers",
        "",
        lambda: (ramp(128), zeros(128)),
        block=128,
    ),
    _pair("block.cu", "what_one_warp_says_a_third_one_hears", "", lambda: X, block=96),
    _pair("block.cu", "a_pipeline_of_copies", "", lambda: (ramp(256), zeros(64), i(4))),
    _pair("block.cu", "the_lanes_that_are_there_elect_one", "", lambda: (bins(64), zeros(65, dtype=INT))),
    _pair("block.cu", "pairs_of_bytes_have_their_own_threads", "", lambda: (zeros(128, dtype=np.uint8),)),
    _pair("block.cu", "atomics_of_a_block_stay_in_their_block", "", lambda: (zeros(2, dtype=INT),), grid=2),
    _pair("grid.cu", "a_volatile_flag_behind_a_fence", "", lambda: FLAG, grid=2, block=1),
    _pair(
        "grid.cu",
        "the_last_block_reads_as_volatile",
        "",
        lambda: (ramp(128), zeros(4), zeros(1, dtype=np.uint32), zeros(1)),
        grid=4,
        block=32,
    ),
    _pair("grid.cu", "a_thread_block_scoped_flag_in_shared_memory", "", lambda: (ramp(32), zeros(32))),
    _pair(
        "grid.cu",
        "a_grid_barrier_that_is_used_twice",
        "",
        lambda: (zeros(1, dtype=np.uint32), zeros(8)),
        grid=4,
        block=1,
    ),
]


def kernels_of_the_files() -> set[str]:
    """All kernels that the files hold."""
    return {
        name.replace("_", " ")
        for file in FOLDER.glob("*.cu")
        for name in re.findall(r"__global__ void (\w+)\(", file.read_text())
    }
