"""Runs a sample of Triton's own tests of its language by ``pytest --gpulab``, and publishes how they did.

``python -m tests.conformance.triton_language FOLDER`` with a checkout of github.com/triton-lang/triton runs one
test of each function of python/test/unit/language, with parameters drawn at random (`triton_sample.py`), and
writes docs/conformance/triton_language.json and .md. ``--sample N`` takes N of these functions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.conformance.features import PAGES, REPOSITORY

PAGE = PAGES / "triton_language.md"
KEPT = PAGE.with_suffix(".json")
GPU = "H100"
LIMIT = 300  # seconds by the clock for one test, on a machine that has other things to do
TESTS = "python/test/unit/language"
# Why tests fail, by their names.
REASONS: Mapping[str, str] = {
    "test_int_annotation": "writes beyond its array of one element, which is reported here",
    "test_use_name_loc_as_prefix": "compares text of Triton's compiler that this version writes otherwise",
    "test_atomic_poll_rejects_tensor_pointer": "this version of Triton does not refuse what the test wants refused",
    "test_reduce": "indexes a scalar with `None`, which this version of Triton refuses",
    "test_warpgroup_reduction": "launches what `triton.compile` returns, which has no launcher here",
    "test_print": "starts another Python, in which imports of Triton do not lead to the simulated GPU",
}


def run(checkout: Path, sample: int) -> dict[str, dict[str, str]]:
    """How each test of the sample ended, by its name: `result`, and what a failure or skip `said`."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--gpulab-gpu", GPU, f"--timeout={LIMIT}"]
        command += ["-p", "tests.conformance.triton_sample", "-p", "no:cacheprovider", "-W", "ignore"]
        command += ["--confcutdir=python", f"--junitxml={report}", "--continue-on-collection-errors", TESTS]
        paths = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SAMPLE": str(sample)}
        subprocess.run(command, cwd=checkout, env=environment, check=False)
        return outcomes(ElementTree.parse(report).getroot())


def outcomes(report: ElementTree.Element) -> dict[str, dict[str, str]]:
    """Those of a JUnit file."""
    found = {}
    for case in report.iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        result, said = "passed", ""
        for kind in ("failure", "error", "skipped"):
            if (element := case.find(kind)) is not None:
                result = "skipped" if kind == "skipped" else "failed"
                said = " ".join((element.get("message") or "").split())[:200]
        found[name] = {"result": result, "said": said}
    return found


def reason(name: str, said: str) -> str:
    """Why a test failed: what was found out about it, or its own words."""
    function = name.partition("::")[2].partition("[")[0]
    return REASONS.get(function, re.sub(r"(?:/[\w.+-]+)+/", "", said).replace("|", "/"))


def page(kept: Mapping[str, Any]) -> str:
    """The published page."""
    tests: Mapping[str, Mapping[str, str]] = kept["tests"]
    ran = {name: found for name, found in tests.items() if found["result"] != "skipped"}
    passed = sum(found["result"] == "passed" for found in ran.values())
    text = [
        "# Triton's own tests of its language",
        "",
        f"Tests of `{TESTS}` in Triton's repository, run unchanged by",
        f"`pytest --gpulab-gpu {GPU}`: one of each function, with parameters drawn at random. Written by",
        "`python -m tests.conformance.triton_language`.",
        "",
        f"{passed} of the {len(ran)} that apply pass ({passed / len(ran):.1%}), with Triton {kept['triton']}. "
        f"{len(tests) - len(ran)} skip themselves on this GPU.",
        "",
        "| file | passed | of |",
        "|---|---:|---:|",
    ]
    by_file = Counter(name.partition("::")[0] for name in ran)
    good = Counter(name.partition("::")[0] for name, found in ran.items() if found["result"] == "passed")
    text += [f"| {file} | {good[file]} | {count} |" for file, count in sorted(by_file.items())]
    if failed := {name: found for name, found in ran.items() if found["result"] == "failed"}:
        text += ["", "## Why", "", "| test | reason |", "|---|---|"]
        for name, found in failed.items():
            shown = name.replace("|", "\\|")
            text.append(f"| `{shown}` | {reason(name, found['said'])} |")
    return "\n".join(text) + "\n"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, default=240, help="how many functions")
    options = parser.parse_args()
    kept = {"triton": version("triton"), "tests": dict(sorted(run(options.folder, options.sample).items()))}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(page(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
