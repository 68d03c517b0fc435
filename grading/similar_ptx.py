"""Pairs whose kernels the compiler makes into much the same instructions, however their text differs.

Names, comments, spelling and most of the order in which something is written are gone in PTX. What is
compared are runs of opcodes of the kernels that an answer launches, weighted as in `similar`: what many in
the class have counts for little. Short kernels are alike by nature, and the text tells more of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from os import sched_getaffinity

from nbformat import NotebookNode

from grading import limited, sandbox
from grading.errors import SandboxError, TraceError
from grading.graft import Graft
from grading.judge import job_bytes, judge_cases, recording_job
from grading.notebooks import Question
from grading.replay import exercise_of
from grading.sandbox import Limits
from grading.similar import Pair, ranked
from grading.traces import read_trace

RUN = 6  # opcodes
INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?(?P<opcode>[a-z]\w*(?:\.\w+|::\w+)*)(?=[\s;])", re.M)
LIMITS = Limits(seconds=60, patience=20)


def runs(ptx: str) -> frozenset[str]:
    """Runs of opcodes of PTX, in the order of its text."""
    body = re.sub(r"//.*|/\*.*?\*/", "", ptx)
    opcodes = [match["opcode"] for match in INSTRUCTION.finditer(body)]
    return frozenset(" ".join(opcodes[i : i + RUN]) for i in range(len(opcodes) - RUN + 1))


def runs_of_trace(content: bytes) -> dict[str, list[str]]:
    """By exercise, the runs of the kernels that were launched in a record. For a child with limits."""
    try:
        trace = read_trace(content)
    except TraceError:
        return {}
    found: dict[str, list[str]] = {}
    for exercise, cases in trace.cases.items():
        launched = {launch.kernel for case in cases.values() for launch in case.launches}
        texts = [trace.kernels[name].ptx for name in sorted(launched)]
        found[exercise] = sorted(frozenset[str]().union(*map(runs, texts)))
    return found


def recorded(notebook: NotebookNode, asked: tuple[Question, ...], unsafe: bool) -> dict[str, frozenset[str]]:
    """What one submission launches, by grade id of the test cell; at one case each, without contents."""
    chosen = {q.exercise: judge_cases(exercise_of(q.exercise))[:1] for q in asked}
    seeds = {(exercise, case.name): 0 for exercise, cases in chosen.items() for case in cases}
    job = recording_job(Graft(notebook, {}, ""), asked, chosen, seeds, LIMITS.patience)
    outcome = sandbox.record(job_bytes(job), LIMITS, unsafe=unsafe)
    try:
        found = limited.call(runs_of_trace, outcome.content, limits=LIMITS)
    except limited.Ended:
        found = {}
    return {q.cell: frozenset(found.get(q.exercise, ())) for q in asked}


def pairs(
    name: str,
    questions: tuple[Question, ...],
    submitted: Mapping[str, NotebookNode],
    unsafe: bool = False,
    least: float = 0.25,
) -> list[Pair]:
    """All pairs that share at least `least` of their rare instructions in an answer.

    Every submission is run once, in the sandbox. Raises SandboxError where there is none, unless `unsafe`.
    """
    if not unsafe and (why := sandbox.obstacle()):
        raise SandboxError(f"{why}\nwithout a sandbox nothing is run, unless you say --unsafe")
    asked = tuple(q for q in questions if exercise_of(q.exercise).evidence == "launch trace")
    if not asked:
        return []
    with ThreadPoolExecutor(max(1, len(sched_getaffinity(0)))) as pool:
        found = list(pool.map(lambda notebook: recorded(notebook, asked, unsafe), submitted.values()))
    by_cell = {
        q.cell: {student: each[q.cell] for student, each in zip(submitted, found, strict=True)} for q in asked
    }
    return ranked(by_cell, len(submitted), least)
