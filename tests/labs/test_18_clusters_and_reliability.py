"""Lab 18: what the table derives is what comes out, no plan cheats, and texts cite what the runs say."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections import Counter
from itertools import product
from math import exp, sqrt
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gpulab
from gpulab.checks import registry
from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_18_clusters_and_reliability import exercises as asked
from gpulab.content.lab_18_clusters_and_reliability.references import exercises as references
from gpulab.subjects import distributed
from tests.labs import notebooks

LAB = "18_clusters_and_reliability"
DAY = 86_400.0


# ---------------------------------------------------------------- remembered


def test_saving_at_the_best_interval_loses_3_7_percent_instead_of_10_3():
    def first_order(tau):
        return 100 * (60 / tau + tau / (2 * DAY))

    best = notebooks.answers(LAB)["interval"](60.0, 0.0, DAY)
    assert (round(first_order(600), 1), round(first_order(best), 1)) == (10.3, 3.7)
    assert (
        round(100 * references.overhead(600, 60, DAY), 1),
        round(100 * references.overhead(best, 60, DAY), 1),
    ) == (
        10.4,
        3.8,
    )
    assert references.interval(600, 60.0, 0.0, DAY)["excess"] == pytest.approx(172.7, abs=0.1)


def test_two_levels_reach_half_of_the_square_of_the_ports_and_three_a_quarter_of_the_cube():
    switches = notebooks.answers(LAB)["switches"]
    assert switches(8192, 128) == [2, 128 + 64]
    assert switches(1050, 64) == [2, 33 + 32]  # 17 spines would not divide the 32 cables of a leaf
    for ports in (4, 40, 128):
        half = ports // 2
        assert switches(ports * half, ports) == [2, ports + half]
        assert switches(ports * half + 1, ports)[0] == 3
        assert switches(ports * half**2, ports) == [3, 5 * half**2]
        assert switches(ports * half**2 + 1, ports) is None


@given(st.floats(2, 3))
def test_youngs_formula_ends_where_failures_are_as_frequent_as_saves(times):
    excess = references.interval(sqrt(2 * times), 1.0, 0.0, times)["excess"]
    assert 4 < excess < 7.5


def test_the_simulator_agrees_with_dalys_model_of_an_expected_stretch():
    draws = Random(3)
    interval, cost, mtbf, restart = 900, 100, 2000.0, 50
    ends = []
    for _ in range(3000):
        failures, clock = [], 0.0
        while clock < 40_000:
            clock += draws.expovariate(1 / mtbf)
            failures.append(int(clock) + 1)
        # Two stretches; the last one needs no save.
        ends.append(references.replay(2 * interval, interval, cost, restart, failures)[0])
    expected = sum(
        mtbf * exp(restart / mtbf) * (exp(length / mtbf) - 1) for length in (interval + cost, interval)
    )
    assert np.mean(ends) == pytest.approx(expected, rel=0.03)


# ---------------------------------------------------------------- flows

KINDS = ("a chain", "several cables", "cut off", "a way back", "two halves", "leaves and spines")


def wrong(name: str):
    names: dict = {}
    source = notebooks.ROOT / "solutions" / LAB / "wrong" / f"{name}.py"
    exec(source.read_text(), names)
    return names["max_flow"]


def without_sending_back(takes: int, turned: bool):
    """Ways found from a stack or a queue, neighbours in the order of the links or turned round."""

    def max_flow(links, source, sink):
        left: dict = {source: {}, sink: {}}
        for a, b, rate in links:
            left.setdefault(a, {})[b] = left.get(a, {}).get(b, 0) + rate
            left.setdefault(b, {})
        total = 0
        while True:
            came, waiting = {source: None}, [source]
            while waiting and sink not in came:
                here = waiting.pop(takes)
                for node in list(left[here])[:: -1 if turned else 1]:
                    if left[here][node] and node not in came:
                        came[node] = here
                        waiting.append(node)
            if sink not in came:
                return total
            way, node = [], sink
            while came[node] is not None:
                way.append((came[node], node))
                node = came[node]
            most = min(left[a][b] for a, b in way)
            for a, b in way:
                left[a][b] -= most
            total += most

    return max_flow


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_no_search_that_never_sends_back_gets_through(seed):
    searches = [without_sending_back(*how) for how in product((0, -1), (False, True))]
    searches.append(wrong("max_flow_depth_first_never_sends_back"))
    questions = asked.flow_questions({"kind": "a way back"}, np.random.default_rng(seed))
    right = [references.max_flow(*question) for question in questions]
    for search in searches:
        assert [search(*question) for question in questions] != right


@given(st.integers(0, 2**32), st.sampled_from(KINDS))
def test_a_flow_is_as_large_as_the_narrowest_cut(seed, kind):
    links, source, sink = asked.flow_questions({"kind": kind}, np.random.default_rng(seed))[0]
    inner = sorted({node for link in links for node in link[:2]} - {source, sink})
    flow = notebooks.answers(LAB)["max_flow"](links, source, sink)
    draws, parts = Random(seed), [set()]
    if len(inner) < 9:
        parts = [{n for i, n in enumerate(inner) if bits >> i & 1} for bits in range(2 ** len(inner))]
    else:
        parts += [set(draws.sample(inner, draws.randrange(len(inner) + 1))) for _ in range(50)]
    cuts = [
        sum(rate for a, b, rate in links if a in part | {source} and b not in part | {source})
        for part in parts
    ]
    assert min(cuts) == flow if len(inner) < 9 else min(cuts) >= flow
    assert flow == references.max_flow(links, source, sink)


def test_a_ring_sends_as_much_per_node_but_through_one_nic():
    plans = {"ring": ring_over_all(4, 8), "levels": notebooks.answers(LAB)["all_reduce"](4, 8)}
    sent = {
        name: Counter(a for step in plan for a, b, chunks, _ in step for _ in chunks if a // 8 != b // 8)
        for name, plan in plans.items()
    }
    assert {n: count for n, count in sent["ring"].items() if n < 8} == {7: 62}
    assert {n: count for n, count in sent["levels"].items() if n < 8} == dict.fromkeys(range(8), 6)
    assert "62 chunks against 48" in notebooks.text(LAB)


# ---------------------------------------------------------------- plans


def ring_over_all(nodes: int, per_node: int) -> list:
    names: dict = {}
    exec(notebooks.cell_with(LAB, "def ring_over_all").split("ring_over_all(1, 3)")[0], names)
    return names["ring_over_all"](nodes, per_node)


@given(st.integers(1, 5), st.integers(1, 5))
def test_levels_take_the_steps_and_the_nic_traffic_that_were_derived(nodes, per_node):
    plan = notebooks.answers(LAB)["all_reduce"](nodes, per_node)
    assert references.all_reduce(plan, nodes, per_node) == {
        "NIC chunks": 2 * (nodes - 1),
        "steps": 2 * (nodes - 1) + 2 * (per_node - 1),
    }
    naive = references.all_reduce(ring_over_all(nodes, per_node), nodes, per_node)
    assert naive["steps"] == 2 * (nodes * per_node - 1)
    assert naive["NIC chunks"] == (naive["steps"] if nodes > 1 else 0)


@given(st.integers(0, 2**32), st.integers(2, 4), st.integers(1, 3))
def test_an_all_reduce_with_a_message_less_is_refused(seed, nodes, per_node):
    plan = notebooks.answers(LAB)["all_reduce"](nodes, per_node)
    draws = Random(seed)
    step = draws.choice(plan)
    step.remove(draws.choice(step))
    with pytest.raises(WrongAnswer):
        references.all_reduce(plan, nodes, per_node)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(2, 10), st.integers(1, 7), st.integers(1, 9))
def test_flows_can_always_be_spread_to_the_least(seed, leaves, degree, spines):
    sizes = {"leaves": leaves, "degree": degree, "spines": spines}
    for flows, count in asked.flows_questions(sizes, np.random.default_rng(seed)):
        if flows:
            assert (
                references.spread(notebooks.answers(LAB)["spread"](flows, count), flows, count)["share"] == 1
            )


@pytest.mark.parametrize(
    "kind", ["plain", "first", "left behind", "the same step", "too many", "more digits"]
)
@pytest.mark.parametrize("seed", range(4))
def test_a_save_with_any_operation_left_out_is_refused_unless_it_was_a_cleaning(kind, seed):
    sizes = {"kind": kind, "shards": 2, "keep": 2}
    for question in asked.save_questions(sizes, np.random.default_rng(seed)):
        plan = notebooks.answers(LAB)["save"](*question)
        references.save(plan, *question)
        for place in range(len(plan)):
            with pytest.raises(WrongAnswer):
                references.save(plan[:place] + plan[place + 1 :], *question)


def test_a_save_must_not_delete_before_the_new_name_is_there():
    plan = notebooks.answers(LAB)["save"](300, ["step-200"], 2, 1)
    assert plan[-1] == ["delete", "step-200"]
    with pytest.raises(WrongAnswer, match="no folder"):
        references.save([plan[-1], *plan[:-1]], 300, ["step-200"], 2, 1)


def test_files_that_a_save_of_more_ranks_left_must_not_come_into_the_new_one():
    there, plan = ["step-2", "step-3.tmp"], notebooks.answers(LAB)["save"](3, ["step-2", "step-3.tmp"], 2, 2)
    assert plan[0] == ["delete", "step-3.tmp"]
    with pytest.raises(WrongAnswer, match=r"`step-3/2` is there"):
        references.save(plan[1:], 3, there, 2, 2)


def test_a_save_that_deletes_itself_is_told_so():
    there = ["step-70", "step-80", "step-90"]
    plan = [*notebooks.answers(LAB)["save"](100, there[1:], 2, 3), ["delete", "step-100"]]
    with pytest.raises(WrongAnswer, match="in the end `step-100` is missing"):
        references.save(plan, 100, there, 2, 3)


def test_syncing_a_file_before_its_last_write_does_not_count():
    plan = [["write", "step-5.tmp/0"], ["sync", "step-5.tmp/0"], ["write", "step-5.tmp/0"]]
    plan += [["rename", "step-5.tmp", "step-5"], ["sync", "."]]
    with pytest.raises(WrongAnswer, match="without contents"):
        references.save(plan, 5, [], 1, 1)


@given(st.integers(0, 60), st.integers(1, 9), st.integers(1, 9))
def test_resharding_reads_every_element_once_and_in_order(elements, old, new):
    held = -(-elements // old)
    shards = [list(range(r * held, min(elements, (r + 1) * held))) for r in range(old)]
    plan = notebooks.answers(LAB)["reshard"](elements, old, new)
    assert plan == references.reshard(elements, old, new)
    assert [x for rank in plan for shard, start, stop in rank for x in shards[shard][start:stop]] == list(
        range(elements)
    )


# ---------------------------------------------------------------- the trainer, with real processes


def trainer() -> dict:
    """What the notebook's cells around the trainer bind."""
    names = notebooks.answers(LAB)
    for words in ("INPUTS, HIDDEN, SAMPLES, BATCH =", "def train(folder"):
        exec(notebooks.cell_with(LAB, words), names)
    return names


