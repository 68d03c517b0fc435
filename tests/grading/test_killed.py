"""kill -9 of whatever takes part in grading: no grade is lost, none is doubled, and the next run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from nbgrader.api import Grade, Gradebook

from grading.core.course import ROOT
from grading.core.sandbox import Limits
from grading.lms import classroom
from tests.grading.conftest import LAB, Class

LIMITS = Limits(seconds=60, patience=15)
SLOWLY = "import time\ntime.sleep(1.5)\n"
# The coordinator with a judge that is quick and always content; everything around it is real.
COORDINATOR = """
import sys
from pathlib import Path
from grading.lms import classroom
from grading.__main__ import main
from grading.core.course import Course
from tests.grading.test_bad_input import FakeJudge
classroom.Judge, classroom.sandbox.obstacle = FakeJudge, lambda: ""
classroom.environment.digest = lambda course, extra=(): "same"
FakeJudge.slow = 0.3
root, lab, folder = sys.argv[1:]
code = main(["grade", lab, folder, "--workers", "1"], Course(Path(root), Path(root) / "grading"))
print("judged", len(FakeJudge.asked))
sys.exit(code)
"""


def descendants(words: str) -> list[psutil.Process]:
    """Processes below this one whose command line holds these words."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if words in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def kill_once(
    find: Callable[[], list[psutil.Process]], killed: list[int], wait: float = 0.0
) -> threading.Thread:
    """Kills the first process that is found, from a thread, as soon as it is there."""

    def watch() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if processes := find():
                time.sleep(wait)
                processes[0].kill()
                killed.append(processes[0].pid)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_a_sandbox_that_is_killed_is_started_again(needs_sandbox: None, school: Class) -> None:
    school.hand_in("ann", {"sectors": SLOWLY + school.solutions["sectors"]})
    killed: list[int] = []

    def sandboxes() -> list[psutil.Process]:
        return [p for p in descendants("recorder.py") if p.parent() == psutil.Process()]

    thread = kill_once(sandboxes, killed, wait=0.5)
    result = classroom.grade(school.course, LAB, school.folder, limits=LIMITS)
    thread.join()
    assert killed and result.points("ann") == 11 and not result.reason("ann")


def test_a_replay_that_is_killed_is_started_again(needs_sandbox: None, school: Class) -> None:
    school.hand_in("ann")
    killed: list[int] = []

    def children() -> list[psutil.Process]:
        servers = descendants("multiprocessing.forkserver")
        return [child for server in servers for child in server.children()]

    thread = kill_once(children, killed)
    result = classroom.grade(school.course, LAB, school.folder, limits=LIMITS)
    thread.join()
    assert killed and result.points("ann") == 11 and not result.reason("ann")


def test_a_learner_who_kills_the_own_process_is_not_given_a_second_one(
    needs_sandbox: None, school: Class
) -> None:
    school.hand_in("ann", {"transpose": "import os\nos.kill(os.getpid(), 9)"})
    result = classroom.grade(school.course, LAB, school.folder, limits=LIMITS)
    assert result.points("ann") == 7 and not result.reason("ann")
    (task,) = result.tasks["ann"]
    assert task.verdict and "SIGKILL" in str(task.verdict.by_cell("transpose-check"))


def coordinator(school: Class, folder: Path) -> subprocess.Popen[str]:
    script = folder / "coordinator.py"
    script.write_text(textwrap.dedent(COORDINATOR))
    command = [sys.executable, str(script), str(school.course.root), LAB, str(school.folder)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("step", ["judging", "the gradebook"])
def test_a_coordinator_that_is_killed_goes_on_where_it_was(school: Class, tmp_path: Path, step: str) -> None:
    students = [f"s{i}" for i in range(4)]
    for student in students:
        school.hand_in(student, {"copy": f"x = '{student}'"})
    verdicts, pages = school.course.verdicts / LAB, school.course.feedback

    def far_enough() -> bool:
        if step == "judging":
            return len(list(verdicts.glob("*.json"))) >= 2
        return len(list(pages.glob("*/*/*.html"))) >= 1  # and the next one is under way

    first = coordinator(school, tmp_path)
    wait_for(far_enough)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    known = len(list(verdicts.glob("*.json")))
    assert known == 4 if step == "the gradebook" else 2 <= known < 4
    second = coordinator(school, tmp_path)
    out, _ = second.communicate(timeout=240)
    assert second.returncode == 0, out
    assert f"judged {4 - known}" in out
    with Gradebook(school.course.db_url) as book:
        assert {s.student.id: s.score for s in book.assignment_submissions(LAB)} == dict.fromkeys(
            students, 11
        )
        assert book.db.query(Grade).count() == 4 * len(students)
    assert len(list(pages.glob("*/*/*.html"))) == 4
    rows = school.course.grades.read_text().splitlines()
    assert len(rows) == 5 and all(",1 answer waits," in row for row in rows[1:])


def test_a_terminated_coordinator_leaves_no_process_behind(school: Class, tmp_path: Path) -> None:
    for i in range(4):
        school.hand_in(f"s{i}", {"copy": f"x = {i}"})
    running = coordinator(school, tmp_path)
    wait_for(lambda: bool(list((school.course.verdicts / LAB).glob("*.json"))))
    family = [psutil.Process(running.pid), *psutil.Process(running.pid).children(recursive=True)]
    running.terminate()
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 130 and "nothing is lost" in out
    assert not psutil.wait_procs(family, timeout=20)[1]
