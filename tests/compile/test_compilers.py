"""The labs' budgets hold under the compilers that users have, and the page says where counts differ."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@cache
def maker():
    spec = importlib.util.spec_from_file_location("make_compilers", ROOT / "docs/make_compilers.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_compilers"] = module
    spec.loader.exec_module(module)
    return module


@cache
def column(python):
    return maker().column(python)


def python_of(release: str):
    python = maker().python_of(release)
    if not python.exists():
        pytest.skip(f"the compilers of CUDA {release} are not here: `make compilers` fetches them")
    return python


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("release", ["12.9", "13.0"])
def test_every_solution_earns_all_its_points_with_the_compiler_of(release: str) -> None:
    found = column(python_of(release))
    assert found.compiler == f"CUDA {release}"
    assert found.solutions
    assert {name: s.missed for name, s in found.solutions.items() if s.missed} == {}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("release", ["12.9", "13.0"])
def test_the_page_tells_every_count_that_differs_in_the_labs_that_it_lists(release: str) -> None:
    made = maker()
    there, here = column(python_of(release)), column(sys.executable)
    page = made.TARGET.read_text()
    untold = [
        row for row in made.differences([there, here]) if f"| {row.exercise} | {row.what} |" not in page
    ]
    listed = page.split("Labs with kernels: ")[1].split(".\n")[0].split(", ")
    new = {name for lab in here.labs if lab not in listed for name in made.exercises_of(lab)}
    assert [row for row in untold if row.exercise not in new] == []


def test_a_count_that_differs_stands_in_the_page_with_its_budget_and_one_that_does_not_is_left_out() -> None:
    made = maker()

    def compiler(name: str, instructions: float, missed: list[str]):
        counts = {"instructions at 64": instructions, "global_bytes at 64": 256.0}
        return made.Column(
            name, ["00_lab"], {"lab.copy": made.Solution(counts, {"instructions at 64": 7.5}, missed)}
        )

    page = made.page([compiler("CUDA 12.9", 8.0, ["Little work"]), compiler("CUDA 13.5", 7.0, [])])
    assert "| lab.copy | instructions at 64 | 7.5 | 8 | 7 |" in page
    assert "global_bytes" not in page
    assert "| solutions that earn all points | 0 of 1 | 1 of 1 |" in page
    assert "CUDA 12.9: lab.copy misses Little work." in page
