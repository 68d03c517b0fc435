"""A repository for one class of learners: the labs and `gpulab`, without what gives answers away.

Solutions, wrong submissions, the judge's cases, the instructor's package, tests and history stay here. The
expected results (`gpulab/content/*/references/`) go along: without them a learner's check could tell nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import nbformat

from gpulab.app.course import address
from gpulab.app.course.address import Address
from gpulab.checks import cohort, registry
from gpulab.checks.cohort import Cohort
from grading.authoring import schedule
from grading.authoring.release import notebook_text, released_files, released_pages
from grading.core import environment
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.core.notebooks import questions
from grading.lms import settings

TEMPLATES = Path(__file__).with_name("learners")
AS_IT_IS = (
    ".devcontainer", "LICENSE", "CITATION.cff", "constraints.txt", "constraints-compiler.txt", "binder",
    "docs/picture.svg", "tools/setup.py", "gpulab",
)  # fmt: skip
TARGETS = ("help", "lab", "setup", "clean")  # of the Makefile
SECTIONS = ("build-system", "project", "tool.setuptools")  # of pyproject.toml
NOT_FOR_LEARNERS = ("grading", "site", "dev")  # extras
COHORT = "gpulab/checks/cohort.json"
WORKFLOW = ".github/workflows/check.yml"
ADDRESS = "gpulab/app/course/address.toml"
LEFT_BEHIND = {"__pycache__", ".ipynb_checkpoints", ".pytest_cache"}
ADDRESS_TEXT = """\
# Where this course lies in public. With an address, notebooks have links to Colab, Kaggle and Binder.
repository = "{where.repository}"
branch = "{where.branch}"
"""
ONE_CLICK = """\
| Binder, Colab, Kaggle | a link in each notebook that runs there |
| GitHub Codespaces | [a codespace]({where.codespaces}), then `make lab ARGS=--no-browser` in its terminal |
"""
SIZES = re.compile(
    r"Sizes include.*?\.(?=\s|$)", re.S
)  # what a lab's text says of an exercise's public cases


@dataclass(frozen=True)
class Made:
    """A repository that was made: where, for whom, how many labs and files, and what became of git."""

    folder: Path
    cohort: Cohort
    labs: int
    address: Address
    written: int  # files that are new or changed
    removed: int
    git: str
    notes: tuple[str, ...] = ()  # what a person should know of the dates


def make(
    course: Course,
    folder: Path,
    name: str = "",
    repository: str | None = None,
    labs: Collection[str] = (),
    now: datetime | None = None,
    classroom: bool = False,
) -> Made:
    """Make the repository of a class in `folder`, or bring it up to date.

    The class is called as the folder is unless `name` says otherwise, and has the same seed every time.
    `repository` is where it will lie in public, "" for nowhere; None keeps what the folder has. `labs` are
    whole names; without any it goes by the dates in `course.toml`, and without dates all labs are there. A
    lab that the folder has stays. With `classroom` it has an Action that checks on every push, and keeps it.
    `now` is in UTC, without saying so.
    Raises GradingError where the folder holds something else, another class, or belongs to this repository,
    for labs that there are not, and for a `course.toml` that makes no sense.
    """
    folder = folder.resolve()
    name = name.strip() or folder.name
    _refuse(course, folder, name)
    dates = settings.read(course)
    out, notes = schedule.choose(course, dates, folder, labs, now or datetime.now(UTC).replace(tzinfo=None))
    secret = environment.secret(course)
    chosen = Cohort(name, environment.seed(secret, "cohort", name, "") % 2**32)
    where = _address(folder, repository)
    wanted = files(course, chosen, where, out, schedule.table(dates, out))
    if classroom or (folder / WORKFLOW).is_file():
        wanted[WORKFLOW] = (TEMPLATES / "check.yml").read_bytes()
    written = 0
    for path, content in wanted.items():
        target = folder / path
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            written += 1
        if (source := course.root / path).is_file() and os.access(source, os.X_OK):
            target.chmod(0o755)
    removed = _remove_old(folder, wanted)
    git = _commit(folder, list(wanted), name)
    return Made(folder, chosen, len(out), where, written, removed, git, tuple(notes))


def _refuse(course: Course, folder: Path, name: str) -> None:
    if folder.is_relative_to(course.root.resolve()):
        raise GradingError(
            f"{folder} is inside {course.root}, which holds the solutions: name a folder outside"
        )
    if folder.exists() and not folder.is_dir():
        raise GradingError(f"{folder} is not a folder")
    if not folder.exists() or all(path.name == ".git" for path in folder.iterdir()):
        return
    if not (folder / COHORT).is_file():
        raise GradingError(f"{folder} holds something else: name a new folder, or one that this command made")
    if (whose := cohort.load(folder / COHORT).name) != name:
        raise GradingError(
            f"{folder} is the course of '{whose}': add --name '{whose}', or name another folder"
        )


def _address(folder: Path, repository: str | None) -> Address:
    """Where the class's repository lies: what is said now, else what its folder says, else nowhere."""
    try:
        if repository is not None:
            return Address(repository.rstrip("/").removesuffix(".git"))
        file = folder / ADDRESS
        return address.read(file) if file.exists() else Address("")
    except ValueError as error:
        raise GradingError(str(error)) from None


