"""Exercises in PyTorch: what is right passes whatever way it takes, and what is wrong is said in words."""

from __future__ import annotations

import dataclasses
import json
import logging.handlers
import queue
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402

import gpulab  # noqa: E402
from gpulab.analysis.profile.ledger import ledger  # noqa: E402
from gpulab.checks import Array, Budget, Case, Exercise, Scalar, cases, registry  # noqa: E402
from gpulab.checks.evidence import TensorGraph  # noqa: E402
from gpulab.checks.operators import COMMON, MULTI_TENSOR  # noqa: E402
from gpulab.checks.spec import grouped, several  # noqa: E402
from gpulab.checks.tensor_graphs import Graph, record, replay  # noqa: E402

OUTSIDE = torch.arange(4.0)
LARGE = torch.ones(2000)

AFFINE = Exercise(
    name="toy.affine",
    lab="99",
    correct_points=1.0,
    evidence=TensorGraph(
        arguments=lambda s: (
            Array("x", (int(s["rows"]), int(s["cols"]))),
            Array("bias", (int(s["cols"]),)),
            Scalar("factor", 3.0, "float64"),
            Array("y", (int(s["rows"]), int(s["cols"])), role="out"),
        ),
        operators=COMMON,
    ),
    cases=(Case("3 × 4", {"rows": 3, "cols": 4}), Case("64 × 4", {"rows": 64, "cols": 4})),
    rtol=1e-6,
    budgets=(
        Budget("launches", 1, 1.0, "launches", naive=3, unit="launches", advice="{times} × as many. Why?"),
        Budget("peak_bytes", lambda s: 16 * s["rows"], 1.0, "peak", naive=1e9, unit="B"),
        Budget("calls of mul", 0, 1.0, "products", unit="calls"),
    ),
)
STEP = Exercise(
    name="toy.step",
    lab="99",
    correct_points=1.0,
    evidence=TensorGraph(
        arguments=lambda s: (
            *several("weights", [(i + 1, 3) for i in range(int(s["n"]))], role="inout"),
            *several("slopes", [(i + 1, 3) for i in range(int(s["n"]))]),
        ),
        operators=COMMON | MULTI_TENSOR,
    ),
    cases=(Case("5", {"n": 5}),),
    rtol=1e-6,
)
SLOPE = Exercise(
    name="toy.slope",
    lab="99",
    correct_points=1.0,
    evidence=TensorGraph(
        arguments=lambda s: (Array("w", (100,), grad=True), Array("w.grad", (100,), role="out")),
        operators=COMMON,
    ),
    cases=(Case("100", {"n": 100}),),
    rtol=1e-5,
    atol=1e-6,
)


def _stepped(inputs: Any, sizes: Any) -> dict[str, np.ndarray]:
    a = grouped(inputs)
    return {
        f"weights[{i}]": w - 0.5 * g for i, (w, g) in enumerate(zip(a["weights"], a["slopes"], strict=True))
    }


def _slope(inputs: Any, sizes: Any) -> dict[str, np.ndarray]:
    w = inputs["w"]
    return {"w.grad": 2 * np.tanh(w) * (1 - np.tanh(w) ** 2)}


@pytest.fixture(autouse=True)
def programs() -> Iterator[None]:
    registry.add(AFFINE, lambda inputs, sizes: {"y": 3 * inputs["x"] + inputs["bias"]})
    registry.add(STEP, _stepped)
    registry.add(SLOPE, _slope)
    yield
    for exercise in (AFFINE, STEP, SLOPE):
        registry.remove(exercise.name)


def affine(x, bias, factor):
    return torch.add(bias, x, alpha=factor)


def affine_in_two(x, bias, factor):
    return x * factor + bias


def step(weights, slopes):
    torch._foreach_add_(weights, slopes, alpha=-0.5)


def slope(w):
    torch.tanh(w).square().sum().backward()


def graph_of(exercise: Exercise, fn: Any) -> Graph:
    return record(fn, cases.arguments(exercise, exercise.cases[0]), exercise.evidence.operators)


# ---------------------------------------------------------------- right


def test_a_function_that_is_right_and_frugal_gets_all_points():
    verdict = gpulab.check("toy.affine", affine)
    assert verdict.passed, str(verdict)
    assert verdict.compiler == f"PyTorch {torch.__version__.partition('+')[0]}"


