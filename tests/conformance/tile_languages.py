"""Runs NVIDIA's own examples of CuTe DSL and cuTile by ``gpulab run``, and publishes how they did.

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


def run(program: Program, folder: Path) -> Outcome:
    """Run one program in a process of its own."""
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / f"{Path(program.path).stem}.py"
        file.write_text(script(program, folder), encoding="utf-8")
        command = [sys.executable, "-m", "gpulab", "run", "--gpu", program.gpu, str(file)]
        paths = [
            str(REPOSITORY),
            str((folder / program.path).parent),
            str(folder),
            str(folder.parent),
            str(folder / "cute"),
        ]
        before = time.process_time(), os.times().children_user
        try:
            done = subprocess.run(
                [*command, *program.arguments.split()],
                capture_output=True, text=True, timeout=LIMIT, cwd=temporary,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            )  # fmt: skip
            right, lines = done.returncode == 0, (done.stderr or done.stdout).strip().splitlines()
        except subprocess.TimeoutExpired:
            right, lines = False, [f"not through after {LIMIT} s"]
        lines = [line for line in lines if not line.startswith(" - ") and "nanobind" not in line]
        said = "" if right or not lines else lines[-1][:200]
        return Outcome(program, right, said, os.times().children_user - before[1])


def page(outcomes: dict[str, list[Outcome]]) -> str:
    """The published page."""
    text = [
        "# NVIDIA's own programs in CuTe DSL and cuTile",
        "",
        "Examples, tutorials and notebooks of NVIDIA's repositories, run by `gpulab run` on a simulated GPU at small",
        "sizes. A program is right when it ends without an error; each compares its results itself, most with",
        "PyTorch. Written by `python -m tests.conformance.tile_languages`.",
    ]
    for face, found in outcomes.items():
        name, package, programs = LANGUAGES[face]
        text += ["", f"## {name}", "", f"With {package} {version(package)}:", ""]
        for gpu in dict.fromkeys(outcome.program.gpu for outcome in found):
            there = [outcome for outcome in found if outcome.program.gpu == gpu]
            right = sum(outcome.right for outcome in there)
            text.append(f"- on the {gpu}, {right} of {len(there)} are right ({right / len(there):.0%})")
        text += ["", "| program | GPU | arguments | result | processor time |", "|---|---|---|---|---|"]
        for outcome in found:
            program = outcome.program
            result = "right" if outcome.right else program.fails or outcome.said.replace("|", "/")
            text.append(
                f"| {program.path} | {program.gpu} | {program.arguments} | {result} | {outcome.seconds:.0f} s |"
            )
        text += ["", "Not asked to run:", ""]
        text += [f"- {p.path}: {p.left_out}." for p in programs if p.left_out]
    return "\n".join(text) + "\n"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cutlass", type=Path)
    parser.add_argument("--cutile", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    outcomes: dict[str, list[Outcome]] = {}
    for face, root in (("cutlass", options.cutlass), ("tile", options.cutile)):
        if root is None:
            continue
        outcomes[face] = []
        for program in LANGUAGES[face][2]:
            if program.left_out or options.only not in program.path:
                continue
            outcomes[face].append(run(program, root / EXAMPLES[face]))
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
