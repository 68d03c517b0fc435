"""The model answers of written questions as one file, for people who study alone and are not graded."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jupytext

from grading.core.course import Course, sources

FULL_MARKS = re.compile(r"^\*\*2 points:?\*\*:?\s*(.+?)(?=\n\n\*\*|\Z)", re.DOTALL | re.MULTILINE)


def answers(course: Course) -> dict[str, str]:
    """What earns full marks, by the name of the question's cell."""
    found = {}
    for lab in course.lab_names():
        for source in sources(course.solutions / lab):
            for cell in jupytext.read(source).cells:
                mark = cell.metadata.get("nbgrader", {})
                if cell.cell_type == "markdown" and mark.get("solution"):
                    best = FULL_MARKS.search(cell.source)
                    found[mark["grade_id"]] = " ".join((best[1] if best else cell.source).split())
    return found


def write(course: Course, path: Path) -> int:
    """Write them to `path`; how many there are."""
    found = answers(course)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    return len(found)
