"""Lab 20 A: what the table derives is what comes out, no policy cheats, and texts cite what the runs say."""

from __future__ import annotations

import re
from functools import cache
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpulab
from gpulab.checks import cases, find, registry
from gpulab.checks.spec import Case
from gpulab.content.lab_20_serving import engine as lab_20_engine
from gpulab.content.lab_20_serving.references import engine as references
from gpulab.simulator import hardware
from gpulab.subjects import serving
from gpulab.subjects.serving import Machine, Work, metrics, policies, queues, traces
from gpulab.subjects.serving.requests import to_data
from tests.labs import notebooks

LAB = "20_serving"
NOTEBOOK = "20_serving_a"


@cache
def text() -> str:
    return " ".join("\n".join(c.source for c in notebooks.notebooks(LAB)[NOTEBOOK].cells).split())


def the_first_try():
    """`evict_largest` of section 6, which stands among the wrong answers, too."""
    return notebooks.wrong_answer(notebooks.ROOT / "solutions" / LAB / "wrong" / "preempt_the_largest.py")[
        "preempt"
    ]


def asked(exercise: str, kind: str, seed: int = cases.PUBLIC_SEED):
    return cases.questions(find(exercise), Case(kind, {"kind": kind}), seed)


def count(exercise: str, policy, question):
    return registry.reference(exercise)(policy, *question)


# ---------------------------------------------------------------- remembered


def test_2048_steps_of_static_batches_become_1152_of_continuous_ones_and_1088_is_the_bound():
    (question,) = asked("serve.admit", "64 in 8 slots")
    machine, requests = question
    assert [r["output"] for r in requests] == [16, 256] * 32 and machine["slots"] == 8
    assert count("serve.admit", notebooks.answers(LAB)["admit"], question) == {"steps": 1152, "started": 1}
    static = serving.policy(policies.static)
    assert count("serve.admit", static, question)["steps"] == 2048
    assert ceil(sum(r["output"] for r in requests) / 8) == 1088
    assert 1152 * 1.1 < 1270


def test_no_policy_sees_which_requests_are_the_long_ones():
    seen = []

    @serving.admission
    def curious(queue, running, blocks, slots):
        seen.extend((r.prompt, r.most, r.priority) for r in (*queue, *running))
        return [r.number for r in queue[:slots]]

    count("serve.admit", curious, asked("serve.admit", "64 in 8 slots")[0])
    assert set(seen) == {(16, 256, 0)}


# ---------------------------------------------------------------- queues and measures


@pytest.mark.parametrize("load, cv", [(0.3, 2), (0.6, 0), (0.7, 1)])
def test_the_formula_is_what_a_simulation_gives(load, cv):
    draws = np.random.default_rng(3)
    arrivals = np.cumsum(draws.exponential(1.0, 30_000))
    services = draws.gamma(1 / cv**2, load * cv**2, 30_000) if cv else np.full(30_000, load)
    served = queues.first_come_first_served(arrivals, services)
    rho, latency, there, _ = references.queue(1.0, load, cv, 1.0)
    assert np.mean([s.latency for s in served]) == pytest.approx(latency, rel=0.15)
    assert queues.in_system(served) == pytest.approx(there, rel=0.15)
    assert rho == load


@given(st.floats(0.01, 2), st.floats(0, 4), st.floats(1.05, 20))
def test_at_the_highest_rate_the_latency_is_the_limit(service, cv, times):
    best = references.queue(1e-9, service, cv, times * service)[3]
    assert references.queue(best, service, cv, 1.0)[1] == pytest.approx(times * service)


def test_the_metrics_of_the_engine_agree_with_the_log_of_a_client():
    trace = traces.poisson(3, 20, 1, traces.Lengths(50, 0.5, 100, 10, 0.8, 40))
    run = serving.run(Machine(4, 1000, times=serving.Units(0.02)), trace, serving.policies.static)
    log = []
    for life in run.lives:
        number, due = life.request.number, round(1000 * life.request.arrival)
        log += [[number, "due", due], [number, "sent", due]]
        log += [[number, "token", round(1000 * time)] for time in life.tokens]
        log.append([number, "end", round(1000 * life.tokens[-1])])
    told = references.measure(log, 1500, 25)
    assert told[0] == pytest.approx(1000 * metrics.percentile(map(metrics.ttft, run.lives), 50), abs=1.1)
    assert told[1] == pytest.approx(1000 * metrics.percentile(map(metrics.ttft, run.lives), 99), abs=1.1)
    assert told[3] == pytest.approx(metrics.throughput(run), rel=0.01)
    assert told[4] == pytest.approx(metrics.goodput(run, serving.SLO(ttft=1.5, tpot=0.025)), rel=0.05)


