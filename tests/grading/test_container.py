"""Where bubblewrap cannot work: a container's command line says what is there and what is not; doctor tells.

Commands are tested as data, and with a program in the place of an engine that writes down what it was asked and
then runs it. The last tests are podman's own, as are those of `test_sandbox.py` in a container.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grading.core import container, sandbox
from grading.core.course import ROOT
from grading.core.errors import SandboxError
from grading.core.records import read_record
from grading.core.sandbox import Limits, container_command
from tests.grading.conftest import asked

LIMITS = Limits(seconds=30, patience=5)
PATIENT = replace(LIMITS, seconds=120)  # an engine takes long to start on a busy machine
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
    if {{broken}}:
        sys.exit("first line\\nthe kernel says no")
    if "/out/record" not in sys.argv[at:]:
        sys.exit(0)
    (result,) = [a.split("source=")[1].split(",")[0] for a in sys.argv if a.endswith("target=/out/record")]
    os.environ["PYTHONPATH"] = {str(ROOT)!r}
    os.execv({sys.executable!r}, [{sys.executable!r}, {str(sandbox.RECORDER)!r}, result])
"""


@pytest.fixture
def command() -> list[str]:
    return container_command("docker", "gpulab-x", Path("/tmp/x"), LIMITS)


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
        "--mount=type=bind,source=/tmp/x/record,target=/out/record"
    ]
    assert not any(a.startswith(("-v", "--volume")) for a in command)


def test_nothing_of_the_course_is_there_but_gpulab_without_references(command: list[str]) -> None:
    ours = [
        m for m in command if str(ROOT) in m and not m.startswith(f"--mount=type=bind,source={sys.prefix}")
    ]
    targets = {m.split("target=")[1].split(",")[0] for m in ours if "target=" in m}
    assert targets <= {"/course/gpulab", "/course/recorder.py"}
    for references in sandbox.REFERENCES:
        assert f"--mount=type=bind,source=/tmp/x/empty,target=/course/{references},readonly" in command


def test_limits_are_the_submissions(command: list[str]) -> None:
    assert {
        f"--memory={LIMITS.memory}", f"--memory-swap={LIMITS.memory}", f"--pids-limit={LIMITS.processes}",
    } <= set(command)  # fmt: skip
    limited = command[command.index("prlimit") :]
    assert {f"--as={LIMITS.memory}", f"--fsize={LIMITS.file}", "--cpu=65", "--core=0"} <= set(limited)


