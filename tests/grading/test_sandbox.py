"""What a submission can and cannot do while it is recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grading.core import cgroup, sandbox, seccomp
from grading.core.course import ROOT
from grading.core.errors import SandboxError
from grading.core.records import Record, read_record
from grading.core.sandbox import Limits, Outcome
from tests.grading.conftest import asked

pytestmark = pytest.mark.usefixtures("needs_sandbox")
QUICK = Limits(seconds=20, patience=5)
_way = {"fresh": False}
WAYS = ["a copy", "a fresh Python"]
bubblewrap_alone = pytest.mark.parametrize("way", WAYS, indirect=True)


@pytest.fixture(
    scope="module", autouse=True, params=[*WAYS, pytest.param("a container", marks=pytest.mark.slow)]
)
def way(request: pytest.FixtureRequest) -> None:
    """Whether recordings are made in copies of the template, each in a Python of its own, or in podman's."""
    if request.param == "a container":
        request.getfixturevalue("containers")
    _way["fresh"] = request.param == "a fresh Python"


def outcome(*cells: str, limits: Limits = QUICK) -> Outcome:
    steps: list[dict[str, Any]] = [{"cell": f"c{i}", "source": text} for i, text in enumerate(cells)]
    steps.append(asked("a", "answer"))
    return sandbox.record(json.dumps({"patience": limits.patience, "steps": steps}).encode(), limits, **_way)


def answer(*cells: str, limits: Limits = QUICK) -> Any:
    """What the function `answer` of these cells returns inside the sandbox."""
    trace: Record = read_record(outcome(*cells, limits=limits).content)
    assert "a" in trace.recorded["answered cases"], (trace.failures, trace.cell_failures)
    return trace.recorded["answered cases"]["a"]["1"][0]


@pytest.fixture(scope="module")
def look_around(way: None) -> Iterator[dict[str, Any]]:
    """What one submission finds when it looks for everything that is none of its business."""
    yield answer(
        f"""
import os, pathlib, socket, subprocess
def tried(f):
    try: return str(f())
    except BaseException as e: return type(e).__name__ + ": " + str(e)
def answer():
    return {{
        "files": sorted(os.listdir("/")),
        "references": tried(lambda: [os.listdir(p) for p in pathlib.Path("/course/gpulab/content").glob("*/references")]),
        "grading": tried(lambda: __import__("grading")),
        "repository": tried(lambda: os.listdir({str(ROOT)!r})),
        "network": tried(lambda: socket.create_connection(("1.1.1.1", 53), 2)),
        "write": tried(lambda: pathlib.Path("/course/gpulab/x").write_text("x")),
        "usr": tried(lambda: pathlib.Path("/usr/x").write_text("x")),
        "replace": tried(lambda: os.replace("/tmp/x", "/out/record")),
        "unlink": tried(lambda: os.unlink("/out/record")),
        "link": tried(lambda: os.symlink("/etc/passwd", "/out/other")),
        "mount": tried(lambda: subprocess.call(["mount", "-o", "remount,rw", "/course"])),
        "processes": len([p for p in os.listdir("/proc") if p.isdigit()]),
        "environment": sorted(os.environ),
        "home": tried(lambda: pathlib.Path("notes.txt").write_text("mine")),
    }}
"""
    )


def test_references_the_repository_and_grading_are_not_there(look_around: dict[str, Any]) -> None:
    assert look_around["references"] == str([[]] * len(sandbox.REFERENCES))
    assert len(sandbox.REFERENCES) >= len(os.listdir(ROOT / "solutions")) / 2
    assert "ModuleNotFoundError" in look_around["grading"]
    assert "gradebook" not in look_around["repository"] and "labs" not in look_around["repository"]


def test_nothing_can_be_written_but_home_tmp_and_the_one_file(look_around: dict[str, Any]) -> None:
    for what in ("write", "usr", "replace", "unlink", "link"):
        assert "Error" in look_around[what], what
    assert look_around["mount"] != "0"
    assert look_around["home"] == "4"


def test_there_is_no_network_and_no_other_process(look_around: dict[str, Any]) -> None:
    assert "Error" in look_around["network"]
    assert look_around["processes"] <= 4
    assert not {"USER", "SSH_AUTH_SOCK", "VIRTUAL_ENV"} & set(look_around["environment"])


WALLS = """
import ctypes, errno, os, socket, subprocess
def writable():
    found = []
    for folder, _, files in os.walk("/proc"):
        if not any(part.isdigit() or part == "self" for part in folder.split("/")):
            for path in (f"{folder}/{name}" for name in files):
                try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                except OSError: continue
                found.append(path)
    return found
def unshared():
    libc = ctypes.CDLL(None, use_errno=True)
    return "done" if libc.unshare(0x10000000) == 0 else errno.errorcode[ctypes.get_errno()]
def opened():
    try: return socket.socket(40, socket.SOCK_STREAM).close()  # AF_VSOCK
    except OSError as error: return errno.errorcode[error.errno]
def allocated():
    try: return os.posix_fallocate(0, 0, 1 << 20)
    except OSError as error: return errno.errorcode[error.errno]
def answer():
    room = ["unshare", "-Urm", "mount", "-t", "tmpfs", "-o", "size=100g", "none", "/tmp"]
    return {
        "writable": writable(),
        "mounted": subprocess.run(room, capture_output=True).returncode,
        "vsock": opened(),
        "user namespace": unshared(),
        "job": allocated(),
    }
"""


