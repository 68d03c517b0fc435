"""Lab 11: naive kernels cost what the table derives, plans are the best there are, texts say what is counted."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import triton.language as tl  # noqa: E402

import gpulab  # noqa: E402
from gpulab import cuda, triton  # noqa: E402
from gpulab.analysis.profile.watch import Watch  # noqa: E402
from gpulab.checks import registry  # noqa: E402
from gpulab.checks.spec import WrongAnswer  # noqa: E402
from gpulab.content.lab_11_triton_and_fusion.exercises import (  # noqa: E402
    FEWEST,
    GRAPHS,
    WAVE,
    least_panels,
    row_after_row,
    unfused,
)
from gpulab.content.lab_11_triton_and_fusion.references.exercises import cost, uniform  # noqa: E402
from gpulab.simulator import device as devices  # noqa: E402
from gpulab.simulator.compile.inductor import inductor  # noqa: E402
from grading.authoring.prove import wrong_file  # noqa: E402
from tests.labs import notebooks  # noqa: E402

LAB = "11_triton_and_fusion"
WRONG = {path.stem: path for path in notebooks.wrong_files(LAB)}


@pytest.fixture(scope="module")
def solutions():
    return notebooks.answers(LAB)


def answer_of(prediction: str) -> float:
    return registry.predictions()[f"triton.{prediction}"].answer


# ---------------------------------------------------------------- what the table was derived to say


@pytest.mark.parametrize(
    "stem, label",
    [
        ("momentum_three_launches", "loaded bytes"),
        ("softmax_columns_one_in_a_program", "sectors"),
        ("layer_norm_one_row", "loaded bytes"),
    ],
)
def test_a_naive_kernel_costs_what_was_derived(stem, label):
    exercise = registry.find(wrong_file(WRONG[stem]).exercise)
    host = notebooks.wrong_answer(WRONG[stem])[notebooks.checks(LAB)[exercise.name][0]]
    budget = next(budget for budget in exercise.budgets if budget.label == label)
    case, watch = exercise.cases[-1], Watch(devices.current())
    outcome = notebooks.launched(exercise, host).run(case, watch.standing())
    assert not outcome.trouble
    assert watch.report()[budget.metric] == budget.naive_for(case.sizes)


def test_five_operations_of_softmax_move_8mn_and_4m_elements_and_one_kernel_2mn(solutions):
    rows, columns = 64, 256
    x = torch.randn(rows, columns)
    names: dict = {"torch": torch}
    source = notebooks.cell_with(LAB, "def softmax_by_operators(")
    exec(source, names)
    report = gpulab.profile(names["softmax_by_operators"], x)
    assert (report.launches, report.bytes) == (5, 4 * (8 * rows * columns + 4 * rows))
    in_place = gpulab.profile(names["softmax_in_place"], x)
    assert in_place.bytes == report.bytes and in_place.peak < report.peak / 2
    fused = gpulab.profile(
        solutions["softmax"], cuda.to_device(x.numpy()), cuda.device_array((rows, columns), np.float32)
    )
    assert (fused["launches"], fused["global_bytes"]) == (1, 4 * 2 * rows * columns)


def test_bias_gelu_and_dropout_move_42_bytes_and_their_gradient_29():
    names: dict = {"torch": torch, "gpulab": gpulab, "logits": torch.randn(64, 256), "COLUMNS": 256}
    exec(notebooks.cell_with(LAB, "def gelu_dropout_by_operators("), names)
    x = names["logits"]
    report = gpulab.profile(names["gelu_dropout_by_operators"], x, torch.zeros(256), 0.25)
    assert (report.launches, report.bytes) == (6, answer_of("dropout_bytes") * x.numel() + 4 * 256)
    back = gpulab.profile(lambda g, mask, z: torch.ops.aten.gelu_backward(g * mask / 0.75, z), x, x > 0, x)
    assert (back.launches, back.bytes) == (3, 29 * x.numel())


@triton.jit
def random_numbers(out, seed, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.rand(seed, i))


@pytest.mark.parametrize("seed", [0, 7, 123_456_789, 2**40 + 3])
def test_the_reference_has_the_random_numbers_of_triton(seed):
    out = cuda.device_array(256, np.float32)
    random_numbers[(1,)](out, seed, BLOCK=256)
    assert np.array_equal(out.copy_to_host(), uniform(seed, 256))


# ---------------------------------------------------------------- plans


def test_no_order_of_few_tiles_reads_fewer_panels_than_the_bound():
    sizes = {"m": 2, "n": 3, "wave": 2}
    tiles = list(itertools.product(range(2), range(3)))
    found = min(panels_of(order, 2) for order in itertools.permutations(tiles))
    assert found == least_panels(sizes) == 9


def panels_of(order, wave: int) -> int:
    waves = [order[i : i + wave] for i in range(0, len(order), wave)]
    return sum(len({m for m, _ in w}) + len({n for _, n in w}) for w in waves)


def test_the_table_has_the_panels_of_the_orders(solutions):
    sizes = {"m": 64, "n": 64, "wave": WAVE}
    assert (row_after_row(sizes), least_panels(sizes)) == (2531, 797)
    in_eights = [(m, n) for g in range(0, 64, 8) for n in range(64) for m in range(g, g + 8)]
    assert panels_of(in_eights, WAVE) == 887
    assert panels_of([(m, n) for m in range(64) for n in range(64)][:WAVE], WAVE) == answer_of("panels")


def groupings(work: list[str], apart: Callable[[str, str], bool]) -> Iterator[list[list[str]]]:
    """All ways to put the operations into groups without two in one that must be apart."""
    if not work:
        yield []
        return
    for rest in groupings(work[:-1], apart):
        yield [*rest, [work[-1]]]
        for i, group in enumerate(rest):
            if not any(apart(other, work[-1]) for other in group):
                yield [*rest[:i], [*group, work[-1]], *rest[i + 1 :]]


def sorted_by_need(groups: list[list[str]], inputs: dict[str, list[str]]) -> list[list[str]] | None:
    """The groups in an order in which each finds its inputs; None where there is none."""
    where = {name: i for i, group in enumerate(groups) for name in group}
    before = {
        i: {where[n] for name in group for n in inputs[name] if n in where} - {i}
        for i, group in enumerate(groups)
    }
    done: list[int] = []
    while len(done) < len(groups):
        ready = next((i for i in before if i not in done and before[i] <= set(done)), None)
        if ready is None:
            return None
        done.append(ready)
    return [groups[i] for i in done]


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_fewest_bytes_and_launches_are_those_of_an_exhaustive_search(graph):
    operations, outputs = GRAPHS[graph]
    inputs = {name: needs for name, _, needs, _ in operations}
    kind = {name: what for name, what, _, _ in operations}

    def apart(first: str, second: str) -> bool:
        kinds = {kind[first], kind[second]}
        if kinds == {"matmul"} or kinds == {"matmul", "rows"}:
            return True
        return first in inputs[second] and (kind[first] == "columns" or kind[second] == "matmul")

    costs = []
    for groups in groupings([name for name in kind if kind[name] != "input"], apart):
        plan = sorted_by_need(groups, inputs)
        try:
            costs.append(cost(plan, list(operations), list(outputs)) if plan else None)
        except WrongAnswer:
            continue
    found = [each for each in costs if each]
    best = min(moved for moved, _ in found), min(launches for _, launches in found)
    assert best == FEWEST[graph] and best in found


def test_without_fusion_the_softmax_is_the_worst_of_the_graphs():
    assert unfused({"graphs": ", ".join(GRAPHS)})[0] == pytest.approx(30_018_000 / 6_000_000)
    assert unfused({"graphs": "softmax"}) == (32_016_000 / 8_000_000, 5)


# ---------------------------------------------------------------- numbers that the text states


def test_the_detectives_kernel_leaves_six_tiles_of_thirty_six_out():
    names: dict = {"np": np, "cuda": cuda, "triton": triton, "tl": tl, "gpulab": gpulab}
    source = notebooks.cell_with(LAB, "def grouped_product(")
    names["rng"] = np.random.default_rng(3)
    lines = source[: source.index("for m, n in ((256, 256)")]
    notebooks_exec(lines, names)
    for m, n in ((256, 128), (512, 64)):
        _, got, expected = names["run_grouped"](m, n)
        assert np.allclose(got, expected, rtol=2e-3, atol=0.05)
    counted, got, expected = names["run_grouped"](384, 384)
    assert counted["global_store_bytes"] == 245_760 == 2 * 384 * 384 * 30 // 36
    tiles = ~np.isclose(got, expected, rtol=2e-3, atol=0.05).reshape(6, 64, 6, 64).all(axis=(1, 3))
    assert list(zip(*np.nonzero(tiles), strict=True)) == [(m, n) for m in (4, 5) for n in (3, 4, 5)]


def notebooks_exec(source: str, names: dict) -> None:
    """Run a cell so that Triton finds its text."""
    import linecache

    linecache.cache["<lab 11>"] = (len(source), None, source.splitlines(True), "<lab 11>")
    exec(compile(source, "<lab 11>", "exec"), names)


def test_inductor_leaves_the_product_to_a_library_and_fuses_the_softmax():
    dense = inductor(
        lambda x, w, b: torch.relu(x @ w + b), torch.empty(8, 32), torch.empty(32, 32), torch.empty(32)
    )
    assert len(dense.steps) == 2 and dense.steps[0] == "addmm"


@triton.jit
def online(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    largest, total = -float("inf"), 0.0
    for start in range(0, n, BLOCK):
        values = tl.load(x + row + start + tl.arange(0, BLOCK))
        new = tl.maximum(largest, tl.max(values, 0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(values - new), 0)
        largest = new
    for start in range(0, n, BLOCK):
        i = row + start + tl.arange(0, BLOCK)
        tl.store(out + i, tl.exp(tl.load(x + i) - largest) / total)


def test_the_open_task_can_be_done_with_twelve_bytes_per_element():
    x = np.random.default_rng(1).standard_normal((2, 65_536)).astype(np.float32)
    out = cuda.device_array(x.shape, np.float32)
    report = gpulab.profile(online[(2,)], cuda.to_device(x), out, 65_536, BLOCK=4096)
    assert report["global_bytes"] == 12 * x.size
    powers = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out.copy_to_host(), powers / powers.sum(1, keepdims=True), rtol=1e-4)


def test_the_random_numbers_are_more_than_half_of_the_dropout_kernel(solutions):
    x = cuda.to_device(np.zeros((8, 1024), np.float32))
    out = cuda.device_array_like(x)
    forward = gpulab.profile(solutions["gelu_dropout"], x, x[0], out, 0.25, 7)
    alone = gpulab.profile(random_numbers[(8,)], out, 7, BLOCK=1024)
    assert alone["instructions"] > forward["instructions"] / 2


def test_inductors_extra_instructions_are_a_careful_exponential_and_maximum():
    def softmax(x):
        powers = torch.exp(x - x.amax(1, keepdim=True))
        return powers / powers.sum(1, keepdim=True)

    program = inductor(softmax, torch.empty(8, 781))
    (kernel,) = program.kernels.values()
    x, out = (cuda.to_device(np.zeros((8, 781), np.float32)) for _ in range(2))

    def instructions(old: str = "", new: str = "") -> int:
        assert old in kernel.source
        changed = dataclasses.replace(
            kernel, source=kernel.source.replace(old, new) if old else kernel.source
        )
        return gpulab.profile(changed.define(triton)[(8,)], out, x, 8, 781, XBLOCK=1)["instructions"]

    assert instructions("libdevice.exp", "tl.exp") < instructions()
    assert instructions("triton_helpers.max2(tmp3, 1)", "tl.max(tmp3, 1)") < instructions()


def test_a_kernel_that_is_still_empty_is_named(stub_of_softmax):
    verdict = gpulab.check("triton.softmax", stub_of_softmax)
    assert "`softmax_kernel` is still empty" in str(verdict)


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    raise NotImplementedError()


@pytest.fixture
def stub_of_softmax():
    def softmax(x, out):
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)

    return softmax
