"""The graft: only the sources of solution cells live on, whatever else a learner did to the notebook."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from grading.core.errors import NotebookError
from grading.core.graft import Graft, cells_to_run, graft, imports
from grading.core.notebooks import is_test, questions, read_submitted
from grading.core.own_cells import names_of
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
        twin.source = "copy = 2"
        notebook.cells.append(twin)
        notebook.cells.append(NotebookNode(cell_of(school.released, "copy")))

    found = graft(school.released, read_submitted(school.hand_in("ann", edit=twice)), LAB, LAB)
    assert cell_of(found.notebook, "copy").source == "copy = 2"
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


# ---------------------------------------------------------------- cells of a learner's own


def own(source: str, after: str = "") -> Callable[[NotebookNode], None]:
    """Adds a code cell behind the one with that grade id, or at the top."""

    def edit(notebook: NotebookNode) -> None:
        place = notebook.cells.index(cell_of(notebook, after)) + 1 if after else 0
        notebook.cells.insert(place, nbformat.v4.new_code_cell(source))

    return edit


USES_HELPER = "def sectors(addresses, size):\n    return helper(addresses, size)"
HELPER = (
    "import math\n\ndef pieces(n):\n    return math.floor(n / WIDTH)\n\nWIDTH = 32\n"
    "def helper(addresses, size):\n"
    "    return len({pieces(b) for a in addresses for b in range(a, a + size)})\n\nprint(helper([1], 2))\nx = 1 / 0\n"
)


def ran(school: Class, answers: dict[str, str], *edits: Callable[[NotebookNode], None]) -> tuple[str, Graft]:
    """What the judge runs, and the graft."""

    def edit(notebook: NotebookNode) -> None:
        for each in edits:
            each(notebook)

    path = school.hand_in("ann", answers, edit)
    found = graft(school.released, read_submitted(path), LAB, LAB)
    return "\n".join(cell.source for cell in cells_to_run(found.notebook)), found


@pytest.mark.parametrize("after", ["", "copy", "copy-check", "sectors", "sectors-check", "transpose-check"])
def test_what_an_answer_uses_of_a_cell_of_ones_own_is_run_and_nothing_else(school: Class, after: str) -> None:
    text, found = ran(school, {"sectors": USES_HELPER}, own(HELPER, after))
    assert "def helper" in text and "WIDTH = 32" in text and "import math" in text
    assert "print(" not in text and "1 / 0" not in text
    names = [c.metadata.get("nbgrader", {}).get("grade_id", c.id) for c in found.notebook.cells]
    read = next(name for name in names if name.startswith("your-cell-"))
    assert names.index(read) < names.index("sectors-check")
    assert "cell" in found.notes["sectors"] and not found.doubts
    again = graft(found.notebook, found.notebook.cells, LAB, LAB)
    once_more = graft(school.released, found.notebook.cells, LAB, LAB)  # as when it is handed to nbgrader
    assert once_more.digest == again.digest == found.digest != ran(school, {"sectors": USES_HELPER})[1].digest
    assert "math" not in imports(found.notebook)  # the template imports nothing that a learner names


def test_an_answer_in_a_cell_of_ones_own_below_its_stub_is_run(school: Class) -> None:
    stub = cell_of(school.released, "sectors").source
    text, _ = ran(school, {"sectors": stub}, own(f"{HELPER}\nsectors = helper", "sectors"))
    assert text.index("NotImplementedError") < text.index("sectors = helper")
    half = "def pieces(n):\n    return n // 32"
    rest = "def sectors(addresses, size):\n    return pieces(size)\nsectors([1], 2)"
    text, _ = ran(school, {"sectors": half}, own(rest, "sectors"))
    assert "return pieces(size)" in text and "sectors([1], 2)" not in text


def test_a_solution_cell_split_in_two_is_whole_again(school: Class) -> None:
    def split(notebook: NotebookNode) -> None:
        second = NotebookNode(cell_of(notebook, "sectors"))
        second.source = USES_HELPER
        notebook.cells.insert(notebook.cells.index(cell_of(notebook, "sectors")) + 1, second)

    text, _ = ran(school, {"sectors": "def helper(addresses, size):\n    return 4"}, split)
    assert text.index("def helper") < text.index("return helper(")


def test_what_no_answer_uses_or_the_lab_gives_is_not_read(school: Class) -> None:
    _, plain = ran(school, {})
    for source in (HELPER, "SIDE = 1\nnp = None\ndef copy(a, b): pass", "%%bash\nhelper = 1", "def ("):
        _, found = ran(school, {}, own(source))
        assert found.digest == plain.digest and found.notebook == plain.notebook, source


def given_around(school: Class, exercise: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names that released cells bind before an exercise's test, and those that they bind only later."""
    cells = [c for c in school.released.cells if c.cell_type == "code"]
    test = next(i for i, c in enumerate(cells) if c.id == cell_of(school.released, f"{exercise}-check").id)
    before, later = (
        frozenset().union(*(names_of(c.source)[0] for c in part)) for part in (cells[:test], cells[test:])
    )
    return before, later - before


def test_a_helper_is_read_although_the_lab_gives_its_name_to_something_later(school: Class) -> None:
    _, later = given_around(school, "sectors")
    name = min(later)
    answer = f"def sectors(addresses, size):\n    return {name}(addresses)"
    text, found = ran(school, {"sectors": answer}, own(f"def {name}(x):\n    return len(x)"))
    assert f"def {name}(x)" in text and not found.doubts


def test_a_helper_with_the_name_of_what_the_lab_has_given_before_is_for_a_person(school: Class) -> None:
    before, _ = given_around(school, "sectors")
    name = min(name for name in before if name not in ("sectors", "copy"))
    answer = f"def sectors(addresses, size):\n    return {name}(addresses)"
    text, found = ran(school, {"sectors": answer}, own(f"def {name}(x):\n    return len(x)"))
    assert f"def {name}(x)" not in text
    assert "the judge uses the lab's definition" in found.doubts["sectors"]


@pytest.mark.parametrize(
    "source",
    [
        "for helper in [len]: pass",
        "TABLE = []\nTABLE.append(len)\ndef helper(a, size): return TABLE[0](a)",
        "with open('x') as helper: pass",
        "helper = {}\nhelper['a'] = 1",
    ],
)
def test_what_cannot_be_read_of_a_cell_of_ones_own_is_said_and_for_a_person(
    school: Class, source: str
) -> None:
    _, found = ran(school, {"sectors": USES_HELPER}, own(source, "copy"))
    assert "which your code cell" in found.doubts["sectors"]
    assert found.doubts["sectors"] in found.notes["sectors"] and list(found.doubts) == ["sectors"]


@pytest.mark.parametrize(
    "cells",
    [
        ["a = 1\n" * 30_000],
        [f"def f{i}(): return f{i + 1}()" for i in range(3000)],
        ["\n".join(f"def f{i}(): return f{i + 1}()" for i in range(3000))],
        ["f0 = " + "[" * 5000],
    ],
)
def test_cells_of_ones_own_made_to_take_long_are_read_in_a_moment(school: Class, cells: list[str]) -> None:
    answers = {"sectors": "def sectors(addresses, size):\n    return f0()"}
    path = school.hand_in(
        "ann", answers, lambda notebook: [own(c)(notebook) for c in reversed(cells)] and None
    )
    submitted = read_submitted(path)
    began = time.process_time()
    graft(school.released, submitted, LAB, LAB)
    assert time.process_time() - began < 20
