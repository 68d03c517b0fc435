"""What takes long says so: what it does, how far it is, how long it still takes, and nothing when it is over."""

from __future__ import annotations

import threading
import time

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from gpulab.foundation import underway
from gpulab.foundation.underway import Work, told


def test_nested_works_are_told_from_the_outside_in_with_what_is_left() -> None:
    stack = [
        Work("checking memory.transpose", 6, "case", 2, began=0),
        Work("simulating transpose", 100, "block", 50, began=20),
    ]
    said, share = told(stack, 25.0)
    assert said == (
        "checking memory.transpose, case 3 of 6 · simulating transpose, block 51 of 100 · 0:25 so far, about 0:35 left"
    )
    assert share == pytest.approx(2.5 / 6)


def test_where_nobody_knows_how_much_there_is_nothing_is_promised() -> None:
    said, share = told([Work("4 ranks run train", began=0)], 65.0)
    assert said == "4 ranks run train · 1:05 so far" and share is None
    assert "value=" not in underway.html(said, share) and 'value="0.500"' in underway.html(said, 0.5)


def test_outside_of_a_notebook_nothing_is_watched() -> None:
    before = dict(underway._threads)  # of tests that watched in this process
    with underway.work("something", 3) as work:
        work.done += 1
        assert underway._stack == [] and underway._threads == before


def test_a_cell_says_nothing_more_when_a_later_one_has_begun(monkeypatch) -> None:
    monkeypatch.setattr(underway, "PACE", 0.01)
    monkeypatch.setattr(underway, "_threads", {})
    monkeypatch.setattr(underway, "_stack", [Work("checking", began=0)])
    said: list[str] = []
    thread = threading.Thread(target=underway._look, args=(lambda text, _: said.append(text),), daemon=True)
    underway._threads[1] = thread
    thread.start()
    time.sleep(0.2)
    underway._threads.clear()
    thread.join(5)
    assert not thread.is_alive()
    assert said[0].startswith("checking · ") and said[-1] == ""


LONG = """import numpy as np, gpulab
from gpulab import cuda
from gpulab.foundation import underway
underway.PATIENCE, underway.PACE = 0.2, 0.05

@cuda.jit
def count(a, n):
    i = cuda.grid(1)
    for k in range(n):
        a[i] += 1

a = np.zeros(16384, np.float32)"""


@pytest.mark.timeout(180)
def test_a_long_simulation_says_in_its_cell_how_far_it_is_and_a_short_one_says_nothing(tmp_path) -> None:
    cells = [
        LONG,
        "count[64, 256](a, 2)",
        "count[64, 256](a, 60_000)\nlong = 1",
        "import time; time.sleep(0.5)",
    ]
    made = new_notebook(cells=[new_code_cell(source) for source in cells])
    seen: list[str] = []
    client = NotebookClient(made, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    process = client.process_message

    def listen(message, cell, index):
        if message["msg_type"] in ("display_data", "update_display_data") and index == 2:
            seen.append(message["content"]["data"]["text/plain"])
        return process(message, cell, index)

    client.process_message = listen  # type: ignore[method-assign]
    ran = client.execute()
    assert ran.cells[1].outputs == []
    assert any("simulating count, block" in said and "so far" in said for said in seen), seen
    nbformat.validate(ran)


FELL = """from gpulab.foundation import underway
from gpulab.models import training
underway.PATIENCE, underway.PACE = 0.2, 0.05
done = []"""
LOOP = "import time\nfor step in training.steps(8, 'training a net'):\n    time.sleep(0.2)\n    done.append(step)"
FALLS = LOOP.replace("done.append", "1 / (step < 4)\n    done.append")


@pytest.mark.timeout(180)
def test_a_training_loop_says_its_steps_and_one_that_an_error_ended_says_no_more(tmp_path) -> None:
    cells = [FELL, LOOP, FALLS, "time.sleep(1)\nprint(len(done), underway._stack)"]
    made = new_notebook(cells=[new_code_cell(source) for source in cells])
    seen: dict[int, list[str]] = {}
    client = NotebookClient(
        made, timeout=120, allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}
    )
    process = client.process_message

    def listen(message, cell, index):
        if message["msg_type"] in ("display_data", "update_display_data"):
            seen.setdefault(index, []).append(message["content"]["data"]["text/plain"])
        return process(message, cell, index)

    client.process_message = listen  # type: ignore[method-assign]
    ran = client.execute()
    assert any("training a net, step" in said and "of 8" in said and "left" in said for said in seen[1]), seen
    assert any(output.output_type == "error" for output in ran.cells[2].outputs)
    assert ran.cells[3].outputs[0].text == "12 []\n"  # what was done stays, and nothing is underway
    assert not any("training" in said for said in seen.get(3, [])), seen


def test_cuda_that_is_compiled_says_so(monkeypatch) -> None:
    from contextlib import contextmanager

    from gpulab.simulator.compile import cuda_c_module

    said: list[str] = []

    @contextmanager
    def work(what, *_):
        said.append(what)
        yield

    monkeypatch.setattr(underway, "work", work)
    cuda_c_module('extern "C" __global__ void f(int *x) { *x = 1; }', title="sum.cu")
    assert said == ["compiling sum.cu"]


def test_watching_costs_a_launch_next_to_nothing() -> None:
    begin = time.process_time()
    for _ in range(10_000):
        with underway.work("a launch", 64, "block"):
            pass
    assert time.process_time() - begin < 1
