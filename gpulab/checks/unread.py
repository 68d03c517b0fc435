"""Warns, in a notebook, when an answer uses what the judge will not read.

It reads the lab's cells, and definitions in those that a learner added.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable
from typing import Any

from gpulab.foundation.display import notebook
from gpulab.foundation.global_names import bound_and_used
from gpulab.foundation.own_cells import read

from . import messages
from .need import IN_CUDA
from .run import name_of, python_function

# What JupyterLab and nbformat call a cell that is added; a lab's cells have names, or 12 digits.
ADDED = re.compile(r"[0-9a-f]{8}|[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")

_ran: dict[str, str] = {}  # by a cell's id: its text when it ran last


def watch() -> None:
    """In a notebook, start to remember which cells run."""
    shell = notebook()
    if shell is not None and _remember not in shell.events.callbacks["pre_run_cell"]:
        shell.events.register("pre_run_cell", _remember)


def _remember(info: Any) -> None:
    if isinstance(cell := getattr(info, "cell_id", None), str):
        _ran.pop(cell, None)  # the last one that ran stands last
        _ran[cell] = info.raw_cell


def warning(fn: Any) -> str:
    """What of a function's cells the judge will not read, in a sentence; empty where it reads all."""
    name = name_of(fn)
    added = {number: text for number, (cell, text) in enumerate(_ran.items()) if ADDED.fullmatch(cell)}
    lab = {cell: bound_and_used(text) for cell, text in _ran.items() if not ADDED.fullmatch(cell)}
    of_lab = [(text, *lab[cell]) for cell, text in _ran.items() if cell in lab and name in lab[cell][0]]
    if of_lab and _is_from(fn, added.values()) and not _is_stub(of_lab[-1][0]):
        return messages.answered_elsewhere(name)
    given = frozenset().union(*(binds for binds, _ in lab.values()))
    needed = frozenset({name}).union(*(uses for _, _, uses in of_lab)) - given
    unread = sorted(read(added, needed).unread)
    return messages.judge_will_not_read(unread[0]) if unread else ""


def _is_from(fn: Any, texts: Iterable[str]) -> bool:
    """Whether a function was defined in one of these cells."""
    code = getattr(python_function(fn), "__code__", None)
    text = "".join(linecache.getlines(code.co_filename)).strip() if code else ""
    return bool(text) and any(text == other.strip() for other in texts)


def _is_stub(text: str) -> bool:
    return "NotImplementedError" in text or IN_CUDA in text
