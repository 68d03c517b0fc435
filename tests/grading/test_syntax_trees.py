"""Notebooks are judged in threads, and each thread parses cells."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path

import grading.core
from gpulab.foundation import syntax_trees

SOURCE = "".join(f"a{i} = [{i}, None]\n" for i in range(1000))


def test_threads_that_parse_at_once_all_get_their_trees():
    """Collections of garbage that run Python in the middle of it let other threads in."""
    failed: list[SystemError] = []

    def parse() -> None:
        for _ in range(15):
            try:
                syntax_trees.parse(SOURCE)
            except SystemError as error:
                failed.append(error)

    def let_others_in(*_: object) -> None:
        sum(range(50))

    threads = [threading.Thread(target=parse) for _ in range(4)]
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    gc.callbacks.append(let_others_in)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.callbacks.remove(let_others_in)
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)
    assert not failed


def test_the_judge_parses_in_no_other_way():
    for path in Path(grading.core.__file__).parent.glob("*.py"):
        assert "ast.parse(" not in path.read_text(), path
