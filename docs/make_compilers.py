"""Writes docs/compilers.md: the labs' solutions under the compilers that users have, and where counts differ.

``python docs/make_compilers.py`` runs every lab's solutions in `.venv` and in the environments that `make
compilers` makes, and writes the page; ``--counts`` prints what this environment's compiler gives, as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
TARGET = HERE / "compilers.md"
sys.path.insert(0, str(ROOT))

from tools.compilers import WHEELS, python_of  # noqa: E402

# Counted for every solution at its exercise's last case, budget or not.
ALWAYS = ("instructions", "global_sectors", "local_bytes", "shared_wavefronts", "registers")


@dataclass
class Solution:
    """What one solution costs under one compiler. `missed` are the labels of parts that do not earn all."""

    counts: dict[str, float] = field(default_factory=dict)  # metric and case → value
    limits: dict[str, float] = field(default_factory=dict)  # the same → the budget
    missed: list[str] = field(default_factory=list)


@dataclass
class Column:
    """One compiler's results. `labs` are those that were run."""

    compiler: str
    labs: list[str]
    solutions: dict[str, Solution]

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Column:
        solutions = {name: Solution(**values) for name, values in data["solutions"].items()}
        return cls(data["compiler"], data["labs"], solutions)


def count() -> Column:
    """The solutions of all labs with this environment's compiler."""
    from gpulab.checks.registry import of_lab
    from gpulab.simulator.compile.cuda_c import nvrtc_version
    from tests.labs import notebooks

    found: dict[str, Solution] = {}
    labs = {
        lab: kernels
        for lab in notebooks.labs()
        if (kernels := [exercise for exercise in of_lab(lab) if exercise.evidence.launches])
    }
    for lab, exercises in labs.items():
        answers, functions = notebooks.answers(lab), notebooks.checks(lab)
        for exercise in exercises:
            found[exercise.name] = _solution(exercise, answers[functions[exercise.name][0]])
    return Column(nvrtc_version().replace("NVRTC", "CUDA"), list(labs), found)


def exercises_of(lab: str) -> list[str]:
    from gpulab.checks.registry import of_lab

    return [exercise.name for exercise in of_lab(lab)]


def _solution(exercise: Any, fn: Any) -> Solution:
    import gpulab
    from gpulab.analysis.profile.watch import Watch
    from gpulab.checks.run import name_of, reference_device
    from gpulab.simulator import device as devices
    from tests.labs import notebooks

    verdict = gpulab.check(exercise, fn, attempt=False)
    solution = Solution(missed=[part.label for part in verdict.parts if part.state != "pass"])
    for part in verdict.parts:
        if part.measured is not None and part.budget is not None:
            solution.counts[f"{part.metric} at {part.case}"] = part.measured
            solution.limits[f"{part.metric} at {part.case}"] = part.budget
    case = exercise.cases[-1]
    with reference_device():
        watch = Watch(devices.current())
        notebooks.launched(exercise, fn).run(case, watch.standing())
    if watch.launches:
        report = watch.report(name_of(fn))
        for metric in ALWAYS:
            value = report[metric]
            if value is not None:
                solution.counts.setdefault(f"{metric} at {case.name}", float(value))
    return solution


def column(python: str | Path) -> Column:
    """What an environment's compiler gives, in a process of its own. Raises RuntimeError if that fails."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "GPULAB_SIMULATE": "1",
            "GPULAB_PROGRESS": f"{folder}/progress.json",
            # Not the machine's toolkit, if it has one: the release's own wheels.
            "CUDA_HOME": "",
            "CUDA_PATH": "",
        }
        done = subprocess.run(
            [python, __file__, "--counts"], cwd=ROOT, env=environment, capture_output=True, text=True
        )
    if done.returncode:
        raise RuntimeError(f"{python}: {done.stderr[-2000:]}")
    return Column.from_dict(json.loads(done.stdout.splitlines()[-1]))


def columns() -> list[Column]:
    """All compilers that are there: those of the older releases, and that of this environment."""
    others = [python_of(release) for release in WHEELS if python_of(release).exists()]
    return [column(python) for python in (*others, sys.executable)]


@dataclass(frozen=True)
class Row:
    """A count that is not the same under all compilers. `limit` is the budget, if there is one."""

    exercise: str
    what: str
    limit: float | None
    values: tuple[float | None, ...]


def differences(found: list[Column]) -> Iterator[Row]:
    for name in found[-1].solutions:
        solutions = [column.solutions.get(name, Solution()) for column in found]
        for what in sorted({what for solution in solutions for what in solution.counts}):
            values = tuple(solution.counts.get(what) for solution in solutions)
            if len(set(values)) > 1:
                yield Row(name, what, solutions[-1].limits.get(what), values)


def page(found: list[Column]) -> str:
    names = [column.compiler for column in found]
    total = len(found[-1].solutions)
    lines = [
        "# The labs under the compilers that users have",
        "",
        "Written by `python docs/make_compilers.py`; not edited by hand. `make compilers` fetches those of",
        "older CUDA releases. Each compiles every lab's solutions, numba's through NVVM and CUDA C++ through",
        "NVRTC, and the simulated A100 runs them. Triton brings a compiler of its own, the same everywhere.",
        "",
        f"Labs with kernels: {', '.join(found[-1].labs)}.",
        "",
        f"| | {' | '.join(names)} |",
        f"|---|{'---:|' * len(names)}",
        "| solutions that earn all points | "
        + " | ".join(f"{sum(not s.missed for s in c.solutions.values())} of {total}" for c in found)
        + " |",
        "",
        "## Where counts differ",
        "",
        "Compared are all counts that have a budget and, for every solution at its last case, instructions,",
        "global sectors, shared wavefronts, bytes in local memory, and registers per thread (of ptxas). What",
        "is not in this table is the same under all compilers.",
        "",
        f"| exercise | count | budget | {' | '.join(names)} |",
        f"|---|---|---:|{'---:|' * len(names)}",
    ]
    for row in differences(found):
        limit = "" if row.limit is None else _number(row.limit)
        cells = " | ".join("–" if value is None else _number(value) for value in row.values)
        lines.append(f"| {row.exercise} | {row.what} | {limit} | {cells} |")
    for column in found:
        for name, solution in column.solutions.items():
            if solution.missed:
                lines += ["", f"{column.compiler}: {name} misses {', '.join(solution.missed)}."]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3g}"


def main() -> int:
    if "--counts" in sys.argv[1:]:
        print(json.dumps(asdict(count())))
        return 0
    found = columns()
    if len(found) <= len(WHEELS):
        print("compilers: not all releases are here; run `make compilers` first", file=sys.stderr)
        return 1
    TARGET.write_text(page(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
