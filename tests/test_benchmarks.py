"""The page on benchmarks names them all, and leaves measured numbers to their output."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


def test_the_page_names_each_benchmark_and_no_other() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+\.py)` \|", page, re.MULTILINE)
    assert sorted(named) == sorted(path.name for path in FOLDER.glob("*.py"))


def test_the_page_tells_aims_and_no_time_that_was_measured() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `\w+\.py` .*\|", page, re.MULTILINE)
    rest = page
    for row in rows:
        rest = rest.replace(row, "")
    assert not re.findall(r"\d[\d.,]*\s*(?:ms|s|GB|MB|×)(?!\w)", rest)
