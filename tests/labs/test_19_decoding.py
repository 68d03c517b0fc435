"""Lab 19, part B: what the table derives is what comes out, plans are held to the best, texts cite what runs say."""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpulab
from gpulab.checks import cases, registry
from gpulab.content.lab_19_llm_inference import decoding as asked
from gpulab.content.lab_19_llm_inference.references import decoding as references
from tests.labs import notebooks

LAB, PART = "19_llm_inference", "19_llm_inference_b"


@cache
def decoding() -> SimpleNamespace:
    """What the notebook's own cells bind: the served model, the table, the loops of stories."""
    names = {"__name__": "learner"}
    wanted = (
        "import random",
        "def generate",
        "class Served",
        "def speculate",
        "corpus, ORDER",
        "def colleague",
    )
    for cell in notebooks.notebooks(LAB)[PART].cells:
        if cell.cell_type == "code" and any(word in cell.source for word in wanted):
            exec(compile(_defines(cell.source), "<part B>", "exec"), names)
    return SimpleNamespace(**names)


def _defines(source: str) -> str:
    """A cell up to where it begins to use what learners write."""
    return source.partition("\ngpulab.need(")[0].replace("gpulab.start(", "str(")


def text() -> str:
    cells = notebooks.notebooks(LAB)[PART].cells
    return " ".join(" ".join(c.source for c in cells if c.cell_type == "markdown").split())


# ---------------------------------------------------------------- remembered


def test_a_prompt_of_32_and_64_new_tokens_take_95_token_forwards_and_not_4064():
    def again(forward, choose, prompt, count, end):
        new = []
        while len(new) < count and end not in new:
            new.append(choose(forward(prompt + new, 0)[-1]))
        return new

    found = [
        gpulab.check("decode.generate", answer).parts
        for answer in (notebooks.answers(LAB)["generate"], again)
    ]
    assert [(parts[0].state, parts[1].measured) for parts in found] == [("pass", 95), ("pass", 4064)]
    assert found[0][2].measured == 64 and found[1][1].points == 0
    assert sum(range(32, 96)) == 4064


# ---------------------------------------------------------------- dialogues


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(("alike", "the same", "nothing in common", "a sure draft")),
    st.integers(0, 2),
    st.integers(0, 10**6),
)
def test_speculation_has_the_targets_distribution_and_the_rules_tokens(kind, ahead, secret):
    def ask(*given):
        return [int(t) for t in notebooks.answers(LAB)["speculate"](*given)]

    counts = references.speculate(ask, [1, 2], ahead, kind, secret)
    assert counts["passes"] == 1 and counts["tokens"] == pytest.approx(100) and counts["drafted"] == ahead


def test_of_a_draft_that_agrees_everything_is_kept_and_of_a_stranger_nothing():
    for kind, tokens in (("the same", 3), ("nothing in common", 1)):
        assert references.expected_tokens(*references.pair(kind, 5), (1,), 2) == pytest.approx(tokens)


def test_who_keeps_what_the_target_said_the_last_time_is_found_out():
    kept = {}

    def remembers(draft, target, choose, text, ahead):
        key = tuple(text)
        if key not in kept:
            kept[key] = target([text[-1]], len(text) - 1)[0]
        return [choose(kept[key])]

    said = " ".join(str(gpulab.check("decode.speculate", remembers)).split())
    assert gpulab.check("decode.speculate", remembers).parts[0].state == "pass", said
    assert "too few tokens a round" in said, "one token a round is right, and never cheap"

    def counts(draft, target, choose, text, ahead):
        kept["calls"] = kept.get("calls", 0) + 1
        row = target([text[-1]], len(text) - 1)[0]
        return [choose(row if kept["calls"] == 1 else [1.0, 0.0, 0.0, 0.0])]

    assert "nothing may be kept" in " ".join(str(gpulab.check("decode.speculate", counts)).split())


@pytest.mark.parametrize("name", ["decode.generate", "decode.sample", "decode.speculate"])
def test_a_check_is_quick(name):
    import time

    began = time.process_time()
    assert gpulab.check(name, notebooks.answers(LAB)[name.partition(".")[2]]).passed
    assert time.process_time() - began < 5


