"""Where bubblewrap cannot work: a container's command line says what is there and what is not; doctor tells.

No engine runs here: commands are tested as data, and with a program in the place of an engine that writes down
what it was asked and then runs it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grading import container, sandbox
from grading.course import ROOT
from grading.errors import SandboxError
from grading.sandbox import Limits, container_command
from grading.traces import read_trace

LIMITS = Limits(seconds=30, patience=5)
NO_BUBBLEWRAP = "bubblewrap cannot make a sandbox here (user namespaces are blocked)"
# In the place of docker: writes down its arguments, and runs what follows the image without any walls.
ENGINE = f"""#!{sys.executable}
import json, os, sys
with open({{log!r}}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1] == "info" and {{down}}:
    sys.exit(1)
if sys.argv[1] == "run":
    at = sys.argv.index("{container.IMAGE}")
    for argument in sys.argv[:at]:
        if argument.startswith("--env="):
            name, _, value = argument[6:].partition("=")
            os.environ[name] = value
    (result,) = [a.split("source=")[1].split(",")[0] for a in sys.argv if a.endswith("target=/out/record")]
    os.environ["PYTHONPATH"] = {str(ROOT)!r}
    os.execv(sys.argv[at + 1], [sys.argv[at + 1], {str(sandbox.RECORDER)!r}, result])
"""


@pytest.fixture
def command() -> list[str]:
    return container_command("docker", "gpulab-x", Path("/tmp/record"), LIMITS)


def test_a_container_has_no_network_no_rights_and_nothing_to_write_to_but_memory(command: list[str]) -> None:
    assert {
        "--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges",
        "--user=1000:1000", "--ipc=private", "--rm", "--pull=never",
    } <= set(command)  # fmt: skip
    assert not {"--privileged", "--pid=host", "--userns=host"} & set(command)
    disks = [a for a in command if a.startswith("--tmpfs=")]
    assert all("size=" in disk for disk in disks)
    assert {disk.split(":")[0] for disk in disks if ":rw" in disk} == {
        "--tmpfs=/tmp",
        "--tmpfs=/home/learner",
    }


def test_all_mounts_are_read_only_but_the_one_file(command: list[str]) -> None:
    mounts = [a for a in command if a.startswith("--mount=")]
    assert [m for m in mounts if not m.endswith(",readonly")] == [
        "--mount=type=bind,source=/tmp/record,target=/out/record"
    ]
    assert not any(a.startswith(("-v", "--volume")) for a in command)


def test_nothing_of_the_course_is_there_but_gpulab_without_references(command: list[str]) -> None:
    ours = [
        m for m in command if str(ROOT) in m and not m.startswith(f"--mount=type=bind,source={sys.prefix}")
    ]
    targets = {m.split("target=")[1].split(",")[0] for m in ours if "target=" in m}
    assert targets <= {"/course/gpulab", "/course/recorder.py"}
    assert f"--tmpfs=/course/{sandbox.REFERENCES}:ro,size=4096" in command
    assert "grading" not in " ".join(m for m in command if m.startswith("--env="))


def test_limits_are_the_submissions(command: list[str]) -> None:
    assert {
        f"--memory={LIMITS.memory}", f"--memory-swap={LIMITS.memory}", f"--pids-limit={LIMITS.processes}",
        f"--ulimit=fsize={LIMITS.file}", "--ulimit=cpu=65", "--ulimit=core=0",
    } <= set(command)  # fmt: skip


def test_inside_runs_the_recorder_with_the_environment_of_every_sandbox(command: list[str]) -> None:
    inside = command[command.index(container.IMAGE) + 1 :]
    assert inside == [sys.executable, "/course/recorder.py", "/out/record"]
    for name, value in sandbox._environment("/home/learner", "/course").items():
        assert f"--env={name}={value}" in command


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine without bubblewrap, on whose PATH the program above is docker; yields what it writes down."""
    log = tmp_path / "log"
    script = tmp_path / "docker"
    script.write_text(ENGINE.format(log=str(log), down=False))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sandbox, "no_bubblewrap", lambda: NO_BUBBLEWRAP)
    monkeypatch.setattr(container, "ENGINES", ("docker",))
    container.engine.cache_clear()
    yield log
    container.engine.cache_clear()


def said(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def job() -> bytes:
    steps = [
        {"cell": "c0", "source": "def answer(): return 7"},
        {"exercise": "a", "function": "answer", "cases": [{"name": "1", "questions": [[]]}]},
    ]
    return json.dumps({"patience": 5, "steps": steps}).encode()


def test_a_recording_goes_through_the_engine_which_is_told_to_end_it(engine: Path) -> None:
    found = sandbox.record(job(), LIMITS)
    assert read_trace(found.content).answers["a"]["1"] == [7] and found.end == "done"
    asked = said(engine)
    assert [a[0] for a in asked] == ["info", "image", "run", "kill"]
    name = asked[2][asked[2].index("--name") + 1]
    assert asked[3] == ["kill", name] and name.startswith("gpulab-")


def test_a_recording_that_never_ends_is_stopped_and_its_container_killed(engine: Path) -> None:
    endless = json.dumps(
        {"patience": 60, "steps": [{"cell": "c0", "source": "import time\ntime.sleep(60)"}]}
    ).encode()
    assert sandbox.record(endless, Limits(seconds=3, patience=60)).end == "stopped"
    assert said(engine)[-1][0] == "kill"


def test_ranks_and_dialogues_are_refused_with_the_reason(engine: Path) -> None:
    with pytest.raises(SandboxError, match="inherits no connection"), sandbox.rank(job(), LIMITS):
        pass


def test_doctor_tells_which_sandbox_there_is_and_why_not_the_other(engine: Path) -> None:
    rows = {what: (good, words) for what, good, words in sandbox.describe()}
    assert (
        rows["sandbox"][0] and rows["sandbox"][1].startswith("docker") and NO_BUBBLEWRAP in rows["sandbox"][1]
    )
    assert rows["container"] == (True, "docker")
    assert not rows["calls of ranks"][0]


def test_without_either_the_reasons_of_both_are_told(engine: Path) -> None:
    script = engine.parent / "docker"
    script.write_text(ENGINE.format(log=str(engine), down=True))
    assert "docker does not answer" in sandbox.obstacle()
    os.remove(script)
    container.engine.cache_clear()
    assert sandbox.obstacle() == (
        f"{NO_BUBBLEWRAP}\nnor is there a container in its place: neither podman nor docker is installed"
    )
    with pytest.raises(SandboxError, match="--unsafe"):
        sandbox.record(job(), LIMITS)
