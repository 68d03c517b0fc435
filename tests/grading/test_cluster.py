"""A class judged on a real Dask scheduler with real workers, each a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from grading.__main__ import main
from grading.core import environment
from grading.core.course import ROOT
from grading.core.errors import EngineError
from grading.core.sandbox import Limits
from grading.lms import classroom, engines
from tests.grading.conftest import LAB, Class

LIMITS = Limits(seconds=60, patience=30)


KUBERNETES = ROOT / "containers" / "dask.yaml"


class Scheduler:
    """A scheduler and its workers, started as an operator would."""

    def __init__(self, folder: Path, without: str = ""):
        self.folder = folder
        start = f"{without}from distributed.cli.dask_scheduler import main; main()"
        self.scheduler = self._start("-c", start, "--port", "0", "--no-dashboard")
        self.address = self._said(self.scheduler, "Scheduler at:")
        self.workers = [self.worker()]

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments],
            stderr=subprocess.PIPE, text=True, cwd=self.folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def _said(self, process: subprocess.Popen[str], words: str) -> str:
        assert process.stderr
        for line in process.stderr:
            if words in line:
                return line.split(words)[1].strip()
        raise AssertionError(f"{words} was never said")

    def worker(self) -> subprocess.Popen[str]:
        """A worker without a nanny, so that it is one process that a test can kill."""
        return self._start(
            "-m", "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--local-directory", str(self.folder),
        )  # fmt: skip

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def scheduler(tmp_path: Path, needs_sandbox: None) -> Iterator[Scheduler]:
    environment.code.cache_clear()  # a worker reads the files now
    started = Scheduler(tmp_path)
    yield started
    started.stop()


def test_a_class_on_a_cluster_gets_what_it_would_get_here_though_a_worker_is_killed(
    scheduler: Scheduler, school: Class
) -> None:
    for name in ("ann", "bob", "cleo"):
        school.hand_in(name, {"sectors": f"# {name}\n" + school.solutions["sectors"]})
    school.hand_in("dan", {"sectors": "def sectors(addresses, size):\n    return 4"})

    def tell(step: str, done: int, total: int) -> None:
        if step == "judging" and done == 1:  # its worker has begun another one
            scheduler.workers.append(scheduler.worker())
            os.kill(scheduler.workers[0].pid, signal.SIGKILL)

    result = classroom.grade(
        school.course, LAB, school.folder, limits=LIMITS, scheduler=scheduler.address, tell=tell
    )
    assert scheduler.workers[0].wait(10) == -signal.SIGKILL
    assert {s: result.points(s) for s in result.tasks} == {"ann": 11, "bob": 11, "cleo": 11, "dan": 8}
    assert not any(result.reason(s) for s in result.tasks)
    again = classroom.grade(school.course, LAB, school.folder, limits=LIMITS)
    assert all(
        t.known for tasks in again.tasks.values() for t in tasks
    )  # the same keys: nothing is judged twice


def test_what_is_applied_to_kubernetes_is_valid_and_lets_bubblewrap_work() -> None:
    objects = list(yaml.safe_load_all(KUBERNETES.read_text(encoding="utf-8")))
    for one in objects:
        kubernetes_validate.validate(one, "1.33", strict=True)
    service, scheduler, workers = objects
    assert service["spec"]["selector"] == scheduler["spec"]["template"]["metadata"]["labels"]
    pod = workers["spec"]["template"]["spec"]
    assert pod["containers"][0]["securityContext"]["procMount"] == "Unmasked" and pod["hostUsers"] is False


def test_the_commands_that_kubernetes_starts_judge_a_class(
    tmp_path: Path, needs_sandbox: None, school: Class
) -> None:
    _, *deployments = yaml.safe_load_all(KUBERNETES.read_text(encoding="utf-8"))
    scheduler, worker = (d["spec"]["template"]["spec"]["containers"][0]["args"] for d in deployments)
    environment.code.cache_clear()
    folder = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    dask = [sys.executable, "-m", "dask"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    here = [argument.replace("gpulab-dask:8786", f"127.0.0.1:{port}") for argument in worker[1:]]
    assert here != worker[1:]
    started = [
        subprocess.Popen([*dask, *scheduler[1:], "--port", port], **folder),
        subprocess.Popen([*dask, *here], **folder),
    ]
    try:
        school.hand_in("ann")
        result = classroom.grade(
            school.course, LAB, school.folder, limits=LIMITS, scheduler=f"tcp://127.0.0.1:{port}"
        )
        assert result.points("ann") == 11
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


def test_a_killed_scheduler_is_one_line_and_the_verdicts_so_far_are_kept(
    scheduler: Scheduler, school: Class
) -> None:
    for i in range(3):
        school.hand_in(f"s{i}", {"sectors": f"n = {i}\n" + school.solutions["sectors"]})

    def tell(step: str, done: int, total: int) -> None:
        if step == "judging" and done == 1:
            scheduler.scheduler.kill()

    began = time.monotonic()
    with pytest.raises(EngineError, match="the same command goes on"):
        classroom.grade(
            school.course, LAB, school.folder, limits=LIMITS, scheduler=scheduler.address, tell=tell
        )
    assert time.monotonic() - began < 120
    assert len(list((school.course.verdicts / LAB).glob("*.json"))) >= 1


def test_a_worker_of_another_version_judges_nothing(school: Class, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = (b"secret", LIMITS, False, environment.code() + "x")
    with pytest.raises(EngineError, match="another version"):
        engines.judged(settings, None, (), "")  # type: ignore[arg-type]


def test_a_scheduler_of_another_environment_is_one_line(
    tmp_path: Path, needs_sandbox: None, school: Class
) -> None:
    """As one that a notebook of another environment made: it has Dask, and no package of ours."""
    started = Scheduler(tmp_path, without="import sys; sys.modules['grading'] = None; ")
    try:
        school.hand_in("ann")
        with pytest.raises(EngineError, match="cannot read what it is sent: start it with this environment"):
            classroom.grade(school.course, LAB, school.folder, limits=LIMITS, scheduler=started.address)
    finally:
        started.stop()


def test_a_scheduler_that_does_not_answer_is_one_line(
    school: Class, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engines, "ATTEMPTS", 1)
    school.hand_in("ann")
    for address in ("tcp://127.0.0.1:1", "nonsense", "x://y"):
        assert main(["grade", LAB, str(school.folder), "--scheduler", address], school.course) == 1
        out = capsys.readouterr().out.strip().splitlines()
        assert len(out) == 1 and f"no scheduler answers at {address}" in out[0]
