"""Every command: its help, its wrong use, its completion by a shell."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpulab
from gpulab.app import cli

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
    ["run"],
    ["run", "missing.py"],
    ["run", "."],
    ["run", "-m"],
    ["run", "--gpu", "H1000", "empty.py"],
    ["run", "--clock", "sun", "empty.py"],
    ["run", "--limit", "-1", "empty.py"],
    ["run", "--budget", "missing.json", "empty.py"],
    ["run", "--budget", "notes.txt", "empty.py"],
    ["run", "--budget", ".", "empty.py"],
    ["run", "--write-budget", "missing/budget.json", "empty.py"],
    ["hint"],
    ["hint", ""],
    ["hint", "start"],
    ["appeal"],
    ["appeal", "start.double"],
    ["appeal", "start", "It is right.", "--as", "ada"],
    ["appeal", "start.double", "", "--as", "ada"],
    ["appeal", "start.double", "It is right.", "--as", "../ada"],
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


class Bash:
    """A bash at a terminal, in `folder`, that completes the command as its help says."""

    def __init__(self, folder: Path):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            environment = {**os.environ, "TERM": "dumb", "PS1": "", "PYTHONPATH": str(ROOT)}
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        script = f'eval "$({sys.executable} -m gpulab completion bash)"'
        self.type(
            f'bind "set completion-query-items 0"; {script}; complete -p gpulab && echo rea"dy"\n', "ready"
        )

    def type(self, keys: str, until: str) -> str:
        """What the terminal shows after these keys, up to and with `until`."""
        os.write(self.terminal, keys.encode())
        shown = ""
        while until not in shown:
            assert select.select([self.terminal], [], [], 30)[0], f"no {until!r} in {shown!r}"
            shown += os.read(self.terminal, 4096).decode()
        return shown

    def completed(self, typed: str) -> str:
        """A typed line after the tab key."""
        self.type("\x15", "")  # an empty line
        shown = self.type(f"{typed}\t\x01echo '<\x05>'\n", ">\r\n")
        return shown.rpartition("<")[2].removesuffix(">\r\n")

    def close(self) -> None:
        os.close(self.terminal)
        os.waitpid(self.process, 0)


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bash]:
    folder = tmp_path_factory.mktemp("typing")
    (folder / "my_lab.ipynb").write_text("{}")
    (folder / "new_version").mkdir()
    shell = Bash(folder)
    yield shell
    shell.close()


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("gpulab prog", "gpulab progress "),
        ("gpulab doctor --j", "gpulab doctor --json "),
        ("gpulab check my", "gpulab check my_lab.ipynb "),
        ("gpulab profile my", "gpulab profile my_lab.ipynb "),
        ("gpulab update new", "gpulab update new_version/"),
        ("gpulab hint memory.tran", "gpulab hint memory.transpose "),
        ("gpulab gpus B2", "gpulab gpus B200 "),
        ("gpulab progress 2", "gpulab progress 2"),  # 20, 21, 22
        ("gpulab leaderboard atten", "gpulab leaderboard attention "),
        ("gpulab completion z", "gpulab completion zsh "),
    ],
)
def test_the_tab_key_completes_commands_options_names_and_files_in_bash(
    typed: str, shown: str, bash: Bash
) -> None:
    assert bash.completed(typed) == shown


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_get_a_script_with_all_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in (*cli.COMMANDS, "memory.transpose"))


def test_a_terminal_that_lacks_a_sign_gets_another_one_and_no_traceback() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "gpulab", "progress", "00"],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0 and "00  Start here" in ran.stdout, ran.stderr


def at_a_terminal(folder: Path, kind: str, *typed: str) -> list[str]:
    """The lines that a terminal of this kind with 80 columns shows."""
    process, terminal = pty.fork()
    if process == 0:
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        environment |= {"TERM": kind, "PYTHONPATH": str(ROOT), "GPULAB_PROGRESS": str(folder / "p.json")}
        os.execvpe(sys.executable, [sys.executable, "-m", "gpulab", *typed], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    shown = b""
    with contextlib.suppress(OSError):  # Linux says so where the process has ended
        while part := os.read(terminal, 65536):
            shown += part
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, shown
    return shown.decode().replace("\r", "").splitlines()


SHOWN = [["--help"], ["gpus"], ["progress"], ["glossary"], ["hint", "start.double"]]


@pytest.mark.parametrize("typed", SHOWN, ids=" ".join)
def test_what_a_terminal_of_80_columns_shows_fits_and_a_dumb_one_gets_no_codes(
    typed: list[str], tmp_path: Path
) -> None:
    plain = at_a_terminal(tmp_path, "dumb", *typed)
    assert not [line for line in plain if "\x1b" in line]
    for lines in (plain, at_a_terminal(tmp_path, "xterm-256color", *typed)):
        seen = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in lines]
        assert seen and not [line for line in seen if len(line) > 80]
