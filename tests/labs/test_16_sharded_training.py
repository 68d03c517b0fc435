"""Lab 16: what its tables, texts and sample answer state is so, on real ranks and by trying everything."""

from __future__ import annotations

import ast
import gc
import itertools
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

from gpulab.checks.registry import predictions
from gpulab.content.lab_16_sharded_training import exercises as lab
from gpulab.content.lab_16_sharded_training.references import exercises as references
from gpulab.simulator import hardware
from gpulab.subjects import distributed
from gpulab.subjects.distributed import costs
from gpulab.subjects.distributed.offload import carry_out
from tests.labs import notebooks

LAB = "16_sharded_training"
GPT_3 = (96, 1, 2048, 12288, 96)


@pytest.fixture(scope="module")
def solved():
    return notebooks.answers(LAB)


def given(*names: str) -> dict[str, Any]:
    """Constants, functions and random data of the notebook that learners are given, without what it runs."""
    found: dict[str, Any] = {"torch": torch, "dist": dist, "gc": gc}
    for cell in notebooks.cells(LAB, "code"):
        for node in ast.parse(cell.source).body:
            function = isinstance(node, ast.FunctionDef) and node.name in names
            assigned = isinstance(node, ast.Assign) and any(
                isinstance(n, ast.Name) and (n.id.isupper() or n.id in names)
                for target in node.targets
                for n in ast.walk(target)
            )
            if function or assigned:
                try:
                    exec(ast.get_source_segment(cell.source, node), found)
                except NameError:  # a constant that a later cell works out
                    continue
    return found


# ---------------------------------------------------------------- memory and traffic


def test_it_is_remembered_by_5_and_a_half_bytes_of_16_on_real_ranks():
    states = given("alive", "layers_of_half", "states")["states"]
    kept = [distributed.run(states, 4, stage, show=None)[0][0] for stage in range(3)]
    assert kept == pytest.approx([16, 7, 5.5], rel=0.002)


def test_and_at_no_more_traffic_than_ddp():
    zero2 = next(e for e in lab.EXERCISES if e.name == "shard.zero2_step")
    (budget,), sizes = zero2.budgets, zero2.cases[-1].sizes
    assert budget.limit_for(sizes) == 2 * 3 / 4 * 2 * sizes["parameters"] == 3072


def test_the_stages_are_those_of_the_paper(solved):
    found = [solved["memory"](7_500_000_000, 64, stage) / 1e9 for stage in range(4)]
    assert [round(gb, 1) for gb in found] == [120.0, 31.4, 16.6, 1.9]
    assert [round(found[0] / gb, 1) for gb in found[1:3]] == [3.8, 7.2]
    assert predictions()["shard.seventh"].answer == round(found[0] / found[2], 1)
    assert solved["memory"](175 * 10**9, 1, 0) / 1e9 == predictions()["shard.gpt3"].answer


def test_fully_shard_keeps_16_bytes_over_the_ranks_and_sends_half_more_than_ddp():
    names = given("alive", "with_fsdp", "model_size", "traffic")
    freed, kept = (distributed.run(names["with_fsdp"], 4, reshard, show=None) for reshard in (True, False))
    assert freed[0][0] == pytest.approx(4.0, rel=0.01)
    assert names["traffic"](freed) == (1.5, 16, 8)
    assert names["traffic"](kept) == (1.0, 8, 8)
    last = freed[0][1][-1], kept[0][1][-1]
    assert last[0] < 3.6 and last[1] > 7.4  # one layer of eight is whole, or all are


# ---------------------------------------------------------------- plans


def test_the_table_of_offload_is_what_the_model_says(solved):
    asked = 12, 3, 2, 4
    one_by_one = given("one_by_one")["one_by_one"]
    best, naive = (carry_out(plan(*asked), *asked) for plan in (solved["offload"], one_by_one))
    assert (best.time, best.fetches, naive.time, naive.fetches) == (86, 20, 144, 24)
    assert predictions()["shard.fetches"].answer == 20


def test_the_table_of_recomputation_is_what_trying_all_says(solved):
    memory = 60 * 10**9
    assert references.recompute([0, 0, 96], *GPT_3, memory)["over the least"] == pytest.approx(68.9, abs=0.05)
    assert references.recompute(solved["recompute"](*GPT_3, memory), *GPT_3, memory) == {"over the least": 0}


@pytest.mark.parametrize("seed", range(20))
def test_dropping_scores_first_is_not_the_least_for_a_long_sequence(seed, solved):
    layers, *shape, memory = lab._long_sequence(np.random.default_rng(seed))
    assert solved["recompute"](layers, *shape, memory) == [layers - 1, 0, 1]
    scores_first = references.recompute([layers - 2, 2, 0], layers, *shape, memory)
    assert scores_first["over the least"] > 5


def test_activations_of_gpt_3_are_as_the_text_says(solved):
    every, some, inputs = references.choices(*GPT_3[1:])
    assert round(96 * every[0] / 1e9) == 275 and round(96 * some[0] / 1e9) == 82
    assert round(1 - some[0] / every[0], 2) == 0.70  # scores, of the activations
    assert round(some[1] / inputs[1], 2) == 0.03  # and of the work
    assert solved["recompute"](*GPT_3, 83 * 10**9)[2] == 0 < solved["recompute"](*GPT_3, 82 * 10**9)[2]


