"""A cluster of GPUs as a scheduler sees it: gangs, replicas that start slowly, a GPU for several.

Everything is worked out step by step and depends on its arguments alone. Times are whole units of what the
caller counts in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

# ---------------------------------------------------------------- gangs


@dataclass(frozen=True)
class Held:
    """One GPU held by one job for a while; `works` is False while the job waits for the rest of its GPUs."""

    gpu: int
    start: int
    stop: int
    job: int
    works: bool = True


@dataclass(frozen=True)
class Run:
    """What happened to a queue: who held which GPU, when each job began (None for never), and the end."""

    held: tuple[Held, ...]
    starts: tuple[int | None, ...]
    end: int

    def busy(self, gpus: int) -> float:
        """The share of all GPUs' time in which a job worked."""
        return sum(h.stop - h.start for h in self.held if h.works) / (gpus * self.end) if self.end else 0.0


def pod_by_pod(jobs: Sequence[tuple[int, int]], gpus: int, patience: int) -> Run:
    """Jobs (GPUs, duration) whose pods are bound one at a time, each job's next pod in turn.

    A job works when all its pods are bound, and holds their GPUs from when each was bound: nobody gives any
    back. Ends when all is done, or `patience` units after the last time that anything happened.
    """
    free, clock, last = set(range(gpus)), 0, 0
    bound: list[list[tuple[int, int]]] = [[] for _ in jobs]  # (GPU, since when)
    starts: list[int | None] = [None] * len(jobs)
    done: set[int] = set()
    held: list[Held] = []
    turn = 0
    while len(done) < len(jobs):
        for job, (_, duration) in enumerate(jobs):
            begun = starts[job]
            if begun is not None and job not in done and clock >= begun + duration:
                done.add(job)
                held += [Held(gpu, begun, clock, job) for gpu, _ in bound[job]]
                free |= {gpu for gpu, _ in bound[job]}
                last = clock
        waiting = [job for job, (wanted, _) in enumerate(jobs) if len(bound[job]) < wanted]
        while free and waiting:
            job = waiting[turn % len(waiting)]
            bound[job].append((min(free), clock))
            free.remove(min(free))
            last = clock
            if len(bound[job]) == jobs[job][0]:
                starts[job] = clock
                held += [Held(gpu, since, clock, job, False) for gpu, since in bound[job] if since < clock]
                waiting.remove(job)
            else:
                turn += 1
        running = any(begun is not None and job not in done for job, begun in enumerate(starts))
        if len(done) == len(jobs) or (not running and clock >= last + patience):
            break
        clock += 1
    for job, begun in enumerate(starts):
        if begun is None:
            held += [Held(gpu, since, clock, job, False) for gpu, since in bound[job]]
    return Run(tuple(held), tuple(starts), clock)


def planned(jobs: Sequence[tuple[int, int]], starts: Sequence[int], gpus: int) -> Run:
    """Jobs (GPUs, duration) that begin when a plan says, with all their GPUs at once.

    Raises ValueError where the plan needs more than there are.
    """
    until = [0] * gpus
    held = []
    for job in sorted(range(len(jobs)), key=lambda j: (starts[j], j)):
        wanted, duration = jobs[job]
        free = [gpu for gpu in range(gpus) if until[gpu] <= starts[job]]
        if len(free) < wanted:
            raise ValueError(f"at {starts[job]} job {job} needs {wanted} GPUs, and {len(free)} are free")
        for gpu in free[:wanted]:
            until[gpu] = starts[job] + duration
            held.append(Held(gpu, starts[job], until[gpu], job))
    return Run(tuple(held), tuple(starts), max(until, default=0))


# ---------------------------------------------------------------- replicas


