"""Releasing a lab: `solutions/NN_name/*.py` → `labs/NN_name/*.ipynb`, without solutions and outputs.

nbgrader's own preprocessors do the work, so `nbgrader generate_assignment` writes the same bytes. The files
are made in memory and swapped in together at the end: a failure leaves the released lab as it was.
"""

from __future__ import annotations

import difflib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode
from traitlets.config import Config

from gpulab.app.course.address import Address
from grading.core.commands import guess
from grading.core.course import Course, sources
from grading.core.errors import ReleaseError
from grading.lms.preprocessors import RELEASE

from .committed import with_committed_outputs

FORBIDDEN = ("BEGIN SOLUTION", "END SOLUTION", "BEGIN HIDDEN TESTS", "BEGIN MARK SCHEME")


def released_notebook(source: Path, where: Address | None = None) -> NotebookNode:
    """The notebook that learners get for one source. It opens `where` the course lies; None: at ours."""
    try:
        notebook = jupytext.read(source)
    except Exception as error:  # jupytext and its YAML reader raise many kinds
        raise ReleaseError(f"{source.name} cannot be read as py:percent: {error}") from error
    _refuse_unmarked(notebook, source)
    resources: dict[str, object] = {
        "unique_key": source.stem,
        "nbgrader": {"notebook": source.stem, "assignment": source.parent.name, "student": ".", "db_url": ""},
    }
    config = Config()
    if where is not None:
        config.OpenElsewhere.repository, config.OpenElsewhere.branch = where.repository, where.branch
    for step in RELEASE:
        if step.__name__ == "SaveCells":  # the gradebook learns of a lab when a class is graded
            continue
        try:
            notebook, resources = step(config=config)(notebook, resources)
        except Exception as error:
            raise ReleaseError(f"{source.name}: {step.__name__} refused it: {error}") from error
    _refuse_leaks(notebook, source)
    return notebook


def _refuse_unmarked(notebook: NotebookNode, source: Path) -> None:
    """A solution in a cell that is not marked as one would be released."""
    for cell in notebook.cells:
        if "BEGIN SOLUTION" in cell.source and not cell.metadata.get("nbgrader", {}).get("solution"):
            lines = [line for line in cell.source.splitlines() if line.strip()]
            telling = next((line for line in lines if line.startswith(("def ", "class "))), lines[0])
            raise ReleaseError(
                f'{source.name}: the cell with "{telling}" has a solution but is not marked as a solution '
                'cell: add nbgrader={"solution": true, "grade": false, "grade_id": …} to its header'
            )


def _refuse_leaks(notebook: NotebookNode, source: Path) -> None:
    for cell in notebook.cells:
        for mark in FORBIDDEN:
            if mark in cell.source:
                raise ReleaseError(f"{source.name}: cell {cell.id} would be released with '{mark}' in it")
        if cell.get("outputs"):
            raise ReleaseError(f"{source.name}: cell {cell.id} would be released with outputs")


def notebook_text(notebook: NotebookNode) -> str:
    """The bytes of a notebook file, as nbconvert writes them."""
    return str(nbformat.writes(notebook, version=4)).rstrip("\n") + "\n"


def released_files(course: Course, lab: str, where: Address | None = None) -> dict[str, bytes]:
    """Everything that labs/`lab` must hold, by its path inside the folder."""
    folder = course.solutions / lab
    found = sources(folder)
    if not found:
        known = course.lab_names()
        names = ", ".join(known) or "none"
        raise ReleaseError(f"no lab '{lab}'{guess(lab, known)} in {course.solutions}: labs there are {names}")
    files = {f"{s.stem}.ipynb": notebook_text(released_notebook(s, where)).encode() for s in found}
    for path in _companions(folder):
        files[path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


def release_pages(course: Course) -> bool:
    """Bring what belongs to no lab, such as labs/index.ipynb, up to date; says whether any changed."""
    changed = False
    for path, content in released_pages(course):
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".page-", dir=path.parent) as beside:
                Path(beside, path.name).write_bytes(content)
                os.replace(Path(beside, path.name), path)
            changed = True
    return changed


