"""Ranks are forked from a server that has PyTorch, whatever other tests of the same process have started."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from multiprocessing import forkserver

import pytest


@pytest.fixture(scope="module", autouse=True)
def own_server() -> Iterator[None]:
    """A process has one server of forks, and what it has imported is settled when it starts."""
    _stop()
    yield
    _stop()


def _stop() -> None:
    """End the server of forks, and first its children: each keeps it alive, as those that wait for a next call do."""
    for child in multiprocessing.active_children():
        child.kill()
        child.join()
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # Python's own tests do so
