"""Lab 19, part A: the numbers that its tables derive by hand, and those that its texts state."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import gpulab  # noqa: E402
from gpulab import cuda  # noqa: E402
from gpulab.checks import cases, find  # noqa: E402
from gpulab.checks.spec import WrongAnswer  # noqa: E402
from gpulab.checks.tensor_graphs import record, replay  # noqa: E402
from gpulab.content.lab_19_llm_inference.kv_cache import (  # noqa: E402
    ALLOCATED,
    CACHE_OF_A_TOKEN,
    allocate_questions,
    branches_blocks,
    branches_case,
    branches_copies,
    data_sheet,
    kinds,
    merge_bytes,
    paged_bytes,
    part_bytes,
    quantise_questions,
    seen_bytes,
    shape_of,
    split_bytes,
)
from gpulab.content.lab_19_llm_inference.references import kv_cache as references  # noqa: E402
from gpulab.simulator import hardware  # noqa: E402
from grading.authoring.prove import wrong_file  # noqa: E402
from tests.labs import notebooks  # noqa: E402

LAB = "19_llm_inference"


@pytest.fixture(scope="module")
def solved():
    return notebooks.answers(LAB)


@cache
def wrong(stem):
    path = notebooks.ROOT / "solutions" / LAB / "wrong" / f"{stem}.py"
    return notebooks.wrong_answer(path)[wrong_file(path).exercise.partition(".")[2]]


# ---------------------------------------------------------------- what a GPU holds


def test_a_latent_is_copied_where_heads_are_divided(solved):
    one_size = {"layers": 32, "bytes": 2}
    latent = one_size | {"latent": 512, "place": 64}
    by_hand = {32: (524_288, 65_536), 8: (131_072, 16_384), 1: (16_384, 16_384)}
    for heads, (on_one, on_each_of_eight) in by_hand.items():
        shape = one_size | {"kv_heads": heads, "head_dim": 128}
        assert solved["per_gpu"](shape, 1) == references.per_gpu(shape, 1) == on_one
        assert solved["per_gpu"](shape, 8) == references.per_gpu(shape, 8) == on_each_of_eight
    assert (
        solved["per_gpu"](latent, 1)
        == solved["per_gpu"](latent, 8)
        == references.per_gpu(latent, 8)
        == 36_864
    )


def test_a_head_of_a_full_block_is_one_stretch_in_hnd_and_as_many_as_tokens_in_nhd(solved):
    for runs in (solved["runs"], references.runs):
        assert runs("HND", [2], 4, 3, 10, 4, 1) == [[(2 * 3 + 1) * 4 * 10, 40]]
        assert runs("NHD", [2], 4, 3, 10, 4, 1) == [[((2 * 4 + t) * 3 + 1) * 10, 10] for t in range(4)]


def test_neighbouring_blocks_join_only_in_the_order_of_the_tokens_and_with_one_head(solved):
    for runs in (solved["runs"], references.runs):
        assert runs("NHD", [3, 4], 4, 1, 10, 7, 0) == runs("HND", [3, 4], 4, 1, 10, 7, 0) == [[120, 70]]
        assert runs("HND", [4, 3], 4, 1, 10, 8, 0) == [[160, 40], [120, 40]]
        assert len(runs("HND", [3, 4], 4, 2, 10, 8, 0)) == 2


# ---------------------------------------------------------------- counting


def test_a_pass_of_llama_3_8b_costs_what_its_sizes_say(solved):
    llama, h100 = shape_of("Llama 3 8B"), data_sheet("H100")
    weights = 8.03e9 - 128_256 * 4096  # without the embedding, of which a pass reads rows
    flops, moved, seconds = solved["count"](llama, h100, 1, 1, 0)
    assert flops == pytest.approx(2 * weights, rel=1e-3)
    assert moved == pytest.approx(2 * weights, rel=1e-3)
    assert seconds == pytest.approx(4.48e-3, rel=1e-2)
    assert solved["count"](llama, h100, 300, 1, 0)[2] > seconds  # beyond the ridge of 295 tokens


def test_chunks_of_a_prompt_cost_as_many_flops_as_the_whole_but_for_the_output_layer(solved):
    llama, h100 = shape_of("Llama 3 70B"), data_sheet("H100")
    whole = solved["count"](llama, h100, 2, 1000, 0)[0]
    parts = [solved["count"](llama, h100, 2, n, there)[0] for n, there in ((300, 0), (1, 300), (699, 301))]
    assert sum(parts) - 2 * 2 * 2 * llama["vocabulary"] * llama["width"] == whole


def test_the_stated_sizes_of_caches_are_so():
    llama = shape_of("Llama 2 7B")
    assert 2 * llama["layers"] * llama["kv_heads"] * llama["head_dim"] * 4096 * 2 == 2 << 30
    assert CACHE_OF_A_TOKEN == 128 << 10
    assert pytest.approx(122_500, rel=1e-3) == 16.06e9 / CACHE_OF_A_TOKEN
    assert 140e9 / float(hardware.find("H100").dram_bandwidth) == pytest.approx(41.8e-3, rel=1e-3)
    assert -(-int(hardware.find("A100").sms) // 8) == 14


# ---------------------------------------------------------------- the cache


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.integers(1, 12),
    st.sampled_from([1, 2, 4]),
    st.data(),
)
def test_any_chunks_give_what_the_whole_gives(chunks, window, kv, data):
    step, tokens, d = notebooks.answers(LAB)["step"], sum(chunks), 8
    numbers = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    q, k, v = (torch.randn(heads, tokens, d, generator=numbers) for heads in (4, kv, kv))
    room = [torch.full((kv, tokens + 2, d), 1e9) for _ in range(2)]  # rubbish
    whole = references.step(
        {
            "q": q.numpy(),
            "k": k.numpy(),
            "v": v.numpy(),
            "keys": np.zeros((kv, tokens, d)),
            "values": np.zeros((kv, tokens, d)),
        },
        {"there": 0, "new": tokens, "window": window},
    )["out"]
    there, outs = 0, []
    for new in chunks:
        part = slice(there, there + new)
        outs.append(step(q[:, part], k[:, part], v[:, part], *room, there, window))
        there += new
    assert np.allclose(torch.cat(outs, 1).numpy(), whole, atol=1e-4)


def test_a_step_reads_the_window_once_and_scores_are_less_than_it(solved):
    exercise = find("kv.step")
    made = cases.arguments(exercise, exercise.cases[-1])
    sizes = exercise.cases[-1].sizes
    report = replay(
        record(solved["step"], made, exercise.evidence.operators), made, exercise.evidence.operators, "step"
    ).report
    assert seen_bytes(sizes) < report.bytes < 1.8 * seen_bytes(sizes)


def test_the_colleagues_cache_is_right_until_it_wraps(solved):
    found = {"torch": torch, "math": math, "turn": solved["turn"]}
    (cell,) = [
        c for c in notebooks.cells(LAB, "code") if c.source.lstrip().startswith("def theirs(q, k, v, keys")
    ]
    exec(cell.source, found)
    off = found["compare"](80)
    assert max(off[:64]) < 1e-6
    assert min(off[64:]) > 0.2 and max(off[64:]) < 1.2
    assert max(found["compare"](200, 16, solved["rolled"])) < 1e-4


# ---------------------------------------------------------------- eight bits


def test_a_code_that_is_none_is_named_with_its_place():
    ((k, v),) = quantise_questions({"tokens": 3, "d": 8, "kind": ""}, np.random.default_rng(0))
    for odd in (128, 0.5, float("inf")):
        codes = np.zeros((3, 8))
        codes[2, 5] = odd
        with pytest.raises(WrongAnswer, match=rf"K\[2, 5\] is {odd:g}; codes are whole"):
            references.quantise([codes.tolist(), [[1.0]], codes.tolist(), [[1.0]]], k, v)


@pytest.mark.parametrize("seed", range(5))
def test_scales_on_the_other_axis_cost_more_than_twice_what_is_allowed(seed):
    ((k, v),) = quantise_questions({"tokens": 64, "d": 32, "kind": ""}, np.random.default_rng(seed))
    keys = references.quantise(wrong("quantise_tokens_only")(k, v), k, v)
    values = references.quantise(wrong("quantise_channels_only")(k, v), k, v)
    assert keys["key error"] > 250 and keys["value error"] == pytest.approx(100)
    assert values["value error"] > 250 and values["key error"] == pytest.approx(100)


# ---------------------------------------------------------------- kernels


def counted(name, fn):
    exercise = find(name)
    case = exercise.cases[-1]
    values = [a.value for a in cases.arguments(exercise, case)]
    return gpulab.profile(fn, *(cuda.to_device(x) for x in values)), case.sizes


def test_parts_load_keys_once_and_leave_a_margin(solved):
    report, sizes = counted("kv.split", solved["split"])
    assert split_bytes(sizes) <= report["global_load_bytes"] < 1.25 * split_bytes(sizes)
    assert report["blocks"] == sizes["parts"] + 16
    least = part_bytes(sizes) + merge_bytes(sizes)
    assert least <= report["block_load_bytes"] < 1.1 * least
    in_one, _ = counted("kv.split", wrong("split_in_one_block"))
    assert in_one["block_load_bytes"] >= 4 * sizes["m"] * 64 > 20 * part_bytes(sizes)


def test_rubbish_in_a_table_is_no_block_in_32_nor_in_64_bits():
    """Where the pool has no block, an address made of int32 must not wrap into it."""
    exercise = find("kv.paged")
    for case in exercise.cases:
        made = {a.name: a.value for a in cases.arguments(exercise, case)}
        pool = len(made["k"])
        entries = made["tables"].astype(np.int64)
        behind = entries[entries >= pool]
        assert len(behind) and (behind * 16 * 64 < 2**31 - 16 * 64).all()
        assert (behind * 16 * 64 * 2 > 2**30).all()


def test_pages_are_loaded_once_and_leave_a_margin(solved):
    report, sizes = counted("kv.paged", solved["paged"])
    assert paged_bytes(sizes) <= report["global_load_bytes"] < 1.1 * paged_bytes(sizes)


def test_a_prefix_read_once_loads_what_beyond_says(solved):
    """Ours: 128 queries in one block on the prefix, 16 on each sequence's own tokens, and a merge."""

    def zeros(*shape):
        return cuda.to_device(np.zeros(shape, np.float32))

    def half(*shape):
        return cuda.to_device(np.zeros(shape, np.float16))

    def ours():
        parts, merge = solved["parts_kernel"], solved["merge_kernel"]
        parts[(1, 1)](*prefix, 256, 1, 256, D=64, GROUP=128, COLUMNS=32)
        parts[(8, 1)](*own, 16, 1, 16, D=64, GROUP=16, COLUMNS=16)
        merge[(128,)](zeros(128, 2, 64), zeros(128, 2), zeros(128, 64), 2, D=64, MOST=2)

    prefix = [half(128, 64), half(1, 256, 64), half(1, 256, 64), zeros(128, 1, 64), zeros(128, 1)]
    own = [half(128, 64), half(8, 16, 64), half(8, 16, 64), zeros(128, 1, 64), zeros(128, 1)]
    report = gpulab.profile(ours)
    loaded = report["global_load_bytes"]
    (lses,) = [line for line in report.lines if line.text.startswith("lse = tl.load")]
    assert lses.metrics[
        "global_load_bytes"
    ] == 2 * 4 * 128 * 128 == 131_072 and "(131,072 of ours" in notebooks.text(LAB)
    assert f"merged | {loaded:,} |" in notebooks.text(LAB)
    bound = 2 * 128 * 64 + 4 * 64 * (256 + 8 * 16)
    assert f"= {bound:,} |" in notebooks.text(LAB) and bound < loaded


