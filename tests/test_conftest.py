"""What the tests share holds: what is prepared once is used by one process."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.tiers import first_of_each

ROOT = Path(__file__).resolve().parents[1]
MANY = "import pytest\n\n@pytest.mark.parametrize('n', range(6))\ndef test_a_number(n):\n    pass\n"


def test_the_tests_of_a_file_and_all_of_the_browser_run_in_one_process(tmp_path: Path) -> None:
    # pytest 9.2 does not let pytest-xdist 3.8 group tests, and says nothing.
    files = ("tests/one/test_one.py", "tests/browser/test_first.py", "tests/browser/test_second.py")
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(MANY)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    options = ["-v", "-n", "2", "--dist", "loadgroup", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    workers = defaultdict(set)
    for worker, folder in re.findall(r"^\[(gw\d)\].* PASSED tests/(\w+)/", done.stdout, re.M):
        workers[folder].add(worker)
    assert {folder: len(seen) for folder, seen in workers.items()} == {"one": 1, "browser": 1}, done.stdout


@pytest.mark.slow
def test_all_tests_are_collected_in_15_seconds_of_the_processor() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-qq"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 15


def test_costs_count_the_processes_that_a_test_starts(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text(
        "import subprocess, sys, time\n"
        "BUSY = 'import time\\nwhile time.process_time() < 1: pass'\n"
        "def test_cheap():\n    pass\n"
        "def test_dear():\n    subprocess.run([sys.executable, '-c', BUSY], check=True)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    subprocess.run(
        [sys.executable, "-m", "pytest", "--costs", "-n", "1", "-p", "tests.costs", "-p", "no:cacheprovider"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=True,
    )  # fmt: skip
    costs = json.loads((tmp_path / "build/costs.json").read_text())
    assert costs["test_two.py::test_cheap"] < 0.5 < costs["test_two.py::test_dear"]


def test_make_test_runs_the_first_cases_of_each_kind_and_make_test_all_every_case() -> None:
    cases = list(first_of_each(["a1", "a2", "b1", "a3"], kind=lambda case: case[0], name=str.upper, first=2))
    assert [case.values for case in cases] == [("a1",), ("a2",), ("b1",), ("a3",)]
    assert [case.id for case in cases if case.marks] == ["A3"]
    (pair,) = first_of_each([("lab", "exercise")], kind=lambda pair: pair[0], name=lambda pair: pair[1])
    assert pair.values == ("lab", "exercise")


def test_a_long_parameter_does_not_make_a_long_name(tmp_path: Path) -> None:
    (tmp_path / "test_long.py").write_text(
        "import pytest\n\n@pytest.mark.parametrize('x', ['[' * 1000, b'\\xff' * 1000, 'short'])\ndef test(x): ...\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    names = [line for line in done.stdout.splitlines() if "::" in line]
    assert len(names) == 3 and all(len(name) < 100 for name in names), done.stdout
    assert "of 1000" in names[0] and "[short]" in names[2]
