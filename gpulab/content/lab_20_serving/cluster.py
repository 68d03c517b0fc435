"""Lab 20, part B: what its six exercises ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| mig | mig(requests), a plan | slices have places | GPUs beyond the least | 3 | 0 | 4 |
| pack | pack(jobs, capacity), a plan | fragments, islands | jobs cut without need | 2 | 0 | 5 |
| | | memory as well | nodes beyond the least | 3 | 0 | |
| gang | gang(jobs, gpus), a plan | backfill, fairness | waiting/backfilled | 1.5 | 1 | 5 |
| fair | fair(capacity, tenants) | dominant shares, preemption | answers | – | – | 4 |
| autoscale | autoscale(load, capacity, delay, ready) | cold starts | minutes over | 20 | 0 | 5 |
| | | | replica-minutes beyond the least | 60 | 0 | |
| manifest | manifest(service), a text | what the schema does not know | answers | – | – | 5 |

Budgets of plans are counted at every case: the worst decides.

Derivations:

**mig**: in memory slices a 1g takes 1 (or 2, with double memory), a 2g 2, a 3g and a 4g 4, a 7g 8. A 4g
starts at 0 only, so a GPU has one place for a 4g and one behind it, 4 … 7, for a 3g. A pair of slices from
0, 2 or 4 holds a 2g, a double 1g, or two 1g; the last pair, from 6, a double 1g or a single one, because no
1g starts at 7. With a *given* number of GPUs, all open from the start, large first and each at the last free
start places all requests if any plan does: a 3g at 0 takes two pairs from the 2g, one at 4 only one, and a
double 1g at 6 none. So the least is the smallest number that suffices. Opening GPUs one by one is not exact:
[3g, 3g, 2g, 2g, 2g, 2g] fits two GPUs, but the second 3g goes to slice 0 of the first before another is open.
(tests/labs/test_20_cluster.py compares with a search.)

**pack**: an island has 4 GPUs and `capacity` GB of host memory, a node two islands. Jobs have 8, 4, 3, 2 or
1 GPUs with at most capacity/8 a GPU, or are *heavy*: 1 GPU with more than half of an island's memory, which
fits beside 3 others and never beside another heavy one. In order of the larger of both shares — 4, 3,
heavy, 2, 1 — first fit is the least (compared with a search as well). By GPUs alone heavy jobs come last,
when pairs of 2 have closed the islands: the jobs 2, 2, heavy, heavy need two islands, and by GPUs they take
three.

**gang**: in order of arrival each job takes the first gap that those before it leave (conservative
backfilling). It never begins later than if nobody might pass: at the time when it would begin then, every
earlier job that still runs in the backfilled plan would still run there, because it began no later. So
"nobody later than in turn" can always be kept, and the sum of waiting times is compared with that plan's.

**autoscale**: the k-th replica is needed at s where ⌈load/capacity⌉ ≥ k. To serve at s it must exist from s
− delay on. So at t the least is the largest need from t to t + delay; a replica that is needed again within
the delay is cheaper kept than ordered anew.
"""

from __future__ import annotations

from functools import partial
from math import ceil, sin
from typing import Any

import numpy as np

from gpulab.checks.builders import answered, prediction
from gpulab.checks.spec import EVERY, Budget, Exercise, Prediction, Sizes

LAB = "20"


# ---------------------------------------------------------------- MIG

PROFILES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
MIXES: dict[str, tuple[int, ...]] = {  # how many of each profile, at most
    "one kind": (0, 0, 0, 3, 0, 0),
    "double memory": (5, 4, 0, 1, 1, 0),
    "the last slice": (9, 0, 3, 0, 1, 0),
    "a mixture": (3, 2, 3, 3, 2, 1),
}


