"""Random terms: hand-ins, runs over some or all, kills, points by hand, rules, a group. The final table is a model's."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from nbformat import NotebookNode

from grading.core.course import Course
from grading.core.graft import Graft
from grading.core.notebooks import Question
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict, Line, NotebookVerdict
from grading.lms import classroom, exports, gradebook, late
from tests.grading.conftest import LAB, Class, cell_of
from tests.grading.test_bad_input import FakeJudge, no_sandbox_needed
from tests.grading.test_final import give

__all__ = ["no_sandbox_needed"]  # a fixture that every test here uses

STUDENTS = ("ann", "bob", "cy")
MEMBER = "dee"  # hands in nothing, and is in ann's group
GROUP = f'[[group]]\nname = "red"\nmembers = ["{MEMBER}", "ann"]\n'
DUE = datetime(2027, 1, 15, 12)


class FromTheAnswer(FakeJudge):
    """Gives the points that an answer asks for: what is tested here begins where verdicts are handed in."""

    def verdict(self, graft: Graft, questions: tuple[Question, ...], key: str) -> NotebookVerdict:
        points = float(re.findall(r"points = (\d)", cell_of(graft.notebook, "copy").source)[0])
        earned = {"copy-check": points}
        found = (Line("right", earned.get(q.cell, 0.0), q.points) for q in questions)
        exercises = (
            ExerciseVerdict(q.exercise, q.cell, (line,)) for q, line in zip(questions, found, strict=True)
        )
        return NotebookVerdict(key, graft.digest, tuple(exercises))


class NoPages(gradebook.FeedbackExporter):
    """A page takes longer than all the rest."""

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **named: Any) -> Any:
        return "", self._init_resources(resources)


@dataclass(frozen=True)
class HandIn:
    points: int  # that the judge gives
    words: str  # the written answer; nothing, if it is as it was released
    days: int  # late


@dataclass
class Model:
    """What the table must say: the whole of it."""

    has: dict[str, HandIn] = field(default_factory=dict)
    hand: dict[str, float] = field(default_factory=dict)
    waits: dict[str, bool] = field(default_factory=dict)
    percent: int = 0

    def run(self, delivered: dict[str, HandIn]) -> None:
        for who, new in delivered.items():
            if who not in self.has or self.has[who].words != new.words:
                self.waits[who] = bool(new.words) or who in self.hand
            self.has[who] = new

    def give(self, who: str, points: float) -> None:
        self.hand[who], self.waits[who] = points, False

    def row(self, who: str) -> tuple[object, ...]:
        if who not in self.has:
            return "missing", None
        points = self.has[who].points + self.hand.get(who, 0.0)
        state = "1 answer waits" if self.waits[who] else "final"
        return state, round(points * (1 - min(1.0, self.percent / 100 * self.has[who].days)), 2)


class Term:
    """The same with files, the gradebook, and the command's own run."""

    def __init__(self, course: Course, folder: Path):
        self.course, self.folder = course, folder
        self.school = Class(course, folder / "handed_in")
        self.unwritten = cell_of(self.school.released, "why").source
        self.model, self.handed_in = Model(), {}  # type: ignore[var-annotated]
        course.home.mkdir(exist_ok=True)
        course.roster.write_text("\n".join(["id", *STUDENTS, MEMBER]))
        course.settings.write_text(GROUP)

    def hand_in(self, who: str, new: HandIn) -> None:
        answers = {"copy": f"points = {new.points}", "why": new.words or self.unwritten}
        path = self.school.hand_in(who, answers)
        when = DUE + timedelta(days=new.days, hours=-1)
        path.with_name(late.STAMP).write_text(f"{when.isoformat(sep=' ')} UTC")
        self.handed_in[who] = new

    def rule(self, percent: int) -> None:
        rule = f"[late]\nper_day = {percent}" if percent else ""
        self.course.settings.write_text(f'timezone = "UTC"\n[due]\n{LAB} = {DUE.isoformat()}\n{GROUP}{rule}')
        self.model.percent = percent

    def give(self, who: str, points: float) -> None:
        if who in self.model.has:
            give(self.course, who, points)
            self.model.give(who, points)

    def run(self, whom: frozenset[str], steps: int, patch: pytest.MonkeyPatch) -> None:
        """Grade some students' folders alone. With `steps`, the run is killed after so many of nbgrader's."""
        delivered = {who: self.handed_in[who] for who in sorted(whom & self.handed_in.keys())}
        if not delivered:
            return
        delivery = self.folder / "delivery"
        for who in delivered:
            shutil.copytree(self.school.folder / who, delivery / who)
        if steps:
            killed = False
            with patch.context() as within:
                within.setattr(gradebook.Writer, "_convert", _killed_after(steps))
                try:
                    self.grade(delivery)
                except KeyboardInterrupt:
                    killed = True
            if killed:
                self.grade(self.course.submitted)  # goes on where it was
        else:
            self.grade(delivery)
        shutil.rmtree(delivery)
        self.model.run(delivered)
        self.compare()

    def again(self) -> None:
        """Without a folder: everybody's of this lab."""
        if self.model.has:
            self.grade(self.course.submitted)
            self.compare()

    def grade(self, folder: Path) -> None:
        self.result = classroom.grade(self.course, LAB, folder, limits=Limits(), workers=1)

    def compare(self) -> None:
        table = {each.who.id: each for each in self.result.table}
        assert list(table) == [*STUDENTS, MEMBER]
        for each in table.values():
            who = each.who.id if each.who.id != MEMBER else "ann"
            total = each.total if each.cells else None
            assert (each.state, total) == self.model.row(who), (who, json.dumps(each.row(), default=str))
            assert exports.exported(each) == (total if each.state == "final" else None)
            assert each.by_hand == (self.model.hand.get(who) if each.cells else None)
            assert each.total == pytest.approx(max(0, each.points + each.late), abs=0.006)


