"""Lab 20 B: the least that budgets ask for is the least, manifests are held to what they say, texts cite the runs."""

from __future__ import annotations

import json
import random
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_20_serving import cluster as asked
from gpulab.content.lab_20_serving.references import cluster as references
from gpulab.simulator.hardware import MIG_PROFILES
from gpulab.subjects.serving import cluster, manifests
from tests.labs import notebooks

LAB = "20_serving"


def notebook() -> list:
    return notebooks.notebooks(LAB)["20_serving_b"].cells


def cell_with(words: str) -> str:
    return next(c.source for c in notebook() if c.cell_type == "code" and words in c.source)


def text() -> str:
    return " ".join("\n".join(c.source for c in notebook() if c.cell_type == "markdown").split())


# ---------------------------------------------------------------- MIG


def fits(requests: list[str], gpus: int) -> bool:
    """Is there any way to lay the requests onto that many GPUs? Tries all, large ones first."""
    seen = set()

    def rest(index: int, free: tuple[int, ...]) -> bool:
        if index == len(order):
            return True
        if (index, free) in seen:
            return False
        seen.add((index, free))
        profile = MIG_PROFILES[order[index]]
        for gpu in range(gpus):
            for start in profile.starts:
                mask = ((1 << int(profile.memory)) - 1) << start
                if free[gpu] & mask == mask:
                    after = tuple(sorted((*free[:gpu], free[gpu] & ~mask, *free[gpu + 1 :])))
                    if rest(index + 1, after):
                        return True
        return False

    order = sorted(requests, key=references.BY_FREEDOM.index)
    return rest(0, (255,) * gpus)


def opened_one_by_one(requests: list[str], last_start: bool) -> int:
    """GPUs for large ones first, each where it first finds room; a new GPU only for what has no place."""
    free: list[set[int]] = []
    for name in sorted(requests, key=references.BY_FREEDOM.index):
        profile = MIG_PROFILES[name]
        free.append(set(range(8)))
        starts = profile.starts[::-1] if last_start else profile.starts
        places = ((s, set(range(at, at + int(profile.memory)))) for at in starts for s in free[:-1])
        at = starts[0]
        new = free[-1], set(range(at, at + int(profile.memory)))
        slices, taken = next((place for place in places if place[1] <= place[0]), new)
        slices -= taken
        free = [s for s in free if len(s) < 8]
    return len(free)


@pytest.mark.parametrize("seed", range(3))
def test_the_questions_tell_the_fewest_gpus_from_what_other_rules_reach(seed):
    surplus = {True: [], False: []}
    for kind in ("threes and twos", "many threes and twos"):
        for (requests,) in asked.mig_questions({"kind": kind}, np.random.default_rng(seed)):
            for last_start, found in surplus.items():
                found.append(opened_one_by_one(requests, last_start) - references.least_gpus(requests))
    assert surplus[False][0] == 1 and surplus[True][:2] == [0, 1]  # one GPU tells the starts, two the opening
    assert min(max(found) for found in surplus.values()) >= 3  # as many as the budget calls naive


# Lists on which one rule or another needs too many, and small ones of all kinds.
mixtures = st.lists(st.sampled_from(asked.PROFILES), max_size=11) | st.lists(
    st.sampled_from(("2g.20gb", "2g.20gb", "3g.40gb", "1g.20gb")), max_size=12
)


@settings(max_examples=120, deadline=None)
@given(mixtures)
def test_no_other_way_cuts_fewer_gpus(requests):
    least = references.least_gpus(requests)
    assert fits(requests, least)
    assert not requests or not fits(requests, least - 1)
    assert references.mig(notebooks.answers(LAB)["mig"](requests), requests) == {"surplus": 0}


def test_no_placement_that_keeps_apart_in_memory_asks_for_more_than_seven_compute_slices():
    def most(free: int) -> int:
        found = 0
        for profile in MIG_PROFILES.values():
            for start in profile.starts:
                mask = ((1 << int(profile.memory)) - 1) << start
                if free & mask == mask:
                    found = max(found, int(profile.compute) + most_of(free & ~mask))
        return found

    most_of = cache(most)
    assert most_of(255) == 7


