"""Replays in limited children: every exercise gets a verdict, and all of a submission have one allowance.

What is measured is processor time, so that no verdict depends on what else the machine does. The allowance is
`Limits.seconds`. Each exercise may take `Limits.patience` of it at first; what is left in the end is shared
by those that needed more. So a slow kernel costs its own verdict and not the others'.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import spawn
from multiprocessing.connection import Connection
from typing import Any, Literal

from gpulab.checks.refusals import Broken
from grading.core import limited, texts
from grading.core.errors import GradingError
from grading.core.notebooks import Question
from grading.core.replay import ReplayJob, verdicts
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict, Line, exercise_from_json

LARGEST_MESSAGE = 4 << 20
REPLAY = "gpulab replay"  # the name of its process
ENDS: dict[int | None, Literal["slow", "killed"]] = {-signal.SIGPROF: "slow", -signal.SIGKILL: "killed"}
BUSY = 10  # times its processor time that a replay may take by the clock: others use this machine, too


def _without_main(name: str) -> dict[str, Any]:
    """What multiprocessing tells a child to prepare: for a replay not to import the main module, too.

    `_in_child` needs none of it, and a main module such as a Dask worker's takes a second to import.
    """
    data = _preparation(name)
    if name == REPLAY:
        data.pop("init_main_from_name", None)
        data.pop("init_main_from_path", None)
    return data


_preparation = spawn.get_preparation_data
spawn.get_preparation_data = _without_main


class Stopped(GradingError):
    """The judge was told to stop before it had a verdict."""


@dataclass
class Said:
    """What a child said before it ended: verdicts by exercise, and its processor time in seconds."""

    found: dict[str, ExerciseVerdict] = field(default_factory=dict)
    spent: float = 0.0
    end: Literal["done", "slow", "killed", "died"] = "done"
    how: str = ""


class Replays:
    """Replays records within `limits`. `verdicts` may be called from several threads."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._context = multiprocessing.get_context("forkserver")
        self._children: set[Any] = set()
        self._stopped = False

    def warm(self, modules: list[str]) -> None:
        """Name what the server of the children imports before it starts."""
        self._context.set_forkserver_preload(modules)

    def stop(self) -> None:
        """End every replay that is under way, and start no other."""
        self._stopped = True
        for child in list(self._children):
            with contextlib.suppress(OSError, ValueError):
                child.kill()

    def verdicts(self, job: ReplayJob) -> tuple[ExerciseVerdict, ...]:
        """The verdict on each exercise, in order. Raises Stopped.

        A child that dies costs the exercise that killed it, and one that is slow the one that was slow.
        """
        found: dict[str, ExerciseVerdict] = {}
        allowance = Allowance(self.limits.seconds, time.monotonic() + BUSY * self.limits.seconds)
        share = min(self.limits.patience, allowance.left)
        waiting = job.questions
        while waiting := self._round(job, waiting, share, allowance, found):
            if (more := allowance.left / len(waiting)) <= share:
                break
            share = more
        for question in waiting:
            found[question.exercise] = no_verdict(question, job, texts.REPLAY_STOPPED.format(seconds=share))
        return tuple(found[q.exercise] for q in job.questions)

    def _round(
        self,
        job: ReplayJob,
        waiting: Iterable[Question],
        share: float,
        allowance: Allowance,
        found: dict[str, ExerciseVerdict],
    ) -> tuple[Question, ...]:
        """Those of the questions that `share` seconds of processor time each were too few for."""
        waiting, slow, once_more = list(waiting), list[Question](), True
        while waiting:
            if allowance.over:
                return (*slow, *waiting)
            said = self._child(replace(job, questions=tuple(waiting)), share, allowance)
            if self._stopped:
                raise Stopped
            found |= said.found
            allowance.left -= said.spent
            waiting = [q for q in waiting if q.exercise not in found]
            if said.end == "killed" and once_more:  # from outside: its own limits end it in other ways
                once_more = False
            elif waiting:
                first, once_more = waiting.pop(0), True
                if said.end == "slow":
                    slow.append(first)
                else:
                    found[first.exercise] = no_verdict(first, job, said.how)
        return tuple(slow)

    def _child(self, job: ReplayJob, share: float, allowance: Allowance) -> Said:
        """One child's work on the questions of a job, each for at most `share` seconds."""
        here, there = self._context.Pipe(duplex=False)
        arguments = (job, there, self.limits, share, allowance.left)
        child = self._context.Process(target=_in_child, args=arguments, name=REPLAY, daemon=True)
        child.start()
        self._children.add(child)
        there.close()
        said, began = Said(), time.monotonic()
        try:
            while here.poll(max(0.0, min(allowance.until, began + BUSY * share) - time.monotonic())):
                fact = json.loads(here.recv_bytes(LARGEST_MESSAGE))
                if "failed" in fact:
                    said.end, said.how = "died", texts.REPLAY_DIED.format(how=fact["failed"])
                    return said
                said.spent, began = fact["spent"], time.monotonic()
                verdict = exercise_from_json(fact["verdict"])
                said.found[verdict.exercise] = verdict
            said.end = "slow"
            said.spent += share
        except (EOFError, OSError, ValueError):
            if len(said.found) < len(job.questions):
                child.join(5)
                said.end = ENDS.get(child.exitcode, "died")
                said.how = texts.REPLAY_DIED.format(how=f"exit status {child.exitcode}")
                said.spent += share if said.end == "slow" else min(share, time.monotonic() - began)
        finally:
            self._children.discard(child)
            child.kill()
            child.join()
            here.close()
        return said


@dataclass
class Allowance:
    """What a submission's replay may still take: seconds of processor time, and when it must be over."""

    left: float
    until: float  # of time.monotonic()

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self.left <= 0 or time.monotonic() > self.until


def no_verdict(question: Question, job: ReplayJob, how: str) -> ExerciseVerdict:
    """No points, and why nobody could tell."""
    names = tuple(case.name for case in job.cases[question.exercise])
    return ExerciseVerdict(
        question.exercise, question.cell, (Line("right", 0.0, question.points),), names, ungraded=how
    )


def _in_child(job: ReplayJob, say: Connection, limits: Limits, share: float, left: float) -> None:
    """The child's work: verdicts, one message each, under limits that it cannot lift."""
    limited.restrict(limits)
    found = verdicts(job)
    try:
        for _ in job.questions:
            seconds = max(min(share, left - _spent()), 0.001)
            signal.setitimer(signal.ITIMER_PROF, seconds)  # the kernel ends what goes on: no Python is asked
            verdict = asdict(next(found))
            signal.setitimer(signal.ITIMER_PROF, 0)
            say.send_bytes(json.dumps({"spent": _spent(), "verdict": verdict}).encode())
    except (Broken, MemoryError) as error:  # not the learner's mistake: the coordinator gets one line
        why = f"{error}" or type(error).__name__
        say.send_bytes(json.dumps({"failed": texts.clean(why)}).encode())
    say.close()


def _spent() -> float:
    """Seconds of processor time that this process and those that it waited for have taken."""
    return sum(os.times()[:4])
