"""What grading/ adds to nbgrader's own lists of preprocessors, and the lists themselves."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat import NotebookNode
from nbgrader import preprocessors as nbg
from nbgrader.preprocessors import NbGraderPreprocessor

Resources = dict[str, Any]


KEPT = ("nbgrader", "tags")


class StableIds(NbGraderPreprocessor):
    """Cell ids that the text form lacks: the grade id, else a hash of notebook and source. Drops jupytext's notes."""

    def preprocess(self, notebook: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        seen: dict[str, int] = {}
        notebook.metadata.pop("jupytext", None)
        notebook.nbformat, notebook.nbformat_minor = 4, 5
        for cell in notebook.cells:
            for key in cell.metadata.keys() - set(KEPT):
                del cell.metadata[key]
            name = re.sub(r"[^A-Za-z0-9_-]", "-", cell.metadata.get("nbgrader", {}).get("grade_id", ""))[:48]
            text = f"{resources['unique_key']}\0{cell.cell_type}\0{cell.source}"
            name = name or hashlib.sha256(text.encode()).hexdigest()[:12]
            seen[name] = seen.get(name, 0) + 1
            cell["id"] = name if seen[name] == 1 else f"{name}-{seen[name]}"
        return notebook, resources


RELEASE: list[type[NbGraderPreprocessor]] = [
    StableIds,
    nbg.LockCells,
    nbg.ClearSolutions,
    nbg.ClearOutput,
    nbg.CheckCellMetadata,
    nbg.ComputeChecksums,
    nbg.SaveCells,
    nbg.ClearHiddenTests,
    nbg.ClearMarkScheme,
    nbg.ComputeChecksums,
    nbg.CheckCellMetadata,
]
SANITIZE: list[type[NbGraderPreprocessor]] = [
    nbg.ClearOutput,
    nbg.DeduplicateIds,
    nbg.OverwriteKernelspec,
    nbg.OverwriteCells,
    nbg.CheckCellMetadata,
]
AUTOGRADE: list[type[NbGraderPreprocessor]] = [
    ClearMetadataPreprocessor,
    nbg.LimitOutput,
    nbg.SaveAutoGrades,
    nbg.AssignLatePenalties,
    nbg.CheckCellMetadata,
]
