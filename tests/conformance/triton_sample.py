"""A plugin of pytest that keeps one test of each function, drawn at random but the same in every run."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep SAMPLE functions, each with one of its sets of parameters."""
    draw = random.Random(27)
    by_function: dict[tuple[str, str], list[pytest.Function]] = {}
    for item in items:
        by_function.setdefault((str(item.path), item.originalname), []).append(item)
    drawn = [draw.choice(same) for same in by_function.values()]
    draw.shuffle(drawn)
    items[:] = drawn[: int(os.environ["SAMPLE"])]
