"""`python -m grading course DIR`: what learners get works, and gives nothing away."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gpulab.app.course import address
from gpulab.app.course.address import Address
from gpulab.checks import registry
from gpulab.checks.cohort import Cohort, of_cohort
from grading.__main__ import main
from grading.authoring.own_course import ADDRESS, AS_IT_IS
from grading.core.course import ROOT, Course, sources
from grading.lms import preprocessors

NAME = "Autumn term"
LAB = "labs/00_start_here/00_start_here.ipynb"
CLASS = Path("autumn")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return Course(ROOT, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def made(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / CLASS
    assert main(["course", str(folder), "--name", NAME], course) == 0
    return folder


def files(folder: Path) -> dict[str, Path]:
    return {
        p.relative_to(folder).as_posix(): p
        for p in folder.rglob("*")
        if p.is_file() and not {".git", "__pycache__"} & set(p.parts)
    }


def learner(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command of somebody who has that repository and not ours."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GPULAB")}
    environment |= {"PYTHONPATH": str(folder), "GPULAB_PROGRESS": str(folder / "labs" / "progress.json")}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=280
    )


def own_lines() -> set[str]:
    """Long lines of solutions that stand nowhere else in the labs."""
    marked = re.compile(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", re.S)
    texts = [p.read_text() for lab in Course().lab_names() for p in sources(ROOT / "solutions" / lab)]
    given = "".join(marked.sub("", text) for text in texts)
    lines = {line.strip() for text in texts for part in marked.findall(text) for line in part.splitlines()}
    return {line for line in lines if len(line) > 45 and line not in given}


def test_learners_get_no_solutions_no_wrong_submissions_no_cases_and_no_history(made: Path) -> None:
    found = files(made)
    assert {name.split("/")[0] for name in found} == {
        ".devcontainer", ".gitignore", "CITATION.cff", "LICENSE", "Makefile", "README.md", "binder", "constraints-compiler.txt",
        "constraints.txt", "docs", "gpulab", "labs", "pyproject.toml", "tools",
    }  # fmt: skip
    notebooks = "\n".join(path.read_text() for name, path in found.items() if name.endswith(".ipynb"))
    lines = own_lines()
    assert len(lines) > 300
    assert [line for line in lines if json.dumps(line)[1:-1] in notebooks] == []
    assert "BEGIN SOLUTION" not in notebooks
    assert not [name for name in found if "/wrong/" in name or name.endswith("rubric.toml")]
    log = subprocess.run(["git", "log", "--format=%s"], cwd=made, capture_output=True, text=True)
    assert log.stdout.splitlines() == [f"The course for {NAME}"]
    status = subprocess.run(["git", "status", "--porcelain"], cwd=made, capture_output=True, text=True)
    assert status.stdout == ""


def test_a_learner_opens_lab_00_sees_a_check_fail_and_then_pass(made: Path) -> None:
    place = f"{LAB}::start.double"
    asked = learner(made, "-m", "gpulab", "check", place)
    assert asked.returncode == 1 and "0 of 2.0 points" in asked.stdout, asked.stderr
    notebook = json.loads((made / LAB).read_text())
    cell = next(c for c in notebook["cells"] if c["id"] == "double")
    cell["source"] = (
        "@cuda.jit\ndef double(a, out):\n    i = cuda.grid(1)\n    if i < a.size:\n        out[i] = 2 * a[i]\n"
    )
    (made / "labs" / "mine.ipynb").write_text(json.dumps(notebook))
    right = learner(made, "-m", "gpulab", "check", "labs/mine.ipynb::start.double")
    (made / "labs" / "mine.ipynb").unlink()
    assert right.returncode == 0 and "2.0 of 2.0" in right.stdout, right.stdout + right.stderr


def test_what_learners_run_is_theirs_and_has_the_sizes_of_their_class(made: Path) -> None:
    data = json.loads((made / "gpulab/checks/cohort.json").read_text())
    theirs = of_cohort(registry.find("memory.copy"), Cohort(data["name"], data["seed"]))
    said = learner(
        made, "-c", "import gpulab; from gpulab.checks import registry;"
        "print(gpulab.__file__); print([c.name for c in registry.find('memory.copy').cases])",
    )  # fmt: skip
    where, names = said.stdout.splitlines()
    assert Path(where).is_relative_to(made)
    assert names == repr([c.name for c in theirs.cases])
    lab = (made / "labs/04_memory_hierarchy/04_memory_hierarchy.ipynb").read_text()
    assert f"Sizes include {theirs.cases[3].name}, {theirs.cases[6].name} and 0." in lab
    assert "Sizes include 1,023" not in lab


# The labs' own solutions, held against the public cases of a class: they must pass whatever the seed is.
PASSES = """
import sys
from pathlib import Path
from gpulab.app import from_file
from gpulab.checks import checking, registry
from gpulab.checks.spec import Answer
labs, solutions = sys.argv[1], [Path(p) for p in sys.argv[2:]]
for exercise in registry.exercises():
    if exercise.varies and (not labs or exercise.lab == labs):
        asked = f'gpulab.check("{exercise.name}"'
        source = next(p for p in solutions if asked in p.read_text())
        parts = checking.examine(Answer(exercise, from_file.function(source, exercise.name), registry.reference(exercise.name)))
        if any(part.points < part.of for part in parts):
            print(exercise.name, [c.name for c in exercise.cases], parts)
