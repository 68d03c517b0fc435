"""Recordings in copies of one process: as good as in a fresh Python, and as lonely."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from gpulab.checks import find
from gpulab.checks.spec import Case
from grading.core import sandbox
from grading.core.course import ROOT
from grading.core.judge import Judge, exercise_step
from grading.core.notebooks import Question
from grading.core.records import read_record
from grading.core.sandbox import Limits, Outcome
from tests.grading.conftest import asked

QUICK = Limits(seconds=30, patience=10)
COPY = """
from gpulab import cuda
@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]
"""


@pytest.fixture(autouse=True)
def template(needs_sandbox: None) -> Iterator[psutil.Process]:
    """bubblewrap around the template, which the first recording would start. Skips where a machine forbids it.

    What goes wrong in the template itself is a fault of ours: every recording would import everything again.
    """
    if why := sandbox.no_template():
        if not why.startswith(("[Errno", "bwrap:")):
            pytest.fail(f"the template does not start: {why}")
        pytest.skip(why)
    yield psutil.Process(next(iter(sandbox._templates.values())).process.pid)


def job(*cells: str) -> bytes:
    steps: list[dict[str, Any]] = [{"cell": f"c{i}", "source": text} for i, text in enumerate(cells)]
    steps.append(asked("a", "answer"))
    return json.dumps({"patience": QUICK.patience, "steps": steps}).encode()


def answer(*cells: str, fresh: bool = False) -> Any:
    trace = read_record(sandbox.record(job(*cells), QUICK, fresh=fresh).content)
    assert "a" in trace.recorded["answered cases"], (trace.failures, trace.cell_failures)
    return trace.recorded["answered cases"]["a"]["1"][0]


def test_a_copy_records_what_a_fresh_python_does() -> None:
    cases = (Case("2,048", {"n": 2048}), Case("31", {"n": 31}))
    step = exercise_step(Question("copy-check", "memory.copy", "copy", 4), find("memory.copy"), cases, [1, 2])
    wanted = json.dumps({"patience": 20, "steps": [{"cell": "c0", "source": COPY}, step]}).encode()
    found = [sandbox.record(wanted, QUICK, fresh=fresh) for fresh in (False, True)]
    numbers = r'B\d+v\d+|"(digest|kernel)":"\w+"'  # numba counts what it compiled, also for the name
    copied, fresh = (re.sub(numbers, "", outcome.content.decode()) for outcome in found)
    assert found[0].end == "done" and copied == fresh and '"line":"kernel"' in copied


def test_a_copy_imports_nothing_large() -> None:
    step = exercise_step(
        Question("copy-check", "memory.copy", "copy", 4), find("memory.copy"), (Case("31", {"n": 31}),), [1]
    )
    steps = json.loads(
        job(
            "import sys\nbefore = set(sys.modules)",
            f"import gpulab\ngpulab.start('04')\n{COPY}",
            "def answer(): return sorted(set(sys.modules) - before)",
        )
    )
    steps["steps"].insert(2, step)
    found = read_record(sandbox.record(json.dumps(steps).encode(), QUICK).content).recorded["answered cases"][
        "a"
    ]["1"][0]
    assert not [
        m for m in found if m.split(".")[0] in ("numba", "numba_cuda", "cuda", "matplotlib", "gpulab")
    ]


FOLD = """
import sys, torch
before = set(sys.modules)
def fold(x, mean, std, weight, bias):
    scale = weight / std
    return torch.addcmul(bias - mean * scale, x, scale)
"""
USED = """
def answer():
    torch.set_num_threads(2)
    x = torch.ones(300, 300, requires_grad=True)
    (x @ x).sum().backward()
    return [sorted(set(sys.modules) - before), float(x.grad[0, 0]), torch.get_num_threads()]