# ---------------------------------------------------------------- policies


def test_295_tokens_are_free_on_an_h100_and_more_are_not():
    times = serving.times("Llama 3 8B", "H100")
    ridge = int(hardware.roofline("H100", "bfloat16").ridge)
    assert ridge == 295
    assert times.compute(Work(ridge)) < times.weights / times.bandwidth < times.compute(Work(ridge + 1))


def test_pieces_up_to_the_ridge_are_near_what_no_constant_reaches_on_all_machines():
    questions = asked("serve.chunk", "all")

    def worst(policy):
        found = [count("serve.chunk", policy, question) for question in questions]
        return {name: max(each[name] for each in found) for name in found[0]}

    def always(size):
        @serving.policy
        def chunk(state):
            admitted = state.waiting[: state.free_slots]
            pieces, free = {}, size - sum(request.decodes for request in state.running)
            for request in [*state.running, *admitted]:
                if request.left:
                    pieces[request.number] = max(0, min(request.left, free))
                    free -= pieces[request.number]
            return {"admit": [request.number for request in admitted], "prefill": pieces}

        return chunk

    good = worst(notebooks.answers(LAB)["chunk"])
    assert good["longest gap"] < 1.4 and good["time"] < 0.84
    for size in (64, 80, 128):
        told = worst(always(size))
        assert told["longest gap"] > 1.5 or told["time"] > 0.9, size


def test_the_lowest_rate_of_all_ridges_is_that_of_weights_of_4_bits():
    ridges = []
    for machine in lab_20_engine.chunk_machines("all"):
        times = machine.times
        ridges.append(int(times.weights / times.bandwidth * times.peak / times.per_token))
    assert ridges[0] // 4 == ridges[3] == min(ridges) == 73 and max(ridges) == ridges[1] == 403


def test_the_naive_values_of_the_table_are_what_the_obvious_policies_cost():
    whole = serving.policy(lambda s: {"admit": [r.number for r in s.waiting[: s.free_slots]]})
    gaps = [count("serve.chunk", whole, q) for q in asked("serve.chunk", "all")[:3]]
    assert min(gap["longest gap"] for gap in gaps) > 20 and {gap["time"] for gap in gaps} == {1}
    (crowd,) = asked("serve.preempt", "a crowd")
    largest = count("serve.preempt", the_first_try(), crowd)
    assert largest["recomputed"] > 20 and largest["urgent"] > 10


# ---------------------------------------------------------------- what the texts say


def test_the_numbers_of_the_detective_are_those_of_its_runs():
    users = traces.poisson(1.6, 60, 3, traces.Lengths(200, 0.5, 1024, 250, 0.5, 1024))
    times = serving.times("Llama 3 8B", "L4")
    evict = the_first_try().decide
    few, many = (serving.run(Machine(slots, 400, times=times), users, evict) for slots in (14, 20))

    def twice(run):
        return f"{sum(life.recomputed for life in run.lives):,}"

    def stalled(run):
        return sum(max(metrics.gaps(life), default=0) > 2 for life in run.lives)

    def through(run):
        return sum(step.tokens for step in run.steps) / run.end

    assert through(many) / through(few) > 1.4
    said = re.search(r"\*\*2 points:\*\*(.*?)\*\*1 point\*\*", text())[1]
    assert f"{twice(many)} tokens were computed twice with 20 slots, against {twice(few)} with 14" in said
    assert f"({metrics.throughput(many):.0f} and {metrics.throughput(few):.0f})" in said
    longest = max(max(metrics.gaps(life), default=0) for life in many.lives)
    assert f"is {longest:.0f} s" in said
    assert (stalled(many), stalled(few)) == (8, 3)
    latency = [metrics.percentile(map(metrics.latency, run.lives), 50) for run in (few, many)]
    assert f"median latency ({latency[1]:.1f} s, against {latency[0]:.1f} s with 14 slots)" in said
    ttft = [metrics.percentile(map(metrics.ttft, run.lives), 50) for run in (few, many)]
    assert ttft[1] < ttft[0]


