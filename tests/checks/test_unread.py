"""A check says in the notebook what the judge will not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from gpulab.checks import unread

ANSWER = "def answer(a, b):\n    return helper(a, b)"
STUB = "def answer(a, b):\n    raise NotImplementedError()"
HELPER = "def helper(a, b):\n    return -(-a // b)"
LOOP = "for helper in [lambda a, b: -(-a // b)]:\n    pass"
CHECK = "gpulab.check('toy.ceil_div', answer)"
ADDED, OTHER = "0b0f3c3e-9c0c-4c3f-8d43-6c6f2d5a9b11", "1a2b3c4d"

Run = Callable[..., str]


@pytest.fixture
def run() -> Iterator[Run]:
    """Runs cells, each with its id, in a notebook whose lab has begun; what the last one shows."""
    shell = InteractiveShell.instance(colors="nocolor")
    unread._ran.clear()

    def cells(*parts: tuple[str, str]) -> str:
        for name, source in [("46a797fd22c2", "import gpulab\ngpulab.start()"), *parts]:
            with capture_output() as captured:
                shell.run_cell(source, store_history=True, cell_id=name)
        return "\n".join([captured.stdout, *(o.data.get("text/plain", "") for o in captured.outputs)])

    try:
        yield cells
    finally:
        unread._ran.clear()
        InteractiveShell.clear_instance()


@pytest.mark.parametrize(("added", "helper"), [(ADDED, LOOP), (OTHER, LOOP), (ADDED, f"%time x = 1\n{LOOP}")])
def test_a_name_that_the_judge_will_not_read_is_named_by_the_check(run: Run, added: str, helper: str) -> None:
    said = run((added, helper), ("ceil", ANSWER), ("ceil-check", CHECK))
    assert "✔ right" in said
    assert "the judge will not know `helper`" in " ".join(said.split())


@pytest.mark.parametrize(
    "cells",
    [
        [(ADDED, HELPER), ("ceil", ANSWER)],  # a definition is read
        [("18ff3f3e37d6", LOOP), ("ceil", ANSWER)],  # the lab gives it
        [("ceil-0", LOOP), ("ceil", ANSWER)],  # another answer's cell
        [(ADDED, LOOP), ("ceil", f"{HELPER}\n{ANSWER}")],
        [(ADDED, LOOP), (ADDED, HELPER), ("ceil", ANSWER)],  # the cell was mended
        [(ADDED, "unused = 1\nfor i in range(2): unused += i"), ("ceil", f"{HELPER}\n{ANSWER}")],
        [("ceil", STUB), (ADDED, f"{HELPER}\n{ANSWER}")],  # the answer below its stub
    ],
)
def test_a_check_is_silent_about_what_the_judge_reads(run: Run, cells: list[tuple[str, str]]) -> None:
    said = run(*cells, ("ceil-check", CHECK))
    assert "✔ right" in said and "judge" not in said


def test_an_answer_in_an_added_cell_beside_one_in_the_labs_is_said(run: Run) -> None:
    mine = f"{HELPER}\n{ANSWER}"
    wrong = "def answer(a, b):\n    return a // b"
    said = run(("ceil", wrong), (ADDED, mine), ("ceil-check", CHECK))
    assert "the judge takes the one in the lab's cell" in " ".join(said.split())
    said = run((ADDED, mine), ("ceil", mine.replace("-a", "-1 * a")), ("ceil-check", CHECK))
    assert "✔ right" in said and "judge" not in said