def test_a_budget_that_is_missed_says_which_operators_it_comes_from():
    verdict = gpulab.check("toy.affine", affine_in_two)
    parts = {part.label: part for part in verdict.parts}
    assert parts["right"].state == "pass"
    assert parts["launches"].measured == 2 and parts["products"].measured == 1
    assert parts["peak"].measured == 2 * 16 * 64  # the product and the sum live together
    assert "`mul` (1 call, 1 launch)" in str(verdict) and "2 × as many" in str(verdict)


def test_tensors_in_a_list_are_changed_in_place():
    assert gpulab.check("toy.step", step).passed


def test_a_backward_pass_is_recorded_and_its_gradient_is_the_output():
    assert gpulab.check("toy.slope", slope).passed
    assert {"tanh", "tanh_backward"} <= {node.name for node in graph_of(SLOPE, slope).nodes}


def test_a_training_step_runs_backward_and_updates_its_weights_in_place():
    exercise = dataclasses.replace(
        SLOPE,
        evidence=TensorGraph(lambda s: (Array("w", (100,), role="inout", grad=True),), COMMON),
    )
    more = dataclasses.replace(exercise.evidence, operators=COMMON | MULTI_TENSOR)
    optimised = dataclasses.replace(exercise, evidence=more)

    def two_steps(w):
        for _ in range(2):
            w.grad = None
            torch.tanh(w).square().sum().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad

    def by_optimiser(w):
        sgd = torch.optim.SGD([w], lr=0.1)
        for _ in range(2):
            sgd.zero_grad()
            torch.tanh(w).square().sum().backward()
            sgd.step()

    def stepped(inputs, sizes):
        w = inputs["w"]
        for _ in range(2):
            w = w - 0.1 * _slope({"w": w}, sizes)["w.grad"]
        return {"w": w}

    for asked, fn in ((exercise, two_steps), (optimised, by_optimiser)):
        registry.add(asked, stepped)
        assert gpulab.check("toy.slope", fn).passed


def test_small_floats_may_be_used_inside():
    def rounded(x, bias, factor):
        kept = (x * 0).to(torch.float8_e4m3fn).float()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            product = torch.zeros_like(x) @ torch.eye(4)
        none = torch.tensor([0.0] * 4, dtype=torch.bfloat16) + torch.tensor(0.0, dtype=torch.bfloat16)
        kept = kept + none + torch.zeros(0).sum() + torch.tensor([], dtype=torch.float16).sum()
        return torch.add(bias, x, alpha=factor) + kept + product.float()

    parts = gpulab.check("toy.affine", rounded).parts
    assert parts[0].state == "pass", parts[0]


def test_what_is_computed_again_is_not_held_in_between():
    def chain(w):
        for _ in range(6):
            w = torch.sin(w)
        return w

    def all_kept(w):
        chain(chain(w)).sum().backward()

    def again(w):
        checkpoint(chain, checkpoint(chain, w, use_reentrant=False), use_reentrant=False).sum().backward()

    peaks = []
    for fn in (all_kept, again):
        made = cases.arguments(SLOPE, SLOPE.cases[0])
        peaks.append(replay(graph_of(SLOPE, fn), made, SLOPE.evidence.operators, "fn").report)
    assert peaks[1].peak < 0.75 * peaks[0].peak
    assert peaks[0]["calls of sin"] == 12
    assert peaks[1]["calls of sin"] == 22  # 12 forward, and in each half all but the last, which none needs


def test_small_constants_travel_with_the_graph():
    def shifted(x, bias, factor):
        return x * factor * OUTSIDE[1] + bias * torch.tensor([1.0])

    parts = gpulab.check("toy.affine", shifted).parts
    assert parts[0].state == "pass"


def test_a_function_under_inference_mode_and_one_that_is_compiled_are_seen_through():
    def inference(x, bias, factor):
        with torch.inference_mode():
            return torch.add(bias, x, alpha=factor).reshape(-1).reshape(x.shape)

    def compiled(x, bias, factor):
        return torch.compile(affine)(x, bias, factor)

    assert gpulab.check("toy.affine", inference).passed
    assert gpulab.check("toy.affine", compiled).passed