def test_a_run_that_was_killed_goes_on_with_the_same_bits(tmp_path):
    names = trainer()
    killed, quiet, odd = (tmp_path / name for name in ("killed", "quiet", "odd"))
    quiet.mkdir()
    for seconds in (
        0.5,
        2,
        8,
    ):  # until the kill, which is to come after the first save, on a busy machine too
        shutil.rmtree(killed, ignore_errors=True)
        killed.mkdir()
        with pytest.raises(distributed.RanksStopped, match="SIGKILL"):
            distributed.run(names["train"], 2, killed, 10**6, 5, False, (1, seconds), show=None)
        if reached := names["newest"](killed):
            break
    assert reached, "nothing was saved"
    shutil.copytree(killed, odd)
    after, straight = (
        distributed.run(names["train"], 2, folder, reached + 10, 5, show=None) for folder in (killed, quiet)
    )
    for (resumed, _), (without, _) in zip(after, straight, strict=True):
        assert resumed.tobytes() == without.tobytes()
    assert sorted(path.name for path in killed.iterdir()) == sorted(path.name for path in quiet.iterdir())
    # The generator that draws dropout is part of the state: with another one the bits differ.
    for file in (odd / f"step-{reached}").iterdir():
        torch.save(torch.load(file) | {"dropout": torch.Generator().manual_seed(99).get_state()}, file)
    other = distributed.run(names["train"], 2, odd, reached + 10, 5, show=None)
    assert other[0][0].tobytes() != straight[0][0].tobytes()


