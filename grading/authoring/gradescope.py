"""An autograder for Gradescope: `python -m grading gradescope LAB FILE.zip`, and what runs in its container.

Gradescope builds a container with `setup.sh` once, and starts a copy of it with `run_autograder` for each
submission. That reads `/autograder/submission` and writes `/autograder/results/results.json`, in the format
of gradescope-autograders.readthedocs.io. Each container makes a secret of its own, so contents differ each
time.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from grading.core import environment, sandbox, texts
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.core.judge import Judge
from grading.core.sandbox import Limits
from grading.core.tasks import Lab
from grading.core.verdicts import Store, as_text, write_whole
from grading.lms import classroom
from grading.lms.engines import engine
from grading.lms.roster import Roster
from grading.lms.submissions import find_submissions

PARTS = (
    "gpulab", "grading/__init__.py", "grading/__main__.py", "grading/authoring", "grading/cases",
    "grading/core", "grading/gpu_stage", "grading/lms", "pyproject.toml", "README.md", "LICENSE",
    "constraints.txt", "constraints-compiler.txt", "tools/setup.py",
)  # fmt: skip
LEFT_BEHIND = {"__pycache__", ".ipynb_checkpoints"}
SETUP = """\
#!/usr/bin/env bash
# Gradescope runs this once, as root, when the autograder is uploaded. TORCH_INDEX may name another index.
set -euo pipefail
apt-get update
apt-get install --yes bubblewrap python3-venv
PYTHON=python3
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    apt-get install --yes python3.11 python3.11-venv
    PYTHON=python3.11
fi
cd /autograder/source/course
"$PYTHON" tools/setup.py --extras=all --torch-index="${TORCH_INDEX:-}"
"""
RUN = """\
#!/usr/bin/env bash
# Gradescope starts this for each submission.
AUTOGRADER="${{AUTOGRADER:-/autograder}}"
cd "$AUTOGRADER/source/course" && exec .venv/bin/python -m grading.authoring.gradescope {lab} "$AUTOGRADER"
"""
WALLED = "The submission ran in a sandbox."
OPEN = (
    "The submission ran WITHOUT a sandbox, because this container does not let bubblewrap make one ({why}). "
    "Its code could read the expected results and change this report: look at what was handed in."
)


def pack(course: Course, lab: str, path: Path) -> Path:
    """Write the zip for one lab; returns its path. Raises GradingError where it cannot be written."""
    classroom.open_lab(course, lab)
    if path.is_dir() or not path.parent.is_dir():
        raise GradingError(f"{path}: give the name of a zip file in a folder that exists")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (("setup.sh", SETUP), ("run_autograder", RUN.format(lab=lab))):
            script = zipfile.ZipInfo(name)
            script.external_attr = 0o100755 << 16
            archive.writestr(script, content)
        for file in _files(course, lab):
            archive.write(file, f"course/{file.relative_to(course.root).as_posix()}")
    return path


def _files(course: Course, lab: str) -> Iterator[Path]:
    """What judging one lab takes: nothing of the class, and no solution."""
    for name in (*PARTS, f"labs/{lab}"):
        place = course.root / name
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file() and not LEFT_BEHIND & set(file.parts) and file.suffix != ".pyc":
                yield file


def results(course: Course, lab_name: str, submission: Path, limits: Limits) -> dict[str, object]:
    """What Gradescope reads: the verdict on what lies in a folder."""
    lab = classroom.open_lab(course, lab_name)
    why = sandbox.obstacle()
    with tempfile.TemporaryDirectory(prefix="gpulab-gradescope-") as place:
        (inside := Path(place, "zips")).mkdir()
        shutil.copytree(submission, Path(place, "in", "student"), symlinks=True)
        try:
            found = find_submissions(
                Path(place, "in"), lab.name, list(lab.notebooks), Roster(), submission,
                scratch=inside, marks=lab.marks,
            )  # fmt: skip
            environ = environment.digest(course, [repr(limits), repr(lab.questions)])
            store = Store(Path(place, "verdicts"))
            result = classroom.plan(course, lab, found, store, environ)
            judge = Judge(environment.secret(course), limits, unsafe=bool(why))
            with engine(judge, 1, "") as judges:
                classroom.judge_all(result, judges, store, lambda task: None)
        except GradingError as error:
            return {"score": 0.0, "output": f"Nothing was graded: {error}", "tests": []}
        tasks = next(iter(result.tasks.values()), [])
    tests: list[dict[str, object]] = []
    unknown = []
    for task in tasks:
        for each in task.verdict.exercises if task.verdict else ():
            doubt = each.ungraded or each.doubt
            unknown += [each.exercise] if doubt else []
            tests.append(
                {
                    "name": each.exercise,
                    "score": each.points,
                    "max_score": each.of,
                    "status": "passed" if each.points == each.of and not doubt else "failed",
                    "output": as_text(each, task.verdict) if task.verdict else "",
                }
            )
    told = [OPEN.format(why=why.splitlines()[0]) if why else WALLED]
    if unknown:
        told.append(f"A person must look at {texts.some(unknown)}: the judge has no certain verdict there.")
    written = [f"{name} ({points:g} points)" for name, points in _written(lab)]
    if written:
        told.append(f"Not counted here, because a person reads it: {texts.some(written)}.")
    score = round(sum(float(str(test["score"])) for test in tests), 2)
    return {"score": score, "output": "\n".join(told), "stdout_visibility": "hidden", "tests": tests}


def _written(lab: Lab) -> Iterator[tuple[str, float]]:
    for notebook in lab.notebooks.values():
        for cell in notebook.cells:
            mark = cell.metadata.get("nbgrader", {})
            if mark.get("grade") and mark.get("solution"):
                yield mark["grade_id"], float(mark["points"])


def main(lab: str, autograder: Path) -> None:
    """What `run_autograder` starts in the container."""
    found = results(Course(), lab, autograder / "submission", Limits())
    (autograder / "results").mkdir(exist_ok=True)
    write_whole(autograder / "results" / "results.json", json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
