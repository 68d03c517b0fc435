"""gpulab.sanitize beside compute-sanitizer: the CUDA C half of its corpus under all four tools, on a GPU."""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from gpulab.analysis.sanitizer import sanitize as ask_gpulab
from gpulab.foundation.errors import Message
from gpulab.simulator import hardware
from gpulab.simulator.compile import supported_capabilities
from gpulab.simulator.compile.cuda_c import nvrtc_version

from . import children, compute_sanitizer, measured
from .compiled import compiling_for
from .compute_sanitizer import TOOLS, Unfinished
from .machine import CHILD, CannotMeasure, child, machine
from .measure import Failed, read, say

FOLDER = Path(__file__).parent / "sanitized"
PATIENCE = 180.0  # seconds for a batch of kernels under all tools
TOGETHER = 4  # kernels at the same time
TWINS = ("wrong", "mended")


class UnknownPair(Message, LookupError):
    """A name that no kernel of the corpus has."""


def corpus() -> list[Any]:
    """The pairs in CUDA C; they lie among the tests."""
    return list(import_module("tests.sanitizer.corpus.in_cuda_c").PAIRS)


def _pair(name: str) -> Any:
    for pair in corpus():
        if pair.name == name:
            return pair
    raise UnknownPair(f"no kernel of the corpus is called {name!r}; tests/sanitizer/corpus/cuda_c has them.")


def launch(name: str, twin: str, sheet: str) -> None:
    """Launch one kernel of the corpus on the GPU, in a process of its own under a tool."""
    from .on_gpu import OnGPU

    pair, gpu = _pair(name), hardware.find(sheet)
    with compiling_for(gpu) as device:
        given = pair.arguments()
        with device.executed_by(OnGPU(gpu.cc)):
            pair.launch(twin == "mended")(*given)


def found_by_gpulab(name: str) -> dict[str, list[dict[str, Any]]]:
    """What gpulab.sanitize finds in both twins of a kernel; for a process that simulates."""
    pair = _pair(name)
    return {
        twin: [
            {"kind": f.kind, "lines": list(f.lines)}
            for f in ask_gpulab(pair.launch(mended=twin == "mended"), *pair.arguments())
        ]
        for twin in TWINS
    }


def run(
    names: Iterable[str],
    out: Path | None,
    again: bool = False,
    tell: Callable[[str], None] = say,
    minutes: float | None = None,
) -> Path:
    """Run what is not in the file yet, and say so; gives the file. It ends after so many `minutes`.

    Raises CannotMeasure, measured.OtherMachine, UnknownPair.
    """
    names = list(names)
    wanted = [_pair(name) for name in names] if names else corpus()
    until, longest = (math.inf if minutes is None else time.monotonic() + 60 * minutes), 0.0
    here = machine(times_only=True, compilers_for=nvrtc)
    tool = compute_sanitizer.find()
    if not tool:
        raise CannotMeasure(
            "compute-sanitizer is not here. It comes with the CUDA Toolkit; put it on the PATH."
        )
    version = children.run([tool, "--version"], PATIENCE).output
    here["compute_sanitizer"] = next((w for w in version.replace(",", " ").split() if w[:1].isdigit()), "")
    path = out or FOLDER / f"{here['sheet'].replace(' ', '_')}.json"
    data = measured.begun(path, here, again)
    data |= {"machine": here, "date": f"{datetime.now(UTC):%Y-%m-%d}"}

    left = [pair for pair in wanted if pair.name not in data["kernels"]]
    for first in range(0, len(left), TOGETHER):
        begun = time.monotonic()
        if begun + 1.2 * longest > until:
            tell(f"The {minutes:g} minutes are over; the same command goes on from here.")
            break
        batch = left[first : first + TOGETHER]
        tell(f"{first + len(batch)} of {len(left)}: {'; '.join(pair.name for pair in batch)}")
        found = _found(tool, [pair.name for pair in batch], here["sheet"])
        for pair in batch:
            one = found[pair.name]
            if isinstance(one, Failed):
                tell(f"    {pair.name}: {one}")
                data["failed"][pair.name] = str(one)
                continue
            data["kernels"][pair.name] = {"kind": pair.kind, "lines": list(pair.lines), **one}
            data["failed"].pop(pair.name, None)
        longest = max(longest, time.monotonic() - begun)
        measured.save(path, data)
    tell(f"{len(data['kernels'])} kernels in {path}, {len(data['failed'])} failed.")
    return path


