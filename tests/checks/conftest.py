"""Toy exercises under their names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpulab.checks import registry
from tests.checks.toys import TOYS


@pytest.fixture(autouse=True)
def toy_exercises() -> Iterator[None]:
    for exercise, reference in TOYS.values():
        registry.add(exercise, reference)
    yield
    for name in TOYS:
        registry.remove(name)
