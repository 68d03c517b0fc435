"""Requests for a regrade: a student's file, and the old verdict beside a new one of the judge of today.

    student = "ada"
    lab = "04_memory_hierarchy"     # or "04"
    exercise = "memory.copy"        # without it, all of the lab
    why = "At 31 elements my kernel writes all of them: see line 4."

`gpulab appeal` writes such a file for a student. Nothing changes hereby. A new verdict that differs is for
everybody: `grade` gives it to the class. Where it is the same, a person decides, and gives points in
formgrader. What was found stands beside it, as JSON.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from grading.core import environment, sandbox, texts
from grading.core.commands import guess
from grading.core.course import Course
from grading.core.errors import GradingError, SandboxError
from grading.core.judge import Judge
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict, Store, write_whole
from grading.lms import classroom, tables
from grading.lms.engines import engine
from grading.lms.roster import Roster
from grading.lms.submissions import STUDENT, find_submissions

LARGEST = 20_000  # bytes of a request
MOST_WORDS = 2_000  # characters that are shown of a student's reason
LAB = re.compile(r"\w[\w.-]{0,79}")  # what a lab may be called: no path


@dataclass(frozen=True)
class Request:
    """What a student asks for."""

    path: Path
    student: str
    lab: str
    exercise: str  # empty: all
    why: str


@dataclass(frozen=True)
class Answer:
    """A request with both verdicts on each exercise that it is about; `problem` says why there are none."""

    request: Request
    pairs: tuple[tuple[ExerciseVerdict | None, ExerciseVerdict], ...] = ()
    problem: str = ""

    @property
    def changes(self) -> bool:
        """Whether the judge says something else today than it said."""
        return any(
            old is None or (old.lines, old.ungraded) != (new.lines, new.ungraded) for old, new in self.pairs
        )

    def lines(self) -> Iterator[str]:
        """For a terminal: who asks why, and both verdicts."""
        asked = self.request
        about = f" · {asked.exercise}" if asked.exercise else ""
        yield texts.clean(f"{asked.student} · {asked.lab}{about} ({asked.path.name})")
        yield from (f"    “{row}”" for row in texts.wrap(asked.why[:MOST_WORDS]))
        if self.problem:
            yield f"    {texts.clean(self.problem)}"
        for old, new in self.pairs:
            before = _words(old) if old else "no verdict"
            same = old is not None and (old.lines, old.ungraded) == (new.lines, new.ungraded)
            yield f"    {new.exercise}: {before}" + ("; the same today" if same else "")
            if not same:
                yield f"    {' ' * len(new.exercise)}  today {_words(new)}"


def _words(verdict: ExerciseVerdict) -> str:
    why = f", {texts.clean(verdict.reason, 120)}" if verdict.reason else ""
    return f"{verdict.points:g} of {verdict.of:g}{why}"


def requests(course: Course, folder: Path) -> tuple[list[Request], dict[Path, str]]:
    """All requests in and below a folder, in order, and what is wrong with each file that is none.

    Files that we wrote there, answers and verdicts, are neither. Raises GradingError where there is no
    folder.
    """
    if not folder.is_dir():
        raise GradingError(f"no folder {folder}: put the students' requests into one, a .toml each")
    found: list[Request] = []
    problems: dict[Path, str] = {}
    for path in sorted(folder.rglob("*")):  # an LMS makes a folder for each student
        if path.suffix != ".toml":
            if path.is_file() and not path.name.startswith(".") and not _is_ours(folder, path):
                problems[path] = f"{path} is no request, because its name does not end in .toml"
            continue
        try:
            found.append(request(course, path))
        except GradingError as error:
            problems[path] = str(error)
    return found, problems


def _is_ours(folder: Path, path: Path) -> bool:
    """Whether a file is an answer to a request, or a verdict that was made for one."""
    inside = path.relative_to(folder).parts
    return inside[0] == "verdicts" or (len(inside) == 1 and path.suffix == ".json" and "@" in path.name)


def request(course: Course, path: Path) -> Request:
    """One request, with the whole name of its lab. Raises GradingError for a file that is none."""
    form = 'write student = "…", lab = "…", why = "…", and exercise = "…" if it is about one'
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
            raise GradingError(f"{path} is no file of at most {LARGEST:,} bytes")
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise GradingError(f"{path} cannot be read ({error.strerror}): {form}") from None
    except (ValueError, RecursionError) as error:
        raise GradingError(f"{path} is no TOML ({texts.clean(error, 80)}): {form}") from None
    values = {key: data.get(key, "") for key in ("student", "lab", "exercise", "why")}
    if missing := [key for key in ("student", "lab", "why") if not values[key]]:
        raise GradingError(f"{path} does not say '{missing[0]}': {form}")
    if odd := [key for key, value in values.items() if not isinstance(value, str)]:
        raise GradingError(f"{path}: '{odd[0]}' is no text: {form}")
    if not STUDENT.fullmatch(values["student"]):
        raise GradingError(f"{path}: {texts.clean(values['student'], 60)} is no student's id")
    if not LAB.fullmatch(values["lab"]):
        raise GradingError(f"{path}: {texts.clean(values['lab'], 60)} is no lab's name or number")
    lab = course.whole_name(values["lab"])
    return Request(path, values["student"], lab, values["exercise"], values["why"])


def queue(
    course: Course, folder: Path, limits: Limits, unsafe: bool = False
) -> tuple[list[Answer], list[str]]:
    """Judge what is asked for, anew, and store the answers beside the requests.

    Returns the answers, and what is wrong with each file that is no request. Raises GradingError where there
    is no folder, SandboxError where there is no sandbox.
    """
    asked, problems = requests(course, folder)
    if asked and not unsafe and (why := sandbox.obstacle()):
        raise SandboxError(f"{why}\nwithout a sandbox nothing is judged, unless you say --unsafe")
    answers: list[Answer] = []
    for lab in sorted({request.lab for request in asked}):
        answers += _of_lab(course, lab, [r for r in asked if r.lab == lab], limits, unsafe)
    for answer in answers:
        _save(course, answer)
    return answers, list(problems.values())


def _of_lab(
    course: Course, name: str, asked: Iterable[Request], limits: Limits, unsafe: bool
) -> Iterator[Answer]:
    asked = list(asked)
    try:
        lab = classroom.open_lab(course, name)
        everybody = find_submissions(course.submitted, lab.name, list(lab.notebooks), Roster())
    except GradingError as error:
        yield from (Answer(request, problem=str(error)) for request in asked)
        return
    holder = {r.student: _holder(course, lab.name, r.student) for r in asked}
    students = set(holder.values())
    chosen = [s for s in everybody if s.student in students and s.notebooks]
    anew = Store(course.regrades / "verdicts")  # not those that the gradebook is made from
    environ = environment.digest(course, [repr(limits), repr(lab.questions)])
    result = classroom.plan(course, lab, chosen, anew, environ)
    judge = Judge(environment.secret(course), limits, unsafe=unsafe)
    if any(task.verdict is None for tasks in result.tasks.values() for task in tasks):
        with classroom.interruptible(), engine(judge, 1, "") as judges:
            classroom.judge_all(result, judges, anew, lambda task: None)
    known = Store(course.verdicts)
    for request in asked:
        student = holder[request.student]
        if student not in result.tasks:
            refusal = result.refused.get(student)
            known_ids = result.tasks.keys() | {each.student for each in everybody}
            near = "" if student in known_ids else guess(student, known_ids)
            nothing = f"nothing of {student}{near} in {lab.name} (looked in {course.submitted})"
            problem = refusal.reason if refusal else nothing
            yield Answer(request, problem=problem)
            continue
        pairs = []
        for task in result.tasks[student]:
            before = known.get(student, lab.name, task.notebook)
            for new in task.verdict.exercises if task.verdict else ():
                if request.exercise in ("", new.exercise):
                    pairs.append((before.by_cell(new.cell) if before else None, new))
        asks = [question.exercise for asked in lab.questions.values() for question in asked]
        near = guess(request.exercise, asks)
        problem = "" if pairs else f"{lab.name} does not ask {request.exercise}{near}"
        yield Answer(request, tuple(pairs), problem)


def _holder(course: Course, lab: str, student: str) -> str:
    """Whose files are judged: of a group, those of the member who handed in."""
    rows = (row for row in tables.read_grades(course) if (row["lab"], row["student"]) == (lab, student))
    return next((by for row in rows if (by := row.get("handed_in_by"))), student)


def _save(course: Course, answer: Answer) -> None:
    asked = answer.request
    course.regrades.mkdir(parents=True, exist_ok=True)
    record = {
        "student": asked.student,
        "lab": asked.lab,
        "exercise": asked.exercise,
        "why": asked.why,
        "problem": answer.problem,
        "verdicts": [{"old": old and asdict(old), "new": asdict(new)} for old, new in answer.pairs],
    }
    write_whole(record_of(course, asked), json.dumps(record, indent=1, ensure_ascii=False))


def record_of(course: Course, asked: Request) -> Path:
    """Where the answer to a request is kept."""
    return course.regrades / f"{asked.student}@{_safe(asked.lab)}@{asked.path.stem}.json"


def _safe(lab: str) -> str:
    return "".join(c if c.isalnum() or c in "_-." else "_" for c in lab)[:80]
