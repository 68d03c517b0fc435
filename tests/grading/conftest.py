"""A small course with one lab, and notebooks of learners made from it."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jupytext
import pytest
from nbformat import NotebookNode

from grading.authoring.release import release
from grading.core import container, sandbox
from grading.core.course import Course
from grading.core.notebooks import read_released
from grading.lms.gradebook import register

LAB = "90_class"
SOLUTIONS = Path(__file__).parent / "fixtures" / "solutions"

Edit = Callable[[NotebookNode], None]


def asked(exercise: str, function: str) -> dict[str, Any]:
    """A recorder's step: ask a function without arguments, once."""
    cases = [{"name": "1", "questions": [[]], "by_hand": []}]
    return {"exercise": exercise, "function": function, "evidence": "answered cases", "cases": cases}


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a course whose lab is released and in the gradebook, which nbgrader takes long to make."""
    root = tmp_path_factory.mktemp("course")
    shutil.copytree(SOLUTIONS, root / "solutions")
    course = Course(root, root / "grading")
    release(course, LAB)
    register(course, LAB, {LAB: read_released(course.labs / LAB / f"{LAB}.ipynb")})
    return root


@pytest.fixture
def course(released: Path, tmp_path: Path) -> Course:
    """A course with a home of its own: no submission, no gradebook."""
    shutil.copytree(released, tmp_path / "course")
    return Course(tmp_path / "course", tmp_path / "course" / "grading")


@pytest.fixture
def needs_sandbox() -> None:
    """Skips where bubblewrap does not work, with its reason."""
    if why := sandbox.obstacle():
        pytest.skip(why)


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """podman in bubblewrap's place, with images of its own; skips where podman can start nothing at all."""
    if not shutil.which("podman"):
        pytest.skip("podman is not installed: apt install podman")
    home = tmp_path_factory.mktemp("podman")
    places = f'graphroot = "{home / "images"}"\nrunroot = "{home / "run"}"\n'
    (home / "storage.conf").write_text(f'[storage]\ndriver = "vfs"\n{places}')
    runtime = (
        'runtime = "runc"\n' if shutil.which("runc") else ""
    )  # crun wants version 2 of control groups alone
    (home / "containers.conf").write_text(f"[engine]\n{runtime}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_STORAGE_CONF", str(home / "storage.conf"))
        patch.setenv("CONTAINERS_CONF", str(home / "containers.conf"))
        subprocess.run(
            container.MAKE_IMAGE.format(engine="podman"), shell=True, check=True, capture_output=True
        )
        mounts = [f"--volume={here}:{inside}:ro" for here, inside in container.system()]
        small = ["--rm", "--network=none", "--ulimit=nofile=64:64", "--ulimit=nproc=64:64", *mounts]
        trial = ["podman", "run", *small, container.IMAGE, "/usr/bin/true"]
        if why := subprocess.run(trial, capture_output=True, text=True, check=False).stderr:
            pytest.skip(f"podman cannot make a container here: {why.strip().splitlines()[-1]}")
        patch.setattr(sandbox, "no_bubblewrap", lambda: "a test has taken bubblewrap away")
        patch.setattr(container, "ENGINES", ("podman",))
        container.engine.cache_clear()
        container.unlimited.cache_clear()
        assert container.engine() == ("podman", "")
        yield
    container.engine.cache_clear()
    container.unlimited.cache_clear()


class Class:
    """Writes what learners hand in."""

    def __init__(self, course: Course, folder: Path):
        self.course, self.folder = course, folder
        self.released = read_released(course.labs / LAB / f"{LAB}.ipynb")
        solved = jupytext.read(course.solutions / LAB / f"{LAB}.py")
        marks = [c for c in solved.cells if c.metadata.get("nbgrader", {}).get("solution")]
        self.solutions = {c.metadata.nbgrader.grade_id: c.source for c in marks}

    def notebook(self, answers: dict[str, str] | None = None, edit: Edit | None = None) -> NotebookNode:
        """The released notebook with the solutions in it, other answers in the place of some, and an edit."""
        notebook = copy.deepcopy(self.released)
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            cell.source = {**self.solutions, **(answers or {})}.get(name, cell.source)
        if edit:
            edit(notebook)
        return notebook

    def path(self, student: str) -> Path:
        return self.folder / student / LAB / f"{LAB}.ipynb"

    def hand_in(self, student: str, answers: dict[str, str] | None = None, edit: Edit | None = None) -> Path:
        """Write a notebook where the judge looks for it."""
        path = self.path(student)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.notebook(answers, edit)))  # as it is: nbformat would mend it
        return path

    def hand_in_stub(self, student: str) -> Path:
        """Hand in the notebook as it was released."""
        path = self.path(student)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.released))
        return path


@pytest.fixture
def school(course: Course, tmp_path: Path) -> Class:
    return Class(course, tmp_path / "handed_in")


def cell_of(notebook: NotebookNode, name: str) -> Any:
    """The cell with a grade id."""
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == name)
