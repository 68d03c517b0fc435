"""Solution notebooks as a machine with a GPU runs them: past cells that fail, with what each check said."""

from __future__ import annotations

from pathlib import Path

import pytest

from validation import measured, notebooks
from validation.__main__ import main

LAB = """# %%
import gpulab

print("begun")

# %%
absent

# %%
def double(a):
    return a


gpulab.check("start.worst_line", double, attempt=False)
"""


@pytest.mark.timeout(180)
def test_a_notebook_runs_past_a_cell_that_fails_and_tells_what_its_checks_said(tmp_path: Path) -> None:
    source = tmp_path / "00_tried.py"
    source.write_text(LAB, encoding="utf-8")
    found = notebooks.run(source)
    assert (found["cells"], found["ended"]) == (3, "")
    (failed,) = found["failed"]
    assert failed["cell"] == 1 and failed["error"] == "NameError: name 'absent' is not defined"
    assert "✘ right" in found["checks"]["start.worst_line"]


def test_all_notebooks_of_a_lab_are_run_and_none_of_another() -> None:
    assert [path.stem for path in notebooks.all_of(["06"])] == [
        "06_matrix_multiplication_a",
        "06_matrix_multiplication_b",
    ]


def test_a_lab_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["notebooks", "--only", "77"]) == 2
    assert "there is no lab '77'" in capsys.readouterr().err


def test_no_notebooks_at_a_time_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["notebooks", "--jobs", "0"])
    assert "'0' is no whole number of at least 1" in capsys.readouterr().err


@pytest.mark.slow  # two notebooks, whole
def test_the_file_holds_every_notebook_of_a_lab_with_its_checks(tmp_path: Path) -> None:
    out = tmp_path / "notebooks.json"
    assert main(["notebooks", "--only", "07", "--jobs", "2", "--out", str(out)]) == 0
    found = measured.load(out)["notebooks"]
    assert set(found) == {"07_cuda_cpp_and_cupy_a", "07_cuda_cpp_and_cupy_b"}
    assert all(one["failed"] == [] and one["checks"] for one in found.values()), found
