"""Runs NVIDIA's own examples of CuTe DSL and cuTile on the simulated A100, and publishes how they did.

``python -m tests.conformance.tile_languages --cutlass FOLDER --cutile FOLDER`` with checkouts of
github.com/NVIDIA/cutlass and github.com/NVIDIA/cutile-python writes docs/conformance/tile_languages.md; with
``--only NAME`` it runs programs whose path has NAME in it, and writes nothing. Which programs, and how small,
is in tile_programs.py. A program is right when it ends without an error: each compares with PyTorch itself.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tests.conformance.tile_programs import CUTLASS, TILE, Program

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "conformance" / "tile_languages.md"
LIMIT = 400  # seconds for one program
EXAMPLES = {"cutlass": "examples/python/CuTeDSL", "tile": "samples"}
LANGUAGES = {"cutlass": ("CuTe DSL", "nvidia-cutlass-dsl", CUTLASS), "tile": ("cuTile", "cuda-tile", TILE)}


@dataclass(frozen=True)
class Outcome:
    """How a program ended: right, or its last words. `seconds` are processor time."""

    program: Program
    right: bool
    said: str
    seconds: float


def script(program: Program, folder: Path) -> str:
    """The program's text, smaller; a notebook's cells as a script."""
    text = (folder / program.path).read_text(encoding="utf-8")
    if program.path.endswith(".ipynb"):
        cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
        lines = "\n".join("".join(cell["source"]) + "\n" for cell in cells).splitlines()
        text = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines)
    for pattern, replacement in program.smaller:
        text, found = re.subn(pattern, replacement, text)
        if not found:
            raise ValueError(f"{program.path}: there is no {pattern} to make smaller")
    return text


def run(face: str, program: Program, folder: Path) -> Outcome:
    """Run one program in a process of its own."""
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / f"{Path(program.path).stem}.py"
        file.write_text(script(program, folder), encoding="utf-8")
        child = [sys.executable, "-m", "tests.conformance.tile_languages", "--child", face, str(file)]
        paths = [str(REPOSITORY), str((folder / program.path).parent), str(folder), str(folder.parent)]
        before = time.process_time(), os.times().children_user
        try:
            done = subprocess.run(
                [*child, *program.arguments.split()],
                capture_output=True, text=True, timeout=LIMIT, cwd=temporary,
                env={**os.environ, "GPULAB_GPU": "A100", "PYTHONPATH": os.pathsep.join(paths)},
            )  # fmt: skip
            right, lines = done.returncode == 0, (done.stderr or done.stdout).strip().splitlines()
        except subprocess.TimeoutExpired:
            right, lines = False, [f"not through after {LIMIT} s"]
        said = "" if right or not lines else lines[-1][:200]
        return Outcome(program, right, said, os.times().children_user - before[1])


def child(face: str, file: str, arguments: list[str]) -> None:
    """Run a program here, with the language on the simulated device."""
    from tests.conformance import cuda_on_cpu

    cuda_on_cpu.install()
    __import__(f"gpulab.{face}")
    sys.argv = [file, *arguments]
    runpy.run_path(file, run_name="__main__")


def page(outcomes: dict[str, list[Outcome]]) -> str:
    """The published page."""
    text = [
        "# NVIDIA's own programs in CuTe DSL and cuTile",
        "",
        "Examples, tutorials and notebooks of NVIDIA's repositories, run on the simulated A100 at small sizes. A",
        "program is right when it ends without an error; each compares its results itself, most with PyTorch.",
        "PyTorch's CUDA device is the CPU for them. Written by `python -m tests.conformance.tile_languages`.",
    ]
    for face, found in outcomes.items():
        name, package, programs = LANGUAGES[face]
        right = sum(outcome.right for outcome in found)
        text += ["", f"## {name}", ""]
        text += [f"{package} {version(package)}: {right} of {len(found)} are right.", ""]
        text += ["| program | arguments | result | processor time |", "|---|---|---|---|"]
        for outcome in found:
            program = outcome.program
            result = "right" if outcome.right else program.fails or outcome.said.replace("|", "/")
            text.append(f"| {program.path} | {program.arguments} | {result} | {outcome.seconds:.0f} s |")
        text += ["", "Not asked to run:", ""]
        text += [f"- {p.path}: {p.left_out}." for p in programs if p.left_out]
    return "\n".join(text) + "\n"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cutlass", type=Path)
    parser.add_argument("--cutile", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--child", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.child:
        face, file, *arguments = options.child
        child(face, file, arguments)
        return
    outcomes: dict[str, list[Outcome]] = {}
    for face, root in (("cutlass", options.cutlass), ("tile", options.cutile)):
        if root is None:
            continue
        outcomes[face] = []
        for program in LANGUAGES[face][2]:
            if program.left_out or options.only not in program.path:
                continue
            outcomes[face].append(run(face, program, root / EXAMPLES[face]))
            last = outcomes[face][-1]
            print(
                "right" if last.right else "WRONG",
                program.path,
                last.said,
                f"{last.seconds:.0f} s",
                flush=True,
            )
    if not options.only:
        PAGE.write_text(page(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main()
