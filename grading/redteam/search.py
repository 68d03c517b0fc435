"""Searches for answers that earn too much: `python -m grading.redteam.search [--lab 04] [--seconds N]`.

The solutions of all labs, and the wrong answers beside them, are changed by the catalogue in `mutators.py`,
and the mutants are judged as attacks are. Three things are suspicious:

- A mutant of a solution does less, for example without a barrier, yet it gets full points as another program.
- A mutant of a solution does more and gets full points, although all of its launches together cost more than
  twice as much of something that the simulator counts, whether or not the exercise has a budget on that.
- A mutant of a wrong answer earns more than the wrong answer.

`known.toml` lists what a person has looked at and found harmless, with the reason. Everything else is printed
with the lines that changed, and then the search ends with status 1.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import fnmatch
import re
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from gpulab.checks import registry
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.evidence.launch_records import CaseTrace
from gpulab.checks.evidence.launch_replay import Recorded
from gpulab.checks.evidence.launch_trace import launch_trace_of
from gpulab.checks.run import reference_device
from gpulab.checks.spec import Answer, Contents
from gpulab.simulator import device as devices
from gpulab.simulator.observe.counters import Counters
from grading.core.course import Course, sources
from grading.core.judge import steps_of
from grading.core.notebooks import questions
from grading.core.own_cells import names_of
from grading.core.records import read_record
from grading.core.replay import ReplayJob, exercise_of, garbage_seed, judged, stand_in
from grading.core.replays import Replays
from grading.redteam.mutators import Mutant, mutants
from grading.redteam.plays import TOGETHER, Play, head_of, recorded, solved

FIRST = ("03", "04", "05", "06", "07", "11", "12", "19", "22")  # labs in which counts earn most
BATCH = 16  # mutants in one recording, which runs the notebook's cells once
TOO_MUCH = 2.0  # times the solution's cost
FREE = 64  # of a count: below it, twice as much is nothing
KNOWN = Path(__file__).with_name("known.toml")
SPACES = {"global": "sectors", "local": "sectors", "shared": "wavefronts"}


@dataclass(frozen=True)
class Origin:
    """An answer that is mutated: the lab's solution of an exercise, or one of the wrong answers beside it."""

    source: Path  # the notebook
    exercise: str
    name: str
    text: str

    @property
    def is_right(self) -> bool:
        return self.name == "solution"


@dataclass(frozen=True)
class Judged:
    """What an answer earned. `fingerprint` is equal for equal programs; `costs` are those of all launches."""

    points: float
    of: float
    fingerprint: str = ""
    costs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Suspicion:
    """A mutant that earned more than it seems to deserve."""

    origin: Origin
    mutant: Mutant
    found: Judged
    why: str

    def __str__(self) -> str:
        plain = ast.unparse(ast.parse(self.origin.text))
        # A kernel in a text is one line of Python; its own lines are shown.
        before, after = (text.replace("\\n", "\n").splitlines() for text in (plain, self.mutant.source))
        lines = [
            line
            for line in difflib.unified_diff(before, after, n=1, lineterm="")
            if line[:3] not in ("---", "+++")
        ]
        head = f"{self.origin.exercise}, {self.origin.name}: {self.mutant.mutator}, {self.mutant.what}"
        earned = f"earns {self.found.points:g} of {self.found.of:g}; {self.why}"
        return "\n".join((head, f"  {earned}", *(f"    {line}" for line in lines)))


def origins(course: Course, lab: str = "") -> Iterator[Origin]:
    """All answers that can be mutated, of one lab or of all, those of a notebook one after the other."""
    folders = [f for f in course.solutions.glob("[0-9]*") if f.name.startswith(lab[:2])]
    for folder in sorted(folders, key=lambda f: (f.name[:2] not in FIRST, f.name)):
        wrong = [(path.stem, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("wrong/*.py"))]
        for source in sources(folder):
            for exercise, text in _solutions(source):
                yield Origin(source, exercise, "solution", text)
                for name, answer in wrong:
                    if head_of(answer)["exercise"].split()[0] == exercise:
                        yield Origin(source, exercise, name, answer)


