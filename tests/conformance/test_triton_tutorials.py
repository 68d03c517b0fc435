"""The page on Triton's tutorials says what was kept of each run, and names each tutorial once."""

from __future__ import annotations

import json
import re

from tests.conformance import triton_tutorials as tutorials


def test_the_page_is_made_of_what_was_kept() -> None:
    kept = json.loads(tutorials.KEPT.read_text())
    assert tutorials.page(kept) == tutorials.PAGE.read_text(encoding="utf-8")
    keys = [tutorial.key for tutorial in tutorials.TUTORIALS]
    assert len(set(keys)) == len(keys) and set(kept) <= set(keys)


def test_a_tutorial_runs_its_checks_and_not_what_measures_times() -> None:
    tutorial = tutorials.Tutorial("a.py", "H100", "check(1)\ncheck(2)")
    text = 'def check(n): ...\nif __name__ == "__main__":\n    measure()\n'
    for pattern, replacement in tutorial.program().smaller:
        text = re.sub(pattern, replacement, text)
    assert text == "def check(n): ...\nif False:\n    measure()\n\ncheck(1)\ncheck(2)\n"


def test_what_is_not_right_has_its_reason_on_the_page() -> None:
    first, second = tutorials.TUTORIALS[:2]
    kept = {first.key: {"right": True, "said": "", "seconds": 3, "triton": "3"}}
    kept[second.key] = {"right": False, "said": "a | b", "seconds": 4, "triton": "3"}
    page = tutorials.page(kept)
    assert "1 of the 2 that were run are right." in page and f"| {second.fails} |" in page
    assert f"- {tutorials.TUTORIALS[2].path}, on the" in page
