"""What an instructor sees while a class is graded, and at its end."""

from __future__ import annotations

import io

from rich.console import Console

from grading.core.notebooks import Question
from grading.core.verdicts import ExerciseVerdict, Line, NotebookVerdict
from grading.lms import screen
from grading.lms.classroom import ClassResult, Lab, Task
from grading.lms.final import Final
from grading.lms.roster import Student
from grading.lms.submissions import Refusal

ASKED = (Question("copy-check", "memory.copy", "copy", 4.0), Question("s", "memory.sectors", "sectors", 3.0))


def terminal(clock: list[float] | None = None) -> Console:
    now = clock or [0.0]
    return Console(
        file=io.StringIO(), force_terminal=True, width=120, get_time=lambda: now[0], color_system=None
    )


def said(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_bar_shows_how_many_are_done_and_the_time_left() -> None:
    clock = [0.0]
    console = terminal(clock)
    with screen.progress_bar(console) as bar:
        assert isinstance(bar, screen.Bar)
        bar.progress.live.auto_refresh = False
        for done in range(4):
            clock[0] = 10.0 * done
            bar("judging", done, 12)
        bar.progress.refresh()
    assert "judging" in said(console) and "3/12" in said(console)
    assert "01:30" in said(console)  # nine more, ten seconds each


def test_where_nobody_looks_there_is_a_line_a_minute_in_place_of_the_bar() -> None:
    clock = [0.0]
    console = Console(file=io.StringIO(), get_time=lambda: clock[0])
    with screen.progress_bar(console) as bar:
        for done in range(1, 6):
            clock[0] += 25.0
            bar("judging", done, 30)
    assert said(console) == "judging: 3 of 30\n"  # after 75 s; the next is due after 135 s


def exercise(name: str, points: float, of: float, reason: str = "") -> ExerciseVerdict:
    return ExerciseVerdict(name, "cell", (Line("right", points, of, "", reason, reason),))


def result(**points: float | str) -> ClassResult:
    """A class of one notebook, by student: the points of memory.copy, or why there is no verdict."""
    found = ClassResult(Lab("90_class", {}, {"90_class": ASKED}))
    for student, value in points.items():
        lost = "" if value == 4.0 else "`b[7]` is 1"
        verdicts = () if isinstance(value, str) else (
            exercise("memory.copy", value, 4.0, lost), exercise("memory.sectors", 3.0, 3.0)
        )  # fmt: skip
        ungraded = value if isinstance(value, str) else ""
        verdict = NotebookVerdict("key", "digest", verdicts, ungraded=ungraded)
        found.tasks[student] = [Task(student, "90_class", b"", "key", verdict)]
    return found


def test_the_summary_has_pass_rates_means_reasons_the_distribution_and_everybody_without_a_grade() -> None:
    console = terminal()
    graded = result(ada=4.0, bob=0.0, cyd=2.0, dan=4.0, eve="the notebook is \x1b[31mnot JSON")
    graded.refused["fay"] = Refusal("not on the roster", unmatched=True)
    graded.refused["again"] = Refusal("a second submission")
    graded.table = [Final(Student("gus"), "90_class", 7.0)]
    graded.seconds = 75
    screen.show(console, graded)
    lines = said(console).splitlines()

    def line(start: str) -> list[str]:
        return next(" ".join(text.split()) for text in lines if text.startswith(start)).split(" ", 4)

    assert "graded 4" in lines[0] and "median 6 of 7" in lines[0] and "ungraded 1" in lines[0]
    assert "refused 2" in lines[0]
    assert "1:15" in lines[0]
    assert line("memory.copy")[1:3] == ["50%", "2.5/4"] and "is 1 (2)" in line("memory.copy")[4]
    assert line("memory.sectors")[1:3] == ["100%", "3.0/3"]
    assert sum(text.count("█") > 0 for text in lines) == 3  # 3, 5 and 7 points
    assert any("2  memory.copy:" in text for text in lines)  # under the most frequent reasons
    assert "nothing from 1 on the roster: gus" in lines
    assert "90_class has 1 student: 1 missing" in lines
    assert any(text.startswith("ungraded  eve") and "\x1b" not in text for text in lines)
    assert "unmatched fay  not on the roster" in lines and "refused   again  a second submission" in lines


def test_an_exercise_without_a_verdict_has_no_pass_rate() -> None:
    console = terminal()
    screen.show(console, result(eve="the notebook is not JSON"))
    (line,) = (
        " ".join(text.split()) for text in said(console).splitlines() if text.startswith("memory.copy")
    )
    assert line == "memory.copy – – the judge has no verdict on this exercise"


def test_what_has_no_verdict_counts_neither_as_passed_nor_as_nought_points() -> None:
    judged, half = exercise("memory.copy", 4, 4), exercise("memory.copy", 2, 4, "`b[7]` is 1")
    unjudged = ExerciseVerdict(
        "memory.copy", "cell", (Line("right", 0, 4),), ungraded="the replay was stopped"
    )
    nothing = ExerciseVerdict("memory.copy", "cell", (), ungraded="the replay was stopped")
    assert screen._row([nothing, unjudged, judged, half])[1:3] == ("50%", "3.0/4")
    assert screen._row([unjudged, nothing])[1:] == ("–", "–", "the replay was stopped")
