"""Runs numba-cuda's own tests on the simulator and on numba's, and publishes how both did.

``python -m tests.conformance.numba_cuda`` runs everything and writes docs/conformance/numba_cuda.md and
.json; with names of modules (shell patterns, such as ``cudapy.test_sync``) it runs these on gpulab again and
brings the page up to date. The rules of what counts are in numba_cuda_rules.py.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import json
import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.conformance.numba_cuda_rules import GPU, PACKAGES, not_applicable

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "docs" / "conformance" / "numba_cuda.json"
PAGE = RESULTS.with_suffix(".md")
LIMIT = 240.0  # seconds for one test
LOADING = 120.0  # seconds until a module's tests are known


@dataclass
class Run:
    """One module's tests on one simulator. `unloaded` says why there are none."""

    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    unloaded: str = ""


@dataclass
class Outcome:
    """How a test went: passed, failed, skipped or not run; `not_applicable` is "" or the class of reasons."""

    gpulab: str
    cudasim: str
    not_applicable: str = ""
    reason: str = ""

    @property
    def is_applicable(self) -> bool:
        return not self.not_applicable


# ---- Running


def modules() -> list[str]:
    """The suite's modules with tests, below numba.cuda.tests."""
    found = importlib.util.find_spec("numba_cuda")
    assert found and found.submodule_search_locations, "numba-cuda is not installed"
    tests = Path(found.submodule_search_locations[0]) / "numba" / "cuda" / "tests"
    return sorted(
        f"{package}.{file.stem}" for package in PACKAGES for file in (tests / package).glob("test_*.py")
    )


def run_module(simulator: str, module: str, only: Iterable[str] = ()) -> Run:
    """All tests of a module, or some; after a test that hangs or kills its process another one goes on."""
    run, wanted = Run(), list(only)
    while True:
        hung = _run_worker(simulator, module, wanted, run)
        if hung is None:
            return run
        wanted = [name for name in (wanted or run.tests) if name not in run.results]
        if not wanted:
            return run


def _run_worker(simulator: str, module: str, only: list[str], run: Run) -> str | None:
    """One worker process. Returns the test that it did not survive, or None."""
    command = [sys.executable, "-m", "tests.conformance.numba_cuda_worker", simulator, module, *only]
    environment = os.environ | {"PYTHONWARNINGS": "ignore", "NUMBA_CUDA_WARN_ON_IMPLICIT_COPY": "0"}
    environment |= {"NUMBA_ENABLE_CUDASIM": "1"} if simulator == "cudasim" else {}
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as worker:
        events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=_read, args=(worker.stdout, events.put), daemon=True).start()
        current, limit, why = "", LOADING, "ended its process"
        while True:
            try:
                event = events.get(timeout=limit)
            except queue.Empty:
                why = f"took longer than {limit:.0f} s"
                break
            if event is None:
                break
            if "unloaded" in event:
                run.unloaded = event["unloaded"]
            elif "tests" in event:
                run.tests |= event["tests"]
            elif "start" in event:
                current, limit = event["start"], LIMIT
            else:
                run.results[event["end"]] = event
                current = ""
        worker.kill()
    if not (run.tests or run.unloaded):
        run.unloaded = f"the worker {why} before it told its tests"
    if not current:
        return None
    run.results[current] = {"outcome": "failed", "reason": why, "launched": False}
    return current


def _read(stream: Iterable[str], put: Callable[[dict[str, Any] | None], None]) -> None:
    for line in stream:
        _, mark, event = line.partition("\x1e")  # a test may have printed something before
        if mark:
            put(json.loads(event))
    put(None)


# ---- What counts


def judge(ours: Run, theirs: Run) -> dict[str, Outcome]:
    """The outcomes of one module's tests that launch a kernel, from its run on each simulator."""
    outcomes = {}
    for name in sorted({*ours.tests, *theirs.tests, *theirs.results}):
        about = ours.tests.get(name) or theirs.tests.get(name) or {"launches": True, "names": []}
        mine, other = (_result(run, name) for run in (ours, theirs))
        if not (about["launches"] or mine["launched"] or other["launched"]):
            continue
        why = not_applicable(name, about["names"])
        if not why and mine["outcome"] == "skipped":
            why = f"skipped by the suite itself: {mine['reason']}"
        reason = mine["reason"].replace(f"{REPOSITORY}/", "") if mine["outcome"] == "failed" else ""
        outcome = "not run" if why and name not in ours.results else mine["outcome"]
        outcomes[name] = Outcome(outcome, other["outcome"], why, reason)
    return outcomes


def _result(run: Run, name: str) -> dict[str, Any]:
    missing = {"outcome": "failed", "reason": run.unloaded or "is not there", "launched": False}
    if run.unloaded.startswith("skipped: "):
        missing["outcome"] = "skipped"
    return run.results.get(name, missing)


