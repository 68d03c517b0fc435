"""The page of instructions tells of all that the simulator runs, and of nothing else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def maker():
    spec = importlib.util.spec_from_file_location("make_instructions", ROOT / "docs/make_instructions.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_instructions"] = module
    spec.loader.exec_module(module)
    return module


def test_every_instruction_of_the_tables_is_told_of_and_no_other():
    made = maker()
    assert made.known() == made.described()


def test_the_page_is_what_its_script_makes_of_the_tables():
    assert maker().TARGET.read_text() == maker().page()


def test_every_test_that_the_page_names_is_there():
    assert all((ROOT / family.test).exists() for family in maker().FAMILIES)
