"""What the judge takes over of cells that a learner added: definitions that an answer uses.

They get cells of their own in the released notebook, where the learner had them, and are run in the sandbox
like any answer. Nothing else of such cells is run.
"""

from __future__ import annotations

import ast
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from gpulab.foundation import syntax_trees
from gpulab.foundation.global_names import bound_and_used
from gpulab.foundation.own_cells import Reading, read
from grading.core import texts
from grading.core.notebooks import grade_id, is_own, is_solution, is_test, source_of, without_magics


def take_over(
    notebook: NotebookNode, released: NotebookNode, submitted: list[dict[str, Any]]
) -> tuple[dict[str, str], dict[str, str]]:
    """Put into `notebook`, which holds the answers already, what they use of the learner's own cells.

    Returns notes by grade id of the answers that use them, and on those that use what cannot be read.
    """
    ours = {cell.source.strip() for cell in released.cells}
    numbered = [cell for cell in submitted if cell.get("cell_type", "code") == "code"]
    own = {
        number: source_of(cell)
        for number, cell in enumerate(numbered, 1)
        if not grade_id(cell) and source_of(cell).strip() not in ours
    }
    if not own:
        return {}, {}
    answers = [cell for cell in notebook.cells if is_solution(cell) and cell.cell_type == "code"]
    stubs = {cell.id for cell in answers if cell.source.strip() in ours}
    used = {cell.id: names_of(cell.source)[1] for cell in answers}
    before = {cell.id: cell.source for cell in released.cells}
    for cell in answers:  # the answer itself, or a part of it, may stand in another cell
        asked, bound = (names_of(source)[0] for source in (before.get(cell.id, ""), cell.source))
        used[cell.id] = asked if cell.id in stubs else used[cell.id] | (asked - bound)
    given = _given(notebook, answers, stubs)
    found = read(own, frozenset().union(*(used[cell.id] - given[cell.id] for cell in answers)))
    _insert(notebook, found, _places(notebook, numbered), used)
    notes, unread = {}, {}
    for cell in answers:
        cells = [n for n, names in found.binds.items() if names & used[cell.id]]
        name = cell.metadata.nbgrader.grade_id
        if cells:
            notes[name] = texts.OWN_CELLS.format(cells=", ".join(map(str, cells)))
        missing = {name for name in found.unread if name in _closure(used[cell.id], found)}
        not_its_own = used[cell.id] & given[cell.id] - names_of(cell.source)[0]
        covered = _covered(own, not_its_own, before)
        if missing:
            first = min(missing)
            unread[name] = texts.OWN_CELL_UNREAD.format(name=texts.clean(first, 60), cell=found.unread[first])
        elif covered:
            first = min(covered)
            unread[name] = texts.OWN_CELL_COVERED.format(name=texts.clean(first, 60), cell=covered[first])
    return notes, unread


def _given(notebook: NotebookNode, answers: list[NotebookNode], stubs: set[str]) -> dict[str, frozenset[str]]:
    """By an answer's id: the names that the notebook's own cells give before it is checked. What they give
    later is not there yet."""
    asked = {cell.id for cell in answers}
    waiting, known, given = list[str](), frozenset[str](), dict[str, frozenset[str]]()
    for cell in notebook.cells:
        if is_test(cell):
            given |= dict.fromkeys(waiting, known)
            waiting.clear()
        if cell.cell_type == "code" and cell.id not in stubs:
            known |= names_of(cell.source)[0]
        if cell.id in asked:
            waiting.append(cell.id)
    return given | dict.fromkeys(waiting, known)


def _covered(own: dict[int, str], names: frozenset[str], before: dict[str, str]) -> dict[str, int]:
    """Of these names those that the lab gives, and that a learner's cell gives anew, with its number. To
    import something once more is no new meaning."""
    lab = frozenset().union(*(names_of(source)[0] for source in before.values()))
    return {name: number for number, source in own.items() for name in _defined(source) & names & lab}


def _defined(source: str) -> frozenset[str]:
    """The global names that a cell binds by anything but an import."""
    try:
        tree = syntax_trees.parse(without_magics(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    rest = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return names_of(ast.unparse(ast.Module(rest, [])))[0]


def names_of(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """The global names that a cell binds, and those that it uses."""
    found = bound_and_used(source)
    return found if any(found) else bound_and_used(without_magics(source))


def _closure(names: frozenset[str], found: Reading) -> frozenset[str]:
    """The names, and those that what is read of own cells needs for them."""
    given: dict[str, set[str]] = {}
    for number, binds in found.binds.items():
        for name in binds:
            given.setdefault(name, set()).update(found.uses[number])
    reached, waiting = set[str](), set(names)
    while waiting:
        reached.add(name := waiting.pop())
        waiting |= given.pop(name, set()) - reached
    return frozenset(reached)


def _places(notebook: NotebookNode, numbered: list[dict[str, Any]]) -> dict[int, int]:
    """By number of a submitted code cell: before which cell of the notebook it stood."""
    at = {c.metadata.nbgrader.grade_id: i for i, c in enumerate(notebook.cells) if "nbgrader" in c.metadata}
    place = min((i for i, cell in enumerate(notebook.cells) if is_solution(cell)), default=0)
    found = {}
    for number, cell in enumerate(numbered, 1):
        place = max(place, at.get(grade_id(cell) or "", -1) + 1)
        found[number] = place
    return found


def _insert(
    notebook: NotebookNode, found: Reading, places: dict[int, int], used: dict[str, frozenset[str]]
) -> None:
    """Insert what is read, where it stood; and before the test of an answer that uses it, at the latest."""
    tests = [i for i, cell in enumerate(notebook.cells) if is_test(cell)]
    latest: dict[int, int] = {}
    for index, cell in enumerate(notebook.cells):
        test = next((i for i in tests if i > index), len(notebook.cells))
        names = _closure(used.get(cell.id, frozenset()), found)
        for number, binds in found.binds.items():
            if binds & names:
                latest[number] = min(latest.get(number, test), test)
    order = sorted(found.sources, key=lambda n: (min(places[n], latest.get(n, places[n])), n))
    for done, number in enumerate(order):
        place = min(places[number], latest.get(number, places[number])) + done
        mark = {"gpulab": {"own": number}}
        cell = new_code_cell(found.sources[number], id=f"your-cell-{number}", metadata=mark)
        notebook.cells.insert(place, cell)
        assert is_own(cell)
