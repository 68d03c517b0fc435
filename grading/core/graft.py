"""The graft: of a submission only the sources of its solution cells live on, in the released notebook.

With them come definitions that they use of the learner's own cells, see `own_cells`, and with the text of a
written answer the pictures that it shows. Deleted, copied, retyped and re-pointed
cells, edited tests, outputs and metadata all stay behind.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from nbformat import NotebookNode

from gpulab.foundation import syntax_trees
from grading.core import texts
from grading.core.errors import NotebookError
from grading.core.notebooks import grade_id, is_own, is_solution, is_test, source_of, without_magics
from grading.core.own_cells import names_of, take_over
from grading.core.pictures import Album


@dataclass(frozen=True)
class Graft:
    """The released notebook with a learner's answers in it, and what these use of the learner's own cells.

    `notes` by grade id say what was odd; `doubts` those of them for which a person should look at an answer
    that is not right.
    """

    notebook: NotebookNode
    notes: dict[str, str]
    digest: str  # of the answers: what makes two submissions the same
    doubts: dict[str, str] = field(default_factory=dict)


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
            parts = [source_of(answer) for answer in changed]
            cell.source = "\n\n".join(parts) if is_split(cell, parts) else parts[-1]
            if cell.cell_type == "markdown" and (pictures := album.of(changed[-1], cell.source)):
                cell.attachments = pictures
    if not found:
        raise NotebookError(texts.NO_SOLUTION_CELL.format(name=name))
    used, doubts = take_over(notebook, released, submitted)
    for cell_id, note in [*used.items(), *doubts.items()]:
        notes[cell_id] = "; ".join(filter(None, [notes.get(cell_id), note]))
    for cell in notebook.cells:
        if is_own(cell) or is_solution(cell):
            # A graft may be grafted once more, and then the learner's own cells have other numbers.
            name = "own" if is_own(cell) else cell.metadata.nbgrader.grade_id
            digest.update(json.dumps([name, cell.source]).encode())
            if cell.get("attachments"):
                digest.update(json.dumps(cell.attachments).encode())
    return Graft(notebook, notes, digest.hexdigest(), doubts)


def is_split(cell: NotebookNode, sources: list[str]) -> bool:
    """Whether several cells of one name are parts of one: each defines something else."""
    bound = [names_of(source)[0] for source in sources]
    apart = sum(map(len, bound)) == len(frozenset().union(*bound))
    return cell.cell_type == "code" and len(sources) > 1 and apart and all(bound)


def solution_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that a learner fills in."""
    return [c for c in notebook.cells if is_solution(c)]


def cells_to_run(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells that the answers need: solution cells, what these use of a learner's own, and released
    ones that bind a name which is used.

    Reports and figures, which would take most of the time, bind nothing that an answer uses.
    """
    code = [c for c in notebook.cells if c.cell_type == "code" and not is_test(c)]
    chosen = {c.id for c in code if is_solution(c) or is_own(c)}
    names = {c.id: names_of(c.source) for c in code}
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
        if cell.cell_type != "code" or is_solution(cell) or is_own(cell):
            continue
        with suppress(SyntaxError):
            for node in ast.walk(syntax_trees.parse(without_magics(cell.source))):
                if isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return sorted(found)
