"""`python -m grading doctor`: can this machine grade, and if not, what is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from importlib import metadata

from grading.core import sandbox
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.lms import gradebook, settings

# Packages and the extras that bring them; Kubernetes' schemas judge lab 20's manifests.
NEEDED = {
    "nbgrader": "grading",
    "jupytext": "grading",
    "nbconvert": "grading",
    "kubernetes-validate": "serving",
}


def _of_course(what: str, look: Callable[[], str]) -> tuple[str, bool, str]:
    """A row about the class: what `look` says, or why it cannot be read."""
    try:
        return what, True, look()
    except GradingError as error:
        return what, False, str(error).replace("\n", " ")


def _rules(course: Course) -> str:
    settings.read(course)
    return "its rules can be read" if course.settings.exists() else "none: no due dates, and no rules"


def _gradebook(course: Course) -> str:
    gradebook.check(course, "Fix this before you grade")
    return course.gradebook_name


def checks(course: Course) -> Iterator[tuple[str, bool, str]]:
    """Rows of (what, whether it is well, in words)."""
    for package, extra in NEEDED.items():
        what = "schemas" if extra == "serving" else package
        try:
            yield what, True, metadata.version(package)
        except metadata.PackageNotFoundError:
            yield what, False, f"missing: pip install 'gpulab[{extra}]'"
    try:
        from gpulab.simulator.compile import compiler_version

        compiler = compiler_version()
    except ImportError as error:
        compiler, why = "", str(error)
    else:
        why = "no NVVM: install the extra cu12 or cu13"
    yield "compiler", bool(compiler), compiler or why
    yield from sandbox.describe()
    yield _of_course("course.toml", lambda: _rules(course))
    yield _of_course("gradebook", lambda: _gradebook(course))
    free = shutil.disk_usage(course.root).free
    yield "disk", free > 1 << 30, f"{free / 1e9:.1f} GB free"
    labs = course.lab_names()
    yield "labs", bool(labs), f"{len(labs)}: {labs[0]} … {labs[-1]}" if labs else "no lab in solutions/"