@pytest.mark.parametrize(
    "plan, words",
    [
        ([[0, 0], [0, 0]], "belongs to request 0"),
        ([[0, 4], [0, 4]], "cannot start"),
        ([[0, 4]], "1 places for 2"),
        ([[0, 4], [2, 0]], "the GPU of request 1"),
        ([[0, 4], [0, True]], "cannot start"),
        ([[0, 4], 0], r"must be \[GPU"),
        (None, "NoneType"),
    ],
)
def test_a_plan_for_mig_that_is_none_is_refused_with_a_sentence(plan, words):
    with pytest.raises(WrongAnswer, match=words):
        references.mig(plan, ["3g.40gb", "4g.40gb"])


# ---------------------------------------------------------------- packing


def fewest_islands(jobs: list[list[int]], capacity: int) -> int:
    """By trying all ways; jobs of up to 4 GPUs."""
    best = len(jobs)

    def rest(index: int, islands: list[tuple[int, int]]) -> None:
        nonlocal best
        if len(islands) >= best:
            return
        if index == len(order):
            best = len(islands)
            return
        gpus, memory = order[index]
        for i, (g, m) in enumerate(islands):
            if (g, m) not in islands[:i] and g >= gpus and m >= gpus * memory:
                rest(index + 1, [*islands[:i], (g - gpus, m - gpus * memory), *islands[i + 1 :]])
        rest(index + 1, [*islands, (4 - gpus, capacity - gpus * memory)])

    order = sorted(jobs, reverse=True)
    rest(0, [])
    return best


light = st.tuples(st.sampled_from((1, 1, 2, 2, 3, 4)), st.integers(1, 32))
heavy = st.tuples(st.just(1), st.integers(129, 160))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(light, heavy), min_size=1, max_size=9))
def test_no_other_way_packs_into_fewer_nodes(jobs):
    jobs = [list(job) for job in jobs]
    least = -(-fewest_islands(jobs, 256) // 2)
    assert references.least_nodes(jobs, 256) == least
    assert references.pack(notebooks.answers(LAB)["pack"](jobs, 256), jobs, 256) == {
        "cut jobs": 0,
        "surplus": 0,
    }
    with_whole = [*jobs, [8, 5]]
    assert references.least_nodes(with_whole, 256) == least + 1


def test_the_questions_are_of_the_kinds_for_which_that_is_shown():
    for kind in asked.BATCHES:
        for seed in range(5):
            for jobs, capacity in asked.pack_questions({"kind": kind}, np.random.default_rng(seed)):
                for gpus, memory in jobs:
                    big = capacity // 2 < memory <= 5 * capacity // 8
                    assert (gpus == 1 and big) or (gpus in (1, 2, 3, 4, 8) and 1 <= memory <= capacity // 8)


@pytest.mark.parametrize(
    "plan, words",
    [
        ([[[0, 0], [0, 1]], [[0, 1]]], "is given to both job"),
        ([[[0, 0], [1, 1]], [[0, 1]]], "more than one node"),
        ([[[0, 0], [0, 0]], [[0, 1]]], "is given to both job"),
        ([[[0, 0]], [[0, 1]]], "a list of 2 GPUs"),
        ([[[0, 0], [0, 8]], [[0, 1]]], "0 to 7"),
        ([[[0, 0], [0, 1]], [[0, 2]]], "has 100 GB"),
    ],
)
def test_a_plan_for_packing_that_is_none_is_refused_with_a_sentence(plan, words):
    with pytest.raises(WrongAnswer, match=words):
        references.pack(plan, [[2, 10], [1, 90]], 100)


# ---------------------------------------------------------------- gangs

queues = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 8), st.integers(1, 9)), min_size=1, max_size=12
).map(lambda jobs: [(sum(gap for gap, *_ in jobs[: i + 1]), n, d) for i, (_, n, d) in enumerate(jobs)])


@settings(deadline=None)
@given(queues)
def test_backfilling_in_order_puts_nobody_off(jobs):
    turn, filled = references.in_turn(jobs, 8), references.backfilled(jobs, 8)
    assert all(a <= b for a, b in zip(filled, turn, strict=True))
    assert references.gang(filled, jobs, 8) == {"waiting": 1}
    assert references.gang(turn, jobs, 8)["waiting"] >= 1
    run = cluster.planned([(n, d) for _, n, d in jobs], filled, 8)
    assert run.starts == tuple(filled)


