"""Pairs whose kernels the compiler makes into much the same instructions, however their text differs.

Names, comments, spelling and most of the order in which something is written are gone in PTX. What is
compared are runs of opcodes of the kernels that an answer launches, weighted as in `similar`: what many in
the class have counts for little. There are two kinds of runs, because the compiler makes another loop of
`while` than of `for`: those of all opcodes, and those of the work alone, which is what touches memory or
computes with floats. Kernels of few lines are alike by nature, and the text tells more of them.

`benchmarks/similar.py` shows where the line lies between copies that a program rewrote and kernels that were
written independently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import sched_getaffinity

from nbformat import NotebookNode

from gpulab.checks.evidence import LaunchTrace
from grading.core import limited, sandbox
from grading.core.errors import SandboxError, TraceError
from grading.core.graft import Graft
from grading.core.judge import job_bytes, judge_cases, recording_job
from grading.core.notebooks import Question
from grading.core.replay import exercise_of
from grading.core.sandbox import Limits
from grading.core.traces import read_trace
from grading.lms.similar import Pair, most_in_common, ranked

INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?(?P<opcode>[a-z]\w*(?:\.\w+|::\w+)*)(?=[\s;])", re.M)
# Addresses, conditions and control; and what moves a value about, whatever its type.
NO_WORK = re.compile(
    r"(add|sub|mul|mad|shl|shr|shf|and|or|xor|not|neg|abs|min|max|setp|rem|div|bfe|prmt|bra|ret|ld\.param)\b"
)
MOVES = re.compile(r"(mov|cvta?|selp)\b")
FLOATS = re.compile(r"\.(f16|bf16|f32|f64)(x2)?$")
LIMITS = Limits(seconds=60, patience=20)


@dataclass(frozen=True)
class Kind:
    """A kind of runs: how long they are, how many an answer needs to say anything, and the share that a pair
    must have in common to be named."""

    run: int
    fewest: int
    least: float


KINDS = {"opcodes": Kind(6, 12, 0.3), "work": Kind(3, 4, 0.7)}


def runs(ptx: str) -> dict[str, frozenset[str]]:
    """Runs of opcodes of PTX by kind, in the order of its text."""
    body = re.sub(r"//.*|/\*.*?\*/", "", ptx)
    opcodes = [match["opcode"] for match in INSTRUCTION.finditer(body)]
    of_kind = {"opcodes": opcodes, "work": list(filter(works, opcodes))}
    return {name: _of_length(of_kind[name], kind.run) for name, kind in KINDS.items()}


def works(opcode: str) -> bool:
    """Does it touch memory, compute with floats, or meet other threads?"""
    if MOVES.match(opcode):
        return False
    return bool(FLOATS.search(opcode)) or not NO_WORK.match(opcode)


def _of_length(opcodes: Sequence[str], length: int) -> frozenset[str]:
    return frozenset(" ".join(opcodes[i : i + length]) for i in range(len(opcodes) - length + 1))


def runs_of_trace(content: bytes) -> dict[str, dict[str, list[str]]]:
    """By exercise and kind, the runs of the kernels launched in a record. For a child with limits."""
    try:
        trace = read_trace(content)
    except TraceError:
        return {}
    found: dict[str, dict[str, list[str]]] = {}
    for exercise, cases in trace.recorded[LaunchTrace.kind].items():
        launched = {launch.kernel for case in cases.values() for launch in case.launches}
        all_runs = [runs(kernel.ptx) for kernel in launched]
        found[exercise] = {
            kind: sorted(frozenset[str]().union(*(each[kind] for each in all_runs))) for kind in KINDS
        }
    return found


def recorded(
    notebook: NotebookNode, asked: tuple[Question, ...], unsafe: bool
) -> dict[str, dict[str, list[str]]]:
    """What one submission launches, by exercise and kind; at one case each, without contents."""
    chosen = {q.exercise: judge_cases(exercise_of(q.exercise))[:1] for q in asked}
    seeds = {(exercise, case.name): 0 for exercise, cases in chosen.items() for case in cases}
    job = recording_job(Graft(notebook, {}, ""), asked, chosen, seeds, LIMITS.patience)
    outcome = sandbox.record(job_bytes(job), LIMITS, unsafe=unsafe)
    try:
        found: dict[str, dict[str, list[str]]] = limited.call(runs_of_trace, outcome.content, limits=LIMITS)
    except limited.Ended:
        found = {}
    return found


def pairs(
    name: str,
    questions: tuple[Question, ...],
    submitted: Mapping[str, NotebookNode],
    unsafe: bool = False,
) -> list[Pair]:
    """All pairs that share enough of their rare instructions in an answer.

    Every submission is run once, in the sandbox. Raises SandboxError where there is none, unless `unsafe`.
    """
    if not unsafe and (why := sandbox.obstacle()):
        raise SandboxError(f"{why}\nwithout a sandbox nothing is run, unless you say --unsafe")
    asked = tuple(q for q in questions if exercise_of(q.exercise).evidence.launches)
    if not asked:
        return []
    with ThreadPoolExecutor(max(1, len(sched_getaffinity(0)))) as pool:
        found = list(pool.map(lambda notebook: recorded(notebook, asked, unsafe), submitted.values()))
    of = dict(zip(submitted, found, strict=True))
    return alike({q.cell: {s: each.get(q.exercise, {}) for s, each in of.items()} for q in asked})


def alike(launched: Mapping[str, Mapping[str, Mapping[str, Iterable[str]]]]) -> list[Pair]:
    """The pairs in runs by answer, student and kind: whoever has enough of one kind in common."""
    found: dict[tuple[str, str], Pair] = {}
    for name, kind in KINDS.items():
        features = {
            cell: {student: frozenset(runs_of.get(name, ())) for student, runs_of in everybody.items()}
            for cell, everybody in launched.items()
        }
        students = max(map(len, features.values()), default=0)
        for pair in ranked(features, students, kind.least, fewest=kind.fewest):
            other = found.get(pair.students, pair)
            cells = {c: max(p.cells.get(c, 0) for p in (pair, other)) for c in {**pair.cells, **other.cells}}
            found[pair.students] = Pair(pair.students, max(pair.share, other.share), cells, ())
    return sorted(found.values(), key=most_in_common)
