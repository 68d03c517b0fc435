"""Lab 01: the numbers of its table are those of real runs, and the plans do what they are asked for."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.checks import WrongAnswer, cases, find
from gpulab.checks.spec import EVERY
from gpulab.content.lab_01_neural_networks import exercises as lab
from gpulab.content.lab_01_neural_networks.references import exercises as references
from gpulab.subjects.models import known
from grading.core.judge import judge_cases
from tests.labs import notebooks

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from gpulab.subjects.models import gpt  # noqa: E402
from gpulab.subjects.models.config import Config  # noqa: E402


def question(exercise: str, case: str) -> tuple:
    asked = find(exercise)
    return cases.questions(asked, next(c for c in asked.cases if c.name == case))[0]


def along_every_use(parents, result) -> int:
    return 1 + sum(along_every_use(parents, parent) for parent in parents[result])


def test_a_line_and_a_parabola_are_known_after_as_many_values_as_they_have_parameters():
    read_off = notebooks.answers("01_neural_networks")["read_off"]
    for kind, parameters in (
        ("line", [2.5, -1.0]),
        ("plane", [0.0, 3.0, 7.0]),
        ("parabola", [-2.0, 0.5, 4.0]),
    ):
        assert references.read_off(read_off, kind, parameters) == {"values": len(parameters)}


def test_two_parameters_are_not_read_off_one_value_and_a_plane_is_not_asked_for_one_number():
    with pytest.raises(WrongAnswer, match="should be"):
        references.read_off(lambda f, kind: list(divmod(f(1e6), 1e6)), "line", [2.0625, -1.03125])
    with pytest.raises(WrongAnswer, match="takes two numbers, x and y"):
        references.read_off(lambda f, kind: [f(0)], "plane", [1.0, 2.0, 3.0])


def test_recursion_along_every_use_makes_the_visits_of_the_table():
    assert along_every_use(*question("neural.backward", "20 doublings")) == 2_097_151
    for graph in cases.questions(find("neural.backward"), find("neural.backward").cases[4]):
        assert along_every_use(*graph) == 3070


@given(st.data())
def test_an_order_counts_only_if_every_value_stands_behind_all_its_uses(data):
    n = data.draw(st.integers(1, 5))
    parents = [data.draw(st.lists(st.integers(0, v - 1), max_size=2)) if v else [] for v in range(n)]
    result = n - 1
    reached, level = {result}, [result]
    while level:
        level = [p for v in level for p in parents[v]]
        reached |= set(level)
    for order in permutations(reached):
        place = {value: i for i, value in enumerate(order)}
        right = all(place[v] < place[p] for v in reached for p in parents[v])
        try:
            assert references.backward(list(order), parents, result)["visits per value"] == 1
            assert right
        except WrongAnswer:
            assert not right


@given(outputs=st.lists(st.integers(-99, 99), min_size=4, max_size=4))
def test_nine_numbers_are_enough_for_any_four_outputs(outputs):
    weights = notebooks.answers("01_neural_networks")["gate"](outputs)
    assert references.gate(weights, outputs) == {}
    with pytest.raises(WrongAnswer):
        references.gate([*weights[:8], weights[8] + 1], outputs)


@given(seed=st.integers(0, 2**31), steps=st.integers(0, 12))
@settings(max_examples=30, deadline=None)
def test_gradients_are_those_of_pytorch(seed, steps):
    tape = lab.random_tape(2, steps, np.random.default_rng(seed))
    values: list[Any] = []
    for op, *uses in tape:
        if op == "input":
            values.append(torch.tensor(uses[0], dtype=torch.float64, requires_grad=True))
        else:
            values.append(getattr(torch, op)(*(values[i] for i in uses)))
            values[-1].retain_grad()
    values[-1].backward()
    theirs = [0.0 if v.grad is None else v.grad.item() for v in values]
    assert references.gradients(theirs, tape) == {}
    with pytest.raises(WrongAnswer):
        references.gradients([*theirs[:-1], 2.0], tape)


def test_what_is_kept_is_what_pytorch_keeps():
    for case, layers, learning in (("all layers learn", 4, 4), ("the last layer learns", 4, 1)):
        tape, learn = question("neural.keep", case)
        model = [torch.randn(8, 8, requires_grad=i >= layers - learning) for i in range(layers)]
        x, kept = torch.randn(3, 8), {}

        def note(tensor, kept=kept):
            kept[tensor.untyped_storage().data_ptr()] = tensor
            return tensor

        targets = torch.randn(3, 8)
        anyway = {t.untyped_storage().data_ptr() for t in (x, targets, *model)}
        with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
            for i, weight in enumerate(model):
                x = torch.relu(x @ weight + torch.zeros(8, requires_grad=i >= layers - learning))
            (x * targets).sum()
        assert len(set(kept) - anyway) == len(notebooks.answers("01_neural_networks")["keep"](tape, learn))
        counts = references.keep(notebooks.answers("01_neural_networks")["keep"](tape, learn), tape, learn)
        assert counts["numbers kept"] == lab.NUMBERS * len(set(kept) - anyway)


@given(seed=st.integers(0, 2**31))
def test_nothing_that_the_rules_ask_for_can_be_left_out(seed):
    keep = notebooks.answers("01_neural_networks")["keep"]
    for tape, learn in lab._keeping({"kind": "any", "steps": 8}, np.random.default_rng(seed)):
        kept = keep(tape, learn)
        references.keep(kept, tape, learn)
        for left_out in kept:
            with pytest.raises(WrongAnswer):
                references.keep([value for value in kept if value != left_out], tape, learn)


def test_a_value_that_is_kept_of_no_use_counts_and_one_listed_twice_is_refused():
    tape, learn = question("neural.keep", "all layers learn")
    kept = notebooks.answers("01_neural_networks")["keep"](tape, learn)
    beside = next(v for v, (op, *_) in enumerate(tape) if op == "mul" and v not in kept)
    assert references.keep([*kept, beside], tape, learn)["kept of no use"] == 1
    with pytest.raises(WrongAnswer, match="listed twice"):
        references.keep([*kept, kept[0]], tape, learn)


def test_a_visit_of_a_value_that_the_result_does_not_rest_on_is_of_no_use():
    parents, result = question("neural.backward", "10 skips")
    order = notebooks.answers("01_neural_networks")["backward"](parents, result)
    others = [value for value in range(len(parents)) if value not in order]
    counts = references.backward(order + others, parents, result)
    assert (counts["visits per value"], counts["visits of no use"]) == (1, len(others))
    assert others


def greedy(tokens, room) -> int:
    rows, passes = sorted(tokens, reverse=True), 0
    while rows:
        rows, passes = rows[room // rows[0] :], passes + 1
    return passes


def fewest(tokens: tuple[int, ...], room: int) -> int:
    """By trying every way to put rows together."""
    if not tokens:
        return 0
    first, rest = tokens[0], tokens[1:]
    best = math.inf
    for choice in range(2 ** len(rest)):
        mine = [t for i, t in enumerate(rest) if choice >> i & 1]
        if (1 + len(mine)) * max(first, *mine, 0) <= room:
            left = tuple(t for i, t in enumerate(rest) if not choice >> i & 1)
            best = min(best, 1 + fewest(left, room))
    return int(best)


@given(tokens=st.lists(st.integers(1, 12), max_size=6), room=st.integers(12, 40))
@settings(deadline=None, max_examples=60)
def test_no_division_has_fewer_passes_than_the_greedy_one(tokens, room):
    assert greedy(tokens, room) == fewest(tuple(tokens), room)


def test_the_budget_on_passes_is_the_fewest_at_all_sizes():
    exercise = find("neural.accumulate")
    for case in (exercise.cases[-1], judge_cases(exercise)[-1]):
        tokens, _, room = cases.questions(exercise, case)[0]
        assert exercise.budgets[0].limit_for(case.sizes) == greedy(tokens, room)


def test_the_judges_cases_are_those_that_the_budgets_name():
    for name in ("neural.backward", "neural.keep"):
        names = {case.name for case in judge_cases(find(name))}
        assert {budget.case for budget in find(name).budgets} - {None, EVERY} <= names


def test_a_plan_for_passes_gives_the_gradient_of_the_whole_batch():
    lengths = [5, 40, 7, 22, 13]
    data = [torch.randn(n, 3, dtype=torch.float64) for n in lengths]

    def gradient(passes):
        weight = torch.ones(3, dtype=torch.float64, requires_grad=True)
        for rows, share, _ in passes:
            loss = ((torch.cat([data[row] for row in rows]) @ weight) ** 2).mean()
            (share * loss).backward()
        return weight.grad

    plan = notebooks.answers("01_neural_networks")["accumulate"](lengths, 5, 60)
    assert len(plan) > 1
    torch.testing.assert_close(gradient(plan), gradient([[range(5), 1.0, True]]))


def sizes_of(model: known.Known) -> dict[str, Any]:
    source = next(
        c.source for c in notebooks.cells("01_neural_networks", "code") if "def sizes_of" in c.source
    )
    names: dict[str, Any] = {}
    exec(source.partition("\nsizes_of(")[0], names)
    return names["sizes_of"](model)


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("bias", [True, False])
def test_norms_have_biases_only_where_the_model_has(norm, bias):
    config = Config(50, context=8, width=8, layers=3, heads=2, norm=norm, bias=bias)
    sizes = sizes_of(known.Known("small", config, 0.0, ""))
    assert (
        notebooks.answers("01_neural_networks")["parameters"](sizes) == [gpt.parameters(gpt.GPT(config))] * 2
    )


@pytest.mark.parametrize(
    ("forgotten", "said"),
    [
        (3 * (4 * 8 + 32 + 8), "the biases of all matrices"),
        (7 * 8, "the biases of all norms"),
        (2 * 7 * 8, "all norms"),
    ],
)
def test_a_wrong_number_of_parameters_names_the_part_that_is_forgotten(forgotten, said):
    config = Config(50, context=8, width=8, layers=3, heads=2)
    sizes = sizes_of(known.Known("small", config, 0.0, ""))
    right = notebooks.answers("01_neural_networks")["parameters"](sizes)[0]
    with pytest.raises(WrongAnswer, match=f"too few, as many as {said}"):
        references.parameters([right - forgotten] * 2, sizes)


def test_the_mended_attention_of_the_detective_writes_as_the_models_own():
    source = next(
        c.source for c in notebooks.cells("01_neural_networks", "code") if "def attend_quick" in c.source
    )
    names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    function = source.partition("torch.manual_seed")[0]
    assert "tril(cached + 1)" in function
    exec(function.replace("cached + 1", "cached"), names)
    config = Config(24, context=30, width=8, heads=2)
    torch.manual_seed(0)
    own, mended = gpt.GPT(config), gpt.GPT(config, attend=names["attend_quick"])
    mended.load_state_dict(own.state_dict())
    start = torch.tensor([[3, 7]])
    written = [
        gpt.generate(model, start, 20, torch.Generator().manual_seed(1)).tolist() for model in (own, mended)
    ]
    assert written[0] == written[1]


@pytest.mark.parametrize("model", known.MODELS, ids=lambda m: m.name)
def test_counted_parameters_are_those_of_the_module(model):
    counts = notebooks.answers("01_neural_networks")["parameters"](sizes_of(model))
    assert references.parameters(counts, sizes_of(model)) == {}
    assert counts[0] == pytest.approx(model.stated, rel=0.04)
    if model.experts == 1:
        with torch.device("meta"):
            assert counts == [gpt.parameters(gpt.GPT(model.config))] * 2
    else:
        assert counts == [46_702_792_704, 12_879_925_248]  # arXiv:2401.04088: 47 billion, 13 in use