def mig_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(requests,): names of profiles, in the order in which they came."""
    kind = str(sizes["kind"])
    if kind == "nothing":
        return [([],)]
    if kind == "four and three":
        return [(["3g.40gb"] * n + ["4g.40gb"] * n,) for n in (1, 2, 3)]
    asked = []
    if kind in ("threes and twos", "many threes and twos"):  # each GPU has a 3g at 4, and a 2g at 0 and at 2
        few, most = (1, 4) if kind == "threes and twos" else (18, 22)
        for gpus in range(few, most):
            full = ["3g.40gb", "2g.20gb", "2g.20gb"] * gpus
            asked.append(([full[i] for i in generator.permutation(len(full))],))
        return asked
    for _ in range(5):
        if kind == "many":
            # Full GPUs of three kinds: 4g and 3g; three 2g and a double 1g; 7g. Those with a choice first.
            a, b, c = (int(generator.integers(*span)) for span in ((5, 8), (3, 6), (1, 3)))
            first = ["3g.40gb"] * a + ["1g.20gb"] * b
            rest = ["4g.40gb"] * a + ["2g.20gb"] * 3 * b + ["7g.80gb"] * c
        else:
            first, rest = [], []
            for name, most in zip(PROFILES, MIXES[kind], strict=True):
                rest += [name] * int(generator.integers((most + 1) // 2, most + 1))
        asked.append((first + [rest[i] for i in generator.permutation(len(rest))],))
    return asked


# ---------------------------------------------------------------- packing

ISLAND = 4  # GPUs
# By case: GPUs of a job, how many such jobs (from, to), and whether one takes more than half of the memory.
BATCHES: dict[str, tuple[tuple[int, tuple[int, int], bool], ...]] = {
    "one node": ((4, (1, 1), False), (2, (1, 1), False), (1, (2, 2), False)),
    "threes": ((3, (2, 2), False), (1, (2, 2), False), (2, (0, 2), False)),
    "light threes": (),
    "whole nodes": ((8, (2, 2), False), (4, (1, 3), False), (3, (1, 1), False), (1, (0, 3), False)),
    "heavy memory": ((2, (2, 2), False), (1, (4, 6), True)),
    "heavy and threes": ((3, (2, 4), False), (2, (0, 3), False), (1, (2, 5), True), (1, (0, 4), False)),
    "many": (
        (8, (1, 3), False),
        (4, (2, 4), False),
        (3, (4, 7), False),
        (2, (8, 12), False),
        (1, (14, 18), True),
        (1, (2, 9), False),
    ),
}


def pack_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(jobs, capacity): jobs are [GPUs, GB of host memory for each]; capacity is GB of one island."""
    kind, asked = str(sizes["kind"]), []
    for _ in range(5):
        capacity = 64 * int(generator.integers(4, 17))
        jobs: list[list[int]] = []
        for gpus, (few, many), heavy in BATCHES[kind]:
            low, high = (capacity // 2 + 1, 5 * capacity // 8) if heavy else (1, capacity // 8)
            for _ in range(int(generator.integers(few, many + 1))):
                jobs.append([gpus, int(generator.integers(low, high + 1))])
        if kind == "light threes":  # an island has one of both; those with much memory are the small ones
            for _ in range(2 * int(generator.integers(12, 15))):
                jobs += [[3, 1], [1, capacity // 8]]
        if kind == "heavy memory":  # as many pairs as heavy ones: each island has one of both
            jobs += [[2, 1] for _ in range(len(jobs) - 2)]
        order = [int(i) for i in generator.permutation(len(jobs))]
        if kind == "many":  # small ones came first and took the islands where heavy ones would leave room
            order.sort(key=lambda i: jobs[i][0] > 2 or jobs[i][1] > capacity // 2)
        asked.append(([jobs[i] for i in order], capacity))
    return asked


# ---------------------------------------------------------------- gangs


def gang_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(jobs, GPUs): jobs are [arrival, GPUs, duration], in order of arrival."""
    kind, asked = str(sizes["kind"]), []
    for _ in range(4):
        gpus = 16
        count = {"all at once": 8, "one by one": 6, "wide and narrow": 12, "a long queue": 40}.get(kind, 6)
        clock, jobs = 0, []
        for _ in range(count):
            wide = generator.random() < 0.4
            wanted = int(generator.integers(9, 17)) if wide else int(generator.integers(1, 5))
            duration = int(generator.integers(4, 20)) if wide else int(generator.integers(1, 9))
            if kind == "one by one":
                wanted, clock = 16, clock + int(generator.integers(0, 6))
            elif kind == "whole cluster":
                wanted = int(generator.choice((1, 8, 16)))
            elif kind in ("wide and narrow", "a long queue"):
                clock += int(generator.integers(0, 3))
            jobs.append([clock, wanted, duration])
        if kind == "who is passed":
            # Job 1 waits for job 0, and job 2 for job 1. A long narrow one fits beside job 1 and puts off
            # job 2 if it may; a short one harms nobody.
            a, b = int(generator.integers(9, 12)), int(generator.integers(4, 8))
            jobs = [[0, a, 6], [0, 8, b], [1, 13, 5], [2, 4, 30], [2, 4, 3], [3, 1, 2]]
        asked.append((jobs, gpus))
    return asked


# ---------------------------------------------------------------- fairness


# GPUs and weights for tenants who all want one GPU a task: shares in floats, whether tasks · (1 / GPUs) or
# tasks / GPUs, break a tie otherwise than exact ones (tests/labs/test_20_cluster.py shows it).
TIES = ((9, (5, 1, 1)), (11, (1, 1, 3)), (11, (2, 3, 5)), (18, (5, 1, 2)), (22, (3, 3, 1)), (27, (1, 3, 1)))


def fair_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(capacity, tenants): a tenant has `task`, `weight`, `running` and `waiting`."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    if kind == "nine and eighteen":  # the example of the paper, with GPUs for processors
        two = [
            {"task": {"gpu": 1, "memory": 4}, "weight": 1, "running": 0, "waiting": 9},
            {"task": {"gpu": 3, "memory": 1}, "weight": 1, "running": 0, "waiting": 9},
        ]
        return [({"gpu": 9, "memory": 18}, two)]
    for _ in range(5):
        capacity = {
            "gpu": 8 * int(generator.integers(2, 9)),
            "cpu": 64 * int(generator.integers(2, 9)),
            "memory": 512 * int(generator.integers(2, 9)),
        }
        tasks: list[dict[str, int]] = []
        tenants: list[dict[str, Any]] = []
        for _ in range(2 if kind == "one is out" else int(generator.integers(2, 5))):
            task = {
                "gpu": int(generator.integers(1, 5)),
                "cpu": int(generator.integers(1, 25)),
                "memory": int(generator.integers(8, 161)),
            }
            if kind == "no GPUs" and not tenants:
                task["gpu"] = 0
            if kind == "one is out" and not tenants:  # a second one never fits
                task = {"gpu": capacity["gpu"] // 2 + 1, "cpu": 8, "memory": 64}
            elif kind == "one is out":  # not much of anything, and of processors the most
                task = {"gpu": 0, "cpu": int(generator.integers(8, 17)), "memory": 8}
            tasks.append(task)
            weight = int(generator.integers(1, 4)) if kind in ("weights", "preemption") else 1
            waiting = int(generator.integers(0, 6)) if kind == "few wait" else 100
            tenants.append({"task": task, "weight": weight, "running": 0, "waiting": waiting})
        if kind == "ties":
            task = {"gpu": 1, "cpu": 1, "memory": 8}
            gpus, weights = TIES[int(generator.integers(len(TIES)))]
            capacity = {"gpu": gpus, "cpu": 100, "memory": 1000}
            tenants = [
                {"task": dict(task), "weight": weight, "running": 0, "waiting": 40} for weight in weights
            ]
        if kind == "preemption":  # one has filled the cluster before the others came
            who = int(generator.integers(len(tenants)))
            first = tenants[who]
            room = min(capacity[r] // need for r, need in tasks[who].items() if need)
            first["running"], first["waiting"] = room, int(generator.integers(0, 5))
        asked.append((capacity, tenants))
    return asked


# ---------------------------------------------------------------- replicas


def autoscale_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(load, capacity, delay, ready): load and capacity in requests per minute, delay in minutes."""
    kind, asked = str(sizes["kind"]), []
    for _ in range(3):
        capacity, delay, minutes = int(generator.integers(20, 60)), int(generator.integers(3, 8)), 60
        base = int(generator.integers(1, 3))
        need = [base] * minutes
        match kind:
            case "a step":
                at = int(generator.integers(15, 40))
                need = [base if t < at else base + 4 for t in range(minutes)]
            case "no delay":
                delay = 0
                need = [base + int(generator.integers(0, 4)) for _ in range(minutes)]
            case "short dips":
                for t in range(10, minutes):
                    need[t] = base + (0 if (t - 10) % (2 * delay) < delay - 1 else 3)
            case "long dips":
                for t in range(10, minutes):
                    need[t] = base + (0 if (t - 10) % (4 * delay) < 2 * delay else 3)
            case "to nothing":
                need = [base if t < 15 or 25 <= t < 40 else 0 for t in range(minutes)]
            case _:  # two days, spikes among them
                minutes = 360
                phase = float(generator.uniform(0, 6))
                need = [base + round(4 + 4 * sin(t / 30 + phase)) for t in range(minutes)]
                for at in generator.integers(40, minutes - 20, 6):
                    for t in range(int(at), int(at) + int(generator.integers(3, 9))):
                        need[t] += int(generator.integers(3, 6))
        load = [max(0, n * capacity - int(generator.integers(0, capacity // 2))) for n in need]
        ready = max((ceil(now / capacity) for now in load[: delay + 1]), default=0)
        asked.append((load, capacity, delay, ready))
    return asked


# ---------------------------------------------------------------- manifests

PRODUCTS = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S", "NVIDIA-H200")


def manifest_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(service,): what is to run, as a dictionary."""
    kind, asked = str(sizes["kind"]), []
    for _ in range(2):
        service = {
            "kind": "Job" if "job" in kind else "Deployment",
            "name": str(generator.choice(("chat", "search", "draft", "judge-7b"))),
            "image": f"registry.example/llm/{generator.choice(('server', 'trainer'))}",
            "version": f"{generator.integers(1, 9)}.{generator.integers(0, 20)}.{generator.integers(0, 9)}",
            "pods": int(generator.integers(1, 5)),
            "gpus": 1 if kind == "one GPU" else int(generator.choice((2, 4, 8))),
            "product": str(generator.choice(PRODUCTS)),
            "cpu": int(generator.integers(4, 33)),
            "memory_gib": 16 * int(generator.integers(2, 17)),
            "shm_gib": 4 * int(generator.integers(1, 9)),
        }
        if service["kind"] == "Deployment":
            service["port"] = int(generator.integers(8000, 9000))
            service["load_seconds"] = int(generator.integers(40, 200))
            if kind == "a large model":
                service["load_seconds"] = int(generator.integers(900, 2400))
        asked.append((service,))
    return asked


# ---------------------------------------------------------------- the exercises


_measured = partial(answered, "cluster", LAB, measured=True)


EXERCISES: tuple[Exercise, ...] = (
    _measured(
        "mig",
        1,
        (
            "one kind",
            "four and three",
            "threes and twos",
            "double memory",
            "the last slice",
            "a mixture",
            "many",
            "many threes and twos",
            "nothing",
        ),
        mig_questions,
        (
            "Which profile has the fewest possible starts? Place it first. For each GPU, keep the set of "
            "free memory slices.",
            "A 3g.40gb at 0 blocks the places of two 2g, and at 4 of only one. Where should it go if another "
            "GPU is used anyway? First assume that you know the number of GPUs.",
            "Try 0, 1, 2 … GPUs, all empty. Place the requests in the order 7g, 4g, 3g, 2g, 1g.20gb, "
            "1g.10gb, each at its last possible start that is free on any GPU. If a request finds none, "
            "start again with one more GPU.",
        ),
        "B2 · One GPU for several: slices that have places",
        Budget(
            "surplus",
            0,
            3,
            "GPUs",
            naive=3,
            unit="GPUs more than needed",
            case=EVERY,
            advice="Do instances share GPUs? If they do, which instance is at a place that another one "
            "needed, although it had a choice?",
        ),
    ),
    _measured(
        "pack",
        1,
        ("one node", "threes", "light threes", "whole nodes", "heavy memory", "heavy and threes", "many"),
        pack_questions,
        (
            "Fill islands first, and combine two islands into a node later. A job with 8 GPUs takes a whole "
            "node, and every other job goes into one island.",
            "Use first fit, with the large jobs first. A job takes a share of an island's GPUs and a share "
            "of its memory. Which of the two makes it large?",
            "Sort by max(GPUs / 4, GPUs · memory / capacity), the largest first. Then number the islands: "
            "island i is on node i // 2, and its GPUs begin at 4 · (i % 2).",
        ),
        "B4 · Bins with two sizes: GPUs and memory",
        Budget(
            "cut jobs",
            0,
            2,
            "islands",
            naive=2,
            unit="jobs over two islands",
            case=EVERY,
            advice="Each of these jobs sends its traffic across the link between the sockets. On which "
            "island is its first GPU?",
        ),
        Budget(
            "surplus",
            0,
            2,
            "nodes",
            naive=3,
            unit="nodes more than needed",
            case=EVERY,
            advice="Do jobs share nodes? If they do, which jobs were placed last, and what was missing for "
            "them: GPUs or memory?",
        ),
    ),
    _measured(
        "gang",
        2,
        ("one by one", "all at once", "whole cluster", "who is passed", "wide and narrow", "a long queue"),
        gang_questions,
        (
            "Go through the jobs in order of arrival, and store for each when it starts and ends. The GPUs "
            "in use at time t are the sum over all jobs with start ≤ t < end.",
            "A job fits at t if there are enough free GPUs at every moment from t to t + duration. The use "
            "rises only when another job starts, so it is enough to look at t and at the starts in between.",
            "Candidates for t are the job's arrival and all later ends. Take the first candidate at which "
            "the job fits. Jobs that are already placed keep their times, so none is delayed.",
        ),
        "B5 · Gangs",
        Budget(
            "waiting",
            1.02,
            3,
            "waiting",
            naive=1.5,
            unit="× the waiting with backfilling",
            case=EVERY,
            advice="Are there gaps before a wide job in which a later job would fit?",
        ),
    ),
    _measured(
        "fair",
        4,
        (
            "nine and eighteen",
            "one is out",
            "few wait",
            "weights",
            "ties",
            "no GPUs",
            "preemption",
        ),
        fair_questions,
        (
            "Start with an empty cluster, whatever is running. First work out how many tasks each tenant "
            "should have, and then how many running ones are too many. A tenant wants at most running + "
            "waiting tasks.",
            "Repeat: of the tenants that still want a task, take the one with the smallest dominant share ÷ "
            "weight, or the first of them if there are several. If its task does not fit, it gets no more.",
            "The dominant share is max(tasks · need ÷ capacity) over the resources. Use Fraction: with "
            "floats, 3 · 0.1 differs from 0.3, and a tie is missed. Preempted are running − tasks, if that "
            "is positive.",
        ),
        "B6 · Who gets how much",
        measured=False,
    ),
    _measured(
        "autoscale",
        1,
        ("a step", "no delay", "short dips", "long dips", "to nothing", "half a day"),
        autoscale_questions,
        (
            "How many replicas does each minute need? With integers, −(−load // capacity) rounds up.",
            "A replica that serves in minute s has existed since minute s − delay. So the needs of which "
            "minutes decide how many have to exist in minute t?",
            "The number in minute t is the largest need from t to t + delay. At the end of the list, fewer "
            "minutes are left to look at.",
        ),
        "B7 · Replicas that start slowly",
        Budget(
            "minutes over",
            0,
            2,
            "service",
            naive=20,
            unit="minutes with too few replicas",
            case=EVERY,
            advice="When does a replica have to be ordered so that it serves in minute s? And what happens "
            "until then to those that serve now?",
        ),
        Budget(
            "surplus",
            0,
            2,
            "cost",
            naive=60,
            unit="replica-minutes more than needed",
            case=EVERY,
            advice="Which replicas are needed neither now nor within the delay?",
        ),
    ),
    _measured(
        "manifest",
        5,
        ("one GPU", "several GPUs", "a large model", "a job"),
        manifest_questions,
        (
            "Start from the manifest in the text, and change one thing at a time. The check names the line.",
            "You need a toleration `key: nvidia.com/gpu, operator: Exists, effect: NoSchedule`, a volume "
            "`emptyDir: {medium: Memory, sizeLimit: …}` that is mounted at /dev/shm, and limits for cpu, "
            "memory and nvidia.com/gpu.",
            "The memory limit includes what is in /dev/shm. A startupProbe allows failureThreshold × "
            "periodSeconds. A Job has no selector, probes or strategy, but its pods have a restartPolicy.",
        ),
        "B8 · A manifest",
    ),
)


_prediction = partial(prediction, "cluster", LAB, tolerance=0.05)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "two_threes",
        "Two 3g.40gb instances are on one GPU. How many 1g.10gb instances fit beside them",
        "instances",
        0,
        "A 3g takes 3 of 7 compute slices and 4 of 8 memory slices. Two of them leave one compute slice but "
        "no memory slice.",
        tolerance=0,
    ),
    _prediction(
        "neighbour",
        "A request that occupies 40 % of the SMs takes 8 ms alone. One neighbour always has work. The time "
        "at worst with time-slicing, 2 ms a slice",
        "ms",
        16,
        "The request needs four slices, and each of them waits for one of the neighbour's: 4 · 2 ms + 4 · "
        "2 ms = 16 ms. The 60 % of the SMs that are idle meanwhile are of no use.",
        tolerance=0.05,
    ),
    _prediction(
        "free",
        "8 nodes with 8 GPUs each, of which 3 are free on each node. Pods with 2 GPUs that can start",
        "pods",
        8,
        "One on each node, because a pod cannot span nodes. The third free GPU of a node has no partner "
        "there. 24 / 2 would be 12.",
        tolerance=0,
    ),
    _prediction(
        "stranded",
        "Two jobs with 2 GPUs and hardly any memory, two with 1 GPU and more than half of an island's "
        "memory. Islands of 4 GPUs that first fit takes when it sorts by GPUs alone",
        "islands",
        3,
        "The two jobs with 2 GPUs fill the first island. The heavy ones cannot share an island, so each "
        "takes one of its own. Two islands would do.",
        tolerance=0,
    ),
    _prediction(
        "dominant",
        "9 GPUs and 18 GB. A task of A needs 1 GPU and 4 GB, a task of B 3 GPUs and 1 GB. Tasks that A gets "
        "with dominant resource fairness",
        "tasks",
        3,
        "A's dominant share is 4/18 a task, B's is 3/9. The tasks go to A, B, A, B and A. Then 3 + 6 = 9 "
        "GPUs are in use, and nothing more fits.",
        tolerance=0,
    ),
    _prediction(
        "deadlock",
        "8 GPUs, and two jobs of 6 workers with one GPU each, whose pods are assigned in turn. Jobs that "
        "ever begin",
        "jobs",
        0,
        "Each job gets 4 of the 6 GPUs that it needs, and neither gives any back.",
        tolerance=0,
    ),
    _prediction(
        "desired",
        "8 replicas, and a target of 70 % GPU utilisation. The load is four times what they can handle. "
        "Steps until there are enough replicas",
        "steps",
        4,
        "32 are needed. But utilisation cannot exceed 100 %, so a step goes at most from n to ⌈n · 100/70⌉: "
        "12, 18, 26, 38.",
        tolerance=0,
    ),
)
