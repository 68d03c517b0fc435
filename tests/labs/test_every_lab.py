"""Every lab: stubs and wrong files fail for their reason, solutions pass, in time and with other contents."""

from __future__ import annotations

import dataclasses
import re
import resource
import time

import pytest

import gpulab
from gpulab.checks import cases, find, registry
from gpulab.checks.registry import of_lab
from grading.authoring.prove import wrong_file
from grading.core.judge import judge_cases
from tests.labs import notebooks
from tests.tiers import first_of_each

LABS = notebooks.labs()
EXERCISES = [(lab, exercise.name) for lab in LABS for exercise in of_lab(lab)]
WRONG = [(lab, path) for lab in LABS for path in notebooks.wrong_files(lab)]
FRONTIER = ("23", "24", "25", "26")  # labs whose notebooks must do with 1.5 GB, their checks included
PEAK = "import resource\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"  # KiB


class _Answers(dict):
    """What the cells of each lab bind, by lab; a lab's cells run when they are asked for."""

    def __init__(self, released: bool) -> None:
        super().__init__()
        self.released = released

    def __missing__(self, lab: str):
        self[lab] = notebooks.answers(lab, released=self.released)
        return self[lab]


@pytest.fixture(scope="module")
def solutions():
    return _Answers(released=False)


@pytest.fixture(scope="module")
def stubs():
    return _Answers(released=True)


def function(lab: str, exercise: str) -> str:
    return notebooks.checks(lab)[exercise][0]


def missed(verdict) -> list[str]:
    return [label for label, state in notebooks.parts(verdict) if state in ("fail", "part")]


# ---------------------------------------------------------------- the notebooks


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
def test_folded_questions_are_html_in_which_nobody_reads_markdown(lab):
    texts = "\n".join(c.source for c in notebooks.cells(lab, "markdown"))
    assert [s for s in re.findall("<summary>.*?</summary>", texts, re.DOTALL) if "`" in s or "**" in s] == []


@pytest.mark.parametrize("lab", LABS)
def test_every_prediction_is_asked_for_and_answered(lab):
    source = "\n".join(c.source for c in notebooks.cells(lab, "code"))
    asked = [p for p in registry.predictions().values() if registry.lab_number(p.lab) == lab[:2]]
    assert asked
    for prediction in asked:
        assert f'gpulab.predict("{prediction.name}", ...)' in source, prediction.name
        measured = f'gpulab.predict("{prediction.name}", measured=' in source
        assert measured == (prediction.answer is None), prediction.name


# ---------------------------------------------------------------- solutions, stubs, wrong submissions


@pytest.mark.parametrize("lab, exercise", EXERCISES)
def test_the_solution_passes_in_time(lab, exercise, solutions):
    start = time.process_time()  # not the clock on the wall: the machine may have other work
    verdict = gpulab.check(exercise, solutions[lab][function(lab, exercise)])
    assert verdict.passed, str(verdict)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("lab, exercise", EXERCISES)
def test_the_solution_passes_at_the_judges_sizes(lab, exercise, solutions):
    judged = dataclasses.replace(find(exercise), cases=judge_cases(find(exercise)))
    verdict = gpulab.check(judged, solutions[lab][function(lab, exercise)])
    assert verdict.passed, str(verdict)


@pytest.mark.parametrize("lab, exercise", EXERCISES)
def test_the_stub_fails_with_a_message(lab, exercise, stubs):
    verdict = gpulab.check(exercise, stubs[lab][function(lab, exercise)])
    assert verdict.points == 0
    assert "Traceback" not in str(verdict)
    assert "empty" in str(verdict) or "wrote" in str(verdict), str(verdict)


@pytest.mark.parametrize(
    "lab, path",
    list(
        first_of_each(WRONG, kind=lambda pair: wrong_file(pair[1]).exercise, name=lambda pair: pair[1].stem)
    ),
)
def test_a_wrong_submission_fails_for_its_reason_and_no_other(lab, path):
    header = wrong_file(path)
    assert header.fails and header.says
    answer = notebooks.wrong_answer(path)[function(lab, header.exercise)]
    verdict = gpulab.check(header.exercise, answer)
    assert ", ".join(missed(verdict)) == header.fails, str(verdict)
    assert header.says.lower() in " ".join(str(verdict).lower().split()), str(verdict)


def test_two_wrong_submissions_for_every_exercise():
    headers = [wrong_file(path).exercise for _, path in WRONG]
    assert {name for _, name in EXERCISES if headers.count(name) < 2} == set()


# ---------------------------------------------------------------- slow


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("lab, exercise", EXERCISES)
def test_the_solution_passes_for_other_contents(lab, exercise, solutions, monkeypatch):
    numbers = cases.generator
    for seed in range(1, 21):  # in one test: to collect each on its own took seconds in every run
        monkeypatch.setattr(
            cases, "generator", lambda exercise, case, public, s=seed: numbers(exercise, case, s)
        )
        verdict = gpulab.check(exercise, solutions[lab][function(lab, exercise)])
        assert verdict.passed, f"seed {seed}: {verdict}"


@pytest.mark.slow
@pytest.mark.parametrize("lab, name", [(lab, name) for lab in LABS for name in notebooks.names(lab)])
def test_the_notebook_runs_from_top_to_bottom(lab, name, tmp_path, monkeypatch):
    from nbclient import NotebookClient
    from nbformat.v4 import new_code_cell

    monkeypatch.delenv("MPLBACKEND", raising=False)  # the tests' own would keep figures out of the notebook
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    notebook = notebooks.notebooks(lab)[name].copy()
    notebook.cells = [*notebook.cells, new_code_cell(PEAK)]
    ran = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert 0 < seconds < 90  # of the processor, whatever else the machine does
    outputs = str([output for cell in ran.cells for output in cell.get("outputs", [])])
    assert outputs.count("image/png") >= 3
    if lab[:2] in FRONTIER:
        assert 0 < int(ran.cells[-1].outputs[0].text) * 1024 < 1.5e9
