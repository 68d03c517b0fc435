"""The rules of ARCHITECTURE.md: who may import whom, what no file may name, what is generated."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# What the core dependencies of pyproject.toml bring, under the names by which they are imported.
CORE = {
    "numpy",
    "matplotlib",
    "numba",
    "cuda",
    "rich",
    "IPython",
    "ipywidgets",
    "traitlets",
    "packaging",
    "PIL",  # matplotlib's
    "shtab",
}

# Rooms that nothing else imports, for those who have an extra: a face may stand on what it is the face of.
FACES = {
    "gpulab.app.programs.scaled_products": {"torch"},
    "gpulab.app.programs.tf32": {"torch"},
    "gpulab.app.programs.torch_cuda": {"torch"},
    "gpulab.app.pytest_plugin": {"pytest", "_pytest"},
    "gpulab.cutlass": {"cutlass"},
    "gpulab.simulator.simt.llvm": {"llvmlite", "numba"},
    "gpulab.simulator.simt.sweeps": {"numba"},
    "gpulab.frontends.triton": {"triton"},
    "gpulab.subjects.models.gpt": {"torch"},
    "gpulab.subjects.models.emulate": {"torch"},
    "gpulab.subjects.models.outliers": {"torch"},
    "gpulab.subjects.models.pretrained": {"torch"},
    "gpulab.subjects.models.recipes": {"torch"},
    "gpulab.subjects.serving.model": {"torch"},
    "gpulab.subjects.serving.http": {"fastapi", "pydantic", "uvicorn"},
}
FACES |= {
    f"gpulab.subjects.distributed.{module}": {"torch", "cloudpickle"}
    for module in ("launch", "worker", "recorded", "group", "wired", "member", "symmetric")
}

# Split, so that this file does not name them.
FORBIDDEN = tuple(
    first + rest
    for first, rest in [
        ("/wo", "rk/"),
        ("../sha", "red"),
        ("/opt/wh", "eels"),
        ("/opt/py", "pi"),
        ("pypi", ".org"),
        ("python", "hosted"),
        ("npmjs", ".org"),
        ("download.py", "torch"),
        ("conda.ana", "conda"),
        ("deb.deb", "ian.org"),
    ]
)
TEXT = {
    ".py",
    ".md",
    ".toml",
    ".txt",
    ".cff",
    ".json",
    ".ipynb",
    ".svg",
    ".yml",
    ".yaml",
    ".cfg",
    ".cu",
    ".ptx",
    "",
}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of ours by its dotted name. The red team's submissions are none: they are cells."""
    for package in ("gpulab", "grading"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.parent.parent == ROOT / "grading" / "redteam":
                continue
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@cache
def names_imported(path: Path, name: str) -> dict[str, bool]:
    """What a module imports, by dotted name; True where importing the module itself does it.

    `from a import b` counts as `a.b`: which of the two is a module does not matter to a rule on prefixes.
    """
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: dict[str, bool] = {}

    def visit(node: ast.AST, at_import: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                add([alias.name for alias in child.names], at_import)
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    above = package.split(".")[: len(package.split(".")) - child.level + 1]
                    base = ".".join([*above, *filter(None, [child.module])])
                add([f"{base}.{alias.name}" for alias in child.names], at_import)
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            typing_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            visit(child, at_import and not inside and not typing_only)

    def add(names: list[str], at_import: bool) -> None:
        for each in names:
            found[each] = found.get(each, False) or at_import

    visit(ast.parse(path.read_text(encoding="utf-8")), True)
    return found


def under(name: str, room: str) -> bool:
    return name == room or name.startswith(room + ".")


def test_imports_are_seen_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "import gpulab.simulator.simt as s\n"
        "from ..ptx import parse\n"
        "from . import near\n"
        "if TYPE_CHECKING:\n    from rich.console import Console\n"
        "def f():\n    import torch\n"
    )
    assert names_imported(path, "gpulab.simulator.observe.example") == {
        "typing.TYPE_CHECKING": True,
        "gpulab.simulator.simt": True,
        "gpulab.simulator.ptx.parse": True,
        "gpulab.simulator.observe.near": True,
        "rich.console.Console": False,
        "torch": False,
    }


def test_packages_import_one_way_and_in_no_circle() -> None:
    """The contracts are in pyproject.toml; `lint-imports` says which import breaks one."""
    linter = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    run = subprocess.run(linter, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 broken" in run.stdout


# What a face brings along, in a process of its own: ``import gpulab.cuda`` and so on.
LOADED = """
import resource, sys
import {face}
print(*sorted(sys.modules))
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_utime + usage.ru_stime)
"""


# The real package that a face is made of, where there is one.
# The package behind each face; "" where there is none.
REAL_PACKAGES = {
    "gpulab.cuda": "",
    "gpulab.cupy": "",
    "gpulab.triton": "triton",
    "gpulab.cutlass": "cutlass",
    "gpulab.tile": "cuda.tile",
    "gpulab.simulator.simt": "",
    "gpulab.simulator.device": "",
}
BRING_PYTORCH = ("gpulab.tile",)  # NVIDIA's package imports it by itself where it is installed


@pytest.mark.parametrize("face", REAL_PACKAGES)
def test_the_simulator_and_the_front_ends_are_usable_without_the_course(
    face: str, record_property: Callable[[str, object], None]
) -> None:
    """They bring no exercise, no figure and no PyTorch, and cost little more than numba and the real package do.

    Both times are processor time, measured next to each other. PyTorch alone costs more than that.
    """
    if REAL_PACKAGES[face]:
        pytest.importorskip(REAL_PACKAGES[face])
    run = subprocess.run(
        [sys.executable, "-c", LOADED.format(face=face)],
        cwd=ROOT, env=os.environ | {"GPULAB_SIMULATE": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    names, seconds = run.stdout.splitlines()
    alone = subprocess.run(
        [sys.executable, "-c", LOADED.format(face=", ".join(filter(None, ("numba", REAL_PACKAGES[face]))))],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    record_property("processor seconds", seconds)
    course = (
        "gpulab.app",
        "gpulab.content",
        "gpulab.checks",
        "gpulab.analysis",
        "gpulab.plot",
        "gpulab.subjects",
    )
    unwanted = (*course, "matplotlib", "IPython", "jupyter")
    if face not in BRING_PYTORCH:
        unwanted += ("torch",)
        assert float(seconds) < 3 * float(alone.stdout.splitlines()[1])
    loaded = [name for name in names.split() if any(under(name, other) for other in unwanted)]
    assert not loaded, loaded


def test_the_picture_in_architecture_md_is_that_of_the_code() -> None:
    drawn = subprocess.run(
        [sys.executable, "docs/make_architecture.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert drawn.returncode == 0, drawn.stdout + drawn.stderr


def test_gpulab_can_be_imported_without_any_extra() -> None:
    wrong = []
    for name, path in modules():
        imported = {n.split(".")[0] for n, at_import in names_imported(path, name).items() if at_import}
        extra = next((extra for face, extra in FACES.items() if under(name, face)), set())
        more = imported - set(sys.stdlib_module_names) - {"gpulab"} - CORE - extra
        if under(name, "gpulab") and more:
            wrong.append(f"{name} imports {', '.join(sorted(more))}: do it in the function that uses it")
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_what_another_keeps_private() -> None:
    wrong = [
        f"{name} imports {imported}"
        for name, path in modules()
        for imported in names_imported(path, name)
        if imported.startswith(("gpulab.", "grading."))
        if any(part.startswith("_") and not part.startswith("__") for part in imported.split("."))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_core_dependencies_stay_few() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {re.split(r"[^\w-]", requirement)[0] for requirement in project["dependencies"]}
    assert core == {"numpy", "matplotlib", "numba", "numba-cuda", "jupyterlab", "ipywidgets", "rich", "shtab"}


def test_every_module_says_in_a_docstring_what_it_is() -> None:
    silent = [
        name
        for name, path in modules()
        for source in [path.read_text(encoding="utf-8")]
        if source.strip() and not ast.get_docstring(ast.parse(source))
    ]
    assert not silent, silent


@cache
def committed() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git clone: which files are ours is not known")
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_no_file_names_a_machine_or_a_package_index() -> None:
    found = [
        f"{path.relative_to(ROOT)} names {word!r}"
        for path in committed()
        if path.suffix in TEXT and path.is_file()
        for text in [path.read_text(encoding="utf-8", errors="replace")]
        for word in FORBIDDEN
        if word in text
    ]
    assert not found, "\n".join(found)


def test_no_generated_or_private_file_is_committed() -> None:
    unwanted = re.compile(
        r"\.pyc$|/\.ipynb_checkpoints/|\.db$|(^|/)\.venv/|^solutions/.*\.ipynb$|progress\.json$"
    )
    found = [str(p.relative_to(ROOT)) for p in committed() if unwanted.search(str(p.relative_to(ROOT)))]
    assert not found, found


def test_the_labs_are_what_their_sources_make_of_them() -> None:
    pytest.importorskip("nbgrader", reason="the instructor's tools are not installed")
    check = subprocess.run(
        [sys.executable, "-m", "grading", "release", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert check.returncode == 0, check.stdout + check.stderr


def test_the_examples_of_contributing_md_are_in_the_code() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    quotes = re.findall(r"^From `(\S+)`:\n\n((?:    .*\n|\n)+)", text, re.MULTILINE)
    assert len(quotes) >= 8
    for file, quote in quotes:
        source = (ROOT / file).read_text(encoding="utf-8")
        for piece in quote.split("    …\n"):
            lines = [line.removeprefix("    ") for line in piece.rstrip().splitlines()]
            assert "\n".join(lines) in source, f"{file} no longer has what CONTRIBUTING.md quotes:\n{piece}"


def test_no_folder_of_the_tests_takes_a_librarys_place():
    """With an `__init__.py` right below tests/, pytest imports a folder by its bare name: `distributed`, `triton`, …"""
    assert [str(path) for path in (ROOT / "tests").glob("*/__init__.py")] == []