@pytest.mark.parametrize(
    "starts, words",
    [
        ([0, 0], "hold 12 GPUs"),
        ([0, 3], "hold 12 GPUs"),
        ([4, 0], "begins at 4"),
        ([0, 5], "would have begun at 4"),
        ([0, 4.0], "whole number"),
        ([-1, 4], "whole number"),
    ],
)
def test_a_plan_for_gangs_that_is_none_is_refused_with_a_sentence(starts, words):
    with pytest.raises(WrongAnswer, match=words):
        references.gang(starts, [[0, 6, 4], [0, 6, 2]], 8)


# ---------------------------------------------------------------- fairness


def test_the_example_of_the_paper_comes_out():
    [(capacity, tenants)] = asked.fair_questions({"kind": "nine and eighteen"}, np.random.default_rng(0))
    assert references.fair(capacity, tenants) == [[3, 0], [2, 0]]


@pytest.mark.parametrize("kind", ["one is out", "weights", "preemption", "no GPUs"])
@pytest.mark.parametrize("seed", range(5))
def test_nobody_gets_more_than_there_is_and_all_that_wait_are_refused_for_a_reason(kind, seed):
    for capacity, tenants in asked.fair_questions({"kind": kind}, np.random.default_rng(seed)):
        result = references.fair(capacity, tenants)
        used = {
            r: sum(n * t["task"].get(r, 0) for (n, _), t in zip(result, tenants, strict=True))
            for r in capacity
        }
        assert all(used[r] <= capacity[r] for r in capacity)
        for (n, _), tenant in zip(result, tenants, strict=True):
            wants_more = n < tenant["running"] + tenant["waiting"]
            assert not wants_more or any(used[r] + need > capacity[r] for r, need in tenant["task"].items())
        if kind == "preemption":
            assert all(p == max(0, t["running"] - n) for (n, p), t in zip(result, tenants, strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_others_go_on_when_one_is_out(seed):
    questions = asked.fair_questions({"kind": "one is out"}, np.random.default_rng(seed))
    for capacity, tenants in questions:
        [first, _], [second, _] = references.fair(capacity, tenants)
        assert first == 1  # refused a second one, at a share of little more than a half
        assert second * tenants[1]["task"]["cpu"] / capacity["cpu"] > 0.7


@pytest.mark.parametrize("gpus, weights", asked.TIES)
@pytest.mark.parametrize("share", [lambda n, gpus: n / gpus, lambda n, gpus: n * (1 / gpus)])
def test_ties_need_exact_shares(gpus, weights, share):
    tasks = [0] * len(weights)
    for _ in range(gpus):
        tasks[min(range(len(weights)), key=lambda i: (share(tasks[i], gpus) / weights[i], i))] += 1
    task = {"gpu": 1, "cpu": 1, "memory": 8}
    tenants = [{"task": task, "weight": w, "running": 0, "waiting": 40} for w in weights]
    exact = references.fair({"gpu": gpus, "cpu": 100, "memory": 1000}, tenants)
    assert [n for n, _ in exact] != tasks


def test_somebody_is_preempted():
    draws = [
        references.fair(*q)
        for s in range(5)
        for q in asked.fair_questions({"kind": "preemption"}, np.random.default_rng(s))
    ]
    assert sum(any(p for _, p in result) for result in draws) > len(draws) / 2


# ---------------------------------------------------------------- replicas


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=6),
    st.integers(0, 3),
    st.sampled_from((1, 10)),
    st.data(),
)
def test_no_other_plan_serves_every_minute_for_less(need, delay, capacity, data):
    load = [n * capacity for n in need]
    ready = max(need[: delay + 1])
    plan = notebooks.answers(LAB)["autoscale"](load, capacity, delay, ready)
    assert references.autoscale(plan, load, capacity, delay, ready) == {"minutes over": 0, "surplus": 0}
    for other in product(range(max(need) + 1), repeat=len(load)):
        if sum(other) < sum(plan):
            run = cluster.scale(load, capacity, delay, ready, lambda t, *_, plan=other: plan[t])
            assert run.minutes_over


