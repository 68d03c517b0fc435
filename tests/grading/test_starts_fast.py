"""What a process of the judge leaves alone when it starts."""

from __future__ import annotations

import subprocess
import sys


def test_no_grammar_of_internet_addresses_is_built_and_notebooks_are_still_checked():
    code = """
import grading, nbformat, sys
assert "lark" not in sys.modules
try:
    nbformat.validate({"cells": [], "metadata": 3, "nbformat": 4, "nbformat_minor": 5})
except nbformat.ValidationError:
    print("checked")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "checked", done.stderr
