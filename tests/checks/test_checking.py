"""`check` as a whole: what it returns, what it never does, what it does when it is stopped."""

from __future__ import annotations

import dataclasses
import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from numba import cuda as numba_cuda

import gpulab
from gpulab import cuda
from gpulab.checks import checking, progress, run
from gpulab.checks.parts import Detail, Part
from gpulab.checks.verdict import Verdict
from gpulab.simulator import device
from tests.checks import toys


@cuda.jit
def double(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[i]


@cuda.jit
def plain(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        out[x, y] = a[y, x]


def test_a_verdict_survives_json() -> None:
    verdict = gpulab.check("toy.transpose", plain)
    again = Verdict.from_dict(json.loads(json.dumps(verdict.to_dict())))
    assert again == verdict
    assert str(again) == str(verdict)
    with pytest.raises(ValueError, match="no verdict of format 1"):
        Verdict.from_dict({"format": 9})


def test_a_verdict_holds_the_numbers_behind_its_words() -> None:
    verdict = gpulab.check("toy.transpose", plain)
    assert (verdict.points, verdict.of, verdict.passed, verdict.right) == (2.0, 5.0, False, True)
    budget = verdict.parts[1]
    assert (budget.metric, budget.case) == ("global_store_sectors_per_request", "96×128")
    assert (budget.measured, budget.budget, budget.naive, budget.of) == (32.0, 4.0, 32.0, 1.4)
    assert verdict.device == "A100 simulated"
    assert verdict.compiler.startswith("NVVM")


def test_the_html_of_a_verdict_has_the_words_of_its_text() -> None:
    verdict = gpulab.check("toy.transpose", plain)
    page = re.sub(r"</?(span|code)[^>]*>", "", verdict._repr_html_())
    words = html.unescape(re.sub(r"<[^>]+>", " ", page)).replace("\xa0", " ").split()
    assert words == str(verdict).replace("`", "").split()


def test_a_learners_text_cannot_become_markup() -> None:
    part = Part("right", "fail", 0, 1, "<b>", (Detail("<script>alert(1)</script>"), Detail("<i>", 3)))
    assert "<script" not in Verdict("<x>", (part,))._repr_html_()


def test_the_counts_are_those_of_one_gpu_whichever_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = device.current().gpu
    try:
        device.simulate("H100")
        verdict = gpulab.check("toy.double", double)
        assert verdict.passed
        assert verdict.device == "A100 simulated"
        assert device.current().gpu.name.startswith("H100")
    finally:
        device.current().gpu = chosen


def test_ctrl_c_stops_a_check_in_one_line_and_loses_nothing(own_progress: Path) -> None:
    gpulab.check("toy.double", double)
    before = own_progress.read_text()

    def impatient(a, out):
        raise KeyboardInterrupt

    with pytest.raises(checking.Stopped, match=r"the check of toy\.fill was stopped: it does not count"):
        gpulab.check("toy.fill", impatient)
    assert own_progress.read_text() == before
    assert device.current().options == {}
    assert device.current().observer_factories == ()


def test_a_mistake_of_ours_is_not_called_the_learners(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpulab.simulator.device import simulated

    monkeypatch.setattr(simulated, "check_shape", None)
    words = gpulab.check("toy.double", double).card().text(200)
    assert "something inside gpulab broke, not your code" in words
    assert "TypeError: 'NoneType' object is not callable" in words
    assert "Traceback" not in words


def test_what_a_learner_stores_between_cells_does_not_change() -> None:
    a = np.ones(4, np.float32)
    gpulab.check("toy.double", double)
    assert a.tolist() == [1, 1, 1, 1]


def test_a_kernel_of_numba_itself_is_checked_on_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "uses_gpu", lambda: True)

    @numba_cuda.jit
    def on_gpu(a, out):
        i = numba_cuda.grid(1)
        if i < a.size:
            out[i] = 2 * a[i]

    assert gpulab.check("toy.double", on_gpu).passed


def test_host_code_around_kernels_of_numba_is_checked_on_the_simulator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device, "uses_gpu", lambda: True)

    @numba_cuda.jit
    def plus_one(a, out):
        x, y = numba_cuda.grid(2)
        if x < a.shape[1] and y < a.shape[0]:
            out[y, x] = a[y, x] + 1

    def fill(a, out):
        plus_one[((a.shape[1] + 31) // 32, (a.shape[0] + 7) // 8), (32, 8)](a, out)

    assert gpulab.check("toy.fill", fill).passed


def test_a_kernel_of_numba_itself_is_watched_on_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "uses_gpu", lambda: True)

    @numba_cuda.jit
    def one_too_far(a, out):
        i = numba_cuda.grid(1)
        if i <= a.size:
            out[i] = 2 * a[i]

    assert not gpulab.check("toy.double", one_too_far).passed
    assert gpulab.watch().kernel == "one_too_far"


def test_a_check_leaves_no_device_memory_behind() -> None:
    gpulab.check("toy.double", double)
    used = device.current().memory.used
    gpulab.check("toy.double", double)
    assert device.current().memory.used == used


def test_an_exercise_may_be_given_as_a_record() -> None:
    from tests.checks.toys import DOUBLE

    assert gpulab.check(DOUBLE, double).exercise == "toy.double"


def test_an_endless_kernel_is_stopped_after_a_few_seconds_of_work() -> None:
    assert run.LIMIT <= 500_000


def test_a_check_of_a_given_function_is_no_attempt() -> None:
    given = gpulab.check("toy.transpose", plain, attempt=False)
    assert given.attempt == 0
    assert given.notes == ("this check does not count as an attempt",)
    assert gpulab.check("toy.transpose", plain).attempt == 1


@cuda.jit
def hasty(a, out):
    tile = cuda.shared.array((32, 33), np.float32)
    x, y = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[min(y, a.shape[0] - 1), min(x, a.shape[1] - 1)]
    if cuda.blockIdx.x * 32 + cuda.threadIdx.y >= a.shape[1]:
        return
    cuda.syncthreads()
    x = cuda.blockIdx.y * 32 + cuda.threadIdx.x
    if x < a.shape[0]:
        out[cuda.blockIdx.x * 32 + cuda.threadIdx.y, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


def test_a_barrier_that_some_skip_by_returning_is_remarked_on_and_costs_nothing() -> None:
    verdict = gpulab.check("toy.transpose", hasty)
    assert verdict.passed
    said, line = verdict.parts[0].details
    assert said.text.startswith("Only 32 of 1,024 threads of a block came to the barrier in line")
    assert line.text == "cuda.syncthreads()"


@cuda.jit
def in_float64(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        out[x, y] = (a[y, x] * 3.1) / 3.1


def test_arithmetic_in_float64_is_remarked_on_and_costs_nothing() -> None:
    verdict = gpulab.check("toy.transpose", in_float64)
    assert verdict.parts[0].state == "pass" and verdict.parts[0].points == 2.0
    said, line = verdict.parts[0].details
    assert (
        said.text.startswith("Line ") and "computes in float64, although no argument is float64" in said.text
    )
    assert line.text == "out[x, y] = (a[y, x] * 3.1) / 3.1"
    assert gpulab.check("toy.transpose", plain).parts[0].details == ()


@cuda.jit
def racing(a, out):
    tile = cuda.shared.array((32, 33), np.float32)
    x, y = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[min(y, a.shape[0] - 1), min(x, a.shape[1] - 1)]
    x, y = cuda.blockIdx.y * 32 + cuda.threadIdx.x, cuda.blockIdx.x * 32 + cuda.threadIdx.y
    if x < a.shape[0] and y < a.shape[1]:
        out[y, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


def test_a_detective_gets_the_lines_of_a_race_and_not_its_cure() -> None:
    told = str(gpulab.check("toy.transpose", racing))
    kept = str(gpulab.check(dataclasses.replace(toys.TRANSPOSE, detective=True), racing))
    assert "cuda.syncthreads()" in told
    assert "cuda.syncthreads()" not in kept and "No barrier" not in kept
    for text in (told, kept):
        assert "writes tile[" in text and "reads tile[" in text


def test_importing_gpulab_loads_nothing_that_is_slow() -> None:
    import subprocess
    import sys

    code = (
        "import sys, gpulab; print([m for m in ('numpy', 'numba', 'matplotlib', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_a_notebook_uses_is_there_under_gpulab() -> None:
    for name in gpulab.__all__:
        assert callable(getattr(gpulab, name)) or name in (
            "course",
            "cuda",
            "cupy",
            "cupyx",
            "hardware",
            "plot",
            "triton",
        ), name
    with pytest.raises(AttributeError, match="has no attribute 'chekc'"):
        gpulab.chekc  # noqa: B018


def test_progress_of_a_passed_exercise_counts_in_its_lab() -> None:
    gpulab.check("toy.double", double)
    assert progress.done(("toy.double", "toy.fill")) == 1


def test_how_threads_lie_in_memory_is_known_from_the_run_that_was_counted() -> None:
    grids: list[tuple[int, int, int]] = []
    with device.current().observed(lambda launch: grids.append(launch.grid)):
        verdict = gpulab.check("toy.transpose", plain)
    assert "write addresses 384 bytes apart" in str(verdict)
    assert grids.count((4, 3, 1)) == 2  # 96 × 128: counted, and looked through for races


def test_only_a_kernel_that_was_cut_off_is_asked_whether_each_thread_does_everything():
    """One that provably goes in circles, or waits for what cannot come, has another mistake."""

    @cuda.jit
    def circles(a, out):
        j = 0
        while j < 8:
            out[cuda.grid(1)] = a[j]

    @cuda.jit
    def long(a, out):
        for j in range(10_000_000):
            out[cuda.grid(1)] = j

    asks = "does each thread go through everything"
    assert asks not in str(gpulab.check("start.double", circles, attempt=False))
    assert asks in str(gpulab.check("start.double", long, attempt=False))


def test_an_error_in_colours_is_told_without_them() -> None:
    assert run.explain(ValueError("\x1b[91m\x1b[1merror:\x1b[0m no value"), plain)[0].text == (
        "ValueError: error: no value"
    )
