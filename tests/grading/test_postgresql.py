"""A gradebook in PostgreSQL: a real server grades, dies, comes back, and nobody's points are lost or doubled."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from nbgrader.api import Grade, Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from sqlalchemy import create_engine

from grading.__main__ import main
from grading.core.course import GRADEBOOK, Course
from grading.lms import gradebook
from grading.lms.nbgrader import nbgrader_config
from tests.grading.conftest import LAB, Class
from tests.grading.test_bad_input import FakeJudge, no_sandbox_needed

__all__ = ["no_sandbox_needed"]  # a fixture that every test here uses

PASSWORD = "s3cret"


def binary(name: str) -> str | None:
    """A program of the server: Debian keeps them out of the PATH, by version."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(versions[-1]) if versions else None)


class Server:
    """A cluster of its own in a folder of its own. PostgreSQL refuses to run as root, so nobody runs it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.as_nobody: list[str] = []
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            self.as_nobody = [
                "setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", "--"
            ]  # fmt: skip
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run("initdb", "-D", str(folder / "data"), "-U", "teacher", "-A", "trust", "--no-sync")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://teacher:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def _run(self, name: str, *arguments: str) -> None:
        command = [*self.as_nobody, str(binary(name)), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        command = [
            *self.as_nobody, str(binary("postgres")), "-D", str(self.folder / "data"), "-p", str(self.port),
            "-k", str(self.folder), "-h", "127.0.0.1",
        ]  # fmt: skip
        deadline = time.monotonic() + 60
        while True:
            with (self.folder / "log").open("w") as log:
                self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
            while self.process.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", self.port)) == 0 and self._ready():
                        return
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.1)
            # After a kill, children of the old server may still be about to notice.
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.3)

    def _ready(self) -> bool:
        return "ready to accept connections" in (self.folder / "log").read_text()

    def kill(self) -> None:
        """As the kernel does when memory is short."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if not (binary("initdb") and binary("postgres")):
        pytest.skip("no PostgreSQL server: apt install postgresql")
    with tempfile.TemporaryDirectory(prefix="gpulab-postgresql-") as folder:
        started = Server(Path(folder))
        yield started
        started.kill()