def everything(patterns: Iterable[str] = (), jobs: int = 2) -> dict[str, Outcome]:
    """The outcomes of all tests; with patterns those of the modules that match, and the published others.

    With patterns numba's simulator is not asked again: it does not change.
    """
    known = read() if patterns else {}
    chosen = [
        module for module in modules() if any(fnmatch.fnmatch(module, pattern) for pattern in patterns or "*")
    ]
    outcomes = {name: outcome for name, outcome in known.items() if module_of(name) not in chosen}

    def one(module: str) -> dict[str, Outcome]:
        theirs = published_run(module, known) if known else run_module("cudasim", module)
        return judge(run_module("gpulab", module), theirs)

    with ThreadPoolExecutor(jobs) as pool:
        for module, found in zip(chosen, pool.map(one, chosen), strict=True):
            counts = Counter(o.gpulab for o in found.values() if o.is_applicable)
            others = sum(not o.is_applicable for o in found.values())
            print(f"{module}: {dict(counts)}, {others} not applicable", flush=True)
            for name, outcome in found.items():
                if outcome.is_applicable and outcome.gpulab != "passed":
                    print(f"    {name}: {outcome.reason}", flush=True)
            outcomes |= found
    return dict(sorted(outcomes.items()))


def module_of(name: str) -> str:
    return ".".join(name.split(".")[:2])


def published_run(module: str, known: dict[str, Outcome]) -> Run:
    """What numba's simulator did with a module when it was last asked."""
    results = {
        name: {"outcome": outcome.cudasim, "reason": "", "launched": True}
        for name, outcome in known.items()
        if module_of(name) == module
    }
    return Run(results=results, unloaded="not asked again")


# ---- The page


def page(outcomes: dict[str, Outcome]) -> str:
    """docs/conformance/numba_cuda.md."""
    applicable = {name: o for name, o in outcomes.items() if o.is_applicable}
    lines = [
        "# numba-cuda's own tests on the simulator",
        "",
        "Written by `python -m tests.conformance.numba_cuda`; not edited by hand.",
        "",
        f"numba-cuda {version('numba-cuda')}, numba {version('numba')}, NumPy {version('numpy')}; {GPU}.",
        "Every test of its suite that launches a kernel, with the host API replaced by `gpulab.cuda`, and the",
        "same tests under `NUMBA_ENABLE_CUDASIM=1`, numba's own simulator. What is applicable is data that looks",
        "at no result: `tests/conformance/numba_cuda_rules.py`. A test that the suite skips on numba's simulator",
        "is not passed by it. The statistics of numba's memory manager, which some tests compare before and",
        "after, are not asked for.",
        "",
        "| | passed | of applicable | share |",
        "|---|---:|---:|---:|",
    ]
    for label, simulator in (("**gpulab**", "gpulab"), ("numba's own simulator", "cudasim")):
        passed = _passed(applicable, simulator)
        lines.append(f"| {label} | {passed} | {len(applicable)} | {passed / max(len(applicable), 1):.1%} |")
    lines += [
        "",
        f"{len(outcomes)} tests launch a kernel; {len(outcomes) - len(applicable)} are not applicable.",
        "",
        "## By module",
        "",
        "| module | applicable | gpulab passes | numba's simulator passes | not applicable |",
        "|---|---:|---:|---:|---:|",
    ]
    for module, tests in _grouped(outcomes, lambda name, o: module_of(name)):
        counted = {name: o for name, o in tests.items() if o.is_applicable}
        lines.append(
            f"| {module} | {len(counted)} | {_passed(counted, 'gpulab')} | {_passed(counted, 'cudasim')} "
            f"| {len(tests) - len(counted)} |"
        )
    lines += ["", "## Not applicable", "", "| why | tests |", "|---|---:|"]
    others = {name: o for name, o in outcomes.items() if not o.is_applicable}
    lines += [
        f"| {_cell(why)} | {len(tests)} |"
        for why, tests in _grouped(others, lambda name, o: o.not_applicable)
    ]
    lines += ["", "## What fails", "", "| test | reason |", "|---|---|"]
    lines += [f"| {name} | {_cell(o.reason)} |" for name, o in applicable.items() if o.gpulab != "passed"]
    return "\n".join(lines) + "\n"


def _grouped(
    outcomes: dict[str, Outcome], key: Callable[[str, Outcome], str]
) -> Iterator[tuple[str, dict[str, Outcome]]]:
    for group in sorted({key(name, o) for name, o in outcomes.items()}):
        yield group, {name: o for name, o in outcomes.items() if key(name, o) == group}


def _passed(outcomes: dict[str, Outcome], simulator: str) -> int:
    return sum(getattr(outcome, simulator) == "passed" for outcome in outcomes.values())


def _cell(text: str) -> str:
    return text.replace("|", "│").replace("\n", " ")[:160]


def read() -> dict[str, Outcome]:
    """The published outcomes."""
    return {name: Outcome(**values) for name, values in json.loads(RESULTS.read_text()).items()}


def publish(outcomes: dict[str, Outcome]) -> None:
    """Write the page and the data beside it."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(
        "{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(asdict(o))}" for name, o in outcomes.items())
        + "\n}\n"
    )
    PAGE.write_text(page(outcomes))


if __name__ == "__main__":
    publish(everything(sys.argv[1:]))
    print(PAGE.read_text().split("## By module")[0])