"""


def test_pytorch_is_there_where_a_lab_imports_it_and_works(template: psutil.Process) -> None:
    cases = (Case("7 × 5", {"rows": 7, "cols": 5}),)
    asked = Question("fold-check", "pytorch.fold", "fold", 4)
    step = exercise_step(asked, find("pytorch.fold"), cases, [1])
    steps = json.loads(job(FOLD, USED))
    steps["steps"].insert(1, step)
    wanted = ["torch", "torch.nothing", "gpulab.nothing_either"]
    trace = read_record(sandbox.record(json.dumps(steps).encode(), QUICK, imports=wanted).content)
    assert "7 × 5" in trace.recorded["tensor graph"]["pytorch.fold"]
    late, gradient, threads = trace.recorded["answered cases"]["a"]["1"][0]
    assert (gradient, threads) == (600, 2)
    assert not [name for name in late if name.split(".")[0] in ("sympy", "gpulab")]
    assert not [name for name in late if name.startswith(("torch._subclasses", "torch.utils"))]
    assert python_of(template).num_threads() == 1  # a copy has but one of them


LOOK = """
import os, sys
def answer():
    status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
    kept = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Uid", "Gid", "Seccomp")
    opened = []
    for number in os.listdir("/proc/self/fd"):
        try:
            opened.append(os.readlink(f"/proc/self/fd/{number}").split(":")[0].split("#")[0])
        except OSError:
            pass
    return {
        "status": {key: status[key].split() for key in kept},
        "threads": status["Threads"].strip(),
        "limits": [line.split() for line in open("/proc/self/limits") if "time" in line or "space" in line],
        "namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in os.listdir("/proc/self/ns")},
        "program is read-only": bool(os.statvfs("/proc/self/exe").f_flag & os.ST_RDONLY),
        "open": sorted(o for o in opened if not o.startswith("/proc")),
        "writable": sorted(m[4] for m in map(str.split, open("/proc/self/mountinfo")) if "rw" in m[5].split(",")),
        "environment": sorted(os.environ),
        "arguments": sys.argv, "folder": os.getcwd(), "files": sorted(os.listdir("/")),
        "disks": [sorted(os.listdir(p)) for p in ("/tmp", "/dev/shm", "/home/learner", "/course", "/out")],
        "processes": sorted(p for p in os.listdir("/proc") if p.isdigit()),
        "references": [m for m in sys.modules if "references" in m or m.startswith("grading")],
    }
"""


def test_a_copy_finds_around_it_what_a_fresh_python_does(template: psutil.Process) -> None:
    copied, fresh = answer(LOOK), answer(LOOK, fresh=True)
    assert copied["status"]["CapBnd"] == ["0" * 16] and copied["status"]["NoNewPrivs"] == ["1"]
    assert copied["program is read-only"] and not copied["references"]
    for name in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts"):
        for other in (os.getpid(), python_of(template).pid):
            assert copied["namespaces"][name] != os.readlink(f"/proc/{other}/ns/{name}"), name
    assert len(copied["processes"]) <= 4
    differs = {"namespaces", "processes"}
    for key in copied.keys() - differs:
        assert copied[key] == fresh[key], key


def test_nothing_is_left_for_the_next_one() -> None:
    leave = """
import builtins, os, pathlib, sys
import gpulab, numpy
for folder in ("/tmp", "/dev/shm", "/home/learner"):
    pathlib.Path(folder, "left").write_text("x")
os.environ["LEFT"] = numpy.left = gpulab.left = builtins.left = sys.left = "x"
sys.path.insert(0, "/tmp")
def answer(): return 1
"""
    assert answer(leave) == 1
    look = """
import builtins, os, pathlib, sys
import gpulab, numpy
def answer():
    files = [f for f in ("/tmp", "/dev/shm", "/home/learner") if pathlib.Path(f, "left").exists()]
    marked = [o.__name__ for o in (gpulab, numpy, builtins, sys) if hasattr(o, "left")]
    return [*files, *marked, *(["environment"] if "LEFT" in os.environ else []), *sys.path[:1]]
