"""Labs 00 and 03: the stub fails with a message, the solution passes, wrong files fail for its reason."""

from __future__ import annotations

import time

import numpy as np
import pytest

import gpulab
from gpulab.exercises import cases, find, of_lab, registry
from tests.labs import notebooks

LABS = ("00_start_here", "03_cuda_with_numba")
EXERCISES = [(lab, exercise.name) for lab in LABS for exercise in of_lab(lab)]
WRONG = [path for lab in LABS for path in notebooks.wrong_files(lab)]


@pytest.fixture(autouse=True)
def progress(tmp_path, monkeypatch):
    monkeypatch.setenv("GPULAB_PROGRESS", str(tmp_path / "progress.json"))


@pytest.fixture(scope="module")
def solutions():
    return {lab: notebooks.answers(lab) for lab in LABS}


@pytest.fixture(scope="module")
def stubs():
    return {lab: notebooks.answers(lab, released=True) for lab in LABS}


@pytest.mark.parametrize("lab", LABS)
def test_every_exercise_has_its_test_cell_and_points(lab):
    found = notebooks.checks(lab)
    assert {e.name: e.points for e in of_lab(lab)} == {name: points for name, (_, points) in found.items()}


@pytest.mark.parametrize("lab", LABS)
def test_hints_end_at_a_heading_that_is_there(lab):
    there = notebooks.headings(lab)
    for exercise in of_lab(lab):
        assert exercise.section in there, exercise.name
        assert all(exercise.hints)


@pytest.mark.parametrize("lab", LABS)
def test_every_prediction_is_asked_for(lab):
    source = "\n".join(c.source for c in notebooks.notebook(lab).cells if c.cell_type == "code")
    names = [p.name for p in registry.predictions().values() if registry.lab_number(p.lab) == lab[:2]]
    assert names
    assert [name for name in names if f'gpulab.predict("{name}"' not in source] == []


@pytest.mark.parametrize("lab, exercise", EXERCISES)
def test_the_solution_passes_in_time(lab, exercise, solutions):
    function = notebooks.checks(lab)[exercise][0]
    start = time.perf_counter()
    verdict = gpulab.check(exercise, solutions[lab][function])
    assert verdict.passed, str(verdict)
    assert time.perf_counter() - start < 10


@pytest.mark.parametrize("lab, exercise", EXERCISES)
def test_the_stub_fails_with_a_message(lab, exercise, stubs):
    function = notebooks.checks(lab)[exercise][0]
    verdict = gpulab.check(exercise, stubs[lab][function])
    assert verdict.points == 0
    assert "Traceback" not in str(verdict)
    assert "empty" in str(verdict) or "wrote" in str(verdict), str(verdict)


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_wrong_submission_fails_for_its_reason(path):
    header = notebooks.wrong_header(path)
    exercise = find(header["exercise"])
    lab = next(lab for lab, name in EXERCISES if name == exercise.name)
    function = notebooks.checks(lab)[exercise.name][0]
    verdict = gpulab.check(exercise.name, notebooks.wrong_answer(path)[function])
    missed = [label for label, state in notebooks.parts(verdict) if state in ("fail", "part")]
    assert header["fails"] in missed, str(verdict)
    if header["fails"] != "right":
        assert verdict.right, str(verdict)
        assert missed == [header["fails"]] or path.stem in MISS_MORE, str(verdict)
    assert header["says"].lower() in " ".join(str(verdict).lower().split()), str(verdict)


# These miss a second budget for the same reason.
MISS_MORE = ("brighten_down_the_columns", "two_paths_by_lane")


def test_two_wrong_submissions_for_every_exercise():
    headers = [notebooks.wrong_header(path)["exercise"] for path in WRONG]
    assert {name for _, name in EXERCISES if headers.count(name) < 2} == set()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("lab, exercise", EXERCISES)
def test_the_solution_passes_for_other_contents(lab, exercise, seed, solutions, monkeypatch):
    function = notebooks.checks(lab)[exercise][0]
    monkeypatch.setattr(cases, "PUBLIC_SEED", int(np.random.default_rng(seed).integers(1 << 30)))
    assert gpulab.check(exercise, solutions[lab][function]).passed


@pytest.mark.slow
@pytest.mark.parametrize("lab", LABS)
def test_the_notebook_runs_from_top_to_bottom(lab, tmp_path):
    from nbclient import NotebookClient

    start = time.perf_counter()
    client = NotebookClient(
        notebooks.notebook(lab).copy(), timeout=120, resources={"metadata": {"path": tmp_path}}
    )
    ran = client.execute()
    assert time.perf_counter() - start < 90
    pictures = str([output for cell in ran.cells for output in cell.get("outputs", [])]).count("image/png")
    pictures += sum("data:image/png" in str(cell.get("outputs", "")) for cell in ran.cells)
    assert pictures >= 3