# ---------------------------------------------------------------- manifests


@pytest.mark.parametrize("kind", ["a large model", "a job"])
def test_every_line_of_a_manifest_is_needed(kind):
    (service,) = asked.manifest_questions({"kind": kind}, np.random.default_rng(1))[0]
    written = notebooks.answers(LAB)["manifest"](service)
    references.manifest(written, service)
    lines = written.splitlines()
    spared = []
    for number in range(len(lines)):
        try:
            references.manifest("\n".join(lines[:number] + lines[number + 1 :]), service)
        except WrongAnswer:
            continue
        spared.append(lines[number].strip())
    # The port is documentation, and 10 s are the default; with those two lines gone a block is empty, and still there.
    assert {line.split(":")[0] for line in spared} <= {"ports", "- {containerPort", "periodSeconds"}


def test_the_same_manifest_as_json_is_as_good():
    (service,) = asked.manifest_questions({"kind": "several GPUs"}, np.random.default_rng(1))[0]
    fields = manifests.read(notebooks.answers(LAB)["manifest"](service)).fields
    assert references.manifest(json.dumps(fields), service) == {"right": 1}


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("operator: Exists, effect: NoSchedule", "value: present", None),
        ("operator: Exists, effect: NoSchedule", "value: other", "stays Pending"),
        ("operator: Exists, effect: NoSchedule", "operator: Exists, effect: NoExecute", "stays Pending"),
        ("key: nvidia.com/gpu, operator: Exists, effect: NoSchedule", "operator: Exists", "every taint"),
        ("key: nvidia.com/gpu, operator: Exists, effect", "operator: Exists, effect", "every taint"),
        ("      - {key: nv", "      - {operator: Exists}\n      - {key: nv", "every taint"),
        ("rollingUpdate: {maxSurge: 0, maxUnavailable: 1}", "type: Recreate", None),
        ("maxUnavailable: 1", "maxUnavailable: 0", "none removed"),
        ("  replicas:", "  replicas: 1\n  replicas:", r"stands twice, in lines 5 and 6"),
        ("  replicas:", "  replicas: two #", r"line 5\) is 'two'; the schema asks for an integer"),
        ("matchLabels: {app:", "matchLabels: {app: x", "labels of the template"),
        ("path: /health", "path: /", "/health"),
        ("port: 8", "port: 9", "the service listens at"),
        ("/dev/shm", "/shm", "64 MB"),
        ("- {name: shm", "- {name: other", "no volume `other`"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_said(old, new, words):
    (service,) = asked.manifest_questions({"kind": "several GPUs"}, np.random.default_rng(1))[0]
    written = notebooks.answers(LAB)["manifest"](service)
    assert old in written
    changed = written.replace(old, new, 1)
    if words is None:
        assert references.manifest(changed, service) == {"right": 1}
    else:
        with pytest.raises(WrongAnswer, match=words):
            references.manifest(changed, service)


@pytest.mark.parametrize(
    "value, good", [("16", True), ("16.0", True), ("16000m", True), ("1.6e1", True), ("16k", False)]
)
def test_quantities_are_read_as_kubernetes_reads_them(value, good):
    (service,) = asked.manifest_questions({"kind": "several GPUs"}, np.random.default_rng(1))[0]
    service["cpu"] = 16
    written = notebooks.answers(LAB)["manifest"](service).replace("cpu: 16", f'cpu: "{value}"')
    if good:
        references.manifest(written, service)
    else:
        with pytest.raises(WrongAnswer, match="must be 16"):
            references.manifest(written, service)


# ---------------------------------------------------------------- questions and texts


@pytest.mark.parametrize("exercise", asked.EXERCISES, ids=lambda e: e.name)
@pytest.mark.parametrize("seed", range(3))
def test_questions_are_json(exercise, seed):
    for case in exercise.cases:
        questions = exercise.evidence.questions(case.sizes, np.random.default_rng(seed))
        assert questions and json.loads(json.dumps(questions)) == [list(arguments) for arguments in questions]


def test_replicas_that_are_needed_at_first_are_there():
    for case in asked.EXERCISES[4].cases:
        for seed in range(5):
            for load, capacity, delay, ready in asked.autoscale_questions(
                case.sizes, np.random.default_rng(seed)
            ):
                assert all(-(-now // capacity) <= ready for now in load[: delay + 1])


def test_the_detective_has_one_answer():
    names: dict = {}
    source = cell_with("pending = {")
    exec(source[: source.index("print(")], names)
    nodes, running, wanted, free = (names[key] for key in ("nodes", "running", "pending", "free"))
    assert sum(free(n, "gpus") for n in nodes) == 22 and "22 GPUs are free" in text()

    def takes(node: str) -> bool:
        return (
            not nodes[node]["taints"]
            and nodes[node]["product"] == wanted["product"]
            and all(free(node, what) >= wanted[what] for what in ("gpus", "memory"))
        )

    assert not any(map(takes, nodes))
    # `tune-0` uses memory on n1, too; but no other node without a taint has 4 free H100s.
    assert all(pod["product"] in (None, nodes[pod["node"]]["product"]) for pod in running)
    cures = []
    for pod in list(running):
        home = pod["node"]
        for node in nodes:
            room = not nodes[node]["taints"] and all(
                free(node, what) >= pod[what] for what in ("gpus", "memory")
            )
            same = pod["product"] in (None, nodes[node]["product"])
            if node != home and room and same:
                pod["node"] = node
                cures += [pod["name"]] * any(map(takes, nodes))
                pod["node"] = home
    assert set(cures) == {"etl-0"}
    assert free("n1", "memory") == 128 and free("n5", "memory") == 704
    assert (
        "it has only 128 GiB of memory left, and 200 GiB are needed" in text()
        and "has 704 GiB free" in text()
    )


def test_beyond_is_reached_by_random_changes_of_the_order():
    names = dict(notebooks.answers(LAB))
    source = cell_with("later = ")
    exec(source[source.index("later =") : source.index('print(f"in turn')], names)
    later = names["later"]
    turn = references.in_turn(later, 16)

    def starts(order):
        placed, found = [], {}
        for i in order:
            found[i] = references._first_room(
                [later[j] for j in placed], [found[j] for j in placed], 16, *later[i]
            )
            placed.append(i)
        return [found[i] for i in range(len(later))]

    def waiting(plan):
        return sum(start - job[0] for start, job in zip(plan, later, strict=True))

    draws, order = random.Random(0), list(range(len(later)))
    best = starts(order)
    assert (waiting(turn), waiting(best)) == (559, waiting(notebooks.answers(LAB)["gang"](later, 16)))
    for _ in range(400):
        other = list(order)
        a, b = draws.randrange(len(other)), draws.randrange(len(other))
        other.insert(b, other.pop(a))
        plan = starts(other)
        if all(x <= y for x, y in zip(plan, turn, strict=True)) and waiting(plan) <= waiting(best):
            order, best = other, plan
    assert names["in_turn"](later, 16) == turn and names["waiting"](best) == 220
    assert waiting(best) == 220 and names["bound"](later, 16) < 220
    assert "| in turn, no job passes another | 559 |" in text() and "jobs are placed | 220 |" in text()


def test_the_text_names_the_schema_that_is_asked():
    assert f"the schema of Kubernetes {manifests.VERSION}" in text().replace(" # ", " ")


def test_the_prediction_of_steps_is_what_the_autoscaler_does():
    replicas, steps = 8, 0
    while replicas < 4 * 8:
        replicas, steps = cluster.desired(replicas, 1.0, 0.7), steps + 1
    assert [p.answer for p in asked.PREDICTIONS if p.name == "cluster.desired"] == [steps]


def test_the_example_of_the_sharing_figure_is_the_prediction():
    assert cluster.shared_latency("time-slicing", 1, 8.0, 0.4) == 16
    assert [cluster.shared_latency("MPS", n, 8.0, 0.4) for n in (0, 1, 2)] == [8, 8, pytest.approx(9.6)]
    assert cluster.shared_latency("MIG 3g", 4, 8.0, 0.4) == 8
