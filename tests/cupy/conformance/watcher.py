"""A pytest plugin: what became of each test, as JSON into the file of CUPY_CONFORMANCE_RESULTS."""

from __future__ import annotations

import json
import os
from typing import Any

from not_applicable import reason

results: dict[str, list[str]] = {}  # test → [outcome, why]


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Tests that do not apply are noted and left out."""
    chosen = []
    for item in items:
        if why := reason(item.nodeid):
            results[item.nodeid] = ["not applicable", why]
        else:
            chosen.append(item)
    items[:] = chosen


def pytest_runtest_logreport(report: Any) -> None:
    """A test has passed when its call has; a skipped one says why in its last line."""
    if report.when == "call" and report.passed:
        results[report.nodeid] = ["passed", ""]
    elif report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        results[report.nodeid] = [
            "failed",
            str(crash.message if crash else report.longrepr).splitlines()[0][:200],
        ]
    elif report.skipped:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        results[report.nodeid] = ["not applicable", f"skipped by CuPy: {why.removeprefix('Skipped: ')}"]


def pytest_sessionfinish(session: Any) -> None:
    """Write the results."""
    with open(os.environ["CUPY_CONFORMANCE_RESULTS"], "w", encoding="utf-8") as file:
        json.dump(results, file)