def page_differences(course: Course) -> list[str]:
    """Where one of them is not what its source says."""
    lines: list[str] = []
    for path, content in released_pages(course):
        place = f"labs/{path.name}"
        if not path.exists():
            lines.append(f"{place}: missing")
        elif path.read_bytes() != content and path.suffix == ".ipynb":
            lines += _notebook_diff(place, path.read_bytes(), content)
        elif path.read_bytes() != content:
            lines.append(f"{place}: differs from solutions/{path.name}")
    return lines


def released_pages(course: Course, where: Address | None = None) -> Iterator[tuple[Path, bytes]]:
    """What belongs to no lab: where it is released to, and its content."""
    for source in sorted(course.solutions.glob("*.py")):
        page = with_committed_outputs(released_notebook(source, where))
        yield course.labs / f"{source.stem}.ipynb", notebook_text(page).encode()
    for text in sorted(course.solutions.glob("*.md")):
        yield course.labs / text.name, text.read_bytes()


def _companions(folder: Path) -> Iterator[Path]:
    """Pictures and data beside the sources; wrong submissions, sources and settings stay behind."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(p.startswith((".", "__")) or p == "wrong" for p in parts)
        if path.is_file() and not hidden and path.suffix not in (".py", ".pyc", ".toml", ".ipynb"):
            yield path


def release(course: Course, lab: str) -> bool:
    """Bring labs/`lab` up to date; says whether anything changed. All files or none."""
    files = released_files(course, lab)
    if current_files(course, lab) == files:
        return False
    course.labs.mkdir(parents=True, exist_ok=True)
    target = course.labs / lab
    with tempfile.TemporaryDirectory(prefix=f".{lab}-", dir=course.labs) as beside:
        fresh, old = Path(beside, "new"), Path(beside, "old")
        for name, content in files.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_bytes(content)
        if target.exists():
            os.rename(target, old)
        try:
            os.rename(fresh, target)
        except OSError:
            if old.exists():
                os.rename(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)
    return True


def current_files(course: Course, lab: str) -> dict[str, bytes]:
    """What labs/`lab` holds now (a learner's own traces in it do not count)."""
    folder = course.labs / lab
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not any(part.startswith((".", "__")) for part in p.relative_to(folder).parts)
    }


def differences(course: Course, lab: str) -> list[str]:
    """Where labs/`lab` is not what its sources say, naming file and cell; empty when in sync."""
    want, have = released_files(course, lab), current_files(course, lab)
    lines: list[str] = []
    for name in sorted({*want, *have}):
        place = f"labs/{lab}/{name}"
        if name not in have:
            lines.append(f"{place}: missing")
        elif name not in want:
            lines.append(f"{place}: has no source in solutions/{lab}")
        elif want[name] != have[name]:
            lines += (
                _notebook_diff(place, have[name], want[name])
                if name.endswith(".ipynb")
                else [f"{place}: differs from solutions/{lab}/{name}"]
            )
    return lines


def _notebook_diff(place: str, have: bytes, want: bytes) -> list[str]:
    new = json.loads(want)
    try:
        old = json.loads(have)
        old_cells = {c["id"]: c for c in old["cells"]}
    except (ValueError, KeyError, TypeError):
        return [f"{place}: is no notebook of nbformat 4.5"]
    new_cells = {c["id"]: c for c in new["cells"]}
    lines = [f"{place}, cell {i}: not in the sources" for i in old_cells if i not in new_cells]
    for name, cell in new_cells.items():
        where = f"{place}, cell {name}"
        before = old_cells.get(name)
        if before is None:
            lines.append(f"{where}: missing")
        elif before != cell:
            mine, theirs = ("".join(c.get("source", [])).splitlines() for c in (before, cell))
            changed = list(difflib.unified_diff(mine, theirs, "labs", "solutions", lineterm="", n=1))
            keys = sorted(k for k in {*before, *cell} - {"source"} if before.get(k) != cell.get(k))
            lines.append(f"{where}: differs" + (f" in {', '.join(keys)}" if keys else ""))
            lines += [f"    {line}" for line in changed]
    if not lines:
        order = [c["id"] for c in old["cells"]] != [c["id"] for c in new["cells"]]
        lines.append(
            f"{place}: {'the order of cells differs' if order else 'metadata or formatting differs'}"
        )
    return lines
