"""A lab's notebooks as the tests use them: the cells that an answer needs, run with any answer in its place."""

from __future__ import annotations

import ast
import linecache
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jupytext
from nbformat import NotebookNode

import gpulab
from gpulab.checks import registry
from gpulab.checks.evidence.launch_trace import launch_trace_of
from gpulab.checks.launched import Launched
from gpulab.checks.parts import Part
from gpulab.checks.spec import Answer, Array, Case, Exercise
from gpulab.foundation.global_names import bound_and_used
from grading.authoring.prove import wrong_file
from grading.authoring.release import released_notebook
from grading.core.course import sources
from grading.core.graft import cells_to_run
from grading.core.notebooks import with_stable_ids

ROOT = Path(__file__).resolve().parents[2]


def labs() -> tuple[str, ...]:
    """The labs that are released, by the names of their folders."""
    return tuple(
        p.name for p in sorted((ROOT / "labs").glob("[0-9]*")) if sources(ROOT / "solutions" / p.name)
    )


def names(lab: str) -> list[str]:
    """The names of a lab's notebooks."""
    return [source.stem for source in sources(ROOT / "solutions" / lab)]


@cache
def notebooks(lab: str, released: bool = False) -> dict[str, NotebookNode]:
    """The notebooks of a lab by name, with their solutions or as learners get them."""
    return {
        source.stem: released_notebook(source)
        if released
        else with_stable_ids(jupytext.read(source), source.stem)
        for source in sources(ROOT / "solutions" / lab)
    }


def cells(lab: str, kind: str = "") -> list[NotebookNode]:
    """All code or all markdown cells of a lab's notebooks, in order; all cells for no kind."""
    every = [c for notebook in notebooks(lab).values() for c in notebook.cells]
    return [c for c in every if kind in ("", c.cell_type)]


def text(lab: str) -> str:
    """All cells of a lab in one line, without the marks of comments."""
    return " ".join("\n".join(c.source for c in cells(lab)).replace("\n# ", "\n").split())


def cell_with(lab: str, words: str) -> str:
    """The first code cell that holds these words."""
    return next(c.source for c in cells(lab, "code") if words in c.source)


def checks(lab: str) -> dict[str, tuple[str, float]]:
    """The test cells of a lab: exercise → (name of the learner's function, points of the cell)."""
    found: dict[str, tuple[str, float]] = {}
    for cell in cells(lab, "code"):
        mark = cell.metadata.get("nbgrader", {})
        if mark.get("grade"):
            call = ast.parse(cell.source).body[0].value
            name, function = call.args[0].value, call.args[1].id
            found[name] = (function, float(mark["points"]))
    return found


def headings(lab: str) -> set[str]:
    """All headings of a lab, without their marks."""
    text = "\n".join(c.source for c in cells(lab, "markdown"))
    return {m.group(1).strip() for m in re.finditer(r"^#+ (.*)$", text, re.M)}


@cache
def answers(lab: str, released: bool = False) -> dict[str, Any]:
    """The names that a lab's solution cells bind, with all that they need; each notebook runs on its own."""
    names: dict[str, Any] = {}
    for name, notebook in notebooks(lab, released).items():
        kind = "stub" if released else "solution"
        names |= _run([c.source for c in cells_to_run(notebook)], f"{name}, {kind}")
    return names


def wrong_files(lab: str) -> list[Path]:
    return sorted((ROOT / "solutions" / lab / "wrong").glob("*.py"))


def wrong_answer(path: Path) -> dict[str, Any]:
    """The names that a wrong submission binds; functions and texts that its lab gives are there for it to use."""
    source = path.read_text()
    bound, used = bound_and_used(source)
    needed, given = used - bound, list[str]()
    for name, text in reversed(_given(path.parts[-3]).items()):  # what one uses is given before it
        if name in needed:
            needed |= bound_and_used(text)[1]
            given.insert(0, text)
    return _run([*given, source], str(path))


@cache
def _given(lab: str) -> dict[str, str]:
    """The functions that a lab's notebooks give to learners, and what takes no call to make: name → source."""
    found: dict[str, str] = {}
    for cell in cells(lab, "code"):
        if cell.metadata.get("nbgrader", {}).get("solution"):
            continue
        for statement in ast.parse(_without_calls(cell.source)).body:
            if isinstance(statement, ast.FunctionDef):
                found[statement.name] = ast.unparse(statement)
            elif isinstance(statement, ast.Assign) and not _calls(statement):
                found |= {t.id: ast.unparse(statement) for t in statement.targets if isinstance(t, ast.Name)}
    return found


def _calls(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(statement))


def _run(cells: list[str], name: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "learner"}
    for i, text in enumerate(_without_calls(source) for source in cells):
        file = f"<{name}, cell {i}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), names)
    return names


def _without_calls(source: str) -> str:
    """A cell without the lines that only greet."""
    return "\n".join(line for line in source.splitlines() if not line.startswith("gpulab.start("))


def parts(verdict: Any) -> Iterator[tuple[str, str]]:
    """The labels of a verdict with their states."""
    return ((part.label, part.state) for part in verdict.parts)


def part_of_wrong(lab: str, stem: str, label: str) -> Part:
    """The part with this label of what a check says of a wrong file, which has this name."""
    path = next(path for path in wrong_files(lab) if path.stem == stem)
    exercise = wrong_file(path).exercise
    verdict = gpulab.check(exercise, wrong_answer(path)[checks(lab)[exercise][0]])
    return next(part for part in verdict.parts if part.label == label)


def launched(exercise: Exercise, fn: Any) -> Launched:
    """A function as the answer to an exercise that launches kernels, ready to run at a case."""
    return launch_trace_of(exercise).launched(Answer(exercise, fn, registry.reference(exercise.name)))


def by_size(exercise: Exercise) -> list[Case]:
    """The cases with anything to do, the one with the fewest elements in its arrays first."""

    def elements(case: Case) -> list[int]:
        return [math.prod(a.shape) for a in exercise.evidence.arguments(case.sizes) if isinstance(a, Array)]

    return sorted(
        (case for case in exercise.cases if all(elements(case))), key=lambda case: sum(elements(case))
    )
