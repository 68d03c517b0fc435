"""A learner's notebook on its real way to both pages: graft, gradebook, nbconvert's templates; nothing is judged."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbconvert.exporters import HTMLExporter
from nbgrader.server_extensions.formgrader import handlers
from traitlets.config import Config

from grading.core.course import ROOT, Course
from grading.core.graft import graft
from grading.core.notebooks import read_submitted
from grading.lms.gradebook import Graded, Writer
from grading.lms.nbgrader import nbgrader_config
from tests.grading.conftest import LAB, Class

TITLES = ("assignment_id", "notebook_id", "submission_id", "base_url", "notebook_path")


def configure(course: Course) -> None:
    """Write the file that tells nbgrader's commands and screens of a course."""
    (course.root / "nbgrader_config.py").write_text(
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path\n"
        "from grading.core.course import Course\n"
        "from grading.lms.nbgrader import nbgrader_config\n"
        f"course = Course(Path({str(course.root)!r}), Path({str(course.home)!r}))\n"
        "c = get_config(); c.merge(nbgrader_config(course))\n"
    )


def write(school: Class, *students: str) -> None:
    """Put what these students handed in into the gradebook, and make their feedback."""
    writer = Writer(school.course, LAB)
    for student in students:
        found = graft(school.released, read_submitted(school.path(student)), LAB, LAB)
        writer.write(Graded(student, {LAB: found.notebook}, {}))


def autograded(school: Class, student: str) -> Path:
    """The notebook that formgrader shows."""
    return school.course.autograded / student / LAB / f"{LAB}.ipynb"


def pages(school: Class, student: str) -> dict[str, str]:
    """The feedback and formgrader's page, made as formgrader makes it."""
    config = Config(nbgrader_config(school.course))
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    resources = {**dict.fromkeys(TITLES, ""), "index": 0, "total": 1, "student": student}
    notebook = nbformat.read(autograded(school, student), as_version=4)
    return {
        "feedback": (school.course.feedback / student / LAB / f"{LAB}.html").read_text(),
        "formgrader": HTMLExporter(config=config).from_notebook_node(notebook, resources)[0],
    }