# ---------------------------------------------------------------- questions


@pytest.mark.parametrize("seed", range(20))
def test_idle_experts_are_held_and_odd_key_heads_are_not_cut(seed):
    for model, gpu, days, lost in asked.train_questions(
        {"kind": "idle experts"}, np.random.default_rng(seed)
    ):
        by_memory, by_time = asked.train_needs(model, gpu, days, lost)
        assert by_memory > by_time and by_memory - 8 > by_memory * model["active"] / model["parameters"]
    answers = [
        references.serve(*question)[2]
        for question in asked.serve_questions({"kind": "odd key heads"}, np.random.default_rng(seed))
    ]
    assert None in answers and any(answers)


def test_eight_flows_by_chance_make_heaps_as_the_prediction_says():
    draws = np.random.default_rng(5).integers(0, 8, (4000, 12, 8))
    most = (draws[..., None] == np.arange(8)).sum(axis=2).max(axis=(1, 2))
    assert np.mean(most >= 4) == pytest.approx(2 / 3, abs=0.03) and np.mean(most) == pytest.approx(
        3.8, abs=0.1
    )


@pytest.mark.parametrize(
    "exercise",
    [e for e in registry.of_lab(LAB) if getattr(e.evidence, "questions", None)],
    ids=lambda e: e.name,
)
@pytest.mark.parametrize("seed", range(3))
def test_questions_are_json(exercise, seed):
    for case in exercise.cases:
        questions = exercise.evidence.questions(case.sizes, np.random.default_rng(seed))
        assert questions and json.loads(json.dumps(questions)) == [list(arguments) for arguments in questions]


