"""Lab 13: what its table and its texts state is so."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpulab import cuda
from gpulab.analysis.profile import profile
from gpulab.checks import registry
from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_13_quantization.exercises import (
    ALLOCATE_BITS,
    allocate_questions,
    awq_questions,
    clear,
    clip_questions,
    gptq_questions,
    smooth_questions,
)
from gpulab.content.lab_13_quantization.references.exercises import (
    allocate,
    awq,
    clip,
    codes_of,
    gptq,
    grid,
    smooth,
)
from gpulab.subjects.models import text
from gpulab.subjects.models.outliers import plant_outliers
from gpulab.subjects.models.pretrained import fresh, story_nats, trained
from tests.labs import notebooks

LAB = "13_quantization"
SEEDS = range(5)


@pytest.fixture(scope="module")
def solved():
    return notebooks.answers(LAB)


def wrong(stem: str):
    path = next(path for path in notebooks.wrong_files(LAB) if path.stem == stem)
    return notebooks.wrong_answer(path)


def counts(judge, fn, questions, sizes, seeds=SEEDS) -> list[float]:
    """The one count of a measured exercise, its worst over the questions, for each seed."""
    return [
        max(
            next(iter(judge(fn(*asked), *asked).values()))
            for asked in questions(sizes, np.random.default_rng(seed))
        )
        for seed in seeds
    ]


PAPER = {"rows": 8, "columns": 128, "bits": 3}


def test_the_least_error_of_a_choice_of_bits_is_that_of_all_choices_tried():
    for sizes, errors, budget in allocate_questions({"layers": 4}, np.random.default_rng(3)):
        best, chosen = min(
            (sum(row[ALLOCATE_BITS.index(b)] for row, b in zip(errors, bits, strict=True)), bits)
            for bits in itertools.product(ALLOCATE_BITS, repeat=4)
            if sum(b * n for b, n in zip(bits, sizes, strict=True)) <= budget
        )
        assert best > 0
        assert allocate(list(chosen), sizes, errors, budget)["error over the best"] == pytest.approx(1)
        with pytest.raises(WrongAnswer, match="and the budget is"):
            allocate([8, 8, 8, 8], sizes, errors, budget)


def test_predictions_follow_from_the_rules(solved):
    answers = {name: p.answer for name, p in registry.predictions().items() if name.startswith("quant.")}
    assert solved["affine"]([-1.0, 3.0], 8)[1] == answers["quant.zero_point"]
    assert solved["grouped"](np.eye(2, 128).tolist(), 3, 128)[0] == answers["quant.bits"]
    assert answers["quant.kernel_bytes"] == pytest.approx(16 / 4.5)
    assert answers["quant.codes_left"] == 2 * round(127 / 50) + 1  # 127 is the outlier's code


@given(
    st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=1, max_size=20),
    st.sampled_from([2, 3, 4, 8]),
)
def test_no_number_is_off_by_more_than_half_a_step_and_0_is_exact(solved, values, bits):
    scale, zero, codes = solved["affine"]([*values, 0.0], bits)
    assert all(0 <= code < 2**bits for code in codes) and codes[-1] == zero
    for x, code in zip(values, codes, strict=False):
        assert abs(scale * (code - zero) - x) <= scale / 2 * (1 + 1e-9)


@given(st.integers(0, 2**31), st.sampled_from([2, 3, 4, 8]), st.sampled_from([2.0**-5, 1.0, 300.0]))
def test_questions_do_not_hang_on_a_last_bit(seed, bits, size):
    x = clear(np.random.default_rng(seed).standard_normal((3, 24)) * size, bits)
    scale, zero = grid(x, bits)
    other = np.clip(
        np.round(x * (1 / scale)) + np.round(-x.min(-1, keepdims=True) * (1 / scale)), 0, 2**bits - 1
    )
    inside = (x.min(-1) < 0) & (x.max(-1) > 0)
    assert np.array_equal(codes_of(x, scale, zero, bits)[inside], other[inside])


def test_gptq_leaves_a_quarter_to_a_third_of_the_error_of_rounding_to_nearest(solved):
    assert counts(gptq, wrong("gptq_nearest")["gptq"], gptq_questions, PAPER) == [1.0] * len(SEEDS)
    assert all(0.2 < share < 0.34 for share in counts(gptq, solved["gptq"], gptq_questions, PAPER))


def test_a_mean_square_error_needs_another_limit_for_other_shapes(solved):
    sizes = {"what": "all shapes"}
    assert max(counts(clip, solved["clip"], clip_questions, sizes, range(1))) < 1.02
    for stem in ("clip_largest", "clip_percentile"):
        assert min(counts(clip, wrong(stem)["clip"], clip_questions, sizes, range(1))) > 1.5


def test_factors_leave_what_the_table_says(solved):
    sizes = {"what": "outliers"}
    assert max(counts(smooth, solved["smooth"], smooth_questions, sizes)) < 0.12
    assert (
        min(counts(smooth, wrong("smooth_moves_all_to_the_weights")["smooth"], smooth_questions, sizes))
        > 0.17
    )
    assert max(counts(awq, solved["awq"], awq_questions, sizes)) < 0.42
    assert min(counts(awq, wrong("awq_all_of_the_activations")["awq"], awq_questions, sizes)) > 0.9


@pytest.mark.parametrize(("stem", "each"), [(None, 22), ("multiply_x_from_global", 176)])
def test_the_kernel_loads_the_sectors_that_were_derived(stem, each, solved):
    kernel = (wrong(stem) if stem else solved)["multiply"]
    packed, scales = (
        cuda.to_device(np.zeros((32, 128), np.uint32)),
        cuda.to_device(np.ones((32, 16), np.float32)),
    )
    x, out = cuda.to_device(np.ones(1024, np.float32)), cuda.to_device(np.zeros(32, np.float32))
    assert profile(kernel[1, 256], packed, scales, x, out)["global_load_sectors"] == each * 32
    assert np.array_equal(out.copy_to_host(), np.full(32, -8 * 1024, np.float32))


def test_the_size_of_a_state_is_that_of_its_storages(solved):
    model = torch.nn.Sequential(torch.nn.Embedding(5, 8), torch.nn.Linear(8, 5, bias=False))
    model[1].weight = model[0].weight
    model.register_buffer("codes", torch.zeros(3, 4, dtype=torch.uint8))
    entries = [
        [name, list(t.shape), str(t.dtype).removeprefix("torch."), t.untyped_storage().data_ptr()]
        for name, t in model.state_dict().items()
    ]
    assert solved["size"](entries) == 5 * 8 * 4 + 12


def test_nf4_is_the_published_table():
    cell = next(c.source for c in notebooks.cells(LAB, "code") if "nf4 = " in c.source)
    found: dict = {"np": np}
    exec(cell.partition("plot.number_line")[0], found)
    published = [-1, -0.6961928, -0.5250731, -0.3949175, -0.2844414, -0.1847734, -0.0910500, 0]
    published += [0.0795803, 0.1609302, 0.2461123, 0.3379152, 0.4407098, 0.5626170, 0.7229568, 1]
    assert found["nf4"] == pytest.approx(published, abs=1e-6)  # QLoRA (arXiv:2305.14314), appendix E


# ---------------------------------------------------------------- on the model itself


def lost(model) -> float:
    return story_nats(model, *fresh(500)) - text.STORY_NATS


def layers(model):
    return {n: m for n, m in model.named_modules() if isinstance(m, torch.nn.Linear) and n != "head"}


@torch.no_grad()
def changed(model, how):
    new = copy.deepcopy(model)
    for name, layer in layers(new).items():
        layer.weight.copy_(torch.tensor(how(name, layer.weight.double().numpy())))
    return new


@pytest.mark.slow
def test_the_texts_figures_of_the_model_with_outliers_are_measured(solved):
    planted = plant_outliers(trained(progress=False), channels=(5, 23), factor=50.0)
    inputs: dict[str, np.ndarray] = {}
    tokens, there = fresh(64, seed=77)
    hooks = [
        layer.register_forward_pre_hook(
            lambda _, x, name=name: inputs.update({name: x[0][there].double().numpy()})
        )
        for name, layer in layers(planted).items()
    ]
    with torch.no_grad():
        planted(tokens, there)
    for hook in hooks:
        hook.remove()

    def nearest(bits):
        return lambda _, w: solved["grouped"](w.tolist(), bits, w.shape[1])[1]

    def errors_cancel(bits):
        def how(name, w):
            scale, zero = grid(w, bits)
            hessian = inputs[name].T @ inputs[name]
            codes = solved["gptq"](
                w.tolist(), hessian.tolist(), scale[:, 0].tolist(), zero[:, 0].tolist(), bits
            )
            asked = (w.tolist(), hessian.tolist(), scale[:, 0].tolist(), zero[:, 0].tolist(), bits)
            assert gptq(codes, *asked)["error over nearest"] < (0.5 if bits == 3 else 0.6), name
            return (np.array(codes) - zero) * scale

        return how

    def with_inputs(model, bits, scale_of):
        new, last = copy.deepcopy(model), 2 ** (bits - 1) - 1
        for name, layer in layers(new).items():

            def through(_, x, name=name):
                scale = scale_of(name, x[0]) / last
                return (torch.clamp(torch.round(x[0] / scale), -last, last) * scale,)

            layer.register_forward_pre_hook(through)
        return new

    eight = changed(planted, nearest(8))
    assert lost(planted) == pytest.approx(0.085, abs=0.01) == lost(eight)
    static = with_inputs(eight, 8, lambda name, x: float(np.abs(inputs[name]).max()))
    assert lost(static) == pytest.approx(1.3, abs=0.2)
    token = with_inputs(eight, 6, lambda _, x: x.abs().amax(-1, keepdim=True))
    assert lost(token) == pytest.approx(31, abs=5)
    assert lost(changed(planted, nearest(2))) > 3 > 0.5 > lost(changed(planted, errors_cancel(2)))
    assert lost(changed(planted, nearest(3))) > 2 * lost(changed(planted, errors_cancel(3)))
    assert math.exp(text.STORY_NATS) == pytest.approx(11_520)