"""


def solved(folder: Path, lab: str) -> str:
    paths = [str(p) for name in Course().lab_names() for p in sources(ROOT / "solutions" / name)]
    said = learner(folder, "-c", PASSES, lab, *paths)
    assert said.returncode == 0, said.stderr
    return said.stdout


def test_solutions_pass_at_the_sizes_of_a_class(made: Path) -> None:
    assert solved(made, "04") == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_solutions_pass_at_the_sizes_of_every_class(made: Path, seed: int) -> None:
    path = made / "gpulab/checks/cohort.json"
    before = path.read_text()
    try:
        path.write_text(json.dumps({"name": "another", "seed": seed}))
        assert solved(made, "") == ""
    finally:
        path.write_text(before)


def test_its_make_and_packaging_know_nothing_of_instructors(made: Path) -> None:
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    shown = subprocess.run(["make", "help"], cwd=made, env=alone, capture_output=True, text=True)
    assert [line.split()[1] for line in shown.stdout.splitlines()] == ["lab", "setup", "clean"]
    todo = subprocess.run(["make", "-n", "lab"], cwd=made, env=alone, capture_output=True, text=True)
    assert todo.returncode == 0 and "gpulab lab" in todo.stdout, todo.stderr
    assert "test" not in (made / "Makefile").read_text().replace("pytest", "")
    project = tomllib.loads((made / "pyproject.toml").read_text())
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = ours["project"].pop("optional-dependencies")
    kept = project["project"].pop("optional-dependencies")
    assert project["project"] == ours["project"]
    assert kept == {k: v for k, v in extras.items() if k not in ("grading", "site", "dev")}
    assert project["tool"]["setuptools"]["packages"]["find"]["include"] == ["gpulab*"]
    assert set(project["tool"]) == {"setuptools"}


def test_its_readme_is_for_learners_and_its_links_lead_somewhere(made: Path) -> None:
    text = (made / "README.md").read_text()
    assert "only definitions that an answer uses are read for the grade" in text
    assert NAME in text and "{" not in re.sub(r"```.*?```", "", text, flags=re.S)
    assert "instructor" not in text.lower() and "grading/" not in text and "make test" not in text
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("http")]
    assert len(links) > 20
    assert [link for link in links if not (made / link).exists()] == []


@pytest.fixture
def small(tmp_path: Path) -> Course:
    """A repository of ours with one lab."""
    root = tmp_path / "ours"
    for name in (*AS_IT_IS, "README.md", "Makefile", "pyproject.toml", "solutions/00_start_here"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, root / name)
    return Course(root, tmp_path / "home")


def test_making_it_again_changes_nothing_and_a_new_version_comes_in(
    small: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "made"
    made.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=made)  # as a clone of an empty repository
    assert main(["course", str(made)], small) == 0
    (made / "labs" / "progress.json").write_text("{}")
    assert main(["course", str(made)], small) == 0
    assert "already up to date · nothing new to commit" in capsys.readouterr().out
    (small.root / "gpulab" / "app" / "doctor.py").unlink()
    (small.root / "LICENSE").write_text("another\n")
    assert main(["course", str(made)], small) == 0
    assert re.search(r"1 files written, 1 taken away · commit \w+", capsys.readouterr().out)
    assert (made / "LICENSE").read_text() == "another\n"
    assert not (made / "gpulab" / "app" / "doctor.py").exists()
    assert (made / "labs" / "progress.json").exists()
    log = subprocess.run(["git", "log", "--format=%s"], cwd=made, capture_output=True, text=True)
    assert log.stdout.splitlines() == ["The course for made"] * 2


def test_its_dev_containers_set_up_with_a_target_that_its_make_has(made: Path) -> None:
    containers = sorted((made / ".devcontainer").rglob("devcontainer.json"))
    assert len(containers) == 2
    for path in containers:
        assert path.read_bytes() == (ROOT / path.relative_to(made)).read_bytes()
        (command,) = re.findall(r'"postCreateCommand": "make (\w+)', path.read_text())
        assert re.search(rf"^{command}:", (made / "Makefile").read_text(), re.M)


def test_its_notebooks_link_to_its_own_address_and_never_to_ours(
    small: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = Address("https://github.com/main/course"), "https://github.com/school/gpu-course"
    monkeypatch.setattr(preprocessors, "address", lambda: ours)
    (small.root / "gpulab/app/course/address.toml").write_text(
        f'repository = "{ours.repository}"\nbranch = "main"\n'
    )

    def texts() -> str:
        return "".join(
            path.read_text() for name, path in files(made).items() if name.endswith((".ipynb", ".md"))
        )

    made = tmp_path / "made"
    assert main(["course", str(made)], small) == 0
    assert "public address: nowhere" in capsys.readouterr().out
    assert "Open in [Colab]" not in texts() and "main/course" not in texts() and "codespaces" not in texts()
    assert not address.read(made / ADDRESS)

    assert main(["course", str(made), "--repository", f"{theirs}.git"], small) == 0
    assert main(["course", str(made)], small) == 0  # the folder remembers it
    assert f"already up to date · nothing new to commit\npublic address: {theirs}" in capsys.readouterr().out
    assert "school/gpu-course/blob/main/labs/00_start_here/00_start_here.ipynb" in texts()
    assert f"@ git+{theirs}@main" in texts() and "codespaces.new/school/gpu-course" in texts()
    assert "main/course" not in texts()
    assert address.read(made / ADDRESS) == Address(theirs)

    assert main(["course", str(made), "--repository", ""], small) == 0
    assert "Open in [Colab]" not in texts()


def test_what_is_no_public_address_is_refused_before_anything_is_written(
    course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["course", str(tmp_path / "made"), "--repository", "gitlab.com/a/b"], course) == 1
    assert "write https://github.com/OWNER/NAME" in " ".join(capsys.readouterr().out.split())
    assert not (tmp_path / "made").exists()


def test_a_wrong_folder_is_refused_in_words(
    made: Path, course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(folder: Path, *more: str) -> str:
        assert main(["course", str(folder), *more], course) == 1
        return " ".join(capsys.readouterr().out.split())

    assert "which holds the solutions: name a folder outside" in refused(ROOT / "labs")
    assert f"is the course of '{NAME}': add --name '{NAME}'" in refused(made)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    assert "holds something else" in refused(tmp_path / "mine")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    assert "is not a folder" in refused(tmp_path / "mine" / "thesis.tex")
