"""Lab 14: what its table and its texts state is so."""

from __future__ import annotations

import ast
import copy
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import prune

import gpulab
from gpulab.checks import find
from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_14_compression_and_finetuning.exercises import PAIRS, sparse_sectors
from gpulab.content.lab_14_compression_and_finetuning.references.exercises import amounts, pack24, workload
from gpulab.subjects.models.config import Config
from gpulab.subjects.models.gpt import GPT, parameters
from grading.core.judge import judge_cases
from tests.labs import notebooks

LAB = "14_compression_and_finetuning"


@pytest.fixture(scope="module")
def solved():
    return notebooks.answers(LAB)


def wrong(stem: str):
    path = next(path for path in notebooks.wrong_files(LAB) if path.stem == stem)
    return notebooks.wrong_answer(path)


def share(sparse: nn.Module) -> float:
    return 1 - float(sparse.weight_mask.mean())


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 100), min_size=1, max_size=6).map(sorted))
def test_amounts_bring_pytorchs_pruning_to_the_sparsities_that_were_wanted(percents):
    layer = nn.Linear(100, 10)
    for wanted, amount in zip(percents, amounts([p / 100 for p in percents]), strict=True):
        prune.l1_unstructured(layer, "weight", amount=min(1.0, amount))
        assert share(layer) == pytest.approx(wanted / 100, abs=0.01)


def test_the_detectives_rounds_leave_3_percent_and_count_as_none():
    layer = nn.Linear(64, 64)
    for k in range(1, 11):
        prune.l1_unstructured(layer, "weight", amount=0.5 * k / 10)
    assert share(layer) == pytest.approx(0.967, abs=0.002)
    assert not any((p == 0).any() for name, p in layer.named_parameters() if "weight" in name)


def test_2_of_4_in_fp16_is_4_and_a_half_bytes_and_the_first_two_keep_two_thirds(solved):
    weights = np.random.default_rng(1).standard_normal((8, 512)).astype(np.float16).astype(float).tolist()
    values, metadata = solved["pack24"](weights)
    assert pack24([values, metadata], weights) == {"magnitude": 1.0}
    assert 4 * (2 * np.size(values) + np.size(metadata)) / np.size(weights) == 4.5
    first = pack24(wrong("pack24_keeps_the_first_two")["pack24"](weights), weights)
    assert first["magnitude"] == pytest.approx(0.68, abs=0.02)


@settings(deadline=None)
@given(st.lists(st.floats(-9, 9), min_size=8, max_size=8))
def test_no_mask_of_two_keeps_more_than_the_packed_one(solved_pack, row):
    values, _ = solved_pack([row])
    kept = [sum(map(abs, values[0][:2])), sum(map(abs, values[0][2:]))]
    best = [max(abs(row[g + i]) + abs(row[g + k]) for i, k in PAIRS) for g in (0, 4)]
    assert kept == pytest.approx(best)


@pytest.fixture(scope="module")
def solved_pack(solved):
    return solved["pack24"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([[[1.0, 2.0, 5.0, 6.0]], [[0b0100_0001]]], "the first should be smaller"),
        ([[[1.0, 2.0, 5.0, 7.0]], [[0b0100_0100]]], "stands for column 5"),
        ([[[1.0, 2.0, 5.0]], [[0b0100_0100]]], "has 3 values"),
        ([[[1.0, 2.0, 5.0, 6.0]], [[256]]], "no whole number of 8 bits"),
        ([[[1.0, 2.0, 5.0, 6.0]], [[4, 4]]], "row 0 has 2 bytes of metadata; 2 groups need 1"),
        ([[[1.0, 2.0, 5.0, 0.0]], [[0b1001_0100]]], "column 5, which is 6.0$"),
        ([[[1.0, 2.0, 6.0, 0.0]], [[0b0100_1001]]], "the other group in its byte"),
        ([[], []], "a list of 1 rows"),
        ([[[1.0, 2.0, 5.0, 6.0]]], "the values and the metadata"),
    ],
)
def test_a_packing_that_is_none_is_refused_with_a_sentence(answer, said):
    with pytest.raises(WrongAnswer, match=said):
        pack24(answer, [[1.0, 2.0, 0.0, 0.0, 5.0, 6.0, 0.0, 0.0]])


