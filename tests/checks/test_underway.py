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


def test_watching_costs_a_launch_next_to_nothing() -> None:
    begin = time.process_time()
    for _ in range(10_000):
        with underway.work("a launch", 64, "block"):
            pass
    assert time.process_time() - begin < 1