def test_what_stays_with_the_judge_is_not_among_what_is_asked():
    for name, hidden in (("decode.generate", 2), ("decode.speculate", 2)):
        exercise = registry.find(name)
        seen = []

        def ask(*given, seen=seen):
            seen.append(given)
            raise KeyboardInterrupt

        for question in cases.questions(exercise, exercise.cases[0]):
            with pytest.raises(KeyboardInterrupt):
                registry.reference(name)(ask, *question)
            plain = [g for g in seen[-1] if not callable(g)]
            assert plain == list(question[: len(question) - hidden])


# ---------------------------------------------------------------- what it costs


def test_expected_tokens_and_speeds_are_those_of_the_table():
    assert sum(0.8**i for i in range(5)) == pytest.approx(3.3616) == pytest.approx((1 - 0.8**5) / (1 - 0.8))

    def speed(k):
        return sum(0.8**i for i in range(k + 1)) / (1 + 0.1 * k)

    assert [round(speed(k), 2) for k in (4, 5, 6, 7)] == [2.40, 2.46, 2.47, 2.45]
    assert references.draft_length(0.8, 0.1, 1, 150, 16) == [6, pytest.approx(2.4697, abs=1e-4)]
    assert (round(1.99609375 / 1.4, 2), round(1.75 / 1.1, 2)) == (1.43, 1.59), "the recap's fourth question"


@given(st.floats(0, 1), st.floats(0, 0.5), st.integers(1, 400), st.integers(10, 300))
def test_a_full_batch_never_speculates(acceptance, draft, batch, ridge):
    best, speed = references.draft_length(acceptance, draft, batch + ridge, ridge, 8)
    assert (best, speed) == (0, 1.0) or (acceptance > 0.999 and speed < 1.0001)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=9).filter(lambda s: any(s[1:])), st.integers(1, 4))
def test_no_choice_of_sizes_has_fewer_rows(steps, most):
    steps[0] = 0
    last = max(n for n, count in enumerate(steps) if count)
    every = [
        references.rows_of(steps, [*chosen, last])
        for m in range(min(most, last))
        for chosen in combinations(range(1, last), m)
    ]
    assert references.least_rows(steps, most) == min(every)
    plan = notebooks.answers(LAB)["buckets"](steps, most)
    assert references.buckets(plan, steps, most) == {"padding": 0.0}


