"""The graft: of a submission only the sources of its solution cells live on, in the released notebook.

With the text of a written answer come the pictures that it shows. Deleted, copied, retyped and re-pointed
cells, edited tests, outputs and metadata all stay behind.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode

from gpulab.foundation import syntax_trees
from gpulab.foundation.global_names import bound_and_used
from grading.core import texts
from grading.core.errors import NotebookError
from grading.core.notebooks import grade_id, source_of
from grading.core.pictures import Album


@dataclass(frozen=True)
class Graft:
    """The released notebook with a learner's answers in it; `notes` by grade id say what was odd."""

    notebook: NotebookNode
    notes: dict[str, str]
    digest: str  # of the answers: what makes two submissions the same


def graft(released: NotebookNode, submitted: list[dict[str, Any]], name: str, lab: str) -> Graft:
    """Put the solution cells of `submitted` into a copy of `released`."""
    notebook, notes, digest = copy.deepcopy(released), {}, hashlib.sha256()
    by_id: dict[str, list[dict[str, Any]]] = {}
    for cell in submitted:
        by_id.setdefault(grade_id(cell) or "", []).append(cell)
    found, album = 0, Album()
    for cell in solution_cells(notebook):
        cell_id = cell.metadata.nbgrader.grade_id
        answers = by_id.get(cell_id, [])
        found += bool(answers)
        changed = [a for a in answers if source_of(a).strip() != cell.source.strip()]
        if not answers:
            notes[cell_id] = texts.CELL_MISSING.format(cell=cell_id)
        elif len(answers) > 1:
            notes[cell_id] = texts.CELL_TWICE.format(cell=cell_id, times=len(answers))
        if changed:
            cell.source = source_of(changed[-1])
            if cell.cell_type == "markdown" and (pictures := album.of(changed[-1], cell.source)):
                cell.attachments = pictures
        digest.update(json.dumps([cell_id, cell.source]).encode())
        if cell.get("attachments"):
            digest.update(json.dumps(cell.attachments).encode())
    if not found:
        raise NotebookError(texts.NO_SOLUTION_CELL.format(lab=lab, name=name))
    return Graft(notebook, notes, digest.hexdigest())


def solution_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that a learner fills in."""
    return [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("solution")]


def cells_to_run(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells that the answers need: solution cells, and released ones that bind a name which is used.

    Reports and figures, which would take most of the time, bind nothing that an answer uses.
    """
    code = [c for c in notebook.cells if c.cell_type == "code" and not is_test(c)]
    chosen = {c.id for c in code if c.metadata.get("nbgrader", {}).get("solution")}
    names = {c.id: _names(c.source) for c in code}
    while True:
        needed = set().union(*(names[i][1] for i in chosen))
        more = {c.id for c in code if c.id not in chosen and names[c.id][0] & needed}
        if not more:
            return [c for c in code if c.id in chosen]
        chosen |= more


def imports(notebook: NotebookNode) -> list[str]:
    """The modules that a lab's own cells import; what a learner wrote is not asked.

    ``from a import b`` names ``a.b``, too, which may be no module.
    """
    found: set[str] = set()
    for cell in notebook.cells:
        if cell.cell_type != "code" or cell.metadata.get("nbgrader", {}).get("solution"):
            continue
        with suppress(SyntaxError):
            for node in ast.walk(syntax_trees.parse(without_magics(cell.source))):
                if isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return sorted(found)


def is_test(cell: NotebookNode) -> bool:
    """A locked cell whose points the judge gives."""
    mark = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and bool(mark.get("grade")) and not mark.get("solution")


def _names(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """The global names that a cell binds, and those that it uses."""
    found = bound_and_used(source)
    return found if any(found) else bound_and_used(without_magics(source))


def without_magics(source: str) -> str:
    """A cell as plain Python, in one pass: IPython's own transformer takes hours for a cell made for that."""
    text = re.sub(r"\A\s*%%.*", "", source)
    text = re.sub(r"^([ \t]*+)(?:[%!?].*|[^#'\"\n]*\?)$", r"\1pass", text, flags=re.MULTILINE)
    return re.sub(r"^([\w, \t]++=)[ \t]*+[%!].*$", r"\1 None", text, flags=re.MULTILINE)