def _solutions(source: Path) -> Iterator[tuple[str, str]]:
    """The exercises of a notebook, each with the cell that defines its function and its kernels' cells."""
    asked = {q.cell: q for q in questions(solved(source))}
    since: list[str] = []
    for step in steps_of(solved(source)):
        if "cell" in step:
            since.append(step["source"])
            continue
        question = asked[step["test"]]
        name = re.escape(question.function)
        binds = re.compile(rf"^(?:def|class)\s+{name}\b|^{name}\s*=", re.MULTILINE)
        places = [place for place, text in enumerate(since) if binds.search(text)]
        yield from [(question.exercise, _with_kernels(since[:place], since[place])) for place in places[-1:]]
        since = []


def _with_kernels(before: list[str], text: str) -> str:
    """A solution cell behind those that define what it uses, such as the kernel it launches."""
    used, kept = set(names_of(text)[1]), [text]
    for cell in reversed(before):
        binds, uses = names_of(cell)
        if "BEGIN SOLUTION" in cell and binds & used:
            kept.insert(0, cell)
            used |= uses
    return "\n\n\n".join(kept)


def mutants_of(origin: Origin) -> list[Mutant]:
    """Those that can turn out suspicious. A wrong answer that does still less is nothing to look for."""
    return [m for m in mutants(origin.text) if origin.is_right or m.sense == "adds work"]


def judged_together(origin: Origin, batch: list[Mutant]) -> list[Judged]:
    """The answer itself and its mutants, judged in one run, in this order."""
    texts = [origin.text, *(mutant.source for mutant in batch)]
    plays = [
        Play(Path(f"m{number}.py"), "a mutant", origin.exercise, text, 0.0)
        for number, text in enumerate(texts)
    ]
    job = recorded(Course(), plays, unsafe=True)
    record, exercise = read_record(job.content), exercise_of(origin.exercise)
    kind = exercise.evidence.kind
    names = [question.exercise for question in job.questions]
    records = {name: {} if exercise.evidence.live else record.recorded[kind].get(name, {}) for name in names}
    prints = {
        name: _fingerprint(records[name]) if records[name] else text
        for name, text in zip(names, texts, strict=True)
    }
    firsts = {mark: name for name, mark in reversed(prints.items())}  # equal programs are judged once
    job = replace(job, questions=tuple(q for q in job.questions if q.exercise in firsts.values()))
    found = {}
    for verdict in replays().verdicts(job):
        name = verdict.exercise
        costs = {}
        if isinstance(exercise.evidence, LaunchTrace) and verdict.passed:
            costs = costs_of(job, name, records[name])
        found[prints[name]] = Judged(verdict.points, verdict.of, prints[name], costs)
    return [found[prints[name]] for name in names]


@cache
def replays() -> Replays:
    """One for all batches of a process: what its children import is imported once."""
    made = Replays(TOGETHER)
    made.warm(["grading.core.warm"])
    return made


def _fingerprint(what: Mapping[str, Any]) -> str:
    """A record as text, without what differs between two compilations of one program."""
    return "\n".join(
        f"{case} {_programs(record) if isinstance(record, CaseTrace) else record}"
        for case, record in what.items()
    )


def _programs(record: CaseTrace) -> list[tuple[Any, ...]]:
    return [(_instructions(launch.kernel.ptx), launch.grid, launch.block) for launch in record.launches]


@cache
def _instructions(ptx: str) -> str:
    lines = [line.strip() for line in ptx.splitlines()]
    kept = [line for line in lines if line and not line.startswith((".", "//", "$", "{", "}"))]
    return re.sub(r"\b_Z\w+|\$L\w+", "_", "\n".join(kept))


def costs_of(job: ReplayJob, name: str, what: Mapping[str, CaseTrace]) -> dict[str, int]:
    """What the launches of all cases cost together: by name a count that no budget has a part in."""
    exercise = judged(exercise_of(name), job.cases[name])
    question = next(q for q in job.questions if q.exercise == name)
    seeds = {case.name: job.seeds[name, case.name] for case in exercise.cases}
    contents = Contents(seeds, garbage_seed(seeds))
    answer = Answer(exercise, stand_in(question), registry.reference(exercise.name), contents)
    launched = Recorded(**vars(launch_trace_of(exercise).launched(answer)), recorded=what)
    counters: list[Counters] = []

    def observe(_: devices.Launch) -> Counters:
        counters.append(Counters())
        return counters[-1]

    with reference_device(exercise.gpu) as device, device.observed(observe):
        for case in exercise.cases:
            launched.run(case)
    counts = [each.counts for each in counters if each.counts is not None]
    costs = {f"{s} {column}": sum(c.total(column, space=s) for c in counts) for s, column in SPACES.items()}
    return costs | {
        "launches": len(counts),
        "warp instructions": sum(c.total("warps") for c in counts),
        "atomics": sum(c.total("requests", "atomic") for c in counts),
    }