def test_the_figures_before_a_prediction_are_those_of_the_tables():
    h100 = serving.times("Llama 3 8B", "H100")
    assert h100.token_bytes == 128 * 1024 and round(h100.link / 1e9) == 63
    assert "take 128 KiB. An H100 is connected by PCIe 5.0, with 63 GB/s in each direction" in text()
    assert float(hardware.link("InfiniBand NDR").per_direction) == 50e9
    assert "over NDR InfiniBand, with 50 GB/s in each direction" in text()
    assert (
        round(h100.weights / 2e9, 1) == 7.5
        and "Of the model's 8 billion weights, only 7.5 billion take part" in text()
    )


def test_a_forgotten_decorator_is_named():
    def chunk(state):
        return {}

    def admit(queue, running, blocks, slots):
        return []

    for name, function, line in (("chunk", chunk, "@serving.policy"), ("admit", admit, "@serving.admission")):
        said = " ".join(str(gpulab.check(f"serve.{name}", function)).split())
        assert f"the line `{line}` is missing above `def {name}`" in said


def test_the_predictions_with_an_answer_have_the_right_one():
    told = {p.name: p.answer for p in registry.predictions().values()}
    h100 = serving.times("Llama 3 8B", "H100")
    assert told["serve.decode_batch"] == int(h100.peak / h100.bandwidth)
    whole = 1000 * h100.seconds(Work(8192, 8192 * 8193 // 2))
    assert told["serve.stall"] == pytest.approx(whole, rel=0.05)
    again, move = h100.compute(Work(1)), 2 * h100.token_bytes / h100.link
    assert told["serve.swap_or_again"] == pytest.approx(again / move, rel=0.05)
    wire = float(hardware.link("InfiniBand NDR").per_direction)
    assert told["serve.transfer"] == pytest.approx(2e6 * h100.token_bytes / wire, rel=0.02)
    n = told["serve.samples_for_p99"]
    assert metrics.percentile(range(n), 99) == n - 2 and metrics.percentile(range(n - 1), 99) == n - 2
    assert told["serve.wait_at_90"] == pytest.approx(references.queue(0.9, 1, 1, 1)[1] - 1)


def test_a_policy_of_the_lab_gives_a_real_model_the_texts_that_it_gives_alone():
    torch = pytest.importorskip("torch")
    from gpulab.subjects.models import text as words
    from gpulab.subjects.models.config import Config
    from gpulab.subjects.models.gpt import GPT, generate
    from gpulab.subjects.serving.model import OnModel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        gpt = GPT(Config(words.VOCABULARY, context=80, width=16, layers=1, heads=2)).eval()
    stories = words.Stories(2)
    prompts = {n: words.encode("\n" + next(stories)[: 10 + 5 * n]) for n in range(6)}
    trace = [serving.Request(n, 0.0, len(p), 12, priority=n % 2) for n, p in prompts.items()]
    for policy, machine in (
        (notebooks.answers(LAB)["admit"].decide, Machine(2, 100, reserve=True)),
        (notebooks.answers(LAB)["preempt"].decide, Machine(3, 7)),
    ):
        on_model = OnModel(gpt, prompts)
        run = serving.run(machine, trace, policy, execute=on_model)
        for n, prompt in prompts.items():
            alone = generate(gpt, torch.tensor([prompt]), 12)[0, len(prompt) :].tolist()
            assert on_model.tokens[n] == alone
    assert sum(life.preempted for life in run.lives) > 0


def test_engines_questions_survive_the_way_through_json_unchanged():
    for kind in ("few blocks", "over time", "64 in 8 slots"):
        for machine, requests in asked("serve.admit", kind):
            assert to_data(serving.requests.from_data(requests)) == requests
            assert Machine.from_data(machine).to_data() == machine


def test_a_nonsensical_decision_is_refused_in_a_sentence():
    def bare(decisions):
        """What a sandbox may send in a policy's name."""

        def answer(decide, machine):
            decide(None)
            for decision in decisions:
                decide(decision)
            return 1

        return type("Sent", (), {"__call__": staticmethod(answer), "__name__": "admit"})()

    for decisions, words in (
        ([{"admit": [0, 0]}], "twice"),
        ([{"admit": ["x"]}], "must list numbers"),
        ([7], "the policy returned int"),
        ([{"prefill": {"0": 10**30}}], "which is waiting and does not run"),
        ([], "it stops after 0 decisions"),
        ([{"admit": list(range(9))}], "9 requests would run in 2 slots"),
    ):
        verdict = gpulab.check("serve.admit", bare(decisions))
        assert verdict.points == 0 and words in " ".join(str(verdict).split()), str(verdict)
