"""Outputs that are released with a page."""

from __future__ import annotations

import os

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from grading.authoring.committed import with_committed_outputs
from grading.core.errors import ReleaseError


def page(*sources: str, tag: str = "committed"):
    cells = [new_code_cell(source, metadata={"tags": [tag]}) for source in sources]
    return with_committed_outputs(new_notebook(cells=cells)).cells


def test_a_marked_cell_has_what_its_last_line_shows_and_others_have_nothing():
    first, second = page("from gpulab.app import course\ncourse.quiz()", "course.lab_map()")
    assert "Where to begin" in first.outputs[0].data["text/plain"]
    assert "Start here" in second.outputs[0].data["text/html"]
    assert page("course.quiz()", tag="other")[0].outputs == []


def test_two_releases_give_the_same_outputs_whatever_has_been_done(tmp_path, monkeypatch):
    source = "from gpulab.app import course\ncourse.home()"
    before = page(source)[0].outputs
    monkeypatch.setenv("GPULAB_PROGRESS", str(tmp_path / "progress.json"))
    (tmp_path / "progress.json").write_text(
        '{"format": 1, "exercises": {}, "predictions": {}, "recent": {"notebook": {"lab": "04", "name": ""}}}'
    )
    assert page(source)[0].outputs == before
    assert os.environ["GPULAB_PROGRESS"] == str(tmp_path / "progress.json")


@pytest.mark.parametrize("source, says", [
    ("1 / 0", "fails: division by zero"),
    ("a = 1", "does not end in an expression"),
    ("3", "shows nothing"),
    ("(", "fails: "),
])  # fmt: skip
def test_a_marked_cell_that_shows_nothing_stops_the_release(source, says):
    with pytest.raises(ReleaseError, match=says):
        page(source)
