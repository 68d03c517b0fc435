"""JupyterHub: with the settings of containers/ a lab goes through nbgrader's exchange to a student and comes back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from grading.__main__ import main
from grading.core.course import ROOT, Course
from tests.grading.conftest import LAB, Class

PASSWD = "root:x:0:0::/root:/bin/sh\njovyan:x:1000:1000::/home/jovyan:/bin/bash\n"  # as in the image


class User:
    """Somebody in a server of the hub: a name, a home, a working folder, and the settings that all share.

    In every server the system's user is jovyan; who it is stands in the hub's variable.
    """

    def __init__(self, name: str, home: Path, folder: Path, everybody: Path):
        home.mkdir(exist_ok=True)
        self.folder = folder
        passwd = home / "passwd"
        passwd.write_text(PASSWD)
        self.server = ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev"]
        self.server += [
            "--ro-bind",
            str(passwd),
            "/etc/passwd",
            "--unshare-user",
            "--uid",
            "1000",
            "--gid",
            "1000",
        ]
        self.environment = os.environ | {
            "JUPYTERHUB_USER": name,
            "HOME": str(home),
            "JUPYTER_CONFIG_DIR": str(everybody),  # stands for /etc/jupyter
            "GPULAB_EXCHANGE": str(everybody.parent / "exchange"),
        }

    def nbgrader(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self.server, "--", sys.executable, "-m", "nbgrader", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr


@pytest.fixture
def everybody(tmp_path: Path) -> Path:
    """The settings as the image has them, and an exchange that is writable for all."""
    folder = tmp_path / "etc"
    folder.mkdir()
    shutil.copy(ROOT / "containers" / "nbgrader_config.py", folder)
    (tmp_path / "exchange").mkdir()
    (tmp_path / "exchange").chmod(0o777)
    return folder


@pytest.fixture
def teacher(course: Course, everybody: Path, tmp_path: Path) -> User:
    settings = (
        "from pathlib import Path\n"
        "from grading.core.course import Course\n"
        "from grading.lms.nbgrader import nbgrader_config\n"
        f"c = get_config(); c.merge(nbgrader_config(Course(Path({str(course.root)!r}), Path({str(course.home)!r}))))\n"
    )
    (course.home / "nbgrader_config.py").write_text(
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{settings}"
    )
    return User("teacher", tmp_path / "teacher", course.home, everybody)


@pytest.fixture
def ann(everybody: Path, tmp_path: Path) -> User:
    return User("ann", tmp_path / "ann", tmp_path / "ann", everybody)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_lab_goes_to_a_student_and_comes_back_and_is_judged(
    teacher: User, ann: User, school: Class, course: Course, needs_sandbox: None
) -> None:
    teacher.nbgrader("release_assignment", LAB)
    assert f"gpulab {LAB}" in ann.nbgrader("list")
    ann.nbgrader("fetch_assignment", LAB)
    mine = ann.folder / LAB / f"{LAB}.ipynb"
    assert "NotImplementedError" in mine.read_text()

    mine.write_text(json.dumps(school.notebook()))
    ann.nbgrader("submit", LAB)
    teacher.nbgrader("collect", LAB)
    assert (course.submitted / "ann" / LAB / f"{LAB}.ipynb").read_bytes() == mine.read_bytes()

    assert main(["grade", LAB], course) == 0
    with Gradebook(course.db_url) as book:
        submission = book.find_submission(LAB, "ann")
        assert submission.score > 0 and submission.timestamp is not None
