"""Three versions of a notebook → one, cell by cell. Cells are the same when their ids are, or once were.

`base` is the course's notebook as the learner once got it, `theirs` the course's new one, `mine` the
learner's.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Cell = dict[str, Any]
Notebook = dict[str, Any]

NEW_STUB = "**The task above has changed.** Your answer is kept. The new cell:"
YOURS = "**You had changed the cell above, and the course has changed it too.** Yours was:"


@dataclass(frozen=True)
class Merge:
    """The merged notebook, and a sentence for each place where both sides had changed the same cell."""

    notebook: Notebook
    conflicts: tuple[str, ...]


def source(cell: Cell) -> str:
    """A cell's text, however the file writes it."""
    text = cell.get("source", "")
    return text if isinstance(text, str) else "".join(text)


def merge(mine: Notebook, theirs: Notebook, base: Notebook | None = None) -> Merge:
    """Take the course's new notebook and put the learner's work into it.

    Answers are kept, and so are cells that the learner added or changed. Where both changed a cell that is no
    answer, the course's comes first and the learner's below it. Without `base` nobody knows who changed such
    a cell: the learner's is kept below then, too.
    """
    before = _by_id(base["cells"]) if base else {}
    new = _by_id(theirs["cells"])
    learners = _recognised(mine["cells"], before, new)
    own = _by_id(learners)
    followers = _added(learners, new, before)
    cells: list[Cell] = [*followers.pop("", [])]
    conflicts: list[str] = []
    for name, cell in new.items():
        merged, below, conflict = _cell(cell, own.get(name), before.get(name), bool(base))
        added = followers.pop(name, [])
        cells += [merged, *(said for said in below if said not in added), *added]
        conflicts += [f"cell {name}: {conflict}"] if conflict else []
    merged_notebook = {**copy.deepcopy(theirs), "cells": _with_ids(cells, set(new))}
    return Merge(merged_notebook, tuple(conflicts))


def _recognised(cells: Sequence[Cell], before: dict[str, Cell], new: dict[str, Cell]) -> list[Cell]:
    """The learner's cells; those whose id got lost elsewhere get it back, by grade id, else by text."""
    lost = (before.keys() | new.keys()) - {cell.get("id") for cell in cells}
    known = [(name, cell) for name, cell in (*new.items(), *before.items()) if name in lost]
    by_grade_id = {_grade_id(cell): name for name, cell in known if _grade_id(cell)}
    by_text = {source(cell): name for name, cell in known}
    found = []
    for cell in cells:
        if cell.get("id") not in before and cell.get("id") not in new:
            name = by_grade_id.get(_grade_id(cell)) or by_text.get(source(cell), "")
            if name in lost:
                lost = lost - {name}
                cell = {**cell, "id": name}
        found.append(cell)
    return found


def _grade_id(cell: Cell) -> str:
    return str(cell.get("metadata", {}).get("nbgrader", {}).get("grade_id", ""))


def _with_ids(cells: Sequence[Cell], courses: set[str]) -> list[Cell]:
    """Cells with an id each, as Jupyter demands; the course's keep theirs."""
    found, taken = [], set(courses)
    for cell in cells:
        name = cell.get("id", "")
        if name in courses:
            courses = courses - {name}
        else:
            stem, number = (name or "mine")[:60], 1
            while not name or name in taken:
                number += 1
                name = f"{stem}-{number}"
            taken.add(name)
        found.append({**cell, "id": name} if cell.get("id") != name else cell)
    return found


def _by_id(cells: Sequence[Cell]) -> dict[str, Cell]:
    """Cells by id; of two with one id (a cell that was pasted) the first."""
    found: dict[str, Cell] = {}
    for number, cell in enumerate(cells):
        found.setdefault(cell.get("id") or f"cell {number}", cell)
    return found


def _added(cells: Sequence[Cell], new: dict[str, Cell], before: dict[str, Cell]) -> dict[str, list[Cell]]:
    """The learner's own cells by the id of the course's cell that they follow ("": at the top).

    A cell that the course has dropped is the learner's if they had changed it.
    """
    found: dict[str, list[Cell]] = {}
    behind, seen = "", set()
    for cell in cells:
        name = cell.get("id", "")
        if name in new and name not in seen:
            behind = name
        elif name not in before or source(cell) != source(before[name]):
            found.setdefault(behind, []).append(copy.deepcopy(cell))
        seen.add(name)
    return found


def _cell(theirs: Cell, mine: Cell | None, base: Cell | None, has_base: bool) -> tuple[Cell, list[Cell], str]:
    """The merged cell, cells to stand below it, and what both sides changed."""
    theirs = copy.deepcopy(theirs)
    if mine is None:
        return theirs, [], ""
    if source(mine) == source(theirs):
        return _with_outputs(theirs, mine), [], ""
    if base is not None and source(mine) == source(base):
        return theirs, [], ""
    if theirs.get("metadata", {}).get("nbgrader", {}).get("solution"):
        kept = _with_outputs({**theirs, "source": mine["source"]}, mine)
        if base is None or source(base) == source(theirs):
            return kept, [], ""
        return (
            kept,
            [_said(NEW_STUB, theirs)],
            "the task has changed; your answer is kept, the new stub is below",
        )
    if base is not None and source(base) == source(theirs):
        return _with_outputs({**theirs, "source": mine["source"]}, mine), [], ""
    said = "both you and the course have changed it" if has_base else "it differs from the course's"
    return theirs, [_said(YOURS, mine)], f"{said}; the course's is there, yours below it"


def _with_outputs(cell: Cell, mine: Cell) -> Cell:
    """The course's cell with what the learner's shows: outputs, or pictures put into a text."""
    if cell["cell_type"] != "code" or mine["cell_type"] != "code":
        pictures = mine.get("attachments")
        return {**cell, "attachments": copy.deepcopy(pictures)} if pictures else cell
    return {
        **cell,
        "outputs": copy.deepcopy(mine.get("outputs", [])),
        "execution_count": mine.get("execution_count"),
    }


def _said(words: str, cell: Cell) -> Cell:
    """A cell of text that shows another one."""
    longest = max(map(len, re.findall("`+", source(cell))), default=0)
    fence = "`" * max(3, longest + 1)
    language = "python" if cell["cell_type"] == "code" else ""
    name = f"{cell.get('id', 'cell')[:57]}-before"
    text = f"{words}\n\n{fence}{language}\n{source(cell)}\n{fence}"
    said = {"cell_type": "markdown", "id": name, "metadata": {}, "source": text}
    return _with_outputs(said, cell) if cell["cell_type"] != "code" else said