def test_recording_counts_what_the_replay_counts():
    made = cases.arguments(SLOPE, SLOPE.cases[0])
    report = replay(graph_of(SLOPE, slope), made, SLOPE.evidence.operators, "slope").report
    w = torch.from_numpy(made[0].value).requires_grad_()
    with ledger() as book:
        slope(w)
    assert list(report.entries)[:3] == book.entries[:3]
    assert report.launches == sum(e.launches for e in book.entries)
    assert report.flops == sum(e.flops for e in book.entries)


def test_a_graph_survives_json():
    for exercise, fn in ((AFFINE, affine), (STEP, step), (SLOPE, slope)):
        graph = graph_of(exercise, fn)
        back = Graph.from_data(json.loads(json.dumps(graph.to_data())))
        assert json.dumps(back.to_data()) == json.dumps(graph.to_data())


STEPS = {
    "add": lambda x, y: x + y,
    "scaled": lambda x, y: torch.add(x, y, alpha=-0.5),
    "product": lambda x, y: x @ y.t() @ y,
    "rows": lambda x, y: x - x.mean(0, keepdim=True),
    "turned": lambda x, y: x.flip(0).t().contiguous().t(),
    "written": lambda x, y: torch.empty_like(x).copy_(y).mul_(0.25).add_(x),
    "half": lambda x, y: torch.cat([x[:2], y[2:]]),
    "picked": lambda x, y: x.index_select(0, torch.tensor([3, 1, 0, 2])),
    "chosen": lambda x, y: torch.where(x > y, x, -y),
    "bounded": lambda x, y: torch.clamp(x, -1.0, float("inf")),
    "slope": lambda x, y: torch.autograd.grad((torch.tanh(x.detach().requires_grad_()) * y).sum(), [y])[0],
}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.booleans()), min_size=1, max_size=12))
def test_the_replay_of_a_program_gives_what_the_program_gives_at_the_same_cost(steps):
    def program(x, y):
        for name, swap in steps:
            x, y = (y, x) if swap else (x, y)
            x = STEPS[name](x, y.detach().requires_grad_() if name == "slope" else y)
        return x.detach()

    exercise = dataclasses.replace(
        AFFINE,
        evidence=dataclasses.replace(
            AFFINE.evidence,
            arguments=lambda s: (Array("x", (4, 3)), Array("y", (4, 3)), Array("out", (4, 3), role="out")),
        ),
    )
    made = cases.arguments(exercise, exercise.cases[0])
    data = json.loads(json.dumps(record(program, made, COMMON).to_data()))
    outcome = replay(Graph.from_data(data), made, COMMON, "program")
    with ledger() as book:
        expected = program(*(torch.from_numpy(a.value.copy()) for a in made[:2]))
    np.testing.assert_array_equal(outcome.results[0], expected.numpy())
    costs = [(e.op, e.bytes_read, e.bytes_written, e.flops, e.launches) for e in book.entries]
    again = [(e.op, e.bytes_read, e.bytes_written, e.flops, e.launches) for e in outcome.report.entries]
    assert again == costs


# ---------------------------------------------------------------- wrong


def branches(x, bias, factor):
    if x.sum() > 0:
        return x * factor + bias
    return bias + x * factor


def as_numpy(x, bias, factor):
    return torch.from_numpy(x.numpy() * factor) + bias


def as_item(x, bias, factor):
    return x * factor + bias * x.max().item()


def masked(x, bias, factor):
    return x[x > 0]


def by_one_place_each(x, bias, factor):
    places = x.argmax(-1)
    return torch.stack([x[places[i]] for i in range(3)])


def infinite(x, bias, factor):
    large = torch.exp(1000 + 0 * x)
    return x * factor + bias + large - large


def huge_constant(x, bias, factor):
    return x * factor + bias + LARGE[:4]


def fused(x, bias, factor):
    return torch.addcmul(bias, x, x)


def random(x, bias, factor):
    return x + torch.rand(4)


def too_few(x, bias, factor):
    return None


def other_shape(x, bias, factor):
    return (x * factor + bias)[:2]


def other_type(x, bias, factor):
    return (x * factor + bias).double()


def a_number(x, bias, factor):
    return 3.0


def changes_input(x, bias, factor):
    return x.mul_(factor).add_(bias).clone()


def wrong(x, bias, factor):
    return x * factor - bias


