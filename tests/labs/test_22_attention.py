"""Lab 22, project A: the numbers that its table derives by hand, and those that its texts state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import triton.language as tl  # noqa: E402

import gpulab  # noqa: E402
from gpulab import cuda, triton  # noqa: E402
from gpulab.checks import find, registry  # noqa: E402
from gpulab.content.lab_22_capstones.attention import (  # noqa: E402
    attend,
    forward_bytes,
    forward_bytes_by_head,
    heads_case,
    inputs_once,
    pairs,
    visits,
)
from gpulab.content.lab_22_capstones.references.attention import backward  # noqa: E402
from tests.labs import notebooks  # noqa: E402

LAB = "22_capstones"


def test_the_table_of_bytes_is_what_the_formulas_give():
    causal, few = heads_case(2, 1, 192, 192, True).sizes, heads_case(8, 1, 4, 200, True).sizes
    found = [forward_bytes_by_head(causal), forward_bytes(causal), inputs_once(causal)]
    assert found == [344_064, 147_456, 98_304]
    assert [forward_bytes_by_head(few), forward_bytes(few), inputs_once(few)] == [413_696, 55_296, 55_296]
    assert pairs(causal) == 37_056 and visits(causal) == 45


def test_predictions_are_what_was_derived():
    asked = registry.predictions()
    assert asked["attention_project.shared"].answer == 409_600
    assert asked["attention_project.wasted"].answer == pytest.approx(80.3, abs=0.05)


def test_bounds_are_below_budgets_and_these_below_naive():
    for name in ("attention_project.forward", "attention_project.backward"):
        exercise = find(name)
        for budget in exercise.budgets:
            sizes = next(
                c for c in exercise.cases if c.name == (budget.case or exercise.cases[-1].name)
            ).sizes
            naive, bound = budget.naive_for(sizes), budget.bound_for(sizes)
            assert bound <= budget.limit_for(sizes) and (naive is None or budget.limit_for(sizes) < naive)
        assert exercise.points == 40 and exercise.correct_points == 20


@settings(max_examples=8, deadline=None)
@given(
    group=st.integers(1, 3),
    shared=st.integers(1, 2),
    n=st.integers(1, 9),
    more=st.integers(0, 5),
    causal=st.booleans(),
)
def test_the_references_are_what_autograd_says(group, shared, n, more, causal):
    numbers, m = np.random.default_rng(n), n + more
    q, dout = numbers.standard_normal((2, group * shared, n, 64)) / 8
    k, v = numbers.standard_normal((2, shared, m, 64))
    leaves = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    keys, values = (x.repeat_interleave(group, 0) for x in leaves[1:])
    hidden = (torch.arange(m) > torch.arange(n)[:, None] + m - n) & causal
    scores = (leaves[0] @ keys.mT).masked_fill(hidden, -torch.inf)
    out = torch.softmax(scores, -1) @ values
    out.backward(torch.tensor(dout))
    found, lse, _ = attend(q, k, v, int(causal))
    np.testing.assert_allclose(found, out.detach(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(lse, torch.logsumexp(scores, -1).detach(), rtol=1e-9)
    got = backward({"q": q, "k": k, "v": v, "dout": dout}, {"causal": int(causal)})
    for name, leaf in zip(("dq", "dk", "dv"), leaves, strict=True):
        np.testing.assert_allclose(got[name], leaf.grad, rtol=1e-7, atol=1e-10)


def test_the_reports_derivation_is_the_count():
    assert 2 * 192 * 64 * 2 == 49_152 and (64 + 128 + 192) * 2 * 64 * 2 == 98_304
    assert "49,152" in notebooks.text(LAB) and "98,304" in notebooks.text(LAB) and 49_152 + 98_304 == 147_456


@pytest.mark.parametrize(
    ("old", "new", "shape", "counts"),
    [
        ("COLUMNS=32", "COLUMNS=64", (2, 1, 192, 192), [147_456, 30_448, 253, 3]),
        ("heads // shared, 128", "heads // shared, 64", (8, 1, 4, 200), [55_296, 9_516, 148, 1]),
    ],
)
def test_the_decisions_of_the_reports_have_their_counts(tmp_path, old, new, shape, counts):
    source = next(c.source for c in notebooks.cells(LAB, "code") if "def forward_kernel(" in c.source)
    assert old in source
    file = tmp_path / "tried.py"
    file.write_text(source.replace(old, new))
    names = {"triton": triton, "tl": tl}
    exec(compile(file.read_text(), str(file), "exec"), names)
    heads, shared, n, m = shape
    made = [np.ones(s, np.float16) for s in ((heads, n, 64), (shared, m, 64), (shared, m, 64))]
    room = [np.zeros((heads, n, 64), np.float32), np.zeros((heads, n), np.float32)]
    report = gpulab.profile(names["forward"], *map(cuda.to_device, made + room), 1)
    assert [report[what] for what in ("global_load_bytes", "instructions", "registers", "blocks")] == counts


def test_the_bytes_of_tiles_of_64_rows_in_a_report():
    assert sum(range(32, 193, 32)) == 672 and 672 * 2 * 64 * 2 + 49_152 == 221_184
    assert sum(range(64, 193, 64)) == 384 and 384 * 2 * 64 * 2 + 49_152 == 147_456
