"""What all tests share: GPU tests skipped with a reason and counted, quiet and repeatable libraries."""

from __future__ import annotations

import os
import sys

# Before NumPy and matplotlib are imported: the tests run side by side, and no test opens a window.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# Cells and scripts find `gpulab` and `jupyter` although nobody activated the environment.
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])

import hypothesis
import pytest

# The same examples in every run and no time limit per example: machines differ, and pytest-timeout is there.
hypothesis.settings.register_profile("gpulab", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.load_profile("gpulab")

NO_GPU = "no NVIDIA GPU here"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    wants_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not wants_gpu:
        return
    from gpulab.device import has_gpu  # only now: a broken room fails its own tests, not all

    if not has_gpu():
        for item in wants_gpu:
            item.add_marker(pytest.mark.skip(reason=NO_GPU))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [r for r in terminalreporter.stats.get("skipped", []) if NO_GPU in str(r.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests need a GPU and were skipped: {NO_GPU}")
