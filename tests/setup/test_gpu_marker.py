"""Tests that need a GPU are skipped without one, with a reason, and counted at the end."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpulab.device import has_gpu

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.skipif(has_gpu(), reason="there is a GPU here: nothing is skipped")
def test_the_summary_counts_the_tests_that_a_gpu_would_run(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    (tmp_path / "tests" / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.gpu\n@pytest.mark.parametrize('i', range(3))\ndef test_fast(i): assert False\n"
        "def test_right(): pass\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "3 tests need a GPU and were skipped: no NVIDIA GPU here" in ran.stdout
    assert "1 passed, 3 skipped" in ran.stdout.splitlines()[-1]