def held(found: dict[str, Any]) -> bool:
    """Whether walls held: nothing of the host's can be written, no namespace made, no other socket opened."""
    refused = found["vsock"] == found["user namespace"] == "EPERM" and found["job"] == "EBADF"
    return found["writable"] == [] and found["mounted"] != 0 and refused


@bubblewrap_alone
def test_nobody_reaches_the_host_through_proc_namespaces_or_sockets() -> None:
    found = answer(WALLS)
    assert held(found), found


@pytest.mark.skipif(os.getuid() != 0, reason="the tests do not run as root, so the one above shows it")
@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="no Python that every user may start")
def test_the_walls_hold_for_an_ordinary_user_as_for_root(way: None) -> None:
    """Where grading runs as root, the user inside is root outside; here it is `nobody`.

    Its Python is the system's, because that of the tests may be in a folder that only root can enter.
    """
    source = f"{WALLS}\nimport json\nprint(json.dumps(answer()))"
    folders = [
        argument
        for name in ("usr", "bin", "lib", "lib64")
        for argument in ("--ro-bind-try", f"/{name}", f"/{name}")
    ]
    with tempfile.TemporaryFile() as calls:
        calls.write(seccomp.program(rank=False))
        calls.seek(0)
        walls = ["bwrap", *sandbox.ALONE, *folders, "--tmpfs", "/tmp", "--seccomp", str(calls.fileno()), "--"]
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        run = subprocess.run(
            [*nobody, *walls, "/usr/bin/python3", "-c", source],
            stdin=subprocess.DEVNULL, pass_fds=[calls.fileno()], cwd="/", capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout) | {"job": "EBADF"}  # there is none
    assert held(found), found


@pytest.mark.parametrize("user", [0, 1000])
def test_the_doctor_warns_of_grading_as_root(user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: user)
    rows = {name: words for name, _, words in sandbox.describe()}
    assert ("grade as an ordinary user" in rows.get("user", "")) == (user == 0)


def test_a_loop_that_ignores_every_signal_ends_at_the_wall_limit() -> None:
    stubborn = "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass"
    found = outcome("ok = 1", stubborn, limits=Limits(seconds=6, patience=2))
    trace = read_record(found.content)
    assert found.end == "stopped" and trace.last == "c1" and not trace.done


def test_a_loop_in_one_cell_leaves_time_for_the_next() -> None:
    assert answer("while True: pass", "def answer(): return 7", limits=Limits(seconds=20, patience=2)) == 7


def test_memory_processes_and_printing_are_limited() -> None:
    greedy = "def answer():\n    try: return len(bytearray(9 << 30))\n    except MemoryError: return 'no'"
    assert answer(greedy) == "no"
    bomb = """
import os
def answer():
    children = 0
    try:
        while children < 1000:
            if os.fork() == 0:
                import time; time.sleep(30); os._exit(0)
            children += 1
    except OSError: pass
    return children
"""
    assert answer(bomb) < 200
    flood = "import os, sys\nfor _ in range(200): os.write(2, b'x' * 1_000_000)\ndef answer(): return 1"
    assert answer(flood) == 1


def test_a_record_larger_than_its_limit_ends_the_recording_and_keeps_the_rest() -> None:
    small = Limits(seconds=20, patience=5, file=20_000)
    found = outcome("def answer(): return 'x' * 100_000", limits=small)
    assert len(found.content) <= 20_000
    assert not any(read_record(found.content).recorded.values())


def test_without_a_sandbox_nothing_is_recorded_unless_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "obstacle", lambda: "bubblewrap is not installed: apt install bubblewrap")
    with pytest.raises(SandboxError, match="--unsafe"):
        outcome("x = 1")


def test_an_environment_that_is_a_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "venv"
    link.symlink_to(sys.prefix)
    monkeypatch.setattr(sys, "executable", str(link / Path(sys.executable).relative_to(sys.prefix)))
    monkeypatch.setattr(sys, "prefix", str(link))
    assert sandbox.no_bubblewrap() or sandbox._no_python() == ""
    assert answer("import sys\ndef answer(): return sys.prefix") == str(link)


@bubblewrap_alone
def test_a_python_that_is_not_there_inside_is_told(
    way: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "python"
    elsewhere.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(elsewhere))
    assert f"{elsewhere} does not start inside bubblewrap" in sandbox._no_python()


def test_no_control_group_is_left_behind() -> None:
    answer("def answer(): return 1")
    assert not list(Path("/sys/fs/cgroup").glob(f"**/gpulab-{os.getpid()}-*"))


@bubblewrap_alone
def test_the_groups_of_a_coordinator_that_was_killed_are_removed_by_the_next(way: None) -> None:
    homes = {home for home, _ in cgroup._homes().values()}
    if not homes:
        pytest.skip(cgroup.obstacle())
    gone = subprocess.Popen(["true"])
    gone.wait()
    old = [home / f"gpulab-{gone.pid}-killed" for home in homes]
    alive = [home / f"gpulab-{os.getppid()}-alive" for home in homes]
    for group in (*old, *alive):
        group.mkdir()
    try:
        cgroup._sweep.cache_clear()
        answer("def answer(): return 1")
        assert not any(group.exists() for group in old)
        assert all(group.exists() for group in alive)
    finally:
        for group in alive:
            group.rmdir()
