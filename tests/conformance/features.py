"""Runs a small program for each feature of CUDA's languages by ``gpulab run``, and publishes which of them run.

``python -m tests.conformance.features`` writes docs/conformance/features.md, and the table of all suites in
README.md; with ``--only NAME`` it runs the programs that have NAME in theirs, and writes nothing. A program
checks its own results and ends with 0 if they are right. Its first lines name the feature, and what it needs.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "features"
PAGES = REPOSITORY / "docs" / "conformance"
README = REPOSITORY / "README.md"
LIMIT = 300  # seconds for one program
LONGEST = 300  # characters of a reason
TELLING = re.compile(r"^[\w.]*Error: |returns cudaError| — the simulator |^gpulab: ")
LANGUAGES = {".cu": "CUDA C++, host and kernels", ".py": "Python: numba, CuPy, Triton, PyTorch"}
BETWEEN = re.compile(r"(?s)(<!-- conformance: [^\n]*-->\n).*?(<!-- end of conformance -->)")


@dataclass(frozen=True)
class Outcome:
    """How a program ended. `said` is empty where it was right, else its last words or what stopped it."""

    file: str
    feature: str
    said: str

    @property
    def right(self) -> bool:
        return not self.said


def header(path: Path) -> dict[str, str]:
    """What the comments at a program's start say: its `feature`, and perhaps the `gpu` or flags of `nvcc`."""
    lines = path.read_text(encoding="utf-8").splitlines()[:4]
    found = [re.fullmatch(r"(?://|#) (feature|gpu|nvcc): (.*)", line) for line in lines]
    return {match[1]: match[2] for match in found if match}


def run(path: Path) -> Outcome:
    """Run one program in a process of its own."""
    about = header(path)
    command = [sys.executable, "-m", "gpulab", "run", "--gpu", about.get("gpu", "A100")]
    command += [f"--nvcc={about.get('nvcc', '')}", str(path)]
    try:
        done = subprocess.run(
            command,
            capture_output=True, text=True, timeout=LIMIT, cwd=PROGRAMS,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Outcome(path.name, about["feature"], f"not through after {LIMIT} s")
    if done.returncode == 0:
        return Outcome(path.name, about["feature"], "")
    return Outcome(path.name, about["feature"], reason(done.stderr) or f"wrong: ended with {done.returncode}")


def reason(stderr: str) -> str:
    """The line of a message that says why, without what stands before."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    telling = [line for line in lines if TELLING.search(line)]
    said = (telling or lines or [""])[0].removeprefix("gpulab: ").rpartition(" — ")[2]
    return re.sub(r"(?:/[\w.+-]+)+/", "", said)[:LONGEST]


def page(outcomes: list[Outcome]) -> str:
    """The published page."""
    right = sum(outcome.right for outcome in outcomes)
    text = [
        "# Features of CUDA's languages",
        "",
        "A small program for each, run unchanged by `gpulab run` on a simulated GPU. Each checks its own results.",
        "Written by `python -m tests.conformance.features`; the programs are in `tests/conformance/features/`.",
        "",
        f"{right} of {len(outcomes)} run right.",
    ]
    for ending, language in LANGUAGES.items():
        text += ["", f"## {language}", "", "| feature | program | result |", "|---|---|---|"]
        for each in outcomes:
            if each.file.endswith(ending):
                result = "right" if each.right else re.sub(r"([|\[])", r"\\\1", each.said)
                text.append(f"| {each.feature} | {each.file} | {result} |")
    return "\n".join(text) + "\n"


def table(outcomes: list[Outcome]) -> str:
    """The README's table: what was run, how much of it is right, and what is not."""
    numbas = re.search(r"\| \*\*gpulab\*\* \| (\d+) \| (\d+) \|", _page("numba_cuda"))
    cupys = re.search(r"(\d+) of (\d+) applicable tests pass", _page("cupy"))
    assert numbas and cupys
    by_part = _page("tile_languages").split("\n## ")[1:]
    rows = [
        ("numba-cuda's own tests that launch kernels", *map(int, numbas.groups()), "numba_cuda"),
        (
            "CuPy's own tests of raw, elementwise and reduction kernels, and of textures",
            *map(int, cupys.groups()),
            "cupy",
        ),
    ]
    for part in by_part:
        found = re.findall(r"(?m)^- on the \w+, (\d+) of (\d+) are right", part)
        sums = [sum(int(pair[i]) for pair in found) for i in (0, 1)]
        rows.append((f"NVIDIA's own programs in {part.splitlines()[0]}", sums[0], sums[1], "tile_languages"))
    tutorials = re.search(r"(\d+) of the (\d+) that were run are right", _page("triton_tutorials"))
    assert tutorials
    rows.append(
        ("Triton's tutorials, with those of Gluon", *map(int, tutorials.groups()), "triton_tutorials")
    )
    tests = re.search(r"(\d+) of the (\d+) that apply pass", _page("triton_language"))
    assert tests
    rows.append(
        ("Triton's own tests of its language, a sample", *map(int, tests.groups()), "triton_language")
    )
    for ending, language in LANGUAGES.items():
        of_it = [outcome for outcome in outcomes if outcome.file.endswith(ending)]
        rows.append((f"Features of {language}", sum(o.right for o in of_it), len(of_it), "features"))
    lines = [
        "| programs and tests, run unchanged | right | of | reasons of the others |",
        "|---|---:|---:|---|",
    ]
    lines += [f"| {what} | {n} | {all_} | [{p}.md](docs/conformance/{p}.md) |" for what, n, all_, p in rows]
    return "\n".join(lines) + "\n"


def _page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="NAME", help="programs with NAME in their names")
    options = parser.parse_args()
    outcomes = []
    for path in sorted(PROGRAMS.iterdir()):
        if path.suffix in LANGUAGES and options.only in path.name:
            outcomes.append(run(path))
            print(f"{path.name}: {outcomes[-1].said or 'right'}", flush=True)
    if not options.only:
        (PAGES / "features.md").write_text(page(outcomes), encoding="utf-8")
        text, found = BETWEEN.subn(rf"\g<1>{table(outcomes)}\g<2>", README.read_text(encoding="utf-8"))
        assert found, "README.md has no place for the table"
        README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