# ---------------------------------------------------------------- what the text says


def test_the_modelled_plan_agrees_with_the_closed_formula():
    names = notebooks.answers(LAB)
    source = notebooks.cell_with(LAB, "def modelled")
    exec(source.split("N, G = 4, 8")[0], names)
    plan, costs = names["all_reduce"](4, 8), names["costs"]
    formula = costs.hierarchical_all_reduce(names["fast"], names["slow"], 8, 4, 1e9)
    assert names["modelled"](plan, 4, 8, 1e9) == pytest.approx(formula)
    # Exchanges of whole arrays at distances 1, 2, 4, 8, 16: what "Beyond" calls ours.
    doubling = [[[r, r ^ 1 << bit, list(range(32)), "add"] for r in range(32)] for bit in range(5)]
    assert references.all_reduce(doubling, 4, 8)["steps"] == 5
    assert round(1e6 * names["modelled"](doubling, 4, 8, 1e5)) == 21
    assert "| ours | 21 |" in notebooks.text(LAB) and 3 * 2 + 2 * 5 == 16


def test_the_lucky_run_is_as_the_sample_answer_says():
    names: dict = {"np": np, "gpulab": gpulab}
    source = notebooks.cell_with(LAB, "def colleague")
    exec(source[: source.index("for name, (_, losses, _)")], names)
    smooth, crashed = names["smooth"], names["crashed"]
    read = np.bincount(crashed[2], minlength=1000)
    assert (int((read > 0).sum()), int((read == 0).sum()), set(read[:200].tolist())) == (350, 650, {4})
    assert (
        "350 of the 1,000 documents were ever read, 650 never, and the first 200 were read four times"
        in notebooks.text(LAB)
    )
    held = [names["mean_loss"](run[0], names["held_out"]) for run in (crashed, smooth)]
    assert f"{held[0]:.2f} against {held[1]:.2f}" in notebooks.text(LAB)
    last = [np.mean([run[1][s] for s in range(80, 100)]) for run in (crashed, smooth)]
    assert last[0] < last[1]


def test_two_places_for_checkpoints_lose_what_beyond_says():
    draws, mtbf = Random(1), 3.1 * 3600
    clock = saved = on_disk = 0.0  # work that a node's failure leaves, and any failure
    failure = draws.expovariate(1 / mtbf)
    while saved < 2e8:
        disk = saved + 360 - on_disk >= 3600
        end = clock + 360 + 5 + 60 * disk
        if failure < end:
            clock = failure + 120
            saved = saved if draws.random() < 0.9 else on_disk
            failure = clock + draws.expovariate(1 / mtbf)
        else:
            clock, saved = end, saved + 360
            on_disk = saved if disk else on_disk
    assert 100 * (clock / saved - 1) == pytest.approx(7.5, abs=0.1)
    assert "| ours: memory every 6 minutes, disk every hour | 7.5 |" in notebooks.text(LAB)


def test_rules_of_thumb_in_the_recap():
    assert round(sqrt(2 * 30 * 21_600)) == 1138 and round(100 * sqrt(2 * 30 / 21_600), 1) == 5.3
    assert round(2 * 15 / 16 * 1000 / 8) == 234


def test_the_program_for_torchrun_holds_every_function_that_its_functions_call():
    listed = re.findall(r"\w+", notebooks.cell_with(LAB, "def script").split("parts = [")[1].split("]")[0])
    trees = [ast.parse(c.source) for c in notebooks.cells(LAB, "code")]
    found = {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name in listed:
        called = {node.id for node in ast.walk(found[name]) if isinstance(node, ast.Name)}
        assert called & set(found) <= set(listed), name
