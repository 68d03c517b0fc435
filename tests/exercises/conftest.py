"""Toy exercises under their names, and progress in a folder of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulab.exercises import registry
from tests.exercises.toys import TOYS


@pytest.fixture(autouse=True)
def toy_exercises() -> Iterator[None]:
    for exercise, reference in TOYS.values():
        registry.add(exercise, reference)
    yield
    for name in TOYS:
        registry.remove(name)


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "progress.json"
    monkeypatch.setenv("GPULAB_PROGRESS", str(path))
    return path
