"""Random terms: hand-ins, runs over some or all, kills, points by hand, rules, a group. The final table is a model's.

What a term may bring is in `steps`; `A_TERM` has each of it, in an order in which most of it matters.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from nbformat import NotebookNode
from nbgrader import api as nbgrader

from grading.core import verdicts
from grading.core.course import Course
from grading.core.graft import Graft
from grading.core.notebooks import Question
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict, Line, NotebookVerdict
from grading.lms import classroom, exports, final, gradebook, intake, late, preprocessors, tables
from tests.grading.conftest import LAB, Class, cell_of
from tests.grading.test_bad_input import FakeJudge, no_sandbox_needed
from tests.grading.test_final import give

__all__ = ["no_sandbox_needed"]  # a fixture that every test here uses

STUDENTS = ("ann", "bob", "cy")
MEMBER = "dee"  # hands in nothing, and is in ann's group
DUE = datetime(2027, 1, 15, 12)
CODE, WORDS = "copy-check", "why"  # the two cells that persons give points to here
# Where a run may be killed: before each of these, whenever it comes for the so-many-th time.
PLACES: list[tuple[Any, str]] = [
    (intake, "_copy"), (intake, "_time"), (intake, "remember_sender"), (verdicts.Store, "put"),
    (gradebook.Writer, "_ask_again"), (gradebook.Writer, "_convert"), (preprocessors.Graft, "preprocess"),
    (preprocessors.WriteVerdicts, "preprocess"), (preprocessors.SaveAutoGrades, "_add_score"),
    (preprocessors.FlagUngraded, "preprocess"), (late, "apply"),
    (gradebook, "update_feedback"), (gradebook, "introduce"), (tables, "write_grades"), (final, "write"),
]  # fmt: skip


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
    days: int | None  # late; None where Canvas says so without a time
    broken: bool = False  # a file that cannot be read


@dataclass
class Model:
    """What the table must say: the whole of it."""

    has: dict[str, HandIn] = field(default_factory=dict)
    hand: dict[tuple[str, str], float] = field(default_factory=dict)  # by student and cell
    waits: set[tuple[str, str]] = field(default_factory=set)  # the same
    percent: int = 0
    more: dict[str, int] = field(default_factory=dict)  # days of an extension
    waived: set[str] = field(default_factory=set)
    newer: set[str] = field(default_factory=set)  # whose newer file cannot be read

    def run(self, delivered: dict[str, HandIn]) -> None:
        for who, new in delivered.items():
            if new.broken:
                self.newer.add(who)
                continue
            self.newer.discard(who)
            old = self.has.get(who)
            if old is None or old.words != new.words:
                wait = bool(new.words) or (who, WORDS) in self.hand
                self.waits = self.waits - {(who, WORDS)} | ({(who, WORDS)} if wait else set())
            if old and old.points != new.points and (who, CODE) in self.hand:
                self.waits.add((who, CODE))
            self.has[who] = new

    def give(self, who: str, cell: str, points: float) -> None:
        self.hand[who, cell] = points
        self.waits.discard((who, cell))

    def lose(self) -> None:
        """The gradebook, and with it what persons gave."""
        self.hand = {}
        self.waits = {(who, WORDS) for who, new in self.has.items() if new.words}

    def row(self, who: str) -> tuple[object, ...]:
        if who not in self.has:
            return "missing", None
        points = self.hand.get((who, CODE), self.has[who].points) + self.hand.get((who, WORDS), 0.0)
        days, free = self.has[who].days, who in self.waived or not self.percent
        late = 0 if days is None or free else max(0, days - self.more.get(who, 0))
        number = sum(whose == who for whose, _ in self.waits)
        state = f"{number} answer{'s wait' if number > 1 else ' waits'}" if number else (
            "a newer file cannot be read" if who in self.newer else
            "late, by how much is not known" if days is None and not free else "final"
        )  # fmt: skip
        return state, round(points * (1 - min(1.0, self.percent / 100 * late)), 2)


class Term:
    """The same with files, the gradebook, and the command's own run."""

    def __init__(self, course: Course, folder: Path):
        self.course, self.folder = course, folder
        self.school = Class(course, folder / "handed_in")
        self.unwritten = cell_of(self.school.released, WORDS).source
        self.model, self.handed_in = Model(), {}  # type: ignore[var-annotated]
        self.files = 0  # so many has Canvas numbered
        course.home.mkdir(exist_ok=True)
        numbers = (f"{who},{number}" for number, who in enumerate((*STUDENTS, MEMBER)))
        course.roster.write_text("\n".join(["id,canvas", *numbers]))
        self.rules()

    def hand_in(self, who: str, new: HandIn) -> None:
        self.handed_in[who] = new

    def deliver(self, who: str, delivery: Path) -> None:
        """As a folder with its time, or as Canvas's file, which has none."""
        new = self.handed_in[who]
        self.school.folder = delivery
        answers = {"copy": f"points = {new.points}", WORDS: new.words or self.unwritten}
        path = self.school.hand_in(who, answers)
        if new.broken:
            path.write_text(f"{{ {self.files}")
        self.files += 1
        called = f"{who}_LATE_{STUDENTS.index(who)}_{self.files}_{LAB}.ipynb"
        if new.days is None:
            path.rename(delivery / called)
            shutil.rmtree(delivery / who)
            return
        when = DUE + timedelta(days=new.days, hours=-1)
        path.with_name(late.STAMP).write_text(f"{when.isoformat(sep=' ')} UTC")

    def rules(self) -> None:
        model = self.model
        lines = [
            'timezone = "UTC"', f"[due]\n{LAB} = {DUE.isoformat()}",
            f'[[group]]\nname = "red"\nmembers = ["{MEMBER}", "ann"]',
            f"[waive.{LAB}]", *(f'{who} = "ill"' for who in sorted(model.waived)),
            *(f"[[extension.{who}]]\ndays = {days}" for who, days in model.more.items() if days),
        ]  # fmt: skip
        lines += [f"[late]\nper_day = {model.percent}"] * bool(model.percent)
        self.course.settings.write_text("\n".join(lines))

    def rule(self, percent: int) -> None:
        self.model.percent = percent
        self.rules()

    def extend(self, who: str, days: int) -> None:
        self.model.more[who] = days
        self.rules()

    def waive(self, who: str) -> None:
        """Or take it back."""
        self.model.waived ^= {who}
        self.rules()

    def give(self, who: str, cell: str, points: float) -> None:
        if who in self.model.has:
            give(self.course, who, points, cell)
            self.model.give(who, cell, points)

    def run(self, whom: frozenset[str], place: int, times: int) -> None:
        """Grade some students' hand-ins alone. With `times`, the run is killed at a place, and begun again."""
        delivered = {who: self.handed_in[who] for who in sorted(whom & self.handed_in.keys())}
        delivered = {who: new for who, new in delivered.items() if who in self.model.has or not new.broken}
        if not delivered:
            return
        delivery = self.folder / "delivery"
        delivery.mkdir()
        for who in delivered:
            self.deliver(who, delivery)
        if times:
            self.killed(delivery, *PLACES[place], times)
        self.grade(delivery)  # goes on where it was, or has nothing to do
        shutil.rmtree(delivery)
        self.model.run(delivered)
        self.compare()

    def killed(self, delivery: Path, where: Any, name: str, times: int) -> None:
        """A run in a process of its own, which ends at a place without another word."""
        if child := os.fork():
            os.waitpid(child, 0)
            return
        try:
            nbgrader.create_engine.cache_clear()  # connections are not for two processes
            setattr(where, name, ends_at(times, getattr(where, name)))
            self.grade(delivery)
        finally:
            os._exit(0)

    def again(self) -> None:
        """Without a folder: everybody's of this lab."""
        if self.model.has:
            self.grade(self.course.submitted)
            self.compare()

    def keep(self, who: str) -> None:
        """The earlier file counts for good."""
        if who in self.model.newer:
            self.grade(self.course.submitted, (who,))
            self.model.newer.discard(who)
            self.compare()

    def lose(self, whom: frozenset[str]) -> None:
        """The gradebook is gone; some of the students are graded, and all come back."""
        nbgrader.create_engine.cache_clear()
        self.course.gradebook.unlink(missing_ok=True)
        self.model.lose()
        delivered = whom & self.model.has.keys()
        self.run(frozenset(delivered), 0, 0) if delivered else self.again()

    def grade(self, folder: Path, keep: tuple[str, ...] = ()) -> None:
        self.result = classroom.grade(self.course, LAB, folder, limits=Limits(), workers=1, keep=keep)

    def compare(self) -> None:
        table = {each.who.id: each for each in self.result.table}
        assert list(table) == [*STUDENTS, MEMBER]
        written = {row["student"]: row for row in tables.read_grades(self.course)}
        assert written.keys() == table.keys()
        for each in table.values():
            who = each.who.id if each.who.id != MEMBER else "ann"
            total = each.total if each.cells else None
            assert (each.state, total) == self.model.row(who), (who, json.dumps(each.row(), default=str))
            assert exports.exported(each) == (total if each.state == "final" else None)
            given = [points for (whose, _), points in self.model.hand.items() if whose == who]
            assert each.by_hand == (sum(given) if given else None)
            assert each.total == pytest.approx(max(0, each.points + each.late), abs=0.006)
            row = written[each.who.id]
            assert (row["state"], row["total"]) == (each.state, "" if total is None else str(total))


