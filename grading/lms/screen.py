"""What an instructor sees while a class is graded, and at its end."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import mean, median

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from grading.core import texts
from grading.core.verdicts import ExerciseVerdict
from grading.lms import final
from grading.lms.classroom import ClassResult

EVERY = 60.0  # seconds between two lines where there is no bar


class Bar:
    """One bar for each step of the work, with the time left and submissions per second."""

    def __init__(self, progress: Progress):
        self.progress = progress
        self.steps: dict[str, object] = {}
        self.began: dict[str, tuple[float, int]] = {}

    def __call__(self, step: str, done: int, total: int) -> None:
        if step not in self.steps:
            self.steps[step] = self.progress.add_task(step, total=total, rate="")
            self.began[step] = (time.monotonic(), done)
        since, first = self.began[step]
        seconds = time.monotonic() - since
        rate = f"{(done - first) / seconds:.1f}/s" if done > first and seconds > 0 else ""
        self.progress.update(self.steps[step], completed=done, total=total, rate=rate)  # type: ignore[arg-type]


class Lines:
    """A line a minute in place of a bar, so that the log of a long run says how far it came."""

    def __init__(self, console: Console):
        self.console, self.last = console, console.get_time()

    def __call__(self, step: str, done: int, total: int) -> None:
        if (now := self.console.get_time()) - self.last >= EVERY:
            self.last = now
            self.console.print(f"{step}: {done} of {total}", markup=False)


@contextmanager
def progress_bar(console: Console) -> Iterator[Bar | Lines]:
    """A progress bar on a terminal, and a line a minute elsewhere."""
    if not console.is_terminal:
        yield Lines(console)
        return
    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[rate]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bar(progress)


def show(console: Console, result: ClassResult) -> None:
    """The table per exercise, and one line for everybody who is ungraded."""
    graded = [s for s in result.tasks if not result.reason(s)]
    console.print(_summary(result, graded))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, side in (
        ("exercise", "left"),
        ("pass", "right"),
        ("mean", "right"),
        ("most frequent reason", "left"),
    ):
        table.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
    for verdicts in _by_exercise(result):
        table.add_row(*(Text(cell) for cell in _row(verdicts)))
    console.print(table)
    for line in distribution([result.points(s) for s in graded], result.of()):
        console.print(Text(line))
    for line in _frequent(result):
        console.print(Text(line))
    if missing := [each.who.id for each in result.table if each.state == final.MISSING]:
        console.print(Text(f"nothing from {len(missing)} on the roster: {texts.some(missing)}"))
    for student in result.tasks:
        if reason := result.reason(student):
            console.print(Text(f"ungraded  {student}  {texts.clean(reason, 200)}"))
    for student, refusal in result.refused.items():
        words = f"{texts.clean(student, 64)}  {texts.clean(refusal.reason, 200)}"
        console.print(Text(f"{refusal.state:<9} {words}"))
    for note in result.notes:
        console.print(Text(f"note: {texts.clean(note, 600)}"))
    if result.table:
        console.print(Text(f"{result.lab.name} has {final.standing(result.table)}"))


def _summary(result: ClassResult, graded: list[str]) -> str:
    points = [result.points(s) for s in graded]
    middle = f"   median {median(points):g} of {result.of():g}" if points else ""
    known = sum(t.known for tasks in result.tasks.values() for t in tasks)
    again = f"   unchanged {known}" if known else ""
    minutes, seconds = divmod(round(result.seconds), 60)
    others = {"ungraded": len(result.tasks) - len(graded), "refused": len(result.refused)}
    below = "".join(f"   {what} {number} (see below)" for what, number in others.items() if number)
    return f"graded {len(graded)}{middle}{below}{again}   {minutes}:{seconds:02d}"


def distribution(points: Sequence[float], of: float, most: int = 8, width: int = 40) -> list[str]:
    """A histogram of points as lines of text, in steps of whole points; full marks are in the last bin. A
    student is a block, or less where `width` blocks are too few."""
    if not points or of <= 0:
        return []
    step = math.ceil(of / most)
    counts = [0] * math.ceil(of / step)
    for value in points:
        counts[min(len(counts) - 1, max(0, int(value / step)))] += 1
    edges = [f"{min(of, step * i):g}" for i in range(len(counts) + 1)]
    rows = [("points", "students")]
    blocks = min(1, width / max(counts))
    for i, count in enumerate(counts):
        bar = "█" * max(round(blocks * count), bool(count))
        rows.append((f"{edges[i]} – {edges[i + 1]}", f"{bar} {count}".strip()))
    wide = max(len(label) for label, _ in rows)
    return [f"{label:>{wide}}  {bar}" for label, bar in rows]


def _frequent(result: ClassResult, most: int = 5) -> Iterator[str]:
    """The reasons for lost points that most of the class share."""
    reasons = Counter(
        (e.exercise, texts.clean(line.short, 70))
        for tasks in result.tasks.values()
        for task in tasks
        if task.verdict
        for e in task.verdict.exercises
        for line in e.lines
        if line.short
    )
    if reasons:
        yield "most frequent reasons for lost points"
    for (exercise, reason), count in reasons.most_common(most):
        yield f"{count:5}  {exercise}: {reason}"


def _by_exercise(result: ClassResult) -> Iterator[list[ExerciseVerdict]]:
    for asked in result.lab.questions.values():
        for question in asked:
            yield [
                e
                for tasks in result.tasks.values()
                for task in tasks
                if task.verdict and not task.verdict.ungraded
                for e in task.verdict.exercises
                if e.exercise == question.exercise
            ] or [ExerciseVerdict(question.exercise, question.cell, (), ungraded=texts.NO_VERDICT_HERE)]


def _row(verdicts: list[ExerciseVerdict]) -> tuple[str, ...]:
    judged = [v for v in verdicts if v.lines and not v.ungraded]
    if not judged:
        return verdicts[0].exercise, "–", "–", verdicts[0].reason
    share = mean(v.passed for v in judged)
    points = mean(v.points for v in judged)
    reasons = Counter(texts.clean(v.reason, 60) for v in verdicts if v.reason)
    often = [f"{reason} ({count})" for reason, count in reasons.most_common(1)]
    return judged[0].exercise, f"{share:.0%}", f"{points:.1f}/{judged[0].of:g}", *(often or [""])
