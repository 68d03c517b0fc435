"""The graft: only the sources of solution cells live on, whatever else a learner did to the notebook."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from grading.core.errors import NotebookError
from grading.core.graft import cells_to_run, graft, imports, is_test
from grading.core.notebooks import questions, read_submitted
from tests.grading.conftest import LAB, Class, cell_of


def grafted(school: Class, path: Path) -> NotebookNode:
    return graft(school.released, read_submitted(path), LAB, LAB).notebook


def delete_tests(notebook: NotebookNode) -> None:
    notebook.cells = [c for c in notebook.cells if not is_test(c)]


def copy_all(notebook: NotebookNode) -> None:
    notebook.cells += [NotebookNode(c) for c in notebook.cells]


def retype(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell.cell_type = "raw"


def raise_points(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader["points"] = 1e9
            cell.metadata.nbgrader["locked"] = False


def rewrite_tests(notebook: NotebookNode) -> None:
    cell_of(notebook, "copy-check").source = "100"
    notebook.cells.insert(0, nbformat.v4.new_code_cell("import gpulab; gpulab.check = print"))


@pytest.mark.parametrize("edit", [delete_tests, copy_all, retype, raise_points, rewrite_tests])
def test_what_a_learner_does_to_other_cells_stays_behind(
    school: Class, edit: Callable[[NotebookNode], None]
) -> None:
    plain = grafted(school, school.hand_in("plain"))
    assert grafted(school, school.hand_in("edited", edit=edit)) == plain
    assert [q.points for q in questions(plain)] == [4, 3, 4]


def test_the_last_changed_copy_of_a_cell_counts_and_is_noted(school: Class) -> None:
    def twice(notebook: NotebookNode) -> None:
        twin = NotebookNode(cell_of(notebook, "copy"))
        twin.source = "second = 2"
        notebook.cells.append(twin)
        notebook.cells.append(NotebookNode(cell_of(school.released, "copy")))

    found = graft(school.released, read_submitted(school.hand_in("ann", edit=twice)), LAB, LAB)
    assert cell_of(found.notebook, "copy").source == "second = 2"
    assert "3 times" in found.notes["copy"]


def test_a_missing_solution_cell_is_noted_and_the_stub_takes_its_place(school: Class) -> None:
    path = school.hand_in("ann", edit=lambda nb: nb.cells.remove(cell_of(nb, "copy")))
    found = graft(school.released, read_submitted(path), LAB, LAB)
    assert "missing" in found.notes["copy"]
    assert "NotImplementedError" in cell_of(found.notebook, "copy").source


def test_equal_answers_make_equal_submissions_whatever_else_differs(school: Class) -> None:
    def digest(path: Path) -> str:
        return graft(school.released, read_submitted(path), LAB, LAB).digest

    plain = digest(school.hand_in("plain"))
    assert digest(school.hand_in("edited", edit=rewrite_tests)) == plain
    assert digest(school.hand_in("other", {"copy": "x = 1"})) != plain


def test_a_lab_imports_what_its_own_cells_do_and_not_what_an_answer_does(school: Class) -> None:
    def add(notebook: NotebookNode) -> None:
        mine = nbformat.v4.new_code_cell("import socket\nfrom html import parser")
        mine.metadata["nbgrader"] = {"solution": True, "grade_id": "mine"}
        notebook.cells += [
            mine,
            nbformat.v4.new_code_cell("%time import wave\nfrom xml import dom, sax as s"),
        ]
        notebook.cells.append(nbformat.v4.new_code_cell("import this is no Python"))

    before, after = set(imports(school.notebook())), set(imports(school.notebook(edit=add)))
    assert "gpulab" in before
    assert after - before == {"xml", "xml.dom", "xml.sax"}


def test_only_cells_that_an_answer_needs_are_run(school: Class) -> None:
    ran = "\n".join(c.source for c in cells_to_run(school.notebook()))
    assert "SIDE = 32" in ran and "from gpulab import cuda" in ran
    assert "1 / 0" not in ran and "gpulab.check" not in ran


@pytest.mark.parametrize(("answer", "needed"), [("unneeded += 1", True), ("unneeded = 1", False)])
def test_what_an_answer_counts_up_is_needed(school: Class, answer: str, needed: bool) -> None:
    notebook = school.notebook()
    cell_of(
        notebook, "sectors"
    ).source = f"{answer}\ndef sectors(addresses, size):\n    unneeded = 0\n    return unneeded"
    ran = "\n".join(c.source for c in cells_to_run(notebook))
    assert ("1 / 0" in ran) is needed


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"\x00\xff\xfe", "not JSON"),
        (b'{"cells": [', "not JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b"[]", "no list of cells"),
        (b'{"cells": 5}', "no list of cells"),
        (b'{"cells": [1, null, {"metadata": 3}, {"metadata": {"nbgrader": []}}]}', "no solution cell"),
    ],
)
def test_a_file_that_is_no_notebook_is_refused_in_one_line(
    school: Class, tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "broken.ipynb"
    path.write_bytes(content)
    with pytest.raises(NotebookError, match=words) as error:
        graft(school.released, read_submitted(path), LAB, LAB)
    assert "\n" not in str(error.value)


def test_links_pipes_and_huge_files_are_not_opened(school: Class, tmp_path: Path) -> None:
    real = school.hand_in("ann")
    link, pipe, huge = tmp_path / "link.ipynb", tmp_path / "pipe.ipynb", tmp_path / "huge.ipynb"
    link.symlink_to(real)
    os.mkfifo(pipe)
    with huge.open("wb") as file:
        file.truncate(1 << 30)
    for path, words in ((link, "link"), (pipe, "not a regular file"), (huge, "at most")):
        with pytest.raises(NotebookError, match=words):
            read_submitted(path)


def test_old_notebooks_and_other_encodings_are_read(school: Class, tmp_path: Path) -> None:
    notebook = school.notebook()
    old = {"worksheets": [{"cells": [{"metadata": c.metadata, "input": c.source} for c in notebook.cells]}]}
    path = tmp_path / "old.ipynb"
    path.write_bytes(json.dumps(old).encode("utf-16"))
    plain = grafted(school, school.hand_in("plain"))
    assert grafted(school, path) == plain
