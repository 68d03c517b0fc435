"""`gpulab update`, on real folders, zips and clones: work is kept, copies are made, a failure changes nothing."""

from __future__ import annotations

import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpulab.app import cli
from gpulab.app.update import CannotUpdate, update
from gpulab.app.update.update import KEPT

from .test_merge import BASE, cell, changed, notebook, texts

ROOT = Path(__file__).resolve().parents[2]
update_module = sys.modules["gpulab.app.update.update"]
LAB = "00_start_here/00_start_here.ipynb"


def write(labs: Path, made: dict, name: str = LAB) -> None:
    (labs / name).parent.mkdir(parents=True, exist_ok=True)
    (labs / name).write_text(json.dumps(made, indent=1) + "\n")


def read(labs: Path, name: str = LAB) -> dict:
    return json.loads((labs / name).read_text())


def git(folder: Path, *arguments: str) -> str:
    who = {
        "GIT_AUTHOR_NAME": "t",
        "GIT_AUTHOR_EMAIL": "t@t",
        "GIT_COMMITTER_NAME": "t",
        "GIT_COMMITTER_EMAIL": "t@t",
    }
    ran = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, env={**os.environ, **who}
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """The course's new version, as a folder: a mended title, another lab."""
    labs = tmp_path / "new" / "labs"
    write(labs, changed(BASE, "title", "# Lab, mended"))
    write(labs, notebook(), "01_more/01_more.ipynb")
    (labs / "00_start_here" / "data.csv").write_text("new\n")
    return tmp_path / "new"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A learner's labs, with an answer and progress."""
    labs = tmp_path / "mine" / "labs"
    write(labs, changed(BASE, "task", "my answer"))
    (labs / "00_start_here" / "data.csv").write_text("old\n")
    (labs / "progress.json").write_text("{}")
    return labs


def test_a_folder_brings_new_labs_and_keeps_work_and_progress(course: Path, mine: Path) -> None:
    (course / "labs" / "progress.json").write_text("not theirs to give")
    done = update(mine, course)
    assert "my answer" in texts(read(mine)) and "# Lab, mended" in texts(read(mine))
    assert (mine / "01_more" / "01_more.ipynb").exists()
    assert (mine / "progress.json").read_text() == "{}"
    assert set(done.added) == {"01_more/01_more.ipynb"} and set(done.changed) == {
        LAB,
        "00_start_here/data.csv",
    }


def test_what_changes_is_copied_first(course: Path, mine: Path) -> None:
    was = (mine / LAB).read_bytes()
    done = update(mine, course)
    assert done.copies is not None and done.copies.parent.name == KEPT
    assert (done.copies / LAB).read_bytes() == was
    assert (done.copies / "00_start_here" / "data.csv").read_text() == "old\n"
    (mine / LAB).write_bytes(was)
    assert update(mine, course).copies != done.copies


def test_a_second_update_finds_nothing_to_do(course: Path, mine: Path) -> None:
    update(mine, course)
    again = update(mine, course)
    assert again.changed == again.added == () and "up to date" in str(again)


def test_a_zip_as_downloaded_will_do(course: Path, mine: Path, tmp_path: Path) -> None:
    inside = tmp_path / "zipped" / "gpulab-main"
    shutil.copytree(course, inside)
    archive = shutil.make_archive(str(tmp_path / "course"), "zip", tmp_path / "zipped")
    update(mine, Path(archive))
    assert "# Lab, mended" in texts(read(mine))


def test_labs_that_are_newer_than_the_package_beside_them_are_told_so(course: Path, mine: Path) -> None:
    for root in (course, mine.parent):
        (root / "gpulab").mkdir()
        (root / "gpulab" / "code.py").write_text("same\n")
    assert "another version" not in str(update(mine, course))
    (course / "gpulab" / "code.py").write_text("new\n")
    assert "belong to another version of gpulab" in " ".join(str(update(mine, course)).split())


@pytest.mark.parametrize("kind", ["an empty folder", "a damaged zip"])
def test_a_source_without_labs_changes_nothing(kind: str, mine: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    if kind == "an empty folder":
        source.mkdir()
    else:
        source.write_bytes(b"PK no zip")
    was = (mine / LAB).read_bytes()
    with pytest.raises(CannotUpdate, match="Nothing has changed"):
        update(mine, source)
    assert (mine / LAB).read_bytes() == was


def test_a_notebook_that_is_damaged_is_replaced_and_kept_as_a_copy(course: Path, mine: Path) -> None:
    (mine / LAB).write_text('{"cells": [')
    done = update(mine, course)
    assert done.copies and (done.copies / LAB).read_text() == '{"cells": ['
    assert "# Lab, mended" in texts(read(mine))
    assert "among the copies" in str(done)


@pytest.fixture
def clone(tmp_path: Path) -> tuple[Path, Path]:
    """A published course and a learner's clone of it."""
    origin, here = tmp_path / "origin", tmp_path / "clone"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    (origin / "gpulab").mkdir()
    (origin / "gpulab" / "code.py").write_text("old\n")
    write(origin / "labs", BASE)
    write(origin / "labs", BASE, "02_old/02_old.ipynb")
    write(origin / "labs", BASE, "03_old/03_old.ipynb")
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "first")
    git(tmp_path, "clone", "-q", str(origin), str(here))
    return origin, here