def test_the_small_transformer_is_as_large_as_the_table_says():
    assert (sum(lab.TRANSFORMER), len(lab.TRANSFORMER), max(lab.TRANSFORMER)) == (461_056, 33, 262_144)


# ---------------------------------------------------------------- configurations, recipes


def test_notebook_and_judge_know_the_same_configurations():
    names = given()
    assert names["SCHEDULERS"] == lab.SCHEDULERS
    assert names["COMMON"] == lab.COMMON


def test_the_common_file_runs_on_four_ranks_only(solved):
    holds = [gpus for gpus in range(1, 65) if solved["config"](lab.COMMON, gpus, 1, 1)["batch"]]
    assert holds == [4]


def test_the_answers_of_the_decisions_add_up(solved):
    memory = solved["memory"]
    assert memory(8 * 10**9, 1, 0) / 1e9 == 128 and memory(8 * 10**9, 8, 3) / 1e9 == 16
    assert memory(70 * 10**9, 1, 0) / 1e9 == 1120 and memory(70 * 10**9, 16, 3) / 1e9 == 70
    assert memory(70 * 10**9, 1, 0) / 80e9 == predictions()["shard.seventy"].answer
    assert predictions()["shard.accumulate"].answer == 1536 / (1024 / 64)


def test_a_weight_over_pcie_takes_as_long_as_thousands_of_tokens():
    rate = float(hardware.find("H100").peak("float16", tensor=True))
    assert rate / float(hardware.link("PCIe 5.0 ×16").per_direction) > 10_000


def test_beyond_has_steps_that_are_shorter_than_its_reference():
    inside, between = (
        costs.Network(5e-6, float(hardware.link(name).per_direction))
        for name in ("NVLink 4", "InfiniBand NDR")
    )
    gather = costs.ring_all_gather(inside, 8, 14e9)
    hidden = costs.ring_all_reduce(between, 4, 14e9 / 8)
    assert max(2 * gather, hidden) < 3 * gather  # weights are kept from forward to backward
    assert (7 * 16 / 8 + 7 * 2 * 7 / 8) < 80  # GB: shards, and the other seven eighths of 16-bit weights


# ---------------------------------------------------------------- one run, three spellings


def test_the_example_is_what_the_command_in_the_text_says(solved):
    example = given()["EXAMPLE"]
    sizes = {"--tensor-model-parallel-size": 8, "--pipeline-model-parallel-size": 4, "--zero-stage": 1}
    batches = {"--micro-batch-size": 1, "--global-batch-size": 1536, "--seq-length": 2048, "--bf16": True}
    for equals in (False, True):
        words = lab.command(sizes | batches | {"--deepspeed": True}, equals)
        assert solved["translate"](words, 1024) == references.translate(words, 1024) == example
        assert solved["translate"](words, 1000) is references.translate(words, 1000) is None


def test_gpus_that_are_left_over_do_not_show_in_the_batch():
    for words, gpus in lab.translate_questions({"what": "GPUs left over"}, np.random.default_rng(2)):
        flags = dict(itertools.pairwise(words))
        cut = int(flags[lab.SIZE_FLAGS[0]]) * int(flags[lab.SIZE_FLAGS[1]])
        assert gpus % cut
        assert int(flags["--global-batch-size"]) % (int(flags["--micro-batch-size"]) * (gpus // cut)) == 0
        assert references.translate(words, gpus) is None


# ---------------------------------------------------------------- the detective


def test_the_sample_answer_has_the_numbers_of_the_colleagues_step():
    names = given("their_step", "gradient_of", "their_losses", "numbers", "inputs", "targets")
    their_step, gradient_of, rate = names["their_step"], names["gradient_of"], names["RATE"]

    def first_step(limit):
        weights = torch.zeros(names["FEATURES"])
        gradient = gradient_of(weights)
        mean = gradient.clone()
        dist.all_reduce(mean)
        mean /= dist.get_world_size()
        return mean, -their_step(weights, gradient, limit) / rate

    mean, step = distributed.run(first_step, 1, 4.0, show=None)[0]
    assert round(float(mean.norm()), 1) == 21.7
    assert (step / mean).tolist() == pytest.approx([0.185] * 16, abs=5e-4)
    mean, step = distributed.run(first_step, 4, 4.0, show=None)[0]
    norms = [float(shard.norm()) for shard in mean.chunk(4)]
    assert norms == pytest.approx([0.57, 4.1, 10.2, 18.7], abs=0.05)
    assert [float(f[0]) for f in (step / mean).chunk(4)] == pytest.approx([1, 0.98, 0.39, 0.21], abs=5e-3)
    assert round(float(step.norm()), 2) == 6.95
    assert round(float(torch.nn.functional.cosine_similarity(step, mean, dim=0)), 2) == 0.88


def test_without_clipping_nobody_sees_it():
    names = given("their_step", "gradient_of", "their_losses", "numbers", "inputs", "targets")
    one, four = (distributed.run(names["their_losses"], n, 1e9, show=None)[0] for n in (1, 4))
    assert one == pytest.approx(four, rel=1e-5)
