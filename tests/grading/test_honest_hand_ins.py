"""Whole notebooks on the real path: what is odd about them and honest costs nothing, or asks for a person."""

from __future__ import annotations

from collections.abc import Callable

import nbformat
import pytest
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from grading.core.sandbox import Limits
from grading.lms import classroom
from grading.lms.classroom import ClassResult
from tests.grading.conftest import LAB, Class, cell_of

HELPER = (
    "def helper(addresses, size):\n"
    "    return len({b // 32 for a in addresses for b in range(a, a + size)})\n"
    "print(helper([1], 4))"
)
USES = "def sectors(addresses, size):\n    return helper(addresses, size)"
CRASH = "import ctypes\nctypes.string_at(0)"
UNREAD = "for helper in [lambda addresses, size: 4]:\n    print(helper)"


def before(grade_id: str, source: str) -> Callable[[NotebookNode], None]:
    """Adds a code cell of one's own before another one."""

    def edit(notebook: NotebookNode) -> None:
        place = notebook.cells.index(cell_of(notebook, grade_id))
        notebook.cells.insert(place, nbformat.v4.new_code_cell(source))

    return edit


@pytest.fixture
def result(school: Class, needs_sandbox: None) -> ClassResult:
    school.hand_in("helps_itself", {"sectors": USES}, before("copy", HELPER))
    school.hand_in("hides_it", {"sectors": USES}, before("copy", UNREAD))
    school.hand_in("crashes", {"copy": f"{school.solutions['copy']}\n{CRASH}"})
    bar = "from tqdm_xyz import tqdm\nimport numba.cuda as nc\n"
    school.hand_in(
        "has_a_bar", {name: bar + source for name, source in school.solutions.items() if "def" in source}
    )
    return classroom.grade(school.course, LAB, school.folder, limits=Limits.of(120))


def test_honest_oddities_cost_nothing_that_works_and_ask_for_a_person_where_they_do(
    school: Class, result: ClassResult
) -> None:
    assert {name: result.points(name) for name in result.tasks} == {
        "helps_itself": 11, "has_a_bar": 11, "hides_it": 8, "crashes": 7,
    }  # fmt: skip
    waits = {"helps_itself": "", "has_a_bar": "", "hides_it": "sectors-check", "crashes": "copy-check"}
    with Gradebook(f"sqlite:///{school.course.gradebook}") as book:
        for student, cell in waits.items():
            for name in ("copy-check", "sectors-check", "transpose-check"):
                grade = book.find_grade(name, LAB, LAB, student)
                assert grade.needs_manual_grade == (name == cell), (student, name)
    [task] = result.tasks["hides_it"]
    assert task.verdict
    verdict = task.verdict.by_cell("sectors-check")
    assert verdict and "`helper`, which your code cell" in " ".join(verdict.notes)
    [task] = result.tasks["has_a_bar"]
    assert task.verdict and "tqdm_xyz" in " ".join(task.verdict.exercises[0].notes)
