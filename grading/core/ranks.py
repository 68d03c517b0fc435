"""Exercises for several ranks: each rank in a sandbox of its own, and the judge is the network between them.

Nothing is recorded and replayed here, because what a rank sends depends on what it has received. The judge
gives each rank its part of contents that did not exist when the code was loaded, carries and counts every
message, and keeps what the ranks return; whether that is right is found out later, in the child that replays.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpulab.checks import cases as contents
from gpulab.checks.evidence import communication
from gpulab.checks.spec import Case, Exercise
from gpulab.subjects.distributed.network import Network, Outcome, Trouble
from grading.core import sandbox, texts
from grading.core.sandbox import Limits

# By exercise and case. Where one came to no result, its later cases are not there.
Outcomes = dict[tuple[str, str], Outcome]
SLOWER = 2  # than one process: ranks share the cores, and each loads what it uses


@dataclass(frozen=True)
class Asked:
    """One exercise under the name that it has in the job, and at which cases, on contents of which seeds."""

    name: str
    exercise: Exercise
    cases: tuple[Case, ...]
    seeds: tuple[int, ...]

    @property
    def ranks(self) -> int:
        """Of its largest case."""
        return max(map(communication.ranks_of, self.cases))


def outcomes(
    steps: Sequence[dict[str, Any]],
    asked: Iterable[Asked],
    job_bytes: Callable[[dict[str, Any]], bytes],
    limits: Limits,
    until: float | None = None,
    *,
    unsafe: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> Outcomes:
    """How the ranks fared at each case of the exercises that are asked, in the order of `steps`.

    The ranks stay from exercise to exercise; after one that does not come to an end they are started anew.
    All together may take until `until`, or `limits.seconds`; one case twice `limits.patience`. Once `stopped`
    says so, none is started any more.
    """
    by_name = {each.name: each for each in asked}
    order = [step["exercise"] for step in steps if step.get("exercise") in by_name]
    left = [by_name[name] for name in order]
    until = time.monotonic() + limits.seconds if until is None else until
    found: Outcomes = {}
    while left and not stopped():
        if time.monotonic() >= until:
            return found | {(each.name, each.cases[0].name): _too_late(limits) for each in left}
        todo = {each.name for each in left}
        job = [step for step in steps if "cell" in step or step.get("exercise") in todo]
        size = max(each.ranks for each in left)
        with _joined(job_bytes({"patience": limits.patience, "steps": job}), size, limits, unsafe) as network:
            while left and _serve(network, left.pop(0), found, until, limits):
                network.tell({"op": "next"})
    return found


@contextlib.contextmanager
def _joined(job: bytes, size: int, limits: Limits, unsafe: bool) -> Iterator[Network]:
    """`size` ranks, and the network that joins them. Both end together."""
    with contextlib.ExitStack() as ranks:
        wires = [ranks.enter_context(sandbox.rank(job, limits, unsafe=unsafe)) for _ in range(size)]
        network = Network(wires)
        ranks.callback(network.close)
        yield network


def _too_late(limits: Limits) -> Outcome:
    return Outcome(trouble=Trouble("too long", texts.STOPPED.format(seconds=limits.seconds)))


def _serve(network: Network, asked: Asked, found: Outcomes, until: float, limits: Limits) -> bool:
    """Run all cases of one exercise; says whether the same ranks can go on to the next."""
    first = asked.name, asked.cases[0].name
    if (left := until - time.monotonic()) <= 0:
        found[first] = _too_late(limits)
        return False
    if trouble := network.meet(asked.name, left):
        found[first] = Outcome(trouble=trouble)
        return network.whole
    for case, seed in zip(asked.cases, asked.seeds, strict=True):
        left = until - time.monotonic()
        made = contents.arguments(communication.whole(asked.exercise), case, seed)
        task = communication.task(asked.exercise, made, communication.ranks_of(case))
        outcome = network.run(task, max(min(SLOWER * limits.patience, left), 0.0))
        found[asked.name, case.name] = outcome
        if outcome.trouble:
            break
    return network.whole
