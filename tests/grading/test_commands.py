"""A command that a message names can be pasted, and a misspelt name gets a guess at what was meant."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.core import commands
from grading.core.commands import closest, guess, ours
from grading.core.course import ROOT, Course
from tests.grading.conftest import LAB

LABS = ["02_gpu_architecture", "04_memory_hierarchy", "05_reductions_scans_softmax"]


def test_what_is_printed_runs_when_it_is_pasted_wherever_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands.shutil, "which", lambda name, path: None)
    monkeypatch.chdir(tmp_path)
    assert shlex.split(ours("grade"))[0] == sys.executable  # far away: the whole path
    asked = subprocess.run(
        ours("grade", "--help"), shell=True, capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert "submissions" in asked.stdout
    nearby = tmp_path / "my venv" / "bin" / "python"
    monkeypatch.setattr(commands.sys, "executable", str(nearby))
    assert ours("grade", "04", "--export canvas") == (
        "'my venv/bin/python' -m grading grade 04 --export canvas"
    )
    monkeypatch.setattr(commands.shutil, "which", lambda name, path: str(nearby))  # it is activated
    assert ours("regrades") == "python -m grading regrades"
    monkeypatch.setattr(commands.shutil, "which", lambda name, path: "/usr/bin/python")
    assert "my venv" in ours("regrades")  # another Python has no gpulab


def test_what_a_run_puts_into_its_own_path_is_not_in_the_shells(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "SEARCHED", str(tmp_path))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))  # as `gradebook.register` sets it
    assert ours("grade") != "python -m grading grade"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("4", LABS[1]), ("04", LABS[1]), ("02a", LABS[0]), ("04_memry_hierarchy", LABS[1]), ("05_red", LABS[2]),
        ("0", ""), ("99", ""), ("", ""), ("nothing", ""),
    ],
)  # fmt: skip
def test_a_misspelt_lab_is_known_by_its_number_its_beginning_or_its_letters(word: str, meant: str) -> None:
    assert closest(word, LABS) == meant
    assert guess(word, LABS) == (f" (did you mean {meant}?)" if meant else "")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["grade", "90_clas", "."], f"no released lab '90_clas' (did you mean {LAB}?)"),
        (["release", "90_clas"], f"no lab '90_clas' (did you mean {LAB}?)"),
        (["course", "x", "--labs", "90_clas"], f"no lab '90_clas' (did you mean {LAB}?)"),
        (["grde", LAB], "(did you mean grade?)"),
        (["grade", LAB, "--exprt", "canvas"], "(did you mean --export?)"),
        (["grade", LAB, "--export", "cnvas"], "(did you mean canvas?)"),
    ],
)
def test_whatever_is_misspelt_on_the_command_line_gets_a_guess(
    course: Course, capsys: pytest.CaptureFixture[str], typed: list[str], said: str
) -> None:
    try:
        assert main(typed, course) == 1
    except SystemExit as ended:
        assert ended.code == 2
    told = capsys.readouterr()
    assert said in told.out + told.err


def test_an_option_of_another_command_is_not_called_misspelt(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["errors", LAB, "--export", "canvas"])
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[deu]", "the file has no 'deu' (did you mean due?)"),
        ("[late]\nper_dy = 10", "[late] has no 'per_dy' (did you mean per_day?)"),
        (
            f'timezone = "UTC"\n[due]\n{LAB}s = 2027-01-15T12:00:00',
            f"there is no lab '{LAB}s' (did you mean {LAB}?)",
        ),
    ],
)
def test_a_misspelt_word_in_the_settings_gets_a_guess(
    course: Course, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    course.home.mkdir(exist_ok=True)
    course.settings.write_text(text)
    assert main(["grade", LAB, ".", "--unsafe"], course) == 1
    assert said in capsys.readouterr().out
