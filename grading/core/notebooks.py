"""Reading notebooks: a submitted one with suspicion, a released one for what it asks."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from gpulab.foundation import syntax_trees
from grading.core import texts
from grading.core.commands import ours
from grading.core.errors import NotebookError, ReleaseError

LARGEST_NOTEBOOK = 20_000_000
LARGEST_CELL = 200_000
KEPT = ("nbgrader", "tags", "jupyter")  # of a cell's metadata


def read_submitted(path: Path) -> list[dict[str, Any]]:
    """The cells of a file that a learner handed in: plain dictionaries, nothing promised about them."""
    text = _read_regular_file(path)
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        raise NotebookError(texts.NO_JSON.format(line=error.lineno)) from error
    except RecursionError as error:
        raise NotebookError(texts.NO_JSON.format(line="1, nested too deep")) from error
    except (ValueError, MemoryError) as error:  # a number of more digits than Python reads
        raise NotebookError(texts.NO_JSON.format(line=f"?, {texts.clean(error, 60)}")) from error
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if cells is None and isinstance(notebook, dict):  # nbformat 3 kept its cells in worksheets
        sheets = notebook.get("worksheets")
        cells = (
            [c for s in sheets if isinstance(s, dict) for c in _list(s.get("cells"))]
            if isinstance(sheets, list)
            else None
        )
    if not isinstance(cells, list):
        raise NotebookError(texts.NO_CELLS)
    return [cell for cell in cells if isinstance(cell, dict)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _read_regular_file(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        why = "it is a link" if path.is_symlink() else error.strerror
        raise NotebookError(texts.UNREADABLE.format(name=path.name, why=why)) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise NotebookError(texts.NOT_A_FILE.format(name=path.name))
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > LARGEST_NOTEBOOK:
            raise NotebookError(texts.TOO_LARGE.format(size=status.st_size, limit=LARGEST_NOTEBOOK))
        content = file.read(LARGEST_NOTEBOOK)
    encoding = json.detect_encoding(content)
    return content.decode(encoding, "replace")


def source_of(cell: dict[str, Any]) -> str:
    """The text of a submitted cell, whatever form it has."""
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    text = source if isinstance(source, str) else ""
    return text[:LARGEST_CELL].encode("utf-8", "replace").decode()


def grade_id(cell: dict[str, Any]) -> str | None:
    """nbgrader's name of a cell, where it has a usable one."""
    metadata = cell.get("metadata")
    mark = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = mark.get("grade_id") if isinstance(mark, dict) else None
    return name if isinstance(name, str) else None


def read_released(path: Path) -> NotebookNode:
    """A notebook of labs/, which is ours."""
    try:
        return nbformat.read(path, as_version=4)
    except FileNotFoundError as error:
        name = path.parent.name
        raise ReleaseError(f"{path} is not there: run {ours('release', name)}") from error


@dataclass(frozen=True)
class Question:
    """A test cell of a released notebook: which function answers which exercise, for how many points."""

    cell: str  # grade id of the test cell
    exercise: str
    function: str
    points: float


def questions(notebook: NotebookNode) -> tuple[Question, ...]:
    """The exercises that a released notebook asks, in order."""
    found = []
    for cell in notebook.cells:
        mark = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and mark.get("grade") and not mark.get("solution"):
            exercise, function = _checked(cell.source, mark["grade_id"])
            found.append(Question(mark["grade_id"], exercise, function, float(mark["points"])))
    return tuple(found)


def _checked(source: str, cell: str) -> tuple[str, str]:
    """`gpulab.check("memory.copy", copy)` → ("memory.copy", "copy")."""
    try:
        match syntax_trees.parse(source).body:
            case [
                ast.Expr(
                    ast.Call(
                        ast.Attribute(attr="check"), [ast.Constant(str(exercise)), ast.Name(function)], []
                    )
                )
            ]:
                return exercise, function
    except SyntaxError:
        pass
    raise ReleaseError(
        f"test cell '{cell}' must be the one statement gpulab.check(\"topic.exercise\", function), "
        f"but is: {source!r}"
    )


def with_stable_ids(notebook: NotebookNode, unique_key: str) -> NotebookNode:
    """Give cells the ids that a notebook's text form lacks: the grade id, else a hash with `unique_key`.

    Jupytext's own notes are dropped. The notebook is changed in place and returned.
    """
    seen: dict[str, int] = {}
    notebook.metadata.pop("jupytext", None)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        for key in cell.metadata.keys() - set(KEPT):
            del cell.metadata[key]
        name = re.sub(r"[^A-Za-z0-9_-]", "-", cell.metadata.get("nbgrader", {}).get("grade_id", ""))[:48]
        text = f"{unique_key}\0{cell.cell_type}\0{cell.source}"
        name = name or hashlib.sha256(text.encode()).hexdigest()[:12]
        seen[name] = seen.get(name, 0) + 1
        cell["id"] = name if seen[name] == 1 else f"{name}-{seen[name]}"
    return notebook


def is_solution(cell: NotebookNode) -> bool:
    """A cell that a learner fills in."""
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def is_own(cell: NotebookNode) -> bool:
    """A cell with what an answer uses of a learner's own cells, see `own_cells`."""
    return bool(cell.metadata.get("gpulab", {}).get("own"))


def is_test(cell: NotebookNode) -> bool:
    """A locked cell whose points the judge gives."""
    mark = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and bool(mark.get("grade")) and not mark.get("solution")


def without_magics(source: str) -> str:
    """A cell as plain Python, in one pass: IPython's own transformer takes hours for a cell made for that."""
    text = re.sub(r"\A\s*%%.*", "", source)
    text = re.sub(r"^([ \t]*+)(?:[%!?].*|[^#'\"\n]*\?)$", r"\1pass", text, flags=re.MULTILINE)
    return re.sub(r"^([\w, \t]++=)[ \t]*+[%!].*$", r"\1 None", text, flags=re.MULTILINE)