# ---------------------------------------------------------------- blocks


@settings(max_examples=24, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(ALLOCATED))
def test_no_plan_takes_fewer_blocks_or_copies(seed, kind):
    allocate = notebooks.answers(LAB)["allocate"]
    for operations, size, blocks in allocate_questions({"kind": kind}, np.random.default_rng(seed)):
        found = references.allocate(allocate(operations, size, blocks), operations, size, blocks)
        least = references.Pool(blocks, size)
        for operation in operations:
            needed = least.needs(operation)
            if len(needed) <= least.free:
                free = [block for block, names in enumerate(least.holders) if not names]
                least.apply(operation, [[*act, free[i]] for i, act in enumerate(needed)], "")
        assert found == {"blocks": least.most, "copies": least.copies}


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 60), st.integers(0, 5), st.integers(1, 30), st.integers(2, 17))
def test_the_formulas_of_branches_are_what_plans_cost(prompt, forks, more, size):
    case = branches_case(prompt, forks, more, size)
    (question,) = allocate_questions(case.sizes, np.random.default_rng(0))
    found = references.allocate(notebooks.answers(LAB)["allocate"](*question), *question)
    assert found == {"blocks": branches_blocks(case.sizes), "copies": branches_copies(case.sizes)}
    eager = references.allocate(wrong("allocate_copies_the_last_block_at_the_fork")(*question), *question)
    assert eager["copies"] == branches_copies(case.sizes, at_once=True)
    apart = references.allocate(wrong("allocate_copies_at_the_fork")(*question), *question)
    assert apart["copies"] >= eager["copies"]
    if forks:
        assert apart["blocks"] >= branches_blocks(case.sizes, shared=False)


