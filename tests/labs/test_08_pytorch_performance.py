"""Lab 08: the numbers that its table derives by hand, and the judge's limited child on tensor graphs."""

from __future__ import annotations

import csv
import json
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from gpulab.analysis.profile.tensors import TensorReport  # noqa: E402
from gpulab.checks import cases, find  # noqa: E402
from gpulab.checks.registry import predictions  # noqa: E402
from gpulab.checks.run import explain  # noqa: E402
from gpulab.checks.tensor_graphs import record, replay  # noqa: E402
from gpulab.content.lab_08_pytorch_performance.exercises import (  # noqa: E402
    ClockedGPU,
    activation_bytes,
    compiles_questions,
    facts_of,
    gpt_shapes,
    one_pass,
    place_questions,
)
from gpulab.content.lab_08_pytorch_performance.references.exercises import compiles  # noqa: E402
from gpulab.content.lab_08_pytorch_performance.references.exercises import place as arena  # noqa: E402
from grading.authoring.prove import wrong_file  # noqa: E402
from grading.core.graft import graft  # noqa: E402
from grading.core.judge import Judge  # noqa: E402
from grading.core.notebooks import questions  # noqa: E402
from grading.core.sandbox import Limits  # noqa: E402
from tests.labs import notebooks  # noqa: E402

LAB = "08_pytorch_performance"


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    return notebooks.answers(LAB)


def report(name: str, fn: Any) -> TensorReport:
    """What a function costs at the exercise's last case."""
    exercise = find(name)
    made = cases.arguments(exercise, exercise.cases[-1])
    return replay(
        record(fn, made, exercise.evidence.operators), made, exercise.evidence.operators, "fn"
    ).report


def wrong(name: str) -> Any:
    path = notebooks.ROOT / "solutions" / LAB / "wrong" / f"{name}.py"
    header = wrong_file(path)
    return notebooks.wrong_answer(path)[header.exercise.partition(".")[2]]


def test_gpt_2_has_148_parameter_tensors_and_124_million_parameters():
    shapes = gpt_shapes(768, 12, 50_257, 1024)
    assert len(shapes) == 148 == predictions()["pytorch.tensors"].answer
    assert sum(torch.Size(shape).numel() for shape in shapes) == 124_439_808


def test_adamw_over_148_tensors_takes_1480_launches_by_the_book_and_6_fused(answers):
    numbers = sum(torch.Size(shape).numel() for shape in gpt_shapes(8, 12))
    by_the_book = report("pytorch.adamw_step", wrong("adamw_step_by_the_book"))
    fused = report("pytorch.adamw_step", answers["adamw_step"])
    assert (by_the_book.launches, by_the_book.bytes) == (1480, 25 * 4 * numbers)
    assert fused.launches == 6
    assert fused.bytes == 7 * 4 * numbers + 148 * 4 + 4  # each tensor reads the step, and it is filled once


def test_clipping_takes_303_launches_one_by_one_and_12_together(answers):
    assert report("pytorch.clip", wrong("clip_one_by_one")).launches == 303
    assert report("pytorch.clip", answers["clip"]).launches == 12


def test_folding_moves_a_quarter_of_the_bytes(answers):
    rows, cols = 1000, 64
    assert report("pytorch.fold", wrong("fold_line_by_line")).bytes == 4 * (8 * rows * cols + 4 * cols)
    assert report("pytorch.fold", answers["fold"]).bytes == 4 * (2 * rows * cols + 9 * cols)


@pytest.mark.parametrize(
    ("fn", "activations", "passes"),
    [("gradients_all_kept", 65, 3), ("gradients_every_block", 33, 4), (None, 15, 4)],
)
def test_checkpoints_keep_as_many_activations_as_derived(fn, activations, passes, answers):
    """On top of them come the gradients of 32 weights of 1 KiB. The first input wants no gradient, so its
    product, one of 32, has one backward product instead of two; and no last product of a stretch is skipped.
    """
    sizes = find("pytorch.gradients").cases[-1].sizes
    got = report("pytorch.gradients", wrong(fn) if fn else answers["gradients"])
    assert got.peak == activations * activation_bytes(sizes) + 32 * 1024
    assert got["matrix_flops"] == (passes - 1 / 32) * one_pass(sizes)


def test_the_predicted_epoch_and_segment_are_those_of_the_solutions(answers):
    assert answers["epoch"]([24] * 20, 8, 2, 2) == predictions()["pytorch.loader"].answer
    assert (
        answers["segments"]([[i, 9 * 2**20] for i in range(3)])[1] / 2**20
        == predictions()["pytorch.reserved"].answer
    )


@pytest.mark.parametrize("kind", ["one axis", "two axes", "size 1", "any calls"])
def test_dynamo_compiles_at_the_calls_that_the_rules_name(kind):
    torch._dynamo.reset()
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph.forward

    for (shapes,) in compiles_questions({"kind": kind}, np.random.default_rng(4)):
        torch._dynamo.reset()
        function = torch.compile(lambda x: 2 * x + 1, backend=keep)
        found = []
        for shape in shapes:
            before = len(graphs)
            function(torch.ones(shape))
            found.append(len(graphs) > before)
        assert found == compiles(shapes), shapes