@pytest.fixture
def elsewhere(school: Class, server: Server) -> Course:
    """The course of the class, with an empty gradebook in the server."""
    course = replace(school.course, database=server.url)
    engine = create_engine(course.db_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    engine.dispose()
    return course


def grade(course: Course, school: Class) -> int:
    return main(["grade", LAB, str(school.folder)], course)


def scores(course: Course) -> dict[str, float]:
    with Gradebook(course.db_url) as book:
        return {s.student.id: s.score for s in book.assignment_submissions(LAB)}


def test_a_class_is_graded_into_a_database_and_a_person_adds_points_there(
    school: Class, elsewhere: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    for student in ("ann", "bob"):
        school.hand_in(student, {"copy": f"x = '{student}'"})
    assert grade(elsewhere, school) == 0
    assert scores(elsewhere) == {"ann": 11, "bob": 11}
    with Gradebook(elsewhere.db_url) as book:
        written = book.find_grade("why", LAB, LAB, "ann")
        assert written.needs_manual_grade
        written.manual_score, written.needs_manual_grade = 1.5, False
        book.db.commit()
    page = elsewhere.feedback / "bob" / LAB / f"{LAB}.html"
    before = page.stat().st_mtime_ns
    FakeJudge.asked.clear()
    assert main(["grade", LAB, str(school.folder), "--export", "canvas"], elsewhere) == 0
    assert not FakeJudge.asked and page.stat().st_mtime_ns == before  # it knows that all is written
    assert scores(elsewhere) == {"ann": 12.5, "bob": 11}
    assert "ann,,,ann,,12.50" in (elsewhere.home / f"grades-{LAB}-canvas.csv").read_text()
    with Gradebook(f"sqlite:///{elsewhere.gradebook}") as book:
        assert not book.students  # nothing went into the file
    assert PASSWORD not in capsys.readouterr().out


def test_a_run_that_forgets_which_gradebook_it_was_is_refused(
    school: Class, elsewhere: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    school.hand_in("ann")
    assert grade(elsewhere, school) == 0
    capsys.readouterr()
    assert grade(school.course, school) == 1  # without --gradebook
    said = capsys.readouterr().out
    assert f"the grades of this class are in {elsewhere.place}: add --gradebook" in said
    school.course.databases.unlink()  # the database is gone for good: from now on at home
    assert grade(school.course, school) == 0
    assert grade(elsewhere, school) == 1
    assert "are in gradebook.db: leave out --gradebook" in capsys.readouterr().out.replace(
        f"{school.course.home}/", ""
    ).replace("\n", " ")


def test_nbgraders_own_screens_read_the_database_from_the_environment(
    school: Class, elsewhere: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.hand_in("ann")
    assert grade(elsewhere, school) == 0
    monkeypatch.setenv(GRADEBOOK, elsewhere.database)
    config = nbgrader_config(Course(elsewhere.root, elsewhere.home))
    api = NbGraderAPI(coursedir=CourseDirectory(config=config), config=config)
    (submission,) = api.get_submissions(LAB)
    assert submission["score"] == 11 and submission["needs_manual_grade"]


def test_a_database_that_is_killed_and_comes_back_loses_and_doubles_nothing(
    school: Class,
    elsewhere: Course,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    students = [f"s{i}" for i in range(4)]
    for student in students:
        school.hand_in(student, {"copy": f"x = '{student}'"})
    real, calls = gradebook.Writer.write, []

    def write(writer: gradebook.Writer, graded: gradebook.Graded) -> None:
        calls.append(graded.student)
        if len(calls) == 3:
            server.kill()
        real(writer, graded)

    monkeypatch.setattr(gradebook.Writer, "write", write)
    assert grade(elsewhere, school) == 1
    out = capsys.readouterr().out
    assert len(out.strip().splitlines()) == 1 and "run the same command again" in out and PASSWORD not in out
    assert grade(elsewhere, school) == 1  # still down: said before anything is judged
    assert len(capsys.readouterr().out.strip().splitlines()) == 1
    server.start()
    FakeJudge.asked.clear()
    calls.clear()
    assert grade(elsewhere, school) == 0
    assert not FakeJudge.asked and calls == students[2:]
    assert scores(elsewhere) == dict.fromkeys(students, 11)
    with Gradebook(elsewhere.db_url) as book:
        assert book.db.query(Grade).count() == len(students) * 4  # three test cells and a written answer each


def test_a_run_that_is_killed_while_judging_binds_the_class_to_its_database(
    school: Class, elsewhere: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise the command that goes on would grade into a second gradebook, at home."""

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    school.hand_in("ann")
    monkeypatch.setattr("grading.lms.classroom._grade", killed)
    with contextlib.suppress(KeyboardInterrupt):
        main(["grade", LAB, str(school.folder), "--gradebook", elsewhere.database], school.course)
    monkeypatch.undo()
    capsys.readouterr()
    assert main(["grade", LAB, str(school.folder)], school.course) == 1
    assert "add --gradebook with its URL" in capsys.readouterr().out


def test_what_is_forgotten_is_gone_from_the_database_too(
    school: Class, elsewhere: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    for student in ("ann", "bob"):
        school.hand_in(student, {"copy": f"x = '{student}'"})
    assert main(["grade", LAB, str(school.folder), "--gradebook", elsewhere.database], school.course) == 0
    assert PASSWORD not in school.course.databases.read_text()
    assert f"1. export {GRADEBOOK}=URL, as in --gradebook" in capsys.readouterr().out
    forget = ["forget", "--before", "2100-01-01", "--yes"]
    assert main(forget, school.course) == 1  # nobody said which database
    said = capsys.readouterr().out
    assert "127.0.0.1" in said and "--gradebook" in said and "deleted" not in said
    assert scores(elsewhere) == {"ann": 11, "bob": 11} and (school.course.feedback / "ann").exists()
    assert main([*forget, "--gradebook", elsewhere.database], school.course) == 0
    assert "deleted: data of 2 submissions" in capsys.readouterr().out
    with Gradebook(elsewhere.db_url) as book:
        assert not book.students and book.db.query(Grade).count() == 0
    assert not (school.course.feedback / "ann").exists()


def test_a_database_that_does_not_answer_keeps_all_files_of_those_to_be_forgotten(
    school: Class, elsewhere: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    school.hand_in("ann")
    assert grade(elsewhere, school) == 0
    nowhere = replace(elsewhere, database=f"postgresql://t:{PASSWORD}@127.0.0.1:1/x")
    capsys.readouterr()
    forget = ["forget", "--before", "2100-01-01", "--yes", "--gradebook", nowhere.database]
    assert main(forget, elsewhere) == 1
    said = capsys.readouterr().out
    assert "refused" in said and "Nothing was deleted" in said and PASSWORD not in said
    assert (elsewhere.feedback / "ann").exists() and scores(elsewhere) == {"ann": 11}


def test_a_url_that_leads_nowhere_is_one_line_without_the_password(
    school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    school.hand_in("ann")
    for url, words in {
        f"postgresql://t:{PASSWORD}@127.0.0.1:1/x": "refused",
        f"postgresql+pg8000://t:{PASSWORD}@h/x": "its driver is not installed (pg8000)",
        f"mysql://t:{PASSWORD}@h/x": "SQLite or PostgreSQL, not mysql",
        f"mysql+nothing://t:{PASSWORD}@h/x": "SQLite or PostgreSQL, not mysql",
        f"{PASSWORD}": "the gradebook's URL cannot be read",
    }.items():
        assert grade(replace(school.course, database=url), school) == 1
        out = capsys.readouterr().out
        assert len(out.strip().splitlines()) == 1 and PASSWORD not in out and words in out
    assert not FakeJudge.asked