@pytest.mark.parametrize(("stem", "staged"), [("", True), ("sparse24_x_from_global_memory", False)])
def test_the_sparse_kernels_read_as_many_sectors_as_derived(stem, staged, solved):
    kernel = (wrong(stem) if stem else solved)["sparse24"]
    verdict = gpulab.check("compress.sparse24", kernel)
    part = next(part for part in verdict.parts if part.label == "load sectors")
    sizes = find("compress.sparse24").cases[-1].sizes
    assert part.measured == pytest.approx(sparse_sectors(sizes, staged), rel=0.01)
    per_block = {True: 512, False: 1408}[staged]
    assert sparse_sectors({"rows": 8, "columns": 1024}, staged) == per_block


@pytest.mark.parametrize("stem", ["sparse24_a_barrier_of_one_warp", "sparse24_stages_only_with_a_row"])
def test_judge_and_check_see_whether_all_warps_stage_and_wait_for_all(stem):
    public = find("compress.sparse24")
    judged = dataclasses.replace(public, cases=judge_cases(public))
    for exercise in (public, judged):
        assert gpulab.check(exercise, wrong(stem)["sparse24"]).points == 0


def test_the_numbers_of_the_sample_answer_are_those_of_the_exercise(solved):
    text = " ".join("".join(c.source for c in notebooks.cells(LAB, "markdown")).split())
    for answer in (solved, wrong("shrink_multiplies_by_a_mask")):
        verdict = gpulab.check("compress.shrink", answer["shrink"])
        part = next(part for part in verdict.parts if part.label == "matrix FLOPs")
        assert f"{part.measured:,.0f}" in text


def test_with_t_squared_the_gradient_keeps_its_size_and_without_it_fades():
    numbers = torch.Generator().manual_seed(1)
    student, teacher = (2 * torch.randn(64, 27, generator=numbers) for _ in range(2))
    norms = {}
    for temperature in (1, 8):
        logits = student.clone().requires_grad_()
        p, q = (F.log_softmax(each / temperature, -1) for each in (teacher, logits))
        F.kl_div(q, p, reduction="batchmean", log_target=True).backward()
        norms[temperature] = float(logits.grad.norm())
    assert 50 < norms[1] / norms[8] < 90
    assert 0.6 < norms[1] / (64 * norms[8]) < 1.5


@pytest.mark.parametrize("name", ["Adapter", "Turned"])
def test_an_adapter_starts_as_the_layer_that_it_adapts_and_merges_into_it(name, solved):
    torch.manual_seed(0)
    layer, x = nn.Linear(12, 7), torch.randn(5, 12)
    adapter = adapters_of_the_lab(solved["merge"])[name](layer, 3)
    assert torch.allclose(adapter(x), layer(x), atol=1e-6)
    with torch.no_grad():
        adapter.b.normal_()
    merged = layer.weight + adapter.scale * adapter.b @ adapter.a
    if name == "Turned":
        merged = merged * (layer.weight.norm(dim=1) / merged.norm(dim=1))[:, None]
    assert torch.allclose(adapter(x), F.linear(x, merged, layer.bias), atol=1e-5)


def adapters_of_the_lab(merge) -> dict[str, type[nn.Module]]:
    """The classes of the lab's section 7, as they stand there."""
    names = {"nn": nn, "torch": torch, "F": F, "math": math, "merge": merge}
    for name in ("Adapter", "Turned"):
        cell = next(c.source for c in notebooks.cells(LAB, "code") if f"class {name}(" in c.source)
        tree = ast.parse(cell)
        only = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
        exec(compile(ast.Module(only, []), name, "exec"), names)
    return names