def why_suspicious(origin: Origin, mutant: Mutant, plain: Judged, found: Judged) -> str:
    """What is odd about what a mutant earned, in a few words; empty if nothing is."""
    if not origin.is_right:
        return f"the answer itself earns {plain.points:g}" if found.points > plain.points + 0.005 else ""
    if found.points < found.of or found.fingerprint == plain.fingerprint:
        return ""
    if mutant.sense == "weakens":
        return "does less than the solution"
    dear = {
        name: cost
        for name, cost in found.costs.items()
        if cost > TOO_MUCH * plain.costs.get(name, 0) and cost - plain.costs.get(name, 0) > FREE
    }
    return ", ".join(
        f"{cost:,} {name} instead of {plain.costs.get(name, 0):,}" for name, cost in dear.items()
    )


def suspicions(origin: Origin, batch: list[Mutant]) -> list[Suspicion]:
    """The suspicious ones of a batch of mutants; each program once."""
    plain, *rest = judged_together(origin, batch)
    found: dict[str, Suspicion] = {}
    for mutant, each in zip(batch, rest, strict=True):
        if why := why_suspicious(origin, mutant, plain, each):
            found.setdefault(each.fingerprint, Suspicion(origin, mutant, each, why))
    return list(found.values())


@cache
def known() -> list[dict[str, str]]:
    """What has been looked at: patterns of `exercise`, `mutator`, `what` and `why`, and the `reason`."""
    found: list[dict[str, str]] = tomllib.loads(KNOWN.read_text(encoding="utf-8"))["known"]
    return found


def reason_for(suspicion: Suspicion) -> str:
    """Why a suspicion is harmless, if it is known to be; empty otherwise."""
    told = {
        "exercise": suspicion.origin.exercise,
        "answer": suspicion.origin.name,
        "mutator": suspicion.mutant.mutator,
        "what": suspicion.mutant.what,
        "why": suspicion.why,
    }
    return next(
        (
            each["reason"]
            for each in known()
            if all(fnmatch.fnmatchcase(told[k], v) for k, v in each.items() if k != "reason")
        ),
        "",
    )


def search(
    course: Course, lab: str = "", seconds: float = 3600, workers: int = 2
) -> Iterator[tuple[int, list[Suspicion]]]:
    """After each run: how many mutants it judged, and which of them are suspicious. Ends when time is up."""
    until = time.monotonic() + seconds
    waiting: Iterable[tuple[Origin, list[Mutant]]] = (
        (origin, batch)
        for right in (True, False)
        for origin in origins(course, lab)
        if origin.is_right == right
        for every in [mutants_of(origin)]
        for batch in [every[at : at + BATCH] for at in range(0, len(every), BATCH)]
    )
    with ProcessPoolExecutor(workers) as pool:
        running: dict[Future[list[Suspicion]], int] = {}
        for origin, batch in waiting:
            running[pool.submit(suspicions, origin, batch)] = len(batch)
            if len(running) >= workers:
                done = next(as_completed(running))
                yield running.pop(done), done.result()
            if time.monotonic() > until:
                break
        for done in as_completed(list(running)):
            yield running[done], done.result()


def main(arguments: list[str] | None = None) -> int:
    """The command; its status is 1 if there is something to look at."""
    options = argparse.ArgumentParser(
        prog="python -m grading.redteam.search", description=__doc__.splitlines()[0]
    )
    options.add_argument("--lab", default="", help="a lab by its number, such as 04; all by default")
    options.add_argument("--seconds", type=float, default=3600, help="begin no run later (%(default)g)")
    chosen = options.parse_args(arguments)
    judged_so_far, harmless, odd = 0, 0, 0
    for number, found in search(Course(), chosen.lab, chosen.seconds):
        judged_so_far += number
        for suspicion in found:
            if reason_for(suspicion):
                harmless += 1
            else:
                odd += 1
                print(suspicion, flush=True)
    print(f"{judged_so_far} mutants: {odd} to look at, {harmless} known to be harmless")
    return 1 if odd else 0


if __name__ == "__main__":
    sys.exit(main())
