"""The labs' solution notebooks on the GPU of this machine: which cells fail there, and what each check says.

A learner with a GPU runs the same notebooks with the real packages. Each notebook runs in a kernel of its
own. The file holds the cells that failed, with their errors, and what every check said.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gpulab.foundation.errors import Message

from . import children, measured
from .children import ROOT
from .machine import child
from .measure import Failed, read

USUAL = ROOT / "build" / "notebooks.json"
PATIENCE = 300  # seconds for one cell
LONGEST = 3600.0  # seconds for a batch of notebooks
SHOWN = 2000  # characters that are kept of a cell, of how it failed and of what a check said
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class UnknownLab(Message, LookupError):
    """A number that no lab has."""


def all_of(labs: Iterable[str]) -> list[Path]:
    """The sources of the notebooks of some labs by their numbers, of all for none. Raises UnknownLab."""
    wanted = set(labs)
    there = {path.name[:2] for path in (ROOT / "solutions").glob("[0-9]*")}
    if unknown := sorted(wanted - there):
        raise UnknownLab(f"there is no lab {unknown[0]!r}; labs are {min(there)} to {max(there)}.")
    return [
        path
        for path in sorted((ROOT / "solutions").glob("[0-9]*/[0-9]*.py"))
        if not wanted or path.parent.name[:2] in wanted
    ]


def run(source: Path) -> dict[str, Any]:
    """Run one notebook to its end, also past cells that fail."""
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(source)
    begun = time.monotonic()
    ended = ""
    client = NotebookClient(
        notebook,
        timeout=PATIENCE,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": str(source.parent)}},
    )
    try:
        with tempfile.TemporaryDirectory() as folder:  # nobody's progress
            client.execute(env={**os.environ, "GPULAB_PROGRESS": str(Path(folder) / "progress.json")})
    except Exception as error:  # a cell without end, a kernel that died: the rest was not run
        ended = f"{type(error).__name__}: {str(error)[-SHOWN:]}"
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return {
        "seconds": round(time.monotonic() - begun, 1),
        "cells": len(code),
        "ended": ended,
        "failed": [_failure(number, cell) for number, cell in enumerate(code) if _error(cell)],
        "checks": {name: said for cell in code for name, said in _checked(cell)},
    }


def _error(cell: Any) -> Any:
    return next((o for o in cell.get("outputs", []) if o.output_type == "error"), None)


def _failure(number: int, cell: Any) -> dict[str, Any]:
    error = _error(cell)
    trace = COLOURS.sub("", "\n".join(error.traceback))
    return {
        "cell": number,
        "source": cell.source[:SHOWN],
        "error": f"{error.ename}: {error.evalue}"[:SHOWN],
        "trace": trace[-SHOWN:],
    }


def _checked(cell: Any) -> list[tuple[str, str]]:
    """The exercise that a cell checks, and all that the check said in plain text."""
    call = re.search(r"^gpulab\.check\(\s*[\"']([\w.]+)", cell.source, re.MULTILINE)
    if not call:
        return []
    texts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            texts.append(output.text)
        elif "data" in output:
            texts.append(output.data.get("text/plain", ""))
    return [(call[1], COLOURS.sub("", "\n".join(texts))[-SHOWN:])]


def run_all(labs: Iterable[str], out: Path, jobs: int, tell: Callable[[str], None]) -> Path:
    """Run notebooks, each in a process of its own and `jobs` at a time; the file is written after each batch.

    Whatever ends the wait ends the notebooks that run. Raises UnknownLab.
    """
    data: dict[str, Any] = {"format": measured.FORMAT, "notebooks": {}}
    sources = all_of(labs)
    for first in range(0, len(sources), jobs):
        for source, found in _batch(sources[first : first + jobs]):
            data["notebooks"][source.stem] = found
            tell(f"{source.stem}: {_summary(found)}")
        measured.save(out, data)
    return out


def _batch(sources: list[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    with tempfile.TemporaryDirectory() as folder:
        results = [Path(folder) / f"{source.stem}.json" for source in sources]
        commands = [
            child("_notebook", str(source), str(result))
            for source, result in zip(sources, results, strict=True)
        ]
        ends = children.run_all(commands, LONGEST)
        for source, ended, result in zip(sources, ends, results, strict=True):
            try:
                yield source, read(ended, result)
            except Failed as error:
                yield source, {"ended": str(error)}


def _summary(found: Mapping[str, Any]) -> str:
    if "cells" not in found:
        return str(found["ended"])
    stopped = f"; stopped: {found['ended']}" if found["ended"] else ""
    return f"{len(found['failed'])} of {found['cells']} cells failed{stopped}"
