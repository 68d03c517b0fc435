"""What the command `gpulab` answers, in its own process, as a person sees it."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import gpulab
from gpulab.app import cli

ROOT = Path(gpulab.__file__).resolve().parent.parent


def run(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpulab", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def one_line(text: str) -> str:
    lines = text.splitlines()
    assert len(lines) == 1, text
    return lines[0]


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"gpulab {gpulab.__version__}\n"


def test_without_a_command_the_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in cli.COMMANDS)
    assert len(said.splitlines()) <= 24, "the help fits a screen"


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (["docter"], "did you mean doctor?"),
        (["frobnicate"], "doctor"),
        (["gpus", "A1000"], "did you mean A100?"),
        (["gpus", "abacus"], "V100"),
        (["gpus", "--wide"], "gpulab gpus --help"),
        (["doctor", "--jsn"], "gpulab doctor --help"),
        (["--frobnicate"], "gpulab --help"),
        ([""], "doctor"),
    ],
)
def test_a_wrong_command_line_gets_one_line_that_helps(
    typed: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(typed) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert hint in one_line(said.err)


def test_the_table_of_gpus_has_those_that_were_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["gpus", "a100", "H200"]) == 0
    head = capsys.readouterr().out.splitlines()[0].split()
    assert head == ["A100", "H200"]


def test_a_reader_that_stops_early_is_no_error() -> None:
    command = f"{sys.executable} -m gpulab gpus | head -1; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines()[-1] == "0"
    assert ran.stderr == ""


def test_ctrl_c_ends_with_one_line_and_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, "doctor", cli.Command("", interrupted))
    assert cli.main(["doctor"]) == 130
    assert one_line(capsys.readouterr().err) == "gpulab: stopped"


def test_the_labs_are_found_from_a_folder_inside_the_clone() -> None:
    assert cli.find_labs(ROOT / "gpulab" / "ptx") == ROOT / "labs"


def test_without_labs_the_command_says_where_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "find_labs", lambda start: None)
    assert cli.main(["lab"]) == 1
    assert "Clone the course's repository" in one_line(capsys.readouterr().err)


def test_the_doctor_answers_programs_in_json() -> None:
    ran = run("doctor", "--json")
    report = json.loads(ran.stdout)
    assert report["gpulab"] == gpulab.__version__
    assert {"Python", "compiler", "GPU", "JupyterLab"} <= {finding["name"] for finding in report["findings"]}
    assert ran.returncode == (0 if report["ok"] else 1)


def test_a_simulated_gpu_that_does_not_exist_is_named_by_the_doctor() -> None:
    report = json.loads(run("doctor", "--json", GPULAB_GPU="H1000").stdout)
    finding = next(f for f in report["findings"] if f["name"] == "GPU")
    if finding["found"]:
        pytest.skip("there is a GPU here: none is simulated")
    assert finding["state"] == "no"
    assert "did you mean H100?" in finding["note"]
    assert not report["ok"]


SEEN = """
import json, sys
from jupyter_core.paths import jupyter_config_path
from jupyter_server.extension.config import ExtensionConfigManager
from jupyterlab_server.config import get_page_config
servers = ExtensionConfigManager(read_config_path=jupyter_config_path()).get_jpserver_extensions()
disabled = get_page_config([]).get("disabledExtensions", [])
print(json.dumps({"servers": servers, "disabled": disabled}))
"""


def _seen(**environment: str) -> dict[str, Any]:
    """What a JupyterLab with these settings loads."""
    environment = {**os.environ, "JUPYTER_CONFIG_PATH": "", **environment}
    ran = subprocess.run([sys.executable, "-c", SEEN], env=environment, capture_output=True, check=True)
    return json.loads(ran.stdout)


def test_the_instructors_menus_are_not_in_a_learners_jupyterlab_and_in_the_instructors() -> None:
    formgrader = "nbgrader.server_extensions.formgrader"
    learner = _seen(JUPYTER_CONFIG_PATH=str(cli.LEARNERS_SETTINGS))
    assert not any(on for name, on in learner["servers"].items() if "nbgrader" in name)
    assert "@jupyter/nbgrader" in learner["disabled"]
    assert "jupyterlab" in learner["servers"]
    instructor = _seen()
    assert "@jupyter/nbgrader" not in instructor["disabled"]
    if importlib.util.find_spec("nbgrader"):  # an environment without extras has none
        assert instructor["servers"][formgrader]


@pytest.mark.slow
def test_jupyterlab_opens_in_the_labs(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = [
        "--no-browser",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=secret",
    ]
    server = subprocess.Popen(
        [sys.executable, "-m", "gpulab", "lab", *options],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "JUPYTER_CONFIG_DIR": str(tmp_path), "JUPYTER_DATA_DIR": str(tmp_path)},
    )
    try:
        names = {
            entry["name"] for entry in _when_it_answers(f"http://127.0.0.1:{port}/api/contents?token=secret")
        }
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/formgrader?token=secret")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=30)
    assert names >= {path.name for path in (ROOT / "labs").iterdir() if path.is_dir() and path.name[0] != "."}


def _when_it_answers(url: str) -> list[dict[str, str]]:
    for _ in range(120):
        try:
            with urllib.request.urlopen(url) as answer:
                return json.load(answer)["content"]
        except OSError:
            time.sleep(0.5)
    raise AssertionError("JupyterLab did not answer within a minute")
