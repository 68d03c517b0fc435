"""Every single fault of a submitted file leads to a verdict or to one line for that student; nobody else notices."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode

from grading.core.graft import graft, solution_cells
from grading.core.judge import recording_job
from grading.core.notebooks import LARGEST_CELL, read_submitted
from grading.core.verdicts import Store
from grading.lms import classroom
from grading.lms.classroom import ClassResult, open_lab, plan
from grading.lms.roster import read_roster
from grading.lms.submissions import find_submissions
from tests.grading.conftest import LAB, Class

Fault = Callable[[dict[str, Any], dict[str, Any]], None]


def delete(notebook: dict[str, Any], cell: dict[str, Any]) -> None:
    notebook["cells"] = [c for c in notebook["cells"] if c is not cell]


def duplicate(notebook: dict[str, Any], cell: dict[str, Any]) -> None:
    notebook["cells"].append(copy.deepcopy(cell))


def move_to_the_top(notebook: dict[str, Any], cell: dict[str, Any]) -> None:
    delete(notebook, cell)
    notebook["cells"].insert(0, cell)


def put(key: str, value: Any) -> Fault:
    """A fault that gives a key of the cell another value, or takes it away where that is None."""

    def fault(notebook: dict[str, Any], cell: dict[str, Any]) -> None:
        cell[key] = copy.deepcopy(value)
        if value is None:
            del cell[key]

    return fault


def mark(key: str, value: Any) -> Fault:
    """A fault in what nbgrader notes of the cell."""

    def fault(notebook: dict[str, Any], cell: dict[str, Any]) -> None:
        cell["metadata"].setdefault("nbgrader", {})[key] = value

    return fault


LONG = "#" * (LARGEST_CELL + 1)
# By name: the fault, and whether the learner's answer survives it.
FAULTS: dict[str, tuple[Fault, bool]] = {
    "deleted": (delete, False),
    "duplicated": (duplicate, True),
    "moved": (move_to_the_top, True),
    "made code": (put("cell_type", "code"), True),
    "made text": (put("cell_type", "markdown"), True),
    "made raw": (put("cell_type", "raw"), True),
    "of an unknown type": (put("cell_type", {"x": 1}), True),
    "of no type": (put("cell_type", None), True),
    "without metadata": (put("metadata", None), False),
    "with a list as metadata": (put("metadata", [1, 2]), False),
    "with empty metadata": (put("metadata", {}), False),
    "with nbgrader's notes as text": (put("metadata", {"nbgrader": "yes"}), False),
    "without a source": (put("source", None), False),
    "with a number as source": (put("source", 5), False),
    "with a source of odd lines": (put("source", ["a = 1\n", 5, None, {"b": 2}]), False),
    "with control characters": (put("source", "a = 1\x00\x1b[2J\x0c\ud800\u202e"), False),
    "with magics without end": (put("source", "\n".join(f"a{i} = %time 1" for i in range(600))), False),
    "nested too deep": (put("source", "(" * 100_000), False),
    "too long": (put("source", LONG), False),
    "without an id": (put("id", None), True),
    "with the id of another": (put("id", "copy"), True),
    "with attachments and outputs": (put("outputs", [{"output_type": "nothing"}]), True),
    "named like another": (mark("grade_id", "copy"), False),
    "without a name": (mark("grade_id", None), False),
    "with a list as name": (mark("grade_id", ["copy"]), False),
    "with other points": (mark("points", "1e999"), True),
    "locked": (mark("locked", True), True),
    "no solution any more": (mark("solution", False), True),
    "of a later schema": (mark("schema_version", 99), True),
}


def mutants(school: Class, fault: Fault) -> Iterator[tuple[str, bytes]]:
    """The file with the fault in one cell after the other, and that cell's name (empty for most)."""
    for place in range(len(school.released.cells)):
        notebook = json.loads(json.dumps(school.notebook()))
        cell = notebook["cells"][place]
        name = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
        fault(notebook, cell)
        yield name, json.dumps(notebook).encode()


def sources(notebook: NotebookNode) -> dict[str, str]:
    return {c.metadata.nbgrader.grade_id: c.source for c in solution_cells(notebook)}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_a_cell_costs_at_most_that_cell(school: Class, tmp_path: Path, name: str) -> None:
    fault, survives = FAULTS[name]
    lab = open_lab(school.course, LAB)
    plain = sources(school.notebook())
    path = tmp_path / "mutant.ipynb"
    for cell, content in mutants(school, fault):
        path.write_bytes(content)
        found = graft(school.released, read_submitted(path), LAB, LAB)
        others = {key: text for key, text in sources(found.notebook).items() if key not in (cell, "copy")}
        assert others.items() <= plain.items(), cell
        if survives and cell:
            assert sources(found.notebook).get(cell) == plain.get(cell)
        seeds = {(q.exercise, c.name): 1 for q in lab.questions[LAB] for c in _cases(q.exercise)}
        chosen = {q.exercise: _cases(q.exercise) for q in lab.questions[LAB]}
        job = recording_job(found, lab.questions[LAB], chosen, seeds, 1.0)
        assert [s["exercise"] for s in job["steps"] if "exercise" in s] == list(chosen), cell


