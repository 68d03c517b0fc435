"""What docs/languages.md counts in six languages is what its benchmark counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LANGUAGES = {"numba", "CUDA C++", "Triton", "Gluon", "CuTe DSL", "cuTile"}
COUNTED = 5  # columns before the modelled time: kernel, language, lines, bytes, instructions


def rows(text: str) -> list[tuple[str, ...]]:
    """The rows of its table, without what is modelled or measured."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [tuple(line[:COUNTED]) for line in lines[1:]]


def on_the_page() -> list[tuple[str, ...]]:
    return rows((ROOT / "docs" / "languages.md").read_text(encoding="utf-8"))


def test_the_page_has_every_kernel_in_every_language_that_can_have_it() -> None:
    found = {row[:2] for row in on_the_page()}
    kernels = {"add", "transpose", "softmax", "matmul", "attention"}
    assert {(k, name) for k in kernels for name in LANGUAGES} - found == {("matmul", "numba")}


@pytest.mark.slow  # half a minute of the processor
@pytest.mark.timeout(1200)
def test_a_run_counts_what_the_page_says() -> None:
    for package in ("cuda.tile", "nvidia_cutlass_dsl", "triton"):
        pytest.importorskip(package)
    command = [sys.executable, "benchmarks/side_by_side.py", "--markdown"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert rows(done.stdout) == on_the_page()