def test_no_plan_of_streaming_is_faster_than_the_references():
    exercise = registry.find("decode.stream")
    for case in exercise.cases:
        for model, gpu, patience in cases.questions(exercise, case):
            rates = [
                batch / references.sweep(model, gpu, resident, batch)
                for resident in range(model["layers"] + 1)
                for batch in range(1, int(gpu["memory"] // model["cache_bytes"]) + 1)
                if references.held_bytes(model, resident, batch) <= gpu["memory"]
                and references.sweep(model, gpu, resident, batch) <= patience
            ]
            assert references.best_stream(model, gpu, patience)[0] == pytest.approx(max(rates)), case.name


def test_layers_that_fit_without_buffers_stay_and_do_not_fit_with_them():
    exercise = registry.find("decode.stream")
    for seed in range(5):
        ((model, gpu, patience),) = cases.questions(exercise, exercise.cases[0], seed)
        assert references.best_stream(model, gpu, patience)[1] == model["layers"] == 32
        assert 32 * model["layer_bytes"] < gpu["memory"] < 34 * model["layer_bytes"]


def test_who_is_in_a_hurry_waits_for_arithmetic_or_for_bandwidth_and_never_for_the_link():
    exercise = registry.find("decode.stream")
    case = next(c for c in exercise.cases if c.name == "in a hurry")
    for seed in range(5):
        arithmetic, bandwidth = cases.questions(exercise, case, seed)
        for (model, gpu, patience), decides in ((arithmetic, "rate"), (bandwidth, "bandwidth")):
            rate, resident, batch = references.best_stream(model, gpu, patience)
            slower = {**gpu, decides: 0.9 * gpu[decides]}
            assert references.fetches(model, gpu, resident) < batch / rate
            assert references.sweep(model, slower, resident, batch) > 1.05 * batch / rate
            assert gpu["memory"] > references.held_bytes(model, 32, int(1.5 * batch))


def test_streamed_layers_spread_evenly_reach_the_sweep_that_the_plan_is_charged():
    """Two buffers, a link and a GPU, step by step: no slower than the formula, but for filling and draining."""
    layers, sweeps = 24, 40
    for streamed, fetch, work in ((6, 3.0, 1.0), (12, 2.0, 1.0), (8, 2.0, 1.0), (24, 1.0, 2.0)):
        order = [(i * streamed) // layers != ((i - 1) * streamed) // layers for i in range(layers)] * sweeps
        assert sum(order) == streamed * sweeps
        link = gpu = 0.0
        done: list[float] = []  # when the GPU was through with each streamed layer
        for here in order:
            if here:
                free = done[-2] if len(done) > 1 else 0.0
                link = max(link, free) + fetch
                gpu = max(gpu, link) + work
                done.append(gpu)
            else:
                gpu += work
        bound = sweeps * max(streamed * fetch, layers * work)
        assert bound <= gpu <= bound + layers * work + 2 * fetch


def test_every_question_of_all_together_tells_another_order_apart():
    exercise = registry.find("decode.sample")
    case = next(c for c in exercise.cases if c.name == "all together")
    for seed in range(5):
        questions = cases.questions(exercise, case, seed)
        assert [asked.tells(*q, n % 2 == 0) for n, q in enumerate(questions)] == [True] * 6


# ---------------------------------------------------------------- what texts say of runs


def told(loop, ahead, seed, stories=40):
    choose, made, passes, rounds = decoding().dice(seed), 0, 0, []
    for _ in range(stories):
        target = decoding().Served(decoding().model)
        found = loop(target, choose, ahead)
        made, passes = made + len(found[0]), passes + target.passes
        rounds += [found[1]]
    return made / passes, rounds


def test_the_detectives_draft_is_short_of_a_token_after_every_full_round():
    d = decoding()
    slow, rounds = told(d.colleague, 4, 4)
    fast, _ = told(lambda target, choose, ahead: d.tell(d.Table(), target, choose, ahead), 4, 4)
    assert 2.5 < slow < 3 and round(fast) == 4
    assert "about 4 characters a pass where the colleague has less than 3" in text()
    behind = [b for of in rounds for a, b in pairwise(of) if a == 5]
    assert np.mean([b == 1 for b in behind]) > 0.7


@pytest.mark.parametrize("way", ["speculate_feeds_the_last_guess", "speculate_feeds_the_draft_all_again"])
def test_the_detective_is_there_however_a_learner_feeds_the_draft(way, monkeypatch):
    names = decoding().colleague.__globals__
    own, _ = told(decoding().colleague, 4, 4, 10)
    found: dict = {}
    exec((notebooks.ROOT / "solutions" / LAB / "wrong" / f"{way}.py").read_text(), found)
    monkeypatch.setitem(names, "speculate", found["speculate"])
    assert round(told(decoding().colleague, 4, 4, 10)[0], 1) == round(own, 1)


def test_a_draft_that_copies_keeps_as_many_characters_as_beyond_says():
    d = decoding()

    class Copies(d.Table):
        def forward(self, tokens, start):
            self.seen = self.seen[:start]
            rows = []
            for token in tokens:
                row = super().forward([token], len(self.seen))[0]
                first, who, said = self.seen.partition(". who ")
                name, _, rest = first.strip().partition(" ")
                should = rest.partition(" near")[0] + "? " + name + ".\n"
                if who and should.startswith(said) and should != said:
                    then = d.text.CHARACTERS.index(should[len(said)])
                    row = [0.03 * p + 0.97 * (n == then) for n, p in enumerate(row)]
                rows.append(row)
            return rows

    kept, _ = told(lambda target, choose, ahead: d.tell(Copies(), target, choose, ahead), 16, 5)
    assert f"{kept:.1f}" == "11.6" and "| 11.6 |" in text()


def test_a_story_is_as_long_as_the_notebook_says():
    stories = decoding().text
    lengths = [
        len(stories.TEMPLATE.format(*(of(words, key=len) for words in stories.PICKS))) for of in (min, max)
    ]
    assert lengths == [57, 67] and "A story has 57 to 67 characters" in text()
    assert decoding().MOST >= 67
