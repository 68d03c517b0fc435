"""Every command: its help, its wrong use, its completion by a shell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gpulab
from gpulab import cli

ROOT = Path(gpulab.__file__).resolve().parent.parent
WRONG = [
    ["doctor", "now"],
    ["gpus", ""],
    ["check"],
    ["check", "notes.txt"],
    ["check", "notes.txt::start.double"],
    ["check", "::start.double"],
    ["check", "missing.ipynb::start.double"],
    ["check", "bad.ipynb::start.double"],
    ["check", "bytes.py::start.double"],
    ["check", ".::start.double"],
    ["check", "empty.py::nothing.of.that.name"],
    ["check", "empty.py::start.double", "more"],
    ["profile"],
    ["profile", "empty.py"],
    ["profile", "empty.py::kernel"],
    ["profile", "unlaunched.py::kernel"],
    ["profile", "bad.ipynb::kernel"],
    ["profile", ".::kernel"],
    ["hint"],
    ["hint", ""],
    ["hint", "start"],
    ["progress", "x"],
    ["progress", "04", "05"],
    ["glossary", "zzzz"],
    ["glossary", "--all"],
    ["update", "missing"],
    ["update", "notes.txt"],
    ["update", "."],
    ["completion"],
    ["completion", "powershell"],
    ["leaderboard", "nothing"],
    ["leaderboard", "--import", "missing.json"],
    ["leaderboard", "--import", "notes.txt"],
    ["leaderboard", "--import", "."],
    ["leaderboard", "--export", "missing/mine.json", "--as", "Ada"],
    ["help"],
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a command is typed: files of all kinds, and a folder of labs."""
    (tmp_path / "labs").mkdir()
    (tmp_path / "gpulab").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "bad.ipynb").write_text("{")
    (tmp_path / "bytes.py").write_bytes(b"\x00\xff")
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "unlaunched.py").write_text(
        "from gpulab import cuda\n@cuda.jit\ndef kernel(a):\n    a[0] = 1\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("typed", WRONG, ids=" ".join)
def test_a_wrong_use_ends_with_1_or_2_and_one_line_that_says_why(
    typed: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(typed) in (1, 2)
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1 and said.err.startswith("gpulab: "), said.err


def test_every_command_is_used_wrongly_above() -> None:
    handed_on = {name for name, command in cli.COMMANDS.items() if command.hands_on}
    assert {typed[0] for typed in WRONG} - {"help"} == cli.COMMANDS.keys() - handed_on


def test_the_beginning_of_an_exercises_name_is_completed_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["hint", "start"]) == 2
    assert "did you mean start." in capsys.readouterr().err


@pytest.mark.parametrize("name", [n for n, command in cli.COMMANDS.items() if not command.hands_on])
def test_the_help_of_a_command_fits_a_screen(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main([name, "--help"])
    said = capsys.readouterr().out
    assert stopped.value.code == 0
    assert cli.COMMANDS[name].help.split(";")[0][:40] in said
    assert len(said.splitlines()) <= 24


def test_the_help_says_what_exit_codes_mean(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main([])
    said = " ".join(capsys.readouterr().out.split())
    assert all(f"{code} " in said.partition("Exit codes:")[2] for code in (0, 1, 2, 130))


def completed(*words: str) -> set[str]:
    """What bash offers for the last word when the tab key is pressed."""
    script = (
        f'eval "$({sys.executable} -m gpulab completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1));'
        ' $(complete -p gpulab | sed "s/.*-F //; s/ .*//") 2>/dev/null; echo "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(
        ["bash", "-c", script, "bash", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.split())


def test_the_tab_key_completes_commands_and_options() -> None:
    assert completed("gpulab", "pro") == {"profile", "progress"}
    assert "--json" in completed("gpulab", "doctor", "--")
