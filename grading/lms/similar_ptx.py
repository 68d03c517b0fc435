"""Pairs whose kernels the compiler makes into much the same instructions, however their text differs.

Names, comments, spelling and most of the order in which something is written are gone in PTX. What is
compared are runs of opcodes of the kernels that an answer launches, weighted as in `similar`: those of the
lab's own solution count nothing. There are two kinds of runs, because the compiler makes another loop of
`while` than of `for`: those of all opcodes, and those of the work alone, which is what touches memory or
computes with floats. Kernels of few lines are alike by nature, and the text tells more of them.

`benchmarks/similar.py` shows where the line lies between copies that a program rewrote and kernels that were
written independently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from os import sched_getaffinity

from nbformat import NotebookNode

from gpulab.checks.evidence import LaunchTrace
from grading.core import limited, sandbox
from grading.core.errors import RecordError, SandboxError
from grading.core.graft import Graft
from grading.core.judge import job_bytes, judge_cases, recording_job
from grading.core.notebooks import Question
from grading.core.records import read_record
from grading.core.replay import exercise_of
from grading.core.sandbox import Limits
from grading.lms.similar import Given, Group, Kind, alike, groups
from grading.lms.similar import runs as runs_of_tokens

INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?(?P<opcode>[a-z]\w*(?:\.\w+|::\w+)*)(?=[\s;])", re.M)
# Addresses, conditions and control; and what moves a value about, whatever its type.
NO_WORK = re.compile(
    r"(add|sub|mul|mad|shl|shr|shf|and|or|xor|not|neg|abs|min|max|setp|rem|div|bfe|prmt|bra|ret|ld\.param)\b"
)
MOVES = re.compile(r"(mov|cvta?|selp)\b")
FLOATS = re.compile(r"\.(f16|bf16|f32|f64)(x2)?$")
LIMITS = Limits(seconds=60, patience=20)


KINDS = {"opcodes": Kind(6, 12, 0.3), "work": Kind(3, 3, 0.7)}


def runs(ptx: str) -> dict[str, frozenset[str]]:
    """Runs of opcodes of PTX by kind, in the order of its text."""
    body = re.sub(r"//.*|/\*.*?\*/", "", ptx)
    opcodes = [match["opcode"] for match in INSTRUCTION.finditer(body)]
    of_kind = {"opcodes": opcodes, "work": list(filter(works, opcodes))}
    return {
        name: frozenset(map(" ".join, runs_of_tokens(of_kind[name], kind.run)))
        for name, kind in KINDS.items()
    }


def works(opcode: str) -> bool:
    """Does it touch memory, compute with floats, or meet other threads?"""
    if MOVES.match(opcode):
        return False
    return bool(FLOATS.search(opcode)) or not NO_WORK.match(opcode)


def runs_of_trace(content: bytes) -> dict[str, dict[str, list[str]]]:
    """By exercise and kind, the runs of the kernels launched in a record. For a child with limits."""
    try:
        record = read_record(content)
    except RecordError:
        return {}
    found: dict[str, dict[str, list[str]]] = {}
    for exercise, cases in record.recorded[LaunchTrace.kind].items():
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


def compared(
    course_has: Given,
    questions: tuple[Question, ...],
    submitted: Mapping[str, NotebookNode],
    unsafe: bool = False,
) -> list[Group]:
    """The groups of a class, by what the compiler made of their kernels, most in common first.

    Every submission, and the lab's solution, is run once, in the sandbox. Raises SandboxError where there is
    none, unless `unsafe`.
    """
    if not unsafe and (why := sandbox.obstacle()):
        raise SandboxError(f"{why}\nwithout a sandbox nothing is run, unless you say --unsafe")
    asked = tuple(q for q in questions if exercise_of(q.exercise).evidence.launches)
    if not asked:
        return []
    ours = [course_has.solution] if course_has.solution else []
    with ThreadPoolExecutor(max(1, len(sched_getaffinity(0)))) as pool:
        found = list(pool.map(lambda n: recorded(n, asked, unsafe), [*submitted.values(), *ours]))
    solved = found.pop() if ours else {}
    launched = dict(zip(submitted, found, strict=True))
    by_kind = {
        kind: {
            q.cell: {
                student: own_runs(each.get(q.exercise, {}), solved.get(q.exercise, {}), kind)
                for student, each in launched.items()
            }
            for q in asked
        }
        for kind in KINDS
    }
    return groups(alike(by_kind, KINDS))


def own_runs(
    launched: Mapping[str, Iterable[str]], solved: Mapping[str, Iterable[str]], kind: str
) -> frozenset[str]:
    """The runs of a kind that the solution's kernels have not."""
    return frozenset(launched.get(kind, ())) - frozenset(solved.get(kind, ()))