@dataclass(frozen=True)
class Scaled:
    """What a service's replicas did, minute by minute.

    `paid` are those that exist, `ready` those that serve; `over` is the load beyond what they can take.
    """

    load: tuple[float, ...]
    paid: tuple[int, ...]
    ready: tuple[int, ...]
    over: tuple[float, ...]

    @property
    def replica_minutes(self) -> int:
        return sum(self.paid)

    @property
    def minutes_over(self) -> int:
        """Minutes in which somebody had to wait or was sent away."""
        return sum(excess > 0 for excess in self.over)


# What a policy sees: minute, load, replicas that are ready, all replicas → the replicas it wants.
Policy = Callable[[int, float, int, int], int]


def scale(load: Sequence[float], capacity: float, delay: int, ready: int, policy: Policy) -> Scaled:
    """Follow a policy through a load, in requests per minute; a replica takes `capacity` of them.

    At the start of a minute the policy says how many replicas it wants. A new one serves `delay` minutes
    later and is paid from now on; of those that are too many, the newest go first. `ready` are there at
    minute 0. What is beyond the capacity is not kept for the next minute.
    """
    since = [-delay] * ready  # when each replica was ordered
    paid, serving, over = [], [], []
    for minute, now in enumerate(load):
        there = sum(minute - ordered >= delay for ordered in since)
        wanted = policy(minute, now, there, len(since))
        since = since[:wanted] + [minute] * (wanted - len(since))
        there = sum(minute - ordered >= delay for ordered in since)
        paid.append(len(since))
        serving.append(there)
        over.append(max(0.0, now - there * capacity))
    return Scaled(tuple(load), tuple(paid), tuple(serving), tuple(over))


def desired(replicas: int, metric: float, target: float, tolerance: float = 0.1) -> int:
    """Replicas that Kubernetes' HorizontalPodAutoscaler asks for: ⌈replicas × metric ÷ target⌉.

    Within the tolerance of the target nothing changes ("Horizontal Pod Autoscaling", kubernetes.io).
    """
    ratio = metric / target
    return replicas if abs(ratio - 1) <= tolerance else ceil(replicas * ratio - 1e-9)


def autoscaler(
    metric: Callable[[float, int], float], target: float, *, window: int = 5, least: int = 1, most: int = 100
) -> Policy:
    """A HorizontalPodAutoscaler that looks every minute at ``metric(load, ready)``, a mean over replicas.

    It goes up at once, and down to the highest of what it wanted in the last `window` minutes, which is how
    the autoscaler steadies itself by default (300 s). The metric is of the minute before. Good for one run.
    """
    before: list[float] = []
    wanted: deque[int] = deque(maxlen=window)

    def policy(minute: int, load: float, ready: int, replicas: int) -> int:
        seen = before[-1] if before else load
        before.append(load)
        value = metric(seen, ready)
        asked = desired(ready, value, target)
        if value > target or not ready:
            asked = max(asked, replicas)  # what still starts counts as idle, and is not sent away for that
        wanted.append(min(most, max(least, asked)))
        return max(wanted)

    return policy


# ---------------------------------------------------------------- one GPU for several


def shared_latency(how: str, neighbours: int, work: float, width: float, quantum: float = 2.0) -> float:
    """Milliseconds that a request takes beside neighbours that always have work of the same kind.

    A request needs `work` ms on a GPU of its own, where it fills the share `width` of the SMs. Modelled:
    ``time-slicing`` gives the whole GPU to one process after the other, `quantum` ms each; ``MPS`` lets all
    run side by side and shares out the SMs evenly once they are too few; ``MIG 3g`` has 3 of 7 slices for
    itself. Bandwidth, caches and the cost of switching are left out. Raises ValueError for another way.
    """
    match how:
        case "time-slicing":
            turns = ceil(work / quantum - 1e-9)
            return work + turns * neighbours * quantum  # the neighbours had their turn first: the worst case
        case "MPS":
            return work * max(1.0, width * (neighbours + 1))
        case "MIG 3g":
            return work * max(1.0, width / (3 / 7))
    raise ValueError(f"{how!r} is no way to share a GPU that is modelled here")
