"""Builds and runs programs of HeCBench by ``gpulab run``, and publishes how each of them ended.

``python -m tests.conformance.hecbench FOLDER`` with a checkout of github.com/zjin-lcf/HeCBench runs all that
hecbench.toml names, at its sizes; ``--only NAME`` those with NAME in theirs. How each ended is kept in
docs/conformance/hecbench.json, and docs/conformance/hecbench.md is written from that, so a few can be run again
alone. The programs were drawn at random from those that need neither files of data nor another library.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.conformance.features import PAGES, REPOSITORY, reason

PAGE = PAGES / "hecbench.md"
KEPT = PAGE.with_suffix(".json")
LIMIT = 60  # seconds of processor time for one program, the time of the compiler among them
PATIENCE = 900  # seconds by the clock, on a machine that has other things to do
DOES_NOT_BUILD = " does not compile:"
UNTIMELY = f"not through after {LIMIT} s of processor time"
SAYS_WRONG = re.compile(r"(?m)^.*(?:\bFAIL(?:ED)?\b|\bError\b.*\bmismatch\b).*$")


@dataclass(frozen=True)
class Program:
    """A program of HeCBench: the folder src/`name`-cuda. `why` says why it does not end with 0 here."""

    name: str
    arguments: str = ""
    sources: str = "main.cu"
    flags: str = "-std=c++17"
    why: str = ""

    def command(self) -> list[str]:
        """What runs it, in its folder."""
        first, *others = self.sources.split()
        nvcc = " ".join([self.flags, *others])
        return [sys.executable, "-m", "gpulab", "run", f"--nvcc={nvcc}", first, *self.arguments.split()]


def programs() -> list[Program]:
    """All of them, by name."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return [Program(name, **about) for name, about in sorted(table.items())]


def run(program: Program, checkout: Path) -> dict[str, Any]:
    """Build and run a program: whether it was `built`, its exit `code`, what it `said`, its `seconds`."""
    before = os.times().children_user
    try:
        done = subprocess.run(
            program.command(),
            capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=PATIENCE,
            cwd=checkout / "src" / f"{program.name}-cuda", preexec_fn=_limited,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip
        code, said = done.returncode, done.stderr
        built = DOES_NOT_BUILD not in done.stderr
        if code == 0 and (line := SAYS_WRONG.search(done.stdout)):
            said = line[0]
        elif code == 0:
            said = ""
        elif not said.strip():
            said = done.stdout.strip().rpartition("\n")[2]
    except subprocess.TimeoutExpired:
        code, said, built = -9, UNTIMELY, True
    if code in (-9, -24):
        said = UNTIMELY
    return {
        "built": built,
        "code": code,
        "said": (reason(said) if built else _error(said)) if said else "",
        "seconds": round(os.times().children_user - before),
    }


def _error(said: str) -> str:
    """The compiler's first error, without the folder that the file is in."""
    found = re.search(r"(?m)^.*\berror\b.*$", said)
    return re.sub(r"(?:/[\w.+-]+)+/", "", found[0] if found else said)[:200]


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))


def page(kept: Mapping[str, Mapping[str, Any]]) -> str:
    """The published page."""
    ran = [(program, kept[program.name]) for program in programs() if program.name in kept]
    built = [(program, found) for program, found in ran if found["built"]]
    ended = sum(found["code"] == 0 for _, found in built)
    complains = sum(found["code"] == 0 and bool(found["said"]) for _, found in built)
    text = [
        "# Programs of HeCBench",
        "",
        "Whole programs in CUDA C++ of the collection HeCBench, built and run by `gpulab run` on a simulated A100.",
        "Their sources are as they are; their arguments are small. They were drawn at random from the programs",
        "there that need neither files of data nor another library. Written by",
        "`python -m tests.conformance.hecbench`, and `tests/conformance/hecbench.toml` has the arguments.",
        "",
        f"{len(built)} of {len(ran)} build with nvcc {version('nvidia-cuda-nvcc')}, and "
        f"{ended} of these {len(built)} end with exit code 0.",
        f"{complains} of these {ended} print that a result of theirs is wrong.",
        "",
        "| program | arguments | exit code | what it says | processor time |",
        "|---|---|---:|---|---:|",
    ]
    for program, found in built:
        said = program.why or str(found["said"])
        said = re.sub(r"([|\[])", r"\\\1", said)
        text.append(
            f"| {program.name} | {program.arguments} | {found['code']} | {said} | {found['seconds']} s |"
        )
    if rest := [(program, found) for program, found in ran if not found["built"]]:
        text += ["", "Not built:", "", "| program | what the compiler says |", "|---|---|"]
        text += [f"| {program.name} | {program.why or found['said']} |" for program, found in rest]
    if missing := [program.name for program in programs() if program.name not in kept]:
        text += ["", f"Not run yet: {', '.join(missing)}."]
    return "\n".join(text) + "\n"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="run those with this in their names")
    parser.add_argument("--rest", action="store_true", help="run those only that have not been run yet")
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for program in programs():
        if options.only not in program.name or (options.rest and program.name in kept):
            continue
        kept[program.name] = run(program, options.folder)
        print(program.name, kept[program.name], flush=True)
        KEPT.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
        PAGE.write_text(page(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
