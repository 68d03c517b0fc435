"""Three mistakes of each lab, drawn by chance: does the message alone lead to what must be changed?

The rows are a sample of the wrong submissions in `solutions/*/wrong` (``random.Random(29)``, three a lab, drawn
from their names in order; what was added there since is not in it). Beside each are the words of its message that
lead to the cause; there are none where a learner would still have to guess.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import gpulab
from grading.authoring.prove import wrong_file
from tests.labs import notebooks

LEAST = 55 / 60  # of all mistakes

WORDS = {
    "00/double_first_block_only": "no thread wrote them: the launch has threads enough. Does an index or a guard",
    "00/double_guard_off_by_one": "`out[255]` was never written",
    "00/honest_time_believes_anything": "No GPU is faster than its peak bandwidth",
    "01/read_off_fits_ten_points": "you need as many as there are unknowns",
    "01/gradients_of_inputs_only": "a list with a gradient for each of the 3 values is asked for",
    "01/accumulate_without_padding": "padded they take 26, and the room is 20",
    "02/warps_needed_rounds_down": "Round up",
    "02/peak_believes_every_dtype": "the dictionary has no key 'float2'",
    "02/processors_same_law_twice": "there Gustafson's law holds",
    "03/plan_copies_both_ways": "Copy an array only when the other side needs it",
    "03/add_one_every_block_does_all": "How many elements does each of your threads do?",
    "03/add_one_no_guard": "Does a guard keep every index inside the array?",
    "04/centre_divides_by_64": "every sum is divided by 64. The last tile can have fewer elements",
    "04/smooth_clears_first": "Does the store stand inside a loop that it belongs behind?",
    "04/unpack_no_barrier": "Usual cure: cuda.syncthreads() before line",
    "05/histogram_one_copy_for_the_block": "Give each lane its own copy of the bins",
    "05/logsumexp_two_exponentials": "Of the two exponentials of a step one is always e⁰",
    "05/compact_counts_lanes_up_to_itself": "",
    "06/tiled_no_second_barrier": "of the next pass through the loop",
    "06/split_k_always_sixteen": "gridDim.z 3",
    "06/tiles_reads_behind_k": "behind the end of a row comes the next row",
    "07/way_ignores_the_suffix": "`a` runs on exactly that GPU",
    "07/scale_launches_nothing": "the grid 0 is empty",
    "07/mix_takes_integers_for_fused": "Count only `fma`",
    "08/gradients_every_block": "what the checkpoints hold or what one segment needs",
    "08/benchmark_warm_cache": "Flush the cache before each call",
    "08/clip_each_by_its_own_length": "each tensor is scaled by its own length",
    "09/encode_no_minus_zero": "`encode(-0.0, 5, 10)` gives 0",
    "09/stochastic_cuts_off": "Add the noise to them before you shift",
    "09/order_forgets_the_last": "are never added to slot 0",
    "10/recipe_scale_before_unscaling": "Your `update scale` comes before `unscale`",
    "10/dtypes_all_half": "'float16'], should be ['float16', 'float16', 'float16', 'float32']",
    "10/recipe_scale_knows_late": "Your `update scale` comes before `check`",
    "11/order_forgets_the_rest": "no program computes tile (4, 0)",
    "11/linear_small_tiles": "How many columns of the result does one element of x serve",
    "11/linear_bias_after_relu": "the bias is added after the ReLU",
    "12/tiled_all_at_once": "Which of your tensors has a row for each query",
    "12/cores_maximum_of_a_lane": "they must exchange their maxima",
    "12/merge_overflows": "`exp` of a large number is inf",
    "13/smooth_a_factor_per_token": "one for each channel",
    "13/awq_divides_instead": "a column with large activations must be made larger before it is rounded",
    "13/gptq_no_inverse": "silent channels",
    "14/serve_one_adapter_for_all": "`adapter` names the one that each row uses",
    "14/ticket_keeps_trained_values": "gives [[0.5, -6.0], [0.0, 0.0]], should be [[1.0, 2.0], [0.0, 0.0]]",
    "14/sparse24_a_lane_for_each_group": "Do neighbouring lanes read neighbouring values?",
    "15/reduce_scatter_one_buffer": "Change it after wait(), or take a copy",
    "15/broadcast_root_is_zero": "rank 0 sends to rank 1 but does not have the data yet",
    "15/factors_shares_of_all": "The average divides by the number of ranks once more",
    "16/config_pipelines_with_any_stage": "pipeline and stage",
    "16/gather_sum_for_mean": "the gradients of the ranks are added and not averaged",
    "16/config_pipelines_with_stage_2": "pipeline and stage",
    "17/mlp_gathers_the_parts": "Which collective adds up and leaves the sum on every rank?",
    "17/cut_ignores_columns": "513 columns cannot be divided by 2",
    "17/zero_bubble_w_at_once": "Where does a device idle although one of its W is still open?",
    "18/save_trusts_the_rename": "its shard 0 is missing or without contents",
    "18/max_flow_looks_at_the_ends": "a chain",
    "18/save_under_its_final_name": "when the machine stops after operation 0",
    "19/stream_all_memory_for_layers": "What else could the memory of a resident layer hold",
    "19/stream_arithmetic_only": "a sweep takes 0.018217 s",
    "19/sample_returns_the_place_in_its_list": "Return the token that stands at this place",
    "20/pack_nodes_without_islands": "sends its traffic across the link between the sockets",
    "20/manifest_latest": "`latest` and no tag are whatever was pushed last",
    "20/chunk_whole_prompts": "How many tokens were in that step",
    "21/federated_sends_to_those_that_answer": "The server sends its weights to every device",
    "21/deadline_keeps_the_oldest": "This keeps the older frame and drops the new one",
    "21/energy_wakes_for_nothing": "Going to sleep and waking up costs energy as well",
    "22/backward_of_one_head": "first wrong at 2 and 1 heads",
    "22/train_sums_micro_batches": "Divide by their number",
    "22/plan_recomputes_everything": "Which keys of your plan does your search never vary?",
    "23/ring_copies_what_it_reads": "Is a tile copied twice",
    "23/roles_meet_in_every_turn": "No wait needs all 5 warps",
    "23/edge_box_without_the_border": "the box begins at the block's first element",
    "24/scaled_scales_of_another_tile": "which begins in no array",
    "24/order_one_block_makes_more": "Some block has more tiles than others",
    "24/overlap_without_a_producer": "One warp brings tiles, another one writes results",
    "25/attention_all_tiles": "Which tiles of keys does a block of queries need?",
    "25/attention_without_a_maximum": "a number too large for the type",
    "25/attention_sees_the_future": "There the keys after a query's own place must be masked",
    "26/lazy_lane_by_lane": "Let the warp vote",
    "26/blocks_sees_the_future": "queries see all keys of their blocks",
    "26/absorb_expands": "a row for each key and each head",
    "27/split_exchanges_exponents": "Is the loss at your N the lowest",
    "27/rotate_tile_after_tile": "One product can take all tiles at once",
    "27/tiles_rounds_down": "Which way did you round a scale that must be a power of two?",
    "28/dispatch_keeps_the_last_sum": "replaces those of the nodes before",
    "28/dispatch_forgets_the_weights": "added without their weights",
}  # fmt: skip


def submission(row: str) -> Path:
    lab, _, name = row.partition("/")
    return next(notebooks.ROOT.glob(f"solutions/{lab}_*/wrong/{name}.py"))


@pytest.mark.parametrize("row", [row for row, words in WORDS.items() if words])
def test_a_message_leads_to_the_mistake(row: str) -> None:
    path = submission(row)
    exercise, lab = wrong_file(path).exercise, path.parent.parent.name
    answer = notebooks.wrong_answer(path)[notebooks.checks(lab)[exercise][0]]
    said = " ".join(str(gpulab.check(exercise, answer)).split())
    assert WORDS[row] in said


def test_eleven_of_twelve_mistakes_are_helped_by_the_message_alone() -> None:
    assert len(WORDS) >= 60 and {row[:2] for row in WORDS} == {lab[:2] for lab in notebooks.labs()}
    assert all(submission(row).exists() for row in WORDS)
    assert sum(bool(words) for words in WORDS.values()) >= LEAST * len(WORDS)