def _killed_after(steps: int) -> Any:
    convert, left = gradebook.Writer._convert, [steps]

    def one(self: gradebook.Writer, *arguments: Any) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        convert(self, *arguments)

    return one


whom = st.sampled_from(STUDENTS)
hand_ins = st.builds(HandIn, st.integers(0, 4), st.sampled_from(["", "Because.", "So."]), st.integers(0, 3))
steps = st.one_of(
    st.tuples(st.just("hand in"), whom, hand_ins),
    st.tuples(st.just("run"), st.frozensets(whom, min_size=1), st.sampled_from([0, 0, 1, 2, 3])),
    st.tuples(st.just("run"), st.just(frozenset(STUDENTS)), st.just(0)),
    st.tuples(st.just("give"), whom, st.sampled_from([0.0, 0.5, 2.0])),
    st.tuples(st.just("rule"), st.sampled_from([0, 10, 50])),
    st.tuples(st.just("again")),
)
FULL = frozenset(STUDENTS)
A_TERM: list[tuple[Any, ...]] = [
    ("hand in", "ann", HandIn(4, "Because.", 0)), ("hand in", "bob", HandIn(2, "", 2)), ("rule", 10),
    ("run", FULL, 0), ("give", "ann", 2.0), ("hand in", "cy", HandIn(3, "So.", 1)),
    ("run", frozenset({"cy"}), 1), ("give", "cy", 0.5), ("hand in", "ann", HandIn(4, "So.", 3)),
    ("run", FULL, 2), ("hand in", "ann", HandIn(1, "So.", 3)), ("run", FULL, 0), ("rule", 0), ("again",),
    ("give", "ann", 0.5), ("hand in", "ann", HandIn(3, "So.", 0)), ("run", FULL, 0), ("again",),
]  # fmt: skip


@example(A_TERM)
@given(st.lists(steps, min_size=4, max_size=12))
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_after_every_run_of_a_random_term_the_table_is_the_models(
    released: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    term: list[tuple[Any, ...]],
) -> None:
    monkeypatch.setattr(classroom, "Judge", FromTheAnswer)
    monkeypatch.setattr(gradebook, "FeedbackExporter", NoPages)
    folder = tmp_path_factory.mktemp("term")
    shutil.copytree(released, folder / "course")
    plays = Term(Course(folder / "course", folder / "course" / "grading"), folder)
    for what, *more in term:
        match what:
            case "hand in":
                plays.hand_in(*more)
            case "run":
                plays.run(*more, monkeypatch)
            case "give":
                plays.give(*more)
            case "rule":
                plays.rule(*more)
            case "again":
                plays.again()
    shutil.rmtree(folder)
