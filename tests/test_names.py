"""The short names that notebooks import: each is the very module that it stands for."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from gpulab import names

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = {"simulated_triton": "triton"}  # names of modules that need one


@pytest.mark.parametrize("short", names.SHORT)
def test_a_short_name_is_the_module_itself(short: str) -> None:
    if short in EXTRAS:
        pytest.importorskip(EXTRAS[short])
    module = import_module(f"gpulab.{short}")
    assert module is import_module(f"gpulab.{names.SHORT[short]}")
    assert module.__spec__ is not None and module.__spec__.name == f"gpulab.{names.SHORT[short]}"


def test_what_is_inside_a_package_has_a_short_name_too() -> None:
    from gpulab.distributed.pipelines import simulate as short
    from gpulab.subjects.distributed.pipelines import simulate as long

    assert short is long


def test_a_short_name_can_be_run() -> None:
    run = [sys.executable, "-m", "gpulab.hardware", "T4"]
    assert "Turing" in subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_a_name_that_stands_for_nothing_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"gpulab\.nothing"):
        import_module("gpulab.nothing")
    with pytest.raises(ModuleNotFoundError, match=r"gpulab\.hardware\.nothing"):
        import_module("gpulab.hardware.nothing")


def imported_by_labs() -> set[tuple[str, str]]:
    """What all labs and their wrong submissions import of gpulab: (module, name in it or nothing)."""
    found: set[tuple[str, str]] = set()
    for path in sorted((ROOT / "solutions").rglob("*.py")):
        text = "".join(
            line
            for line in path.read_text(encoding="utf-8").splitlines(True)
            if not line.startswith(("%", "!"))
        )
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gpulab":
                found |= {(str(node.module), alias.name) for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {(a.name, "") for a in node.names if a.name.split(".")[0] == "gpulab"}
    return found


def test_everything_that_labs_import_is_there() -> None:
    pytest.importorskip("torch")
    wanted = imported_by_labs()
    assert len(wanted) > 40
    absent = []
    for module, name in sorted(wanted):
        there = import_module(module)
        if name and not hasattr(there, name):
            try:
                import_module(f"{module}.{name}")
            except ImportError:
                absent.append(f"{module}.{name}")
    assert not absent