def nvrtc(gpu: str, sheet: hardware.GPU) -> str:
    """The compiler of CUDA C here, which is all that the corpus needs. Raises CannotMeasure."""
    try:
        if sheet.cc in supported_capabilities():
            return nvrtc_version()
    except Exception as error:  # whatever a library that is not there makes of it
        raise CannotMeasure(f"NVRTC does not start here: {error}") from None
    raise CannotMeasure(f"{nvrtc_version()} makes no machine code for {gpu} ({sheet.capability}).")


def _found(sanitizer: str, names: Sequence[str], sheet: str) -> dict[str, dict[str, Any] | Failed]:
    """What gpulab and each tool report of both twins of some kernels, all at the same time, by name; Failed
    where gpulab broke. A tool has ``told``, or an ``error`` that kept it from its end."""
    runs = [(name, twin, tool) for name in names for twin in TWINS for tool in TOOLS]
    with tempfile.TemporaryDirectory() as folder:
        results = [Path(folder) / f"{number}.json" for number in range(len(names))]
        logs = [Path(folder) / f"{number}.txt" for number in range(len(runs))]
        ours = [child("_gpulab", name, str(file)) for name, file in zip(names, results, strict=True)]
        theirs = [
            compute_sanitizer.command(sanitizer, tool, str(log), child("_corpus", name, twin, sheet))
            for (name, twin, tool), log in zip(runs, logs, strict=True)
        ]
        ends = children.run_all([*ours, *theirs], PATIENCE, CHILD)
        reported = {
            run: _reported(ended, log) for run, ended, log in zip(runs, ends[len(ours) :], logs, strict=True)
        }
        found: dict[str, dict[str, Any] | Failed] = {}
        for name, ended, file in zip(names, ends[: len(ours)], results, strict=True):
            tools = {twin: {tool: reported[name, twin, tool] for tool in TOOLS} for twin in TWINS}
            try:
                found[name] = {"gpulab": read(ended, file), "tools": tools}
            except Failed as error:
                found[name] = error
        return found


def _reported(ended: children.Ended, log: Path) -> dict[str, Any]:
    text = log.read_text("utf-8", "replace") if log.exists() else ended.output
    if ended.code is None:
        return {"error": f"did not end within {PATIENCE:.0f} s"}
    try:
        return {"told": [{"kind": t.kind, "lines": list(t.lines)} for t in compute_sanitizer.parse(text)]}
    except Unfinished as error:
        return {"error": str(error) or ended.last}


@dataclass(frozen=True)
class Row:
    """One class of wrong kernels, in numbers.

    There are `kernels` of them. `gpulab` and `sanitizer` count those that gpulab.sanitize and
    compute-sanitizer report with that class, `with_line` those for which compute-sanitizer also names an
    expected line, `any_tool` those that any of its tools complains about, `alarms` the correct twins that it
    complains about.
    """

    kind: str
    kernels: int
    gpulab: int
    sanitizer: int
    with_line: int
    any_tool: int
    alarms: int


def rows(kernels: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """A row for each class; ``""`` is that of kernels that look wrong and are right."""
    classes = Counter(kernel["kind"] for kernel in kernels.values())
    return [_row(kind, [k for k in kernels.values() if k["kind"] == kind]) for kind in sorted(classes)]


def _row(kind: str, kernels: list[Mapping[str, Any]]) -> Row:
    def told(kernel: Mapping[str, Any], twin: str) -> list[Mapping[str, Any]]:
        return [t for result in kernel["tools"][twin].values() for t in result.get("told", [])]

    def same(kernel: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        return [t for t in told(kernel, "wrong") if t["kind"] == kind]

    return Row(
        kind,
        len(kernels),
        sum(any(f["kind"] == kind for f in k["gpulab"]["wrong"]) for k in kernels),
        sum(bool(same(k)) for k in kernels),
        sum(any(set(t["lines"]) & set(k["lines"]) for t in same(k)) for k in kernels),
        sum(bool(told(k, "wrong")) for k in kernels),
        sum(bool(told(k, "mended")) for k in kernels),
    )