def test_the_workload_counts_the_parameters_of_a_real_model():
    config = Config(50, context=8, width=128, layers=3, heads=4, bias=False)
    model = GPT(config)
    others = 50 * 128 + 8 * 128 + 7 * 128  # embedding, places, seven norms
    assert workload(3, 128, 4, "full")[0] == parameters(model) - others
    pairs = sum(4 * sum(p.shape) for p in model.blocks.parameters() if p.dim() == 2)
    assert workload(3, 128, 4, "LoRA")[0] == pairs


def test_nf4_with_double_quantisation_takes_what_the_cheat_sheet_says():
    learning, held, _ = workload(1, 16_384, 1, "QLoRA")
    assert (held - 16 * learning) / (12 * 16_384**2) == pytest.approx(0.516, abs=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_section_7_says_of_three_other_seeds_is_so(seed, solved):
    lab = definitions_of_the_lab(solved["merge"])
    model, adapt, nats = lab["model"], lab["adapt"], lab["nats"]

    def losses(start: Callable[[], nn.Module], rate: float) -> tuple[float, float]:
        """On new stories and on old ones, after training."""
        torch.manual_seed(seed)
        tuned = start()
        lab["train"](tuned, lab["News"](3 + seed), 80, rate)
        return nats(tuned, lab["news"]), nats(tuned)

    whole = losses(lambda: copy.deepcopy(model), 3e-3)
    eight, one = losses(lambda: adapt(model, 8), 1e-2), losses(lambda: adapt(model, 1), 1e-2)
    dora = losses(lambda: adapt(model, 1, lab["Turned"]), 1e-2)
    assert whole[0] < eight[0] < dora[0] < one[0] - 5 and dora[0] > 2 * eight[0]
    assert one[1] < 0.8 * min(whole[1], eight[1]) and one[1] > 8 * nats(model)
    four = lab["in_four_bits"](model)
    torch.manual_seed(seed)
    tuned = adapt(four, 8)
    lab["train"](tuned, lab["News"](3 + seed), 80, 1e-2)
    merged = copy.deepcopy(four)
    adapters = [part for part in tuned.modules() if isinstance(part, lab["Adapter"])]
    with torch.no_grad():
        for layer, adapter in zip(lab["layers"](merged), adapters, strict=True):
            layer.weight.add_(adapter.scale * adapter.b @ adapter.a)
    apart, again = nats(tuned, lab["news"]), nats(lab["in_four_bits"](merged), lab["news"])
    assert nats(merged, lab["news"]) == pytest.approx(apart, abs=0.01) and 1 < again - apart < 2
    assert abs(apart - eight[0]) < 3


def definitions_of_the_lab(merge) -> dict[str, Any]:
    """What the lab defines: its imports, functions, classes, and the model with its stories."""
    names: dict[str, Any] = {}
    for cell in notebooks.cells(LAB, "code"):
        keep = []
        for node in ast.parse(cell.source).body:
            bound = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            defines = isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)
            if defines or (isinstance(node, ast.Assign) and bound <= {"model", "anew", "news"}):
                keep.append(node)
        exec(compile(ast.Module(keep, []), "lab 14", "exec"), names)
    names["merge"] = merge
    return names


def test_zero_2_keeps_a_quantised_base_whole_and_little_else(solved):
    learning, held, _ = solved["workload"](80, 8192, 16, "QLoRA")
    frozen = held - 16 * learning
    assert round(frozen / 1e9) == 33 and round(learning / 1e9, 2) == 0.19
    assert round((2 + 14 / 8) * learning / 1e9, 1) == 0.7
    assert held / 8 < 24e9 < frozen


def test_codes_survive_a_view_and_sharding_and_no_cast():
    codes = torch.randint(0, 256, (1 << 12,), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    stored = codes.view(torch.bfloat16)
    assert torch.equal(torch.cat(list(stored.chunk(4))).view(torch.uint8), codes)
    cast = stored.to(torch.float16).to(torch.bfloat16).view(torch.uint8)
    assert float((cast != codes).float().mean()) > 0.5