def unwritten(x, bias, factor):
    out = torch.empty_like(x)
    out[1:] = x[1:] * factor + bias
    return out


def unwritten_times_zero(x, bias, factor):
    return x * factor + bias + torch.nan_to_num(torch.empty_like(x)) * 0


def other_index(x, bias, factor):
    return (x * factor + bias)[torch.tensor([0, 1, 70])]


def mistake(x, bias, factor):
    return x @ x


def empty(x, bias, factor):
    raise NotImplementedError()


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (branches, "asks for the value of a tensor"),
        (branches, "if x.sum() > 0:"),
        (as_numpy, "asks for the value of a tensor"),
        (as_item, "asks for the value of a tensor"),
        (masked, "depends on values"),
        (masked, "return x[x > 0]"),
        (masked, "index with their places, whole numbers: `x[scores.topk(count).indices]`"),
        (by_one_place_each, "asks for the value of a tensor of whole numbers, as `a[k]`"),
        (by_one_place_each, "`a[places]` has an element of `a` for each place"),
        (huge_constant, "8,000 bytes; at most 4,096"),
        (fused, "operator `addcmul` is not on this exercise's list"),
        (random, "operator `rand` is not on this exercise's list"),
        (too_few, "returns 0 tensors; it should return 1 tensor: `y`"),
        (other_shape, "`y` is 2 × 4 float32, should be 3 × 4 float32"),
        (other_type, "`y` is 3 × 4 float64, should be 3 × 4 float32"),
        (a_number, "`y` should be a tensor; your function returns a float"),
        (changes_input, "your code changed"),
        (wrong, "`y[0, 0]` is"),
        (unwritten, "`y[0, 0]` is nan"),
        (infinite, "nan comes of 0 · inf, inf − inf"),
        (other_index, "`index` stopped on real data"),
        (mistake, "RuntimeError in line"),
        (empty, "`empty` is still empty"),
    ],
)
def test_what_is_wrong_is_said_in_words(fn, words):
    verdict = gpulab.check("toy.affine", fn)
    assert verdict.points == 0
    text = " ".join(str(verdict).split())
    assert words in text, str(verdict)
    assert "Traceback" not in text and "FakeTensor" not in text


def test_pytorch_logs_nothing_about_code_that_fails_and_logs_again_afterwards():
    log = logging.getLogger("torch._subclasses.fake_tensor")
    heard = logging.handlers.QueueHandler(queue.SimpleQueue())
    log.addHandler(heard)
    try:
        assert gpulab.check("toy.affine", mistake).points == 0
        assert heard.queue.empty()
        log.error("afterwards")
        assert heard.queue.get_nowait().getMessage() == "afterwards"
    finally:
        log.removeHandler(heard)


def test_a_nan_that_was_there_before_is_not_explained_by_arithmetic():
    assert "nan comes of" not in str(gpulab.check("toy.affine", unwritten))


def test_what_nobody_wrote_must_not_matter_even_where_it_is_no_number():
    def lucky(x, bias, factor):
        old = torch.empty_like(x)
        return torch.where(torch.isnan(old), x * factor + bias, old)

    verdict = gpulab.check("toy.affine", lucky)
    assert verdict.points == 0 and "memory that nobody wrote" in " ".join(str(verdict).split())


def test_a_tensor_kept_from_another_call_is_refused():
    kept: list[Any] = []

    def keeps(x, bias, factor):
        kept.append(x)
        return kept[0][:3] * factor + bias

    verdict = gpulab.check("toy.affine", keeps)
    assert verdict.points == 0 and "another call" in " ".join(str(verdict).split()), str(verdict)


def test_a_gradient_that_never_came_is_missed():
    verdict = gpulab.check("toy.slope", lambda w: None)
    assert verdict.points == 0 and "no backward pass reached `w`" in " ".join(str(verdict).split())


def test_a_print_of_a_tensor_shows_its_shape_and_why_there_are_no_values(capsys):
    def talkative(x, bias, factor):
        print(x)
        return torch.add(bias, x, alpha=factor)

    gpulab.check("toy.affine", talkative)
    shown = capsys.readouterr().out
    assert "<tensor of shape (3, 4), float32: without values, because the check records" in shown
    assert "FakeTensor" not in shown
    assert "FakeTensor(" in repr(_a_fake()), "PyTorch's own print is back"


def _a_fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.zeros(2)
