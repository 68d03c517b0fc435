"""Of a student who is through nothing stays in the coordinator but the packed graft and the verdict."""

from __future__ import annotations

import gc
from collections import Counter
from concurrent.futures import Future
from weakref import WeakSet

from grading.core.graft import Graft
from grading.core.notebooks import Question
from grading.core.verdicts import NotebookVerdict, Store
from grading.lms import classroom
from grading.lms.classroom import ClassResult, Task
from grading.lms.roster import read_roster
from grading.lms.submissions import find_submissions
from tests.grading.conftest import LAB, Class

STUDENTS, SETTLED = 12, 6  # after so many, what is made once has been made


def planned(school: Class) -> ClassResult:
    """A class that handed in, as it waits to be judged."""
    for number in range(STUDENTS):
        school.hand_in(f"s{number:02}")
    course = school.course
    lab = classroom.open_lab(course, LAB)
    found = find_submissions(school.folder, LAB, list(lab.notebooks), read_roster(course.roster))
    return classroom.plan(course, lab, found, Store(course.verdicts), "x")


def kinds() -> Counter[str]:
    gc.collect()
    return Counter(type(each).__qualname__ for each in gc.get_objects())


class Answers:
    """An engine that knows every verdict at once."""

    room = 3

    def __init__(self) -> None:
        self.given: WeakSet[Future[NotebookVerdict]] = WeakSet()

    def submit(self, graft: Graft, asked: tuple[Question, ...], key: str) -> Future[NotebookVerdict]:
        done: Future[NotebookVerdict] = Future()
        self.given.add(done)
        done.set_result(classroom.ungraded(asked, "nobody looked", graft.digest, key))
        return done

    def reason(self, error: BaseException) -> str:
        raise error

    def stop(self) -> None: ...


def test_judging_keeps_no_notebook_and_no_answer_of_an_engine(school: Class) -> None:
    result = planned(school)
    engine, kept = Answers(), list[int]()
    before = kinds()
    classroom.judge_all(
        result, engine, Store(school.course.verdicts), lambda task: kept.append(len(engine.given))
    )
    after = kinds()
    assert len(kept) == STUDENTS and max(kept) <= engine.room
    assert [after[kind] - before[kind] for kind in ("Future", "Graft", "NotebookNode")] == [0, 0, 0]


def test_the_gradebook_is_filled_without_anything_kept_of_a_student(school: Class) -> None:
    result = planned(school)
    for tasks in result.tasks.values():
        for task in tasks:
            task.verdict = _verdict(result, task)
    seen: dict[str, Counter[str]] = {}
    first, last = (list(result.tasks)[place] for place in (SETTLED, -1))
    classroom.save(
        school.course,
        result,
        lambda student: seen.update({student: kinds()} if student in (first, last) else {}),
    )
    grown = seen[last] - seen[first]
    assert grown["NotebookNode"] == 0
    # SQLAlchemy and the garbage collector have some objects now and then; a new engine had a thousand a student.
    assert sum(grown.values()) < 50 * (STUDENTS - SETTLED), grown.most_common(10)


def _verdict(result: ClassResult, task: Task) -> NotebookVerdict:
    return classroom.ungraded(
        result.lab.questions[task.notebook], "nobody looked", task.graft.digest, task.key
    )