def test_the_table_of_nsight_compute_has_the_numbers_that_were_measured_on_the_h100():
    cell = notebooks.cell_with(LAB, 'REPORT = """')
    lines = cell[cell.index('"ID"') : cell.rindex('"""')].splitlines()
    names, units, *rows = csv.reader(lines)
    assert units[2:4] == ["us", "Mbyte"]
    file = notebooks.ROOT / "validation" / "measured" / "H100.json"
    kernels = json.loads(file.read_text(encoding="utf-8"))["kernels"]
    for row in rows:
        sizes = kernels[f"{row[1]}/cuda"]
        counters = sizes[max(sizes, key=int)]["counters"]
        wanted = (
            counters["kernel_seconds"] * 1e6,
            counters["dram_bytes"] / 1e6,
            counters["global_load_requests"],
            counters["global_load_sectors"],
        )
        assert [float(text.replace(",", "")) for text in row[2:]] == pytest.approx(wanted), row[1]
    assert len(names) == 6 and len(rows) == 5


def test_the_clocked_gpu_runs_while_the_host_goes_on():
    gpu = ClockedGPU({"compile": 1000, "launch": 5, "cold": 200, "warm": 40, "flush": 30, "hiccup": 1})
    gpu.call()
    assert gpu.now() == 1005
    gpu.call()
    assert gpu.now() == 1010
    gpu.synchronize()
    assert gpu.now() == 1005 + 200 + 40
    gpu.flush()
    gpu.call()
    gpu.synchronize()
    assert gpu.now() == 1245 + 30 + 200


def test_one_of_every_four_calls_is_disturbed_and_not_always_the_same():
    gpu = ClockedGPU({"compile": 0, "launch": 0, "cold": 1, "warm": 1, "flush": 0, "hiccup": 9})
    times = []
    for _ in range(80):
        began = gpu.now()
        gpu.call()
        gpu.synchronize()
        times.append(gpu.now() - began)
    places = [times[i : i + 4].index(9) for i in range(0, 80, 4)]
    assert sum(times) == 60 + 20 * 9
    assert set(places) == {0, 1, 2, 3}


def test_one_measurement_or_a_mean_is_wrong_on_most_machines_and_a_median_on_none(answers):
    def times(benchmark: Any) -> list[float]:
        gpus = map(ClockedGPU, machines)
        return [benchmark(gpu.now, gpu.call, gpu.flush, gpu.synchronize) for gpu in gpus]

    machines = range(3, 503, 5)  # those of "disturbed"
    truth = [facts_of(machine)["launch"] + facts_of(machine)["cold"] for machine in machines]
    once, mean = times(wrong("benchmark_once")), times(wrong("benchmark_mean"))
    assert times(answers["benchmark"]) == truth
    assert 10 < sum(found != true for found, true in zip(once, truth, strict=True)) < 50
    assert all(found > true for found, true in zip(mean, truth, strict=True))


def test_a_wrong_call_of_the_fused_operator_says_what_it_takes():
    def adamw_step(params):
        torch._fused_adamw_(params, 3)

    with pytest.raises(TypeError) as raised:
        adamw_step([torch.ones(2)])
    assert "exp_avg_sqs" in explain(raised.value, adamw_step)[0].text


def test_clipping_with_where_keeps_to_the_budget():
    def clip(grads, most):
        length = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
        torch._foreach_mul_(grads, torch.where(length > most, most / (length + 1e-6), 1.0))

    assert report("pytorch.clip", clip).launches <= 14


def test_the_judges_limited_child_replays_tensor_graphs():
    """Recorded in a process of its own, replayed in a child with limits on memory and files."""
    released = notebooks.notebooks(LAB, released=True)[LAB]
    asked = tuple(q for q in questions(released) if q.exercise in ("pytorch.fold", "pytorch.clip"))
    solved = [dict(cell) for cell in notebooks.notebooks(LAB)[LAB].cells]
    judge = Judge(b"secret", Limits(), unsafe=True)
    verdict = judge.verdict(graft(released, solved, "solved", LAB), asked, "key")
    assert [e.points for e in verdict.exercises] == [4, 4], verdict


@pytest.mark.parametrize("blocks, draws", [(3, 300), (5, 200), (24, 5), (28, 5)])
def test_place_has_room_for_what_is_drawn_in_few_blocks_and_none_for_a_place_each(answers, blocks, draws):
    (budget,) = find("pytorch.place").budgets
    limit = budget.limit_for({"blocks": blocks})
    end_to_end = wrong("place_end_to_end")
    most, apart = [], []
    for seed in range(draws):
        for (tensors,) in place_questions({"blocks": blocks}, np.random.default_rng(seed)):
            most.append(arena(answers["place"](tensors), tensors)["arena"])
            most.append(arena(answers["place"](tensors[::-1]), tensors[::-1])["arena"])  # ties another way
            apart.append(arena(end_to_end(tensors), tensors)["arena"])
    assert max(most) <= limit
    assert np.mean(np.array(apart) <= limit) < 0.02
    assert (max(most) > 1.1) == (blocks < 24)  # what a limit of 1.1 would refuse