def _cases(exercise: str) -> tuple[Any, ...]:
    from gpulab.checks import find

    return find(exercise).cases[:1]


def files(school: Class) -> Iterator[tuple[str, bytes]]:
    """Whole files with one fault each, by name."""
    text = json.dumps(school.notebook(), ensure_ascii=False)
    good = text.encode()
    numbers = random.Random(7)
    for _ in range(50):
        place = numbers.randrange(len(good))
        yield f"cut_at_{place}", good[:place]
        flipped = bytearray(good)
        flipped[place] ^= 1 << numbers.randrange(8)
        yield f"bit_{place}", bytes(flipped)
    yield "empty", b""
    yield "zeros", bytes(1000)
    yield "huge", b""  # made larger below
    yield "latin1", text.replace("copy", "kopi\u00e9").encode("latin-1", "replace")
    yield "utf16", text.encode("utf-16")
    yield "utf8_with_mark", b"\xef\xbb\xbf" + good
    yield "utf32", text.encode("utf-32")
    yield "no_utf8", b"\xff\xfe\xfd" + good
    yield "long_number", good.replace(b'"nbformat": 4', b'"nbformat": ' + b"9" * 5000)
    yield "no_numbers", good.replace(b'"nbformat": 4', b'"nbformat": NaN')
    yield "sheets_of_numbers", b'{"worksheets": [5, {"cells": 5}, {"cells": null}, {}]}'
    yield (
        "cells_of_all_kinds",
        b'{"cells": [1, null, "x", [], {"cell_type": 1, "metadata": {"nbgrader": {"grade_id": {}}}}]}',
    )
    yield "deep", b'{"cells": ' + b"[" * 200_000
    yield "deep_metadata", good[:-1] + b', "x": ' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}"
    yield (
        "old",
        json.dumps(
            {"nbformat": 3, "worksheets": [{"cells": [_old(c) for c in school.notebook().cells]}]}
        ).encode(),
    )
    yield "older", b'{"nbformat": 1, "cells": {"0": {}}}'
    yield "html", b"<!DOCTYPE html><script>alert(1)</script>"
    yield "pickle", b"\x80\x04\x95cos\nsystem\n(S'true'\ntR."
    yield "archive", b"PK\x03\x04" + bytes(100)


def _old(cell: Any) -> dict[str, Any]:
    return {"cell_type": cell.cell_type, "metadata": cell.metadata, "input": cell.source.splitlines(True)}


@pytest.fixture
def planned(school: Class) -> ClassResult:
    """A class in which every file has one fault, with one good submission among them."""
    for name, content in files(school):
        path = school.path(name)
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        if name == "huge":
            with path.open("r+b") as file:
                file.truncate(200 << 20)
    school.hand_in("good")
    lab = open_lab(school.course, LAB)
    submissions = find_submissions(school.folder, LAB, [LAB], read_roster(school.course.roster))
    return plan(school.course, lab, submissions, Store(school.course.verdicts), "same")


def test_a_fault_in_a_file_is_one_line_for_that_student(school: Class, planned: ClassResult) -> None:
    assert set(planned.tasks) == {p.name for p in school.folder.iterdir()} and not planned.refused
    assert planned.tasks["good"][0].verdict is None  # it will be judged
    for student in planned.tasks:
        reason = planned.reason(student)
        assert "\n" not in reason and len(reason) < 300
        if student.startswith("cut") or student in (
            "empty",
            "zeros",
            "html",
            "pickle",
            "archive",
            "long_number",
        ):
            assert "not JSON" in reason, student
    assert "at most" in planned.reason("huge")
    assert "no solution cell" in planned.reason("cells_of_all_kinds")
    for student in ("utf16", "utf32", "utf8_with_mark", "old", "no_numbers", "deep_metadata"):
        assert sources(planned.tasks[student][0].graft.notebook) == sources(school.notebook()), student


def test_what_cannot_be_judged_is_written_to_the_gradebook_with_its_reason(
    school: Class, planned: ClassResult
) -> None:
    kept = ["cut_at_", "huge", "html", "deep", "sheets_of_numbers"]
    chosen = [next(s for s in planned.tasks if s.startswith(name)) for name in kept]
    planned.tasks = {s: planned.tasks[s] for s in chosen}
    classroom.save(school.course, planned, lambda student: None)
    assert not planned.refused
    for student in chosen:
        page = (school.course.feedback / student / LAB / f"{LAB}.html").read_text()
        assert "ungraded: " in page
        assert "<script>alert" not in page
