"""Outputs that are released with a page, so that it can be read before anything runs.

Cells with the tag ``committed`` say the same for everybody: they show the course's own data, and nothing
of the
machine or of a learner. They run here, one after the other, as for somebody who has done nothing yet.
"""

from __future__ import annotations

import ast
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

from grading.core.errors import ReleaseError

TAG = "committed"


def with_committed_outputs(notebook: NotebookNode) -> NotebookNode:
    """The notebook, each marked cell with what its last line shows.

    Raises ReleaseError for a marked cell that fails or shows nothing.
    """
    names: dict[str, Any] = {}
    with _nothing_done():
        for cell in notebook.cells:
            if cell.cell_type == "code" and TAG in cell.metadata.get("tags", ()):
                cell.outputs = [new_output("display_data", data=_shown(cell, names))]
    return notebook


def _shown(cell: NotebookNode, names: dict[str, Any]) -> dict[str, str]:
    where = f"cell {cell.id}, which is released with its output,"
    try:
        *before, last = ast.parse(cell.source).body
        exec(compile(ast.Module(before, []), str(cell.id), "exec"), names)
        if not isinstance(last, ast.Expr):
            raise ReleaseError(f"{where} does not end in an expression")
        thing = eval(compile(ast.Expression(last.value), str(cell.id), "eval"), names)
    except ReleaseError:
        raise
    except Exception as error:  # a cell may raise anything
        raise ReleaseError(f"{where} fails: {error}") from error
    if not hasattr(thing, "_repr_mimebundle_"):
        raise ReleaseError(f"{where} shows nothing")
    return dict(thing._repr_mimebundle_())


@contextmanager
def _nothing_done() -> Iterator[None]:
    """No progress of whoever releases."""
    before = os.environ.get("GPULAB_PROGRESS")
    with tempfile.TemporaryDirectory(prefix="gpulab-release-") as folder:
        os.environ["GPULAB_PROGRESS"] = str(Path(folder, "progress.json"))
        try:
            yield
        finally:
            if before is None:
                del os.environ["GPULAB_PROGRESS"]
            else:
                os.environ["GPULAB_PROGRESS"] = before