"""
    assert "/tmp" not in answer(look)[-1:] and answer(look)[:-1] == []


def test_what_a_submission_leaves_running_ends_with_it() -> None:
    stays = f"""
import os, sys
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", "left-{os.getpid()}"])
        os._exit(0)
def answer(): return 1
"""
    assert answer(stays) == 1
    deadline = time.monotonic() + 10
    while marked := [p for p in psutil.process_iter(["cmdline"]) if f"left-{os.getpid()}" in
                     (p.info["cmdline"] or [])]:  # fmt: skip
        assert time.monotonic() < deadline, marked
        time.sleep(0.05)


def python_of(template: psutil.Process) -> psutil.Process:
    return next(p for p in template.children(recursive=True) if "/course/template.py" in p.cmdline()[:3])


def slow(killed: Any) -> list[Outcome]:
    """A recording of some seconds, during which `killed()` says whom to kill."""
    found: list[Outcome] = []
    slowly = job("import time\ntime.sleep(3)\ndef answer(): return 1")
    thread = threading.Thread(target=lambda: found.append(Judge(b"", QUICK).record(slowly)))
    thread.start()
    deadline = time.monotonic() + 20
    while not (process := killed()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    thread.join()
    return found


def manager(template: psutil.Process) -> psutil.Process | None:
    copies = python_of(template).children()
    return next((c for c in copies if c.children(recursive=True)), None)


@pytest.mark.parametrize("who", ["the template", "bubblewrap around it", "what surrounds a sandbox"])
def test_a_recording_that_is_killed_from_outside_is_done_once_more(
    template: psutil.Process, who: str
) -> None:
    def one() -> psutil.Process | None:
        copy = manager(template)
        if who == "the template":
            return copy and python_of(template)
        return copy and (template if who == "bubblewrap around it" else copy)

    (outcome,) = slow(one)
    assert outcome.end == "done" and read_record(outcome.content).recorded["answered cases"]["a"]["1"] == [1]


def test_what_is_stopped_ends_at_once_and_the_next_one_is_recorded(template: psutil.Process) -> None:
    found: list[Outcome] = []
    endless = job("while True: pass")
    thread = threading.Thread(target=lambda: found.append(sandbox.record(endless, QUICK)))
    thread.start()
    while manager(template) is None:
        time.sleep(0.02)
    family = python_of(template).children(recursive=True)
    sandbox.stop_all()
    thread.join(10)
    assert found[0].end == "killed" and not psutil.wait_procs(family, timeout=10)[1]
    assert answer("def answer(): return 2") == 2


COORDINATOR = """
import sys
from grading.core.sandbox import Limits, record
sys.stdin.readline()
record(sys.argv[1].encode(), Limits(seconds=60))
"""


def test_a_coordinator_that_is_killed_leaves_no_process_behind() -> None:
    forever = job("import time\ntime.sleep(600)").decode()
    command = [sys.executable, "-c", COORDINATOR, forever]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(command, stdin=subprocess.PIPE, env=env, cwd=ROOT)
    assert running.stdin
    running.stdin.write(b"\n")
    running.stdin.close()
    me = psutil.Process(running.pid)
    deadline = time.monotonic() + 120
    while True:
        family = me.children(recursive=True)
        with suppress(psutil.Error):
            if [p for p in family if "read nothing" in " ".join(p.cmdline())] and len(family) >= 6:
                break
        assert time.monotonic() < deadline
        time.sleep(0.1)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert not psutil.wait_procs(family, timeout=20)[1]


def test_where_no_copy_can_be_made_each_submission_gets_a_fresh_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "template.py"
    broken.write_text("raise SystemExit('user namespaces are blocked')")
    monkeypatch.setattr(sandbox, "TEMPLATE", broken)
    assert sandbox.no_template() == "user namespaces are blocked"
    assert answer("def answer(): return 3") == 3
    rows = {what: text for what, _, text in sandbox.describe()}
    assert (
        rows["submission"]
        == "each imports everything again and takes longer, because user namespaces are blocked"
    )
