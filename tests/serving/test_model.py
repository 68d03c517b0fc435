"""The engine on a real model: batched, chunked, preempted or swapped, it says what it says alone."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.subjects import serving
from gpulab.subjects.models import text
from gpulab.subjects.models.config import Config
from gpulab.subjects.models.gpt import GPT, Cache, generate
from gpulab.subjects.serving import Machine, Request, model


@pytest.fixture(scope="module")
def gpt():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return GPT(Config(text.VOCABULARY, context=64, width=16, layers=2, heads=4, kv_heads=2)).eval()


def alone(gpt, prompt, count):
    return generate(gpt, torch.tensor([prompt]), count)[0, len(prompt) :].tolist()


def prompts_of(lengths):
    numbers = torch.Generator().manual_seed(1)
    return {
        n: torch.randint(text.VOCABULARY, (length,), generator=numbers).tolist()
        for n, length in enumerate(lengths)
    }


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 15)), min_size=1, max_size=6),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_whatever_the_policy_each_request_gets_what_it_gets_alone(gpt, sizes, slots, chance):
    prompts = prompts_of([prompt for prompt, _ in sizes])
    trace = [Request(n, 0.0, prompt, output) for n, (prompt, output) in enumerate(sizes)]

    def careless(state):
        out = {seen.number for seen in state.running if chance.random() < 0.1}
        stays = [seen for seen in state.running if seen.number not in out]
        admit = [seen.number for seen in state.waiting][: slots - len(stays)]
        here = [*stays, *(seen for seen in state.waiting if seen.number in admit)]
        chunks = {seen.number: chance.randint(1, seen.left) for seen in here if seen.left}
        swap = {number for number in out if chance.random() < 0.5}
        return {"admit": admit, "preempt": out - swap, "swap": swap, "prefill": chunks}

    served = model.OnModel(gpt, prompts)
    serving.run(Machine(slots, 999, host=999), trace, careless, execute=served)
    for request in trace:
        assert served.tokens[request.number] == alone(gpt, prompts[request.number], request.output)


def test_rows_of_different_lengths_get_the_logits_of_rows_alone(gpt):
    prompts = list(prompts_of([3, 9, 5]).values())
    together = [Cache() for _ in prompts]
    first = model.step(gpt, prompts, together)
    second = model.step(gpt, [[token] for token in first], together)
    assert [cache.length for cache in together] == [4, 10, 6]
    for prompt, *said in zip(prompts, first, second, strict=True):
        assert said == alone(gpt, prompt, 2)


def test_a_text_that_is_at_its_end_stops_its_request(gpt):
    prompts = prompts_of([4])
    said = alone(gpt, prompts[0], 12)
    stop = said[5]
    served = model.OnModel(gpt, prompts, stop=stop)
    run = serving.run(Machine(1, 99), [Request(0, 0.0, 4, 12)], serving.policies.static, execute=served)
    assert served.tokens[0] == said[: said.index(stop) + 1]
    assert run.lives[0].ended and len(run.steps) == said.index(stop) + 1


def test_the_clock_is_the_real_one(gpt):
    times = iter([1.0, 1.5, 7.0, 7.25])
    served = model.OnModel(gpt, prompts_of([4]), clock=lambda: next(times))
    run = serving.run(Machine(1, 99), [Request(0, 0.0, 4, 2)], serving.policies.static, execute=served)
    assert [step.seconds for step in run.steps] == [0.5, 0.25]
