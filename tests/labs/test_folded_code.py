"""Code that only draws is folded: a learner sees the picture, and the code at a click."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from tests.labs.test_reading import NOTEBOOKS
from tests.labs.test_something_to_look_at import FIGURES

LINES = 6  # a shorter cell is no obstacle
SHARE = 0.7  # of a cell's lines
DRAWING = re.compile(rf"\bplot\.|\bplt\.|\bax(es)?\b|\bfigure\b|\bpicture\(|(?<![\w.])({FIGURES})\(")
DEFINES = (ast.FunctionDef, ast.ClassDef)


def draws(source: str) -> bool:
    """Whether a cell is long and does little else than draw. Definitions are for reading."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a magic command
        return False
    if any(isinstance(statement, DEFINES) for statement in body):
        return False
    lines = source.splitlines()

    def length(statement: ast.stmt) -> int:
        return (statement.end_lineno or statement.lineno) - statement.lineno + 1

    drawing = sum(length(s) for s in body if DRAWING.search("\n".join(lines[s.lineno - 1 : s.end_lineno])))
    every = sum(length(s) for s in body)
    return every >= LINES and drawing >= SHARE * every


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_exactly_the_cells_that_only_draw_are_folded(path: Path) -> None:
    cells = [c for c in json.loads(path.read_text("utf-8"))["cells"] if c["cell_type"] == "code"]
    folded = [c for c in cells if c["metadata"].get("jupyter", {}).get("source_hidden")]
    wanted = [c for c in cells if "nbgrader" not in c["metadata"] and draws("".join(c["source"]))]
    first = [["".join(c["source"])[:80] for c in each] for each in (folded, wanted)]
    assert first[0] == first[1]


def test_a_short_figure_a_kernel_and_a_run_are_no_code_to_fold() -> None:
    assert draws("ax = plot.axes(6, 3)\n" + "ax.plot([1], [2])\n" * 5)
    assert not draws("ax = plot.axes(6, 3)\nplot.picture(ax)")
    assert not draws("@cuda.jit\ndef k(a):\n    pass\n" + "ax.plot([1], [2])\n" * 9)
    assert not draws("report = gpulab.profile(k, a)\n" * 5 + "plot.bars({})")
