"""Releasing: same bytes every time, all or nothing, no solution, and a check that names the cell."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.authoring import release as releasing
from grading.authoring.release import current_files, differences, release, released_files
from grading.core.commands import ours
from grading.core.course import Course
from grading.core.errors import ReleaseError
from tests.grading.conftest import LAB

SOURCE = f"solutions/{LAB}/{LAB}.py"


def source(course: Course) -> Path:
    return course.root / SOURCE


def edit(course: Course, old: str, new: str) -> None:
    text = source(course).read_text()
    assert old in text
    source(course).write_text(text.replace(old, new))


def test_releasing_again_changes_nothing(course: Course) -> None:
    before = current_files(course, LAB)
    assert release(course, LAB) is False
    assert current_files(course, LAB) == before == released_files(course, LAB)


def test_no_solution_no_output_and_no_wrong_file_is_released(course: Course) -> None:
    files = current_files(course, LAB)
    assert list(files) == [f"{LAB}.ipynb"]
    text = files[f"{LAB}.ipynb"].decode()
    assert "PADDED))" not in text.replace("(SIDE, PADDED)", "PADDED))") and "gridsize" not in text
    assert "moves each row" not in text
    notebook = json.loads(text)
    assert all(not c.get("outputs") for c in notebook["cells"])
    assert sum("NotImplementedError" in "".join(c["source"]) for c in notebook["cells"]) == 3


def test_cell_ids_are_grade_ids_or_hashes_that_survive_a_cell_put_in_before(course: Course) -> None:
    ids = [c["id"] for c in json.loads(current_files(course, LAB)[f"{LAB}.ipynb"])["cells"]]
    edit(course, "# %% [markdown]\n# A constant", "# %% [markdown]\n# New.\n\n# %% [markdown]\n# A constant")
    release(course, LAB)
    again = [c["id"] for c in json.loads(current_files(course, LAB)[f"{LAB}.ipynb"])["cells"]]
    assert "copy-check" in ids and len(set(ids)) == len(ids)
    assert [i for i in again if i in ids] == ids and len(again) == len(ids) + 1


def test_the_check_names_the_file_and_the_cell_that_differ(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["release", "--check"], course) == 0
    edit(course, "def copy(a, b):", "def copy(a, c):")
    assert main(["release", "--check"], course) == 1
    said = capsys.readouterr().out
    assert f"labs/{LAB}/{LAB}.ipynb, cell copy: differs" in said
    assert "+def copy(a, c):" in said and ours("release", LAB) in said


def test_a_file_without_a_source_and_a_missing_file_are_named(course: Course) -> None:
    folder = course.labs / LAB
    (folder / "stray.txt").write_text("x")
    (folder / f"{LAB}.ipynb").unlink()
    assert differences(course, LAB) == [
        f"labs/{LAB}/{LAB}.ipynb: missing",
        f"labs/{LAB}/stray.txt: has no source in solutions/{LAB}",
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("        b[i] = a[i]\n    ### END SOLUTION", "        b[i] = a[i]", "ClearSolutions"),
        ('"grade_id": "sectors",', '"grade_id": "copy",', "CheckCellMetadata"),
        ("SIDE = 32", "SIDE = 32\n### BEGIN SOLUTION\n### END SOLUTION", "SIDE = 32"),
    ],
)
def test_a_source_that_cannot_be_released_leaves_the_released_lab_as_it_was(
    course: Course, old: str, new: str, words: str
) -> None:
    before = current_files(course, LAB)
    edit(course, old, new)
    with pytest.raises(ReleaseError, match=words):
        release(course, LAB)
    assert current_files(course, LAB) == before


def test_a_disk_that_fails_while_writing_leaves_the_released_lab_as_it_was(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = current_files(course, LAB)
    edit(course, "Two kernels", "Three kernels")
    real, calls = os.rename, []

    def rename(a: object, b: object) -> None:
        calls.append(a)
        if len(calls) == 2:  # the old lab is aside, the new one about to take its place
            raise OSError(28, "No space left on device")
        real(a, b)  # type: ignore[arg-type]

    monkeypatch.setattr(releasing.os, "rename", rename)
    with pytest.raises(OSError):
        release(course, LAB)
    assert current_files(course, LAB) == before
    assert [p.name for p in course.labs.iterdir()] == [LAB]


def test_an_unknown_lab_is_one_line_with_the_labs_there_are(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["release", "99_none"], course) == 1
    assert f"labs there are {LAB}" in capsys.readouterr().out


def test_the_number_of_a_lab_is_name_enough(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["release", LAB[:2]], course) == 0
    assert capsys.readouterr().out.startswith(f"{LAB} ")
    assert main(["release", LAB[0]], course) == 1
    assert f"no lab '{LAB[0]}'" in capsys.readouterr().out


def test_what_stands_beside_the_labs_is_released_and_held_to_its_source(course: Course) -> None:
    from grading.authoring.release import page_differences, release_pages

    (course.solutions / "index.py").write_text(
        "# ---\n# jupyter:\n#   kernelspec:\n#     display_name: Python 3\n#     language: python\n"
        "#     name: python3\n# ---\n\n# %% [markdown]\n# # Hello\n"
    )
    (course.solutions / "AGENTS.md").write_text("tutor\n")
    assert page_differences(course) == ["labs/index.ipynb: missing", "labs/AGENTS.md: missing"]
    assert release_pages(course) and not release_pages(course)
    assert page_differences(course) == []
    (course.labs / "AGENTS.md").write_text("solve\n")
    notebook = (course.labs / "index.ipynb").read_text()
    (course.labs / "index.ipynb").write_text(notebook.replace("Hello", "Goodbye"))
    said = "\n".join(page_differences(course))
    assert "+# Hello" in said and "labs/AGENTS.md: differs from solutions/AGENTS.md" in said