def test_inside_runs_the_recorder_with_the_environment_of_every_sandbox_and_no_other(
    command: list[str],
) -> None:
    inside = command[command.index(container.IMAGE) + 1 :]
    assert "/usr/bin/env -i -C /home/learner" in " ".join(inside)
    assert inside[-3:] == [sys.executable, "/course/recorder.py", "/out/record"]
    for name, value in sandbox._environment("/home/learner", "/course").items():
        assert f"{name}={value}" in inside
    assert not any(a.startswith(("-e", "--env")) for a in command[: command.index(container.IMAGE)])


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine without bubblewrap, on whose PATH the program above is docker; yields what it writes down."""
    log = tmp_path / "log"
    script = tmp_path / "docker"
    script.write_text(ENGINE.format(log=str(log), down=False, broken=False))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sandbox, "no_bubblewrap", lambda: NO_BUBBLEWRAP)
    monkeypatch.setattr(container, "ENGINES", ("docker",))
    container.engine.cache_clear()
    container.unlimited.cache_clear()
    yield log
    container.engine.cache_clear()
    container.unlimited.cache_clear()


def said(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def job() -> bytes:
    steps = [
        {"cell": "c0", "source": "def answer(): return 7"},
        asked("a", "answer"),
    ]
    return json.dumps({"patience": 5, "steps": steps}).encode()


def test_a_recording_goes_through_the_engine_which_is_told_to_end_it(engine: Path) -> None:
    found = sandbox.record(job(), LIMITS)
    assert read_record(found.content).recorded["answered cases"]["a"]["1"] == [7] and found.end == "done"
    asked = said(engine)
    assert [a[0] for a in asked] == ["info", "image", "run", "run", "rm"]  # the first run is a trial
    name = asked[3][asked[3].index("--name") + 1]
    assert asked[4] == ["rm", "--force", name] and name.startswith("gpulab-")


def test_a_recording_that_never_ends_is_stopped_and_its_container_killed(engine: Path) -> None:
    endless = json.dumps(
        {"patience": 60, "steps": [{"cell": "c0", "source": "import time\ntime.sleep(60)"}]}
    ).encode()
    assert sandbox.record(endless, Limits(seconds=3, patience=60)).end == "stopped"
    assert said(engine)[-1][0] == "rm"


def test_ranks_and_dialogues_are_refused_with_the_reason(engine: Path) -> None:
    with pytest.raises(SandboxError, match="inherits no connection"), sandbox.rank(job(), LIMITS):
        pass


def test_doctor_tells_which_sandbox_there_is_and_why_not_the_other(engine: Path) -> None:
    rows = {what: (good, words) for what, good, words in sandbox.describe()}
    assert (
        rows["sandbox"][0] and rows["sandbox"][1].startswith("docker") and NO_BUBBLEWRAP in rows["sandbox"][1]
    )
    assert rows["container"] == (True, "docker")
    assert not rows["system calls"][0]
    assert not rows["process limit"][0] and "docker makes no control groups" in rows["process limit"][1]


def test_without_either_the_reasons_of_both_are_told(engine: Path) -> None:
    script = engine.parent / "docker"
    script.write_text(ENGINE.format(log=str(engine), down=True, broken=False))
    assert "docker does not answer" in sandbox.obstacle()
    script.write_text(ENGINE.format(log=str(engine), down=False, broken=True))
    container.engine.cache_clear()
    assert "docker cannot make a container here: the kernel says no" in sandbox.obstacle()
    os.remove(script)
    container.engine.cache_clear()
    assert sandbox.obstacle() == (
        f"{NO_BUBBLEWRAP}\nnor is there a container in its place: neither podman nor docker is installed"
    )
    with pytest.raises(SandboxError, match="--unsafe"):
        sandbox.record(job(), LIMITS)


@pytest.mark.usefixtures("containers")
def test_podman_records_and_leaves_no_container_also_where_it_was_stopped() -> None:
    found = sandbox.record(job(), PATIENT)
    assert read_record(found.content).recorded["answered cases"]["a"]["1"] == [7] and found.end == "done"
    endless = json.dumps({"patience": 60, "steps": [{"cell": "c0", "source": "while True: pass"}]}).encode()
    assert sandbox.record(endless, Limits(seconds=5, patience=60)).end == "stopped"
    listed = subprocess.run(["podman", "ps", "--all", "--quiet"], capture_output=True, text=True, check=True)
    assert listed.stdout == ""


@pytest.fixture(scope="module")
def inside(containers: None) -> dict[str, Any]:
    """What a submission finds in a container of podman's."""
    look = f"""
import os, pathlib
def answer():
    limits = pathlib.Path("/sys/fs/cgroup").glob("**/pids.max")
    return {{
        "environment": sorted(os.environ),
        "hosts": pathlib.Path("/etc/hosts").read_text(),
        "references": sum(map(os.listdir, {[f"/course/{folder}" for folder in sandbox.REFERENCES]}), []),
        "processes": [path.read_text().strip() for path in limits],
    }}
"""
    steps = [
        {"cell": "c0", "source": look},
        asked("a", "answer"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTTPS_PROXY", "http://user:password@proxy")  # podman hands it on by itself
        found = sandbox.record(json.dumps({"patience": 5, "steps": steps}).encode(), PATIENT)
    return dict(read_record(found.content).recorded["answered cases"]["a"]["1"][0])


def test_nothing_of_this_machine_is_told_inside_podmans_container(inside: dict[str, Any]) -> None:
    assert set(inside["environment"]) <= {*sandbox._environment("", ""), "LC_CTYPE"}
    assert inside["hosts"] == "" and inside["references"] == []


def test_doctor_tells_whether_podman_limits_processes_together(inside: dict[str, Any]) -> None:
    rows = {what: (good, words) for what, good, words in sandbox.describe()}
    assert rows["container"] == (True, "podman")
    assert rows["process limit"][0] == (str(LIMITS.processes) in inside["processes"])


@pytest.mark.usefixtures("containers")
def test_in_a_container_doctor_says_what_bubblewrap_lacks_and_the_guides_options_give_it(
    tmp_path: Path,
) -> None:
    container.make_record(tmp_path)
    rooms = [(str(ROOT / room), f"/course/{room}") for room in ("gpulab", "grading")]
    mounts = [*container.system(), *rooms]
    plain = container.command("podman", "gpulab-nested", mounts, [], tmp_path, container.TRIAL)
    ask = "from grading.core import sandbox; print(sandbox.no_bubblewrap())"
    inside = ["/usr/bin/env", "PYTHONPATH=/course", sys.executable, "-c", ask]

    def reason(*options: str) -> str:
        command = [*plain[:2], *options, *plain[2:], *inside]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert "/proc has masks" in reason("--security-opt=seccomp=unconfined")
    guide = " ".join((ROOT / "docs" / "instructors" / "scaling.md").read_text(encoding="utf-8").split())
    options = guide.partition("with podman `")[2].partition("`")[0]
    assert reason(*options.split()) == ""
