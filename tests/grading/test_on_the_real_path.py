"""Attacks and odd honest answers in whole notebooks, from the file that is handed in to the gradebook.

`test_redteam.py` judges the same answers many at a time, without the graft and the gradebook. Here each
notebook is the released one, with an answer in as many of its cells as there are any for. No attack earns more
than it deserves, and no honest answer less.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat import NotebookNode

from grading.core.course import Course
from grading.core.notebooks import Question, grade_id, is_solution, is_test, questions, read_released
from grading.core.own_cells import names_of
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict
from grading.lms import classroom
from grading.redteam.plays import Play, plays, solved, source_of

COURSE = Course()
LIMITS = Limits(seconds=300, patience=40)
OWN = "the_labs_own"  # the name under which an answer may use the lab's solution
QUICK = {"attacks": ("02", "27"), "honest": ("00", "16", "27")}  # the other labs take minutes


def by_lab() -> dict[tuple[str, str], list[Play]]:
    """All answers, by their kind and their lab."""
    found: dict[tuple[str, str], list[Play]] = {}
    for kind in QUICK:
        for play in plays(kind):
            found.setdefault((kind, source_of(COURSE, play.exercise).parent.name), []).append(play)
    return found


LABS = by_lab()


def apart(chosen: list[Play]) -> Iterator[list[Play]]:
    """Answers that fit into one notebook: of one source, each to another exercise, or one that needs it alone."""
    left = list(chosen)
    while left:
        first = left[0]
        together: dict[str, Play] = {}
        for play in left:
            here = source_of(COURSE, play.exercise) == source_of(COURSE, first.exercise)
            if play is first or (here and not (first.alone or play.alone)):
                together.setdefault(play.exercise, play)
        yield list(together.values())
        left = [play for play in left if play not in together.values()]


def answered(released: NotebookNode, solution: NotebookNode, given: list[Play]) -> NotebookNode:
    """The released notebook with these answers, and with the lab's own where they use what it defines."""
    notebook, solutions = copy.deepcopy(released), {grade_id(c): c.source for c in solution.cells}
    asked = {q.cell: q for q in questions(released)}
    answers = {play.exercise: play.source for play in given}
    used = frozenset().union(*(names_of(play.source)[1] for play in given))
    wanted = {name for play in given for name in play.also}
    since: list[NotebookNode] = []
    for cell in notebook.cells:
        if is_solution(cell) and cell.cell_type == "code":
            since.append(cell)
        elif is_test(cell):
            question = asked[cell.metadata.nbgrader.grade_id]
            for each in since:
                own = solutions[grade_id(each)]
                needed = question.exercise in wanted | answers.keys() or names_of(own)[0] & used
                each.source = own if needed else each.source
            if answer := answers.get(question.exercise):
                cell = place_of(question, since)
                binds, uses = names_of(answer)
                if (uses - binds) & {OWN, *names_of(cell.source)[0]}:  # it builds upon the lab's solution
                    answer = f"{cell.source}\n\n\n{OWN} = {question.function}\n{answer}"
                cell.source = answer
            since = []
    return notebook


def place_of(question: Question, cells: list[NotebookNode]) -> NotebookNode:
    """Of the cells before a test the last one that defines what it asks for."""
    return [cell for cell in cells if question.function in names_of(cell.source)[0]][-1]


def over_earned(play: Play, found: dict[str, ExerciseVerdict]) -> str:
    """By how much an attack earns more than it deserves; empty if it does not. It may have ended its sandbox."""
    deserved = {play.exercise: play.earns, **play.also}
    return "; ".join(
        f"{name} earns {found[name].points:g} instead of {points:g}"
        for name, points in deserved.items()
        if name in found and found[name].points > points + 0.005
    )


@pytest.mark.usefixtures("needs_sandbox")
@pytest.mark.parametrize(
    ("kind", "lab"),
    [
        pytest.param(*each, marks=[] if each[1][:2] in QUICK[each[0]] else [pytest.mark.slow])
        for each in sorted(LABS)
    ],
)
def test_what_is_handed_in_earns_what_it_deserves(kind: str, lab: str, tmp_path: Path) -> None:
    course, folder = Course(COURSE.root, tmp_path / "grading"), tmp_path / "handed_in"
    given = {f"student{number}": group for number, group in enumerate(apart(LABS[kind, lab]))}
    for student, group in given.items():
        source = source_of(course, group[0].exercise)
        released = read_released(course.labs / lab / f"{source.stem}.ipynb")
        path = folder / student / lab / f"{source.stem}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(answered(released, solved(source), group)))
    result = classroom.grade(course, lab, folder, limits=LIMITS)
    problems = {}
    for student, group in given.items():
        verdicts = [v for task in result.tasks[student] if task.verdict for v in task.verdict.exercises]
        for play in group:
            found = {v.exercise: v for v in verdicts}
            problems[play.name] = play.problem(found) if kind == "honest" else over_earned(play, found)
    assert {name: problem for name, problem in problems.items() if problem} == {}