def test_the_question_that_is_too_full_refuses_a_start_and_an_append():
    (case,) = kinds("too full")
    for operations, size, blocks in allocate_questions(case.sizes, np.random.default_rng(3)):
        plan = notebooks.answers(LAB)["allocate"](operations, size, blocks)
        refused = [operation[0] for operation, item in zip(operations, plan, strict=True) if item == "full"]
        assert {"start", "append"} <= set(refused)
        free = [item if item != "full" else [] for item in plan]
        with pytest.raises(WrongAnswer, match='the item is "full"'):
            references.allocate(free, operations, size, blocks)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (3, "a list of 2 items"),
        ([[["take", 0]]], "a list of 2 items"),
        (["full", []], "it is refused"),
        ([[["take", 9]], []], "does not exist"),
        ([[["take", -1]], []], "does not exist"),
        ([[["take", True]], []], "an action is"),
        ([[["take"]], []], "an action is"),
        ([["take", 0], []], "an action is"),
        ([7, []], "an item is a list"),
        ([[["take", 0], ["copy", 4, 1]], []], "no index 4"),
        ([[["take", 0], ["take", 0]], []], "is not free"),
        ([[], []], "has no block"),
        ([[["take", 0]], [["take", 1]]], "an action is"),
    ],
)
def test_a_plan_of_another_form_is_refused_with_a_sentence(answer, said):
    with pytest.raises(WrongAnswer, match=said):
        references.allocate(answer, [["start", "a", 2], ["free", "a"]], 4, 3)
