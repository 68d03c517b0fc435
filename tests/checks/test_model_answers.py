"""A model answer is shown to those who have one and wrote theirs, and to nobody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpulab.checks.model_answers import FILE, NoModelAnswer, model_answer
from grading.authoring.answers import answers
from grading.core.course import Course

ROOT = Path(__file__).resolve().parents[2]
LAB = "04_memory_hierarchy/04_memory_hierarchy.ipynb"
NAME = "fast-on-paper-answer"
MINE = "The lanes read down a column of the tile, so that all of them want words of the same bank, and wait."


@pytest.fixture
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Labs with lab 04 and the answers beside them."""
    (tmp_path / LAB).parent.mkdir(parents=True)
    (tmp_path / LAB).write_bytes((ROOT / "labs" / LAB).read_bytes())
    (tmp_path / FILE).write_text(json.dumps({NAME: "A 32-way conflict.\n\nPad the rows."}))
    monkeypatch.setenv("GPULAB_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / LAB))
    return tmp_path


def write(labs: Path, text: str) -> None:
    notebook = json.loads((labs / LAB).read_text())
    cell = next(c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == NAME)
    cell["source"] = [text]
    (labs / LAB).write_text(json.dumps(notebook))


def test_who_wrote_an_answer_sees_one(labs: Path) -> None:
    write(labs, MINE)
    said = str(model_answer())
    assert "A 32-way conflict." in said and "a count of your own" in said
    assert model_answer(NAME) == model_answer()


@pytest.mark.parametrize("text", ["YOUR ANSWER HERE", "", "bank conflicts", f"YOUR ANSWER HERE {MINE}"])
def test_who_wrote_none_is_asked_to(text: str, labs: Path) -> None:
    write(labs, text)
    with pytest.raises(NoModelAnswer, match="write your own answer first"):
        model_answer()


def test_in_a_graded_course_there_is_no_file_and_a_message(labs: Path) -> None:
    (labs / FILE).unlink()
    with pytest.raises(NoModelAnswer, match="for people who study alone"):
        model_answer()


@pytest.mark.parametrize("content", ["[1]", "no json"])
def test_a_damaged_file_is_named(content: str, labs: Path) -> None:
    (labs / FILE).write_text(content)
    with pytest.raises(NoModelAnswer, match="get it once more"):
        model_answer()


def test_another_question_and_no_notebook_are_told(labs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoModelAnswer, match=f"it has {NAME}"):
        model_answer("another")
    monkeypatch.setenv("JPY_SESSION_NAME", "")
    with pytest.raises(NoModelAnswer, match="which notebook this is"):
        model_answer()


def test_every_written_question_has_an_answer_that_earns_full_marks() -> None:
    found = answers(Course(ROOT))
    assert len(found) >= 23
    assert "67,584" in found[NAME] and "1 point" not in found[NAME]
    assert all(len(text.split()) >= 20 for text in found.values())


def test_no_model_answer_is_in_the_labs_or_in_gpulab() -> None:
    start = answers(Course(ROOT))[NAME][:60]
    places = [*(ROOT / "labs").rglob("*.ipynb"), *(ROOT / "gpulab").rglob("*.py")]
    assert [path for path in places if start in path.read_text("utf-8")] == []
