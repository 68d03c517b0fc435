"""The page on Triton's own tests says what was kept of the run, and gives each failure its reason."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

from tests.conformance import triton_language as tests


def test_the_page_is_made_of_what_was_kept_and_nine_in_ten_pass() -> None:
    kept = json.loads(tests.KEPT.read_text())
    assert tests.page(kept) == tests.PAGE.read_text(encoding="utf-8")
    ended = [found["result"] for found in kept["tests"].values()]
    assert ended.count("passed") >= 0.9 * (len(ended) - ended.count("skipped")) > 100
    assert all(tests.reason(name, f["said"]) for name, f in kept["tests"].items() if f["result"] == "failed")


def test_a_junit_file_is_read_test_by_test() -> None:
    report = ElementTree.fromstring(
        "<testsuites><testsuite>"
        '<testcase classname="a.b.test_core" name="test_x[1]"/>'
        '<testcase classname="a.b.test_core" name="test_y"><failure message="A: /p/q/k.py is | wrong"/></testcase>'
        '<testcase classname="a.b.test_core" name="test_z"><skipped message="only on HIP"/></testcase>'
        "</testsuite></testsuites>"
    )
    found = tests.outcomes(report)
    assert [each["result"] for each in found.values()] == ["passed", "failed", "skipped"]
    page = tests.page({"triton": "3", "tests": found})
    assert "1 of the 2 that apply pass (50.0%)" in page
    assert "| `test_core::test_y` | A: k.py is / wrong |" in page