def publish(origin: Path) -> None:
    """A new version: a mended lab, new code, a new lab, two labs gone."""
    write(origin / "labs", changed(BASE, "title", "# Lab, mended"))
    (origin / "gpulab" / "code.py").write_text("new\n")
    write(origin / "labs", notebook(), "01_more/01_more.ipynb")
    git(origin, "rm", "-rq", "labs/02_old", "labs/03_old")
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "second")


def test_a_clone_moves_to_its_upstream_with_the_work_in_it(clone: tuple[Path, Path]) -> None:
    origin, here = clone
    write(here / "labs", changed(BASE, "task", "my answer"))
    write(here / "labs", changed(BASE, "task", "my old answer"), "03_old/03_old.ipynb")
    (here / "labs" / "notes.txt").write_text("mine")
    publish(origin)
    done = update(here / "labs")
    assert texts(read(here / "labs")) == ["# Lab, mended", "my answer", "check(f)"]
    assert done.conflicts == {}
    assert (here / "gpulab" / "code.py").read_text() == "new\n"
    assert git(here, "rev-parse", "HEAD") == git(origin, "rev-parse", "HEAD")
    assert (here / "labs" / "notes.txt").read_text() == "mine"
    assert not (here / "labs" / "02_old" / "02_old.ipynb").exists()
    assert "my old answer" in texts(read(here / "labs", "03_old/03_old.ipynb"))
    assert update(here / "labs").changed == ()


def test_a_file_of_the_learners_with_the_name_of_a_new_one_is_not_lost(clone: tuple[Path, Path]) -> None:
    origin, here = clone
    write(here / "labs", changed(BASE, "task", "my draft"), "01_more/01_more.ipynb")
    publish(origin)
    update(here / "labs")
    assert "my draft" in "\n".join(texts(read(here / "labs", "01_more/01_more.ipynb")))


WRITING = {"os.rename", "os.remove", "os.mkdir", "os.chmod", "subprocess.Popen", "shutil.copyfile"}


def in_a_child(labs: Path, prepare: Callable[[], None], source: Path | None = None) -> int:
    """How a process ends that prepares and then updates: 0, 3 where it could not, or by a signal (negative)."""
    child = os.fork()
    if child == 0:
        try:
            prepare()
            update(labs, source)
            os._exit(0)
        except CannotUpdate as error:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            (labs.parent / "said.txt").write_text(str(error))
            os._exit(3)
        except BaseException:
            traceback.print_exc()
            os._exit(4)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(step: int) -> Callable[[], None]:
    """Kills this process before the step-th time that it writes, moves or removes something or starts git."""

    def prepare() -> None:
        left = itertools.count(step, -1)

        def hook(event: str, arguments: tuple) -> None:
            writes = (
                event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            )
            if (event in WRITING or writes) and next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)

    return prepare


def test_wherever_an_update_is_killed_all_work_is_where_it_was_and_the_next_one_goes_on(
    clone: tuple[Path, Path], tmp_path: Path
) -> None:
    origin, here = clone
    mine = changed(BASE, "task", "my answer")
    mine["cells"].append(cell("scratch", "my scratch"))
    write(here / "labs", mine)
    write(here / "labs", changed(BASE, "title", "my old notes"), "03_old/03_old.ipynb")
    (here / "labs" / "notes.txt").write_text("my notes")
    publish(origin)
    ended = 0
    for step in itertools.count():
        trial = tmp_path / f"trial-{step}"
        shutil.copytree(here, trial, symlinks=True)
        labs = trial / "labs"
        ended = in_a_child(labs, killed_at(step))
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        for name, text in ((LAB, "my answer"), (LAB, "my scratch"), ("03_old/03_old.ipynb", "my old notes")):
            assert text in "\n".join(texts(read(labs, name))), f"killed at {step}"
        (trial / ".git" / "index.lock").unlink(missing_ok=True)  # as git itself asks for
        if step % 4 == 0:
            update(labs)
            assert texts(read(labs)) == ["# Lab, mended", "my answer", "check(f)", "my scratch"], step
            assert (trial / "gpulab" / "code.py").read_text() == "new\n"
            assert git(trial, "rev-parse", "HEAD") == git(origin, "rev-parse", "HEAD")
            assert git(trial, "status", "--porcelain", "--", "gpulab", "labs/01_more") == ""
        assert (labs / "notes.txt").read_text() == "my notes"
        shutil.rmtree(trial)
    assert step > 15


