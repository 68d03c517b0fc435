"""The page on gpulab.sanitize shows what compute-sanitizer found where somebody has run it on a GPU, and says so."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
RACE = [{"kind": "race", "lines": [11, 15]}]
MADE_UP = {  # no GPU said this
    "machine": {"gpu": "NVIDIA H200", "compute_sanitizer": "2025.3.0"},
    "date": "2026-01-01",
    "kernels": {
        "a": {
            "kind": "race",
            "lines": [11, 15],
            "gpulab": {"wrong": RACE, "mended": []},
            "tools": {"wrong": {"racecheck": {"told": RACE}}, "mended": {"racecheck": {"told": []}}},
        }
    },
}


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_sanitizer", ROOT / "docs/make_sanitizer.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_sanitizer"] = module
    spec.loader.exec_module(module)
    return module


def test_without_a_run_the_page_says_that_there_was_none(maker: ModuleType):
    text = maker.page([], 0)
    assert "compute-sanitizer** needs a GPU and was not run: its column" in text
    assert "## compute-sanitizer" not in text


def test_a_run_on_a_gpu_gets_a_table_with_its_gpu_and_date(maker: ModuleType):
    text = maker.page([], 0, [MADE_UP])
    assert "was not run" not in text and "stands below" in text
    assert "## compute-sanitizer 2025.3.0 on NVIDIA H200" in text and "2026-01-01" in text
    assert "| data race | 1 | 1 | 1 | 1 | 1 | 0 |" in text


def test_the_page_shows_every_run_that_is_committed(maker: ModuleType):
    ran, page = list(maker.SANITIZED.glob("*.json")), maker.TARGET.read_text()
    assert page.count("\n## compute-sanitizer") == len(ran), "python docs/make_sanitizer.py"
