"""Ranks are forked from a server that has PyTorch, whatever other tests of the same process have started."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing import forkserver

import pytest


@pytest.fixture(scope="module", autouse=True)
def own_server() -> Iterator[None]:
    """A process has one server of forks, and what it has imported is settled when it starts."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # Python's own tests do so
    yield
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
