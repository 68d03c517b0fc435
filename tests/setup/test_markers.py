"""Tests that need a GPU or a browser are skipped without one, with a reason, and counted at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpulab.simulator.device import has_gpu

ROOT = Path(__file__).resolve().parent.parent.parent


def summary(tmp_path: Path, mark: str, **environment: str) -> str:
    """What pytest says of three tests with a mark that would fail and one without that passes."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "tests").mkdir()
    for name in ("conftest.py", "costs.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
    (tmp_path / "tests" / "test_it.py").write_text(
        "import pytest\n"
        f"@pytest.mark.{mark}\n@pytest.mark.parametrize('i', range(3))\ndef test_fast(i): assert False\n"
        "def test_right(): pass\n"
    )
    command, env = [sys.executable, "-m", "pytest"], os.environ | environment
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "1 passed, 3 skipped" in ran.stdout.splitlines()[-1]
    return ran.stdout


@pytest.mark.skipif(has_gpu(), reason="there is a GPU here: nothing is skipped")
def test_the_summary_counts_the_tests_that_a_gpu_would_run(tmp_path: Path) -> None:
    assert "3 tests need a GPU and were skipped: no NVIDIA GPU here" in summary(tmp_path, "gpu")


def test_the_summary_counts_the_tests_that_a_browser_would_run(tmp_path: Path) -> None:
    said = summary(tmp_path, "browser", PATH=str(tmp_path))  # nothing is installed there
    assert "3 tests need a browser and were skipped: no Chromium here" in said