def ends_at(times: int, step: Callable[..., Any]) -> Callable[..., Any]:
    left = [times]

    def one(*arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            os._exit(9)
        return step(*arguments, **named)

    return one


whom = st.sampled_from(STUDENTS)
days = st.one_of(st.none(), st.integers(0, 3))
hand_ins = st.builds(
    HandIn,
    st.integers(0, 4),
    st.sampled_from(["", "Because.", "So."]),
    days,
    st.sampled_from([False] * 5 + [True]),
)
kills = st.tuples(st.integers(0, len(PLACES) - 1), st.sampled_from([0, 1, 2, 3]))
steps = st.one_of(
    st.tuples(st.just("hand in"), whom, hand_ins),
    st.tuples(st.just("run"), st.frozensets(whom, min_size=1), kills),
    st.tuples(st.just("run"), st.just(frozenset(STUDENTS)), st.just((0, 0))),
    st.tuples(st.just("give"), whom, st.sampled_from([CODE, WORDS]), st.sampled_from([0.0, 0.5, 2.0])),
    st.tuples(st.just("rule"), st.sampled_from([0, 10, 50])),
    st.tuples(st.just("extend"), whom, st.integers(0, 3)),
    st.tuples(st.just("waive"), whom),
    st.tuples(st.just("again")),
    st.tuples(st.just("keep"), whom),
    st.tuples(st.just("lose"), st.frozensets(whom)),
)
FULL, NO_KILL = frozenset(STUDENTS), (0, 0)


def kill(name: str, times: int = 1) -> tuple[int, int]:
    return [place for _, place in PLACES].index(name), times


A_TERM: list[tuple[Any, ...]] = [
    ("hand in", "ann", HandIn(4, "Because.", 0)), ("hand in", "bob", HandIn(2, "", 2)), ("rule", 10),
    ("run", FULL, NO_KILL), ("give", "ann", WORDS, 2.0), ("hand in", "cy", HandIn(3, "So.", 1)),
    ("run", frozenset({"cy"}), kill("_convert", 2)), ("give", "cy", WORDS, 0.5), ("hand in", "ann", HandIn(4, "So.", 3)),
    ("run", FULL, kill("_convert", 3)), ("hand in", "ann", HandIn(1, "So.", 3)), ("extend", "ann", 1),
    ("give", "bob", CODE, 2.0), ("run", FULL, kill("put")), ("waive", "bob"), ("again",), ("waive", "bob"),
    ("hand in", "bob", HandIn(3, "", None)), ("run", frozenset({"bob"}), kill("_time")), ("give", "bob", CODE, 0.5),
    ("again",), ("waive", "bob"), ("again",), ("rule", 0), ("again",), ("give", "ann", WORDS, 0.5),
    ("hand in", "ann", HandIn(3, "So.", 0)), ("rule", 50), ("run", FULL, kill("write_grades")), ("again",),
    # Points that a person gave stand while the answer does, and wait when it is another, wherever a run ends.
    ("give", "ann", CODE, 1.0), ("hand in", "ann", HandIn(2, "So.", 0)), ("run", FULL, kill("_convert", 2)),
    ("hand in", "ann", HandIn(1, "Because.", 0)), ("run", FULL, kill("preprocess")), ("again",),
    ("give", "ann", CODE, 1.0), ("give", "ann", WORDS, 1.0), ("hand in", "ann", HandIn(0, "So.", 0)),
    ("run", FULL, kill("_add_score")), ("give", "ann", WORDS, 2.0), ("hand in", "ann", HandIn(2, "So.", 0)),
    ("run", FULL, kill("_add_score", 4)), ("again",),
    ("give", "cy", WORDS, 1.0), ("hand in", "cy", HandIn(1, "So.", 1)), ("run", FULL, kill("preprocess")),
    # A broken file changes nothing but the state, and a lost gradebook comes back.
    ("hand in", "cy", HandIn(0, "", None, True)), ("run", frozenset({"cy"}), kill("_time")), ("again",),
    ("hand in", "bob", HandIn(0, "", 9, True)), ("run", FULL, NO_KILL), ("keep", "cy"), ("give", "bob", CODE, 1.0),
    ("lose", frozenset()), ("hand in", "bob", HandIn(2, "", 1)), ("lose", frozenset({"bob"})),
]  # fmt: skip


@example(A_TERM)
@given(st.lists(steps, min_size=4, max_size=14))
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
                whom, kill = more
                plays.run(whom, *kill)
            case "give":
                plays.give(*more)
            case "rule":
                plays.rule(*more)
            case "extend":
                plays.extend(*more)
            case "waive":
                plays.waive(*more)
            case "again":
                plays.again()
            case "keep":
                plays.keep(*more)
            case "lose":
                plays.lose(*more)
    shutil.rmtree(folder)