def files(
    course: Course, chosen: Cohort, where: Address, labs: Sequence[str], dates: str = ""
) -> dict[str, bytes]:
    """All files of the learners' repository, by path; `dates` are Markdown for its README."""
    found = {
        path.relative_to(course.root).as_posix(): path.read_bytes() for path in _as_they_are(course.root)
    }
    for lab in labs:
        for path, content in released_files(course, lab, where).items():
            found[f"labs/{lab}/{path}"] = _of_cohort(content, chosen) if path.endswith(".ipynb") else content
    for page, content in released_pages(course, where):
        found[f"labs/{page.name}"] = schedule.without_links(content.decode(), labs).encode()
    said = json.dumps({"name": chosen.name, "seed": chosen.seed}, ensure_ascii=False) + "\n"
    found[COHORT] = said.encode()
    found[ADDRESS] = ADDRESS_TEXT.format(where=where).encode()
    text = readme(course.root, chosen.name, where, dates)
    found["README.md"] = schedule.without_links(text, labs).encode()
    found[".gitignore"] = (TEMPLATES / "gitignore").read_bytes()
    found["Makefile"] = makefile((course.root / "Makefile").read_text(encoding="utf-8")).encode()
    found["pyproject.toml"] = pyproject((course.root / "pyproject.toml").read_text(encoding="utf-8")).encode()
    return dict(sorted(found.items()))


def _as_they_are(root: Path) -> Iterator[Path]:
    for name in AS_IT_IS:
        place = root / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            parts = set(path.relative_to(root).parts)
            if path.is_file() and not parts & LEFT_BEHIND and path.suffix != ".pyc" and path != cohort.FILE:
                yield path


def _of_cohort(notebook: bytes, chosen: Cohort) -> bytes:
    """A released notebook whose sentences "Sizes include …" name the cohort's sizes."""
    read = nbformat.reads(notebook.decode(), as_version=4)
    asked = {question.cell: question.exercise for question in questions(read)}
    before = []  # the texts since the last test cell
    for cell in read.cells:
        if cell.cell_type == "markdown":
            before.append(cell)
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if name in asked:
            numbers = cohort.numbers(registry.find(asked[name]), chosen)
            for text in before:
                for sentence in SIZES.findall(text.source):
                    text.source = text.source.replace(sentence, cohort.renumbered(sentence, numbers))
            before = []
    return notebook_text(read).encode()


def readme(root: Path, name: str, where: Address, dates: str = "") -> str:
    """The learners' README: ours where it shows the course, without what others need."""
    ours = (root / "README.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)\n", ours, flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    text = (TEMPLATES / "README.md").read_text(encoding="utf-8").replace("{class}", name)
    text = text.replace("{one click}", ONE_CLICK.format(where=where) if where else "")
    labs = [line for line in sections["The labs"].splitlines() if line.startswith("|")]
    sections["The labs"] = "\n" + "\n".join(labs) + "\n\n" + dates
    return re.sub(r"^\{(.+)\}\n", lambda found: sections[found[1]], text, flags=re.M)


def makefile(ours: str) -> str:
    """The Makefile with the learners' targets only."""
    head, *rules = re.split(r"^(?=[a-z-]+:)", ours, flags=re.M)
    names = {rule.split(":")[0] for rule in rules}
    kept = "".join(rule for rule in rules if rule.split(":")[0] in TARGETS)
    for name in names - set(TARGETS):
        kept = re.sub(rf'^\t@echo "make {name} .*\n', "", kept, flags=re.M)
    kept = re.sub(r"^#.*\n", "", kept, flags=re.M)  # these stand before rules that are gone
    head = re.sub(r"^\.PHONY:.*$", f".PHONY: {' '.join(TARGETS)}", head, flags=re.M)
    head = re.sub(r"^# `make lab`.*$", "# `make lab` makes the environment in .venv first.", head, flags=re.M)
    head = re.sub(r"^(# Whole files|TEST|JOBS|LABS).*\n", "", head, flags=re.M)
    head = head.replace(", Triton, instructor's or developer's tools", " or Triton")
    return head + kept


def pyproject(ours: str) -> str:
    """pyproject.toml without the instructor's package, its extras, and the tools of who develops it."""
    blocks = re.split(r"^(?=\[+[\w.-]+\]+$)", ours, flags=re.M)
    kept = [block for block in blocks if block.startswith(tuple(f"[{s}" for s in SECTIONS))]
    text = "".join(kept).replace('["gpulab*", "grading*"]', '["gpulab*"]')
    for extra in NOT_FOR_LEARNERS:
        text = re.sub(rf"^{extra} = \[(?:[^\n]*\]|.*?^\])\n", "", text, flags=re.M | re.S)
    return text.rstrip("\n") + "\n"


def _remove_old(folder: Path, wanted: dict[str, bytes]) -> int:
    """Take away what an earlier version of the package had; in other folders everything stays."""
    removed = 0
    for path in sorted((folder / "gpulab").rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in wanted and not LEFT_BEHIND & set(path.parts):
            path.unlink()
            removed += 1
    return removed


def _commit(folder: Path, paths: list[str], name: str) -> str:
    """Put the files under git's care; says what was done."""
    if shutil.which("git") is None:
        return "git is not installed here: put the folder under version control yourself"

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True)
        if done.returncode:
            raise GradingError(f"git {arguments[0]} in {folder}: {(done.stderr or done.stdout).strip()}")
        return done.stdout.strip()

    if not (folder / ".git").exists():
        git("init", "--quiet", "--initial-branch=main")
    git("add", "--all", "--", *sorted({path.split("/")[0] for path in paths}))
    if not git("status", "--porcelain", "--untracked-files=no"):
        return "nothing new to commit"
    known = subprocess.run(["git", "-C", str(folder), "config", "user.email"], capture_output=True).stdout
    somebody = () if known.strip() else ("-c", "user.name=gpulab", "-c", "user.email=gpulab@localhost")
    git(*somebody, "commit", "--quiet", "-m", f"The course for {name}")
    return f"commit {git('rev-parse', '--short', 'HEAD')}"