@pytest.mark.parametrize("largest", [0, 100, 400, 1200])
def test_on_a_full_disk_it_says_so_and_all_work_stays(course: Path, mine: Path, largest: int) -> None:
    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))

    data = mine / "00_start_here" / "data.csv"
    (course / "labs" / "00_start_here" / "large.csv").write_text("new\n" * 1000)
    assert in_a_child(mine, full, course) == 3
    said = (mine.parent / "said.txt").read_text()
    assert "too large" in said and ("Nothing has changed" in said or "Nothing of yours is lost" in said)
    assert "my answer" in texts(read(mine))
    assert data.read_text() in ("old\n", "new\n")
    assert data.read_text() == "old\n" or list((mine / KEPT).glob("*/00_start_here/data.csv"))
    update(mine, course)
    assert "my answer" in texts(read(mine)) and "# Lab, mended" in texts(read(mine))


def test_what_cannot_be_written_stops_it_in_words_and_the_next_one_goes_on(course: Path, mine: Path) -> None:
    (mine / "01_more").write_text("a file of mine, where the course has a folder")
    with pytest.raises(CannotUpdate, match=r"01_more.*Nothing of yours is lost.*Copies from before are in"):
        update(mine, course)
    assert (mine / "01_more").read_text().startswith("a file of mine")
    (mine / "01_more").rename(mine / "mine.txt")
    update(mine, course)
    assert "my answer" in texts(read(mine)) and (mine / "01_more" / "01_more.ipynb").exists()


def test_a_file_that_may_only_be_read_is_updated_and_stays_so(course: Path, mine: Path) -> None:
    (mine / LAB).chmod(0o444)
    update(mine, course)
    assert "# Lab, mended" in texts(read(mine)) and (mine / LAB).stat().st_mode & 0o777 == 0o444


def test_a_notebook_that_is_saved_during_the_update_is_left_alone(
    course: Path, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copying = update_module._copied

    def saved_meanwhile(*arguments: Any) -> Path | None:
        copies = copying(*arguments)
        write(mine, changed(BASE, "task", "my better answer"))
        return copies

    monkeypatch.setattr(update_module, "_copied", saved_meanwhile)
    with pytest.raises(CannotUpdate, match="was saved meanwhile; close it"):
        update(mine, course)
    assert "my better answer" in texts(read(mine))


def test_a_file_of_the_learners_where_the_new_version_has_one_outside_the_labs_stops_it(
    clone: tuple[Path, Path],
) -> None:
    origin, here = clone
    (here / "gpulab" / "more.py").write_text("my module\n")
    (origin / "gpulab" / "more.py").write_text("the course's\n")
    publish(origin)
    with pytest.raises(CannotUpdate, match=r"gpulab/more\.py"):
        update(here / "labs")
    assert (here / "gpulab" / "more.py").read_text() == "my module\n"
    assert texts(read(here / "labs")) == texts(BASE)


def test_files_that_the_new_version_drops_or_renames_outside_the_labs_go(clone: tuple[Path, Path]) -> None:
    origin, here = clone
    publish(origin)
    git(origin, "mv", "gpulab/code.py", "gpulab/renamed.py")
    git(origin, "commit", "-qm", "third")
    update(here / "labs")
    assert [p.name for p in (here / "gpulab").iterdir()] == ["renamed.py"]
    assert git(here, "status", "--porcelain", "--", "gpulab") == ""


def test_changes_to_the_courses_code_stop_it_before_anything_happens(clone: tuple[Path, Path]) -> None:
    origin, here = clone
    (here / "gpulab" / "code.py").write_text("mine\n")
    publish(origin)
    with pytest.raises(CannotUpdate, match=r"gpulab/code\.py"):
        update(here / "labs")
    assert (here / "gpulab" / "code.py").read_text() == "mine\n" and texts(read(here / "labs")) == texts(BASE)


def test_commits_of_ones_own_stop_it(clone: tuple[Path, Path]) -> None:
    origin, here = clone
    write(here / "labs", changed(BASE, "task", "my answer"))
    git(here, "commit", "-qam", "mine")
    publish(origin)
    with pytest.raises(CannotUpdate, match="commits of its own"):
        update(here / "labs")


def test_a_branch_that_follows_none_is_told_what_to_do(clone: tuple[Path, Path]) -> None:
    _, here = clone
    git(here, "checkout", "--quiet", "--detach")
    with pytest.raises(CannotUpdate, match=r"follows no branch.*git checkout main.*gpulab update FOLDER"):
        update(here / "labs")


def test_an_upstream_that_is_gone_leaves_the_labs_as_they_were(clone: tuple[Path, Path]) -> None:
    origin, here = clone
    write(here / "labs", changed(BASE, "task", "my answer"))
    shutil.rmtree(origin)
    with pytest.raises(CannotUpdate, match="git fetch"):
        update(here / "labs")
    assert "my answer" in texts(read(here / "labs"))


def test_a_folder_that_is_no_clone_asks_for_a_source(mine: Path) -> None:
    with pytest.raises(CannotUpdate, match="gpulab update FOLDER"):
        update(mine)


def test_the_command_says_what_it_did(
    course: Path, mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (mine.parent / "gpulab").mkdir()
    monkeypatch.chdir(mine)
    assert cli.main(["update", str(course)]) == 0
    assert "2 changed, 1 new" in capsys.readouterr().out
    assert cli.main(["update"]) == 1
    assert "no clone" in capsys.readouterr().err
    assert cli.main(["update", "nowhere"]) == 2
