"""Expected answers of lab 20 B; plans and manifests are gone through, and what plans cost is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_20_serving.cluster import ISLAND
from gpulab.simulator.hardware import MIG_PROFILES
from gpulab.subjects.serving import cluster, manifests


def _whole(value: Any, below: int | None, what: str) -> int:
    if type(value) is not int or value < 0 or (below is not None and value >= below):
        limit = f"from 0 to {below - 1}" if below is not None else "and not negative"
        raise WrongAnswer(f"{what} is {value!r}; it must be a whole number {limit}.")
    return value


def _as_many(answer: Any, count: int, what: str, of: str) -> Sequence[Any]:
    if not isinstance(answer, list) or len(answer) != count:
        got = f"{len(answer)} {what}" if isinstance(answer, list) else f"a {type(answer).__name__}"
        raise WrongAnswer(f"it is {got} for {count} {of}; return a list with one for each.")
    return answer


# ---------------------------------------------------------------- MIG

BY_FREEDOM = ("7g.80gb", "4g.40gb", "3g.40gb", "2g.20gb", "1g.20gb", "1g.10gb")


def least_gpus(requests: Sequence[str]) -> int:
    """The fewest GPUs of any plan: the smallest number that suffices.

    On a given number of GPUs, large first and each at the last free start finds a plan if there is one.
    """
    order = sorted(requests, key=BY_FREEDOM.index)
    return next(gpus for gpus in range(len(order) + 1) if _suffice(gpus, order))


def _suffice(gpus: int, order: Sequence[str]) -> bool:
    free = [set(range(8)) for _ in range(gpus)]
    for name in order:
        profile = MIG_PROFILES[name]
        places = (
            (slices, set(range(start, start + int(profile.memory))))
            for start in reversed(profile.starts)
            for slices in free
        )
        found = next(((slices, taken) for slices, taken in places if taken <= slices), None)
        if found is None:
            return False
        found[0].difference_update(found[1])
    return True


def mig(plan: Any, requests: Sequence[str]) -> dict[str, float]:
    """Lays every instance onto its GPU, slice by slice."""
    owner: dict[tuple[int, int], int] = {}
    for number, (place, name) in enumerate(
        zip(_as_many(plan, len(requests), "places", "requests"), requests, strict=True)
    ):
        if not isinstance(place, list) or len(place) != 2:
            raise WrongAnswer(
                f"the place of request {number} is {place!r}; it must be [GPU, first memory slice]."
            )
        gpu = _whole(place[0], len(requests), f"the GPU of request {number}")
        start, profile = place[1], MIG_PROFILES[name]
        if type(start) is not int or start not in profile.starts:
            raise WrongAnswer(
                f"request {number} is a {name}, which cannot start at slice {start!r}. Its possible "
                f"starts are: {', '.join(map(str, profile.starts))}."
            )
        for slice_ in range(start, start + int(profile.memory)):
            other = owner.setdefault((gpu, slice_), number)
            if other != number:
                raise WrongAnswer(
                    f"memory slice {slice_} of GPU {gpu} belongs to request {other}, a {requests[other]}, "
                    f"and request {number}, a {name} that starts at {start}, needs it too."
                )
    return {"surplus": len({gpu for gpu, _ in owner}) - least_gpus(requests)}


# ---------------------------------------------------------------- packing


def least_nodes(jobs: Sequence[Sequence[int]], capacity: int) -> int:
    """The fewest nodes for jobs of lab 20's kinds: first fit by the larger of both shares."""

    def share(job: Sequence[int]) -> Fraction:
        gpus, memory = job
        return max(Fraction(gpus, ISLAND), Fraction(gpus * memory, capacity))

    whole = sum(gpus > ISLAND for gpus, _ in jobs)
    islands: list[list[int]] = []  # GPUs and memory that are left
    for gpus, memory in sorted((j for j in jobs if j[0] <= ISLAND), key=share, reverse=True):
        room = next((i for i in islands if i[0] >= gpus and i[1] >= gpus * memory), None)
        if room is None:
            islands.append(room := [ISLAND, capacity])
        room[0] -= gpus
        room[1] -= gpus * memory
    return whole + -(-len(islands) // 2)


def pack(plan: Any, jobs: Sequence[Sequence[int]], capacity: int) -> dict[str, float]:
    """Puts each job on its GPUs; counts nodes and jobs that lie over two islands without need."""
    owner: dict[tuple[int, int], int] = {}
    used: Counter[tuple[int, int]] = Counter()
    cut = 0
    for number, (places, (gpus, memory)) in enumerate(
        zip(_as_many(plan, len(jobs), "places", "jobs"), jobs, strict=True)
    ):
        if not isinstance(places, list) or len(places) != gpus:
            raise WrongAnswer(
                f"job {number} gets {places!r}; it needs a list of {gpus} GPUs, each [node, GPU]."
            )
        for place in places:
            if not isinstance(place, list) or len(place) != 2:
                raise WrongAnswer(f"job {number} gets {place!r}; a GPU is [node, GPU], with GPU from 0 to 7.")
            node = _whole(place[0], len(jobs), f"a node of job {number}")
            gpu = _whole(place[1], 2 * ISLAND, f"a GPU of job {number}")
            other = owner.setdefault((node, gpu), number)
            if other != number or places.count(place) > 1:
                raise WrongAnswer(f"GPU {gpu} of node {node} is given to both job {other} and job {number}.")
            island = (node, gpu // ISLAND)
            used[island] += memory
            if used[island] > capacity:
                raise WrongAnswer(
                    f"island {island[1]} of node {node} has {capacity} GB of host memory, and with job "
                    f"{number} its GPUs need {used[island]} GB."
                )
        if len({node for node, _ in places}) > 1:
            raise WrongAnswer(f"job {number} is on more than one node; a pod cannot span nodes.")
        cut += gpus <= ISLAND and len({gpu // ISLAND for _, gpu in places}) > 1
    return {
        "cut jobs": cut,
        "surplus": len({node for node, _ in owner}) - least_nodes(jobs, capacity),
    }


# ---------------------------------------------------------------- gangs


def in_turn(jobs: Sequence[tuple[int, int, int]], gpus: int) -> list[int]:
    """When jobs (arrival, GPUs, duration), in order of arrival, begin if none may pass another."""
    starts: list[int] = []
    at = 0
    for arrival, wanted, duration in jobs:
        at = _first_room(jobs, starts, gpus, max(at, arrival), wanted, duration)
        starts.append(at)
    return starts


def backfilled(jobs: Sequence[tuple[int, int, int]], gpus: int) -> list[int]:
    """When they begin if each takes the first gap that all before it leave: conservative backfilling."""
    starts: list[int] = []
    for arrival, wanted, duration in jobs:
        starts.append(_first_room(jobs, starts, gpus, arrival, wanted, duration))
    return starts


def in_use(jobs: Sequence[tuple[int, int, int]], starts: Sequence[int], at: int) -> int:
    """GPUs that the jobs with a start hold at a time."""
    placed = zip(jobs, starts, strict=False)
    return sum(wanted for (_, wanted, duration), start in placed if start <= at < start + duration)


def _first_room(
    jobs: Sequence[tuple[int, int, int]],
    starts: Sequence[int],
    gpus: int,
    earliest: int,
    wanted: int,
    duration: int,
) -> int:
    """The first time from `earliest` on at which that many GPUs stay free for that long."""
    placed = list(zip(jobs, starts, strict=False))
    ends = {start + length for (_, _, length), start in placed}
    for at in sorted({earliest, *(end for end in ends if end > earliest)}):
        inside = [at, *(start for start in starts if at < start < at + duration)]
        if all(in_use(jobs, starts, moment) + wanted <= gpus for moment in inside):
            return at
    raise ValueError(f"{wanted} GPUs are wanted, and there are {gpus}")


def gang(starts: Any, jobs: Sequence[tuple[int, int, int]], gpus: int) -> dict[str, float]:
    """Follows the plan in time. Waiting times are added up and compared with conservative backfilling's."""
    _as_many(starts, len(jobs), "starts", "jobs")
    turn = in_turn(jobs, gpus)
    for number, (start, (arrival, _, _)) in enumerate(zip(starts, jobs, strict=True)):
        _whole(start, None, f"the start of job {number}")
        if start < arrival:
            raise WrongAnswer(f"job {number} begins at {start}, but arrives only at {arrival}.")
    for moment in sorted(set(starts)):
        if (used := in_use(jobs, starts, moment)) > gpus:
            there = [n for n, s in enumerate(starts) if s <= moment < s + jobs[n][2]]
            raise WrongAnswer(
                f"at {moment} the jobs {', '.join(map(str, there))} hold {used} GPUs, but there are {gpus}."
            )
    for number, (start, latest) in enumerate(zip(starts, turn, strict=True)):
        if start > latest:
            raise WrongAnswer(
                f"job {number} begins at {start}; if nobody had passed it, it would have begun at {latest}. "
                "Passing must not delay a job in front."
            )
    waited, good = (
        sum(start - job[0] for start, job in zip(plan, jobs, strict=True))
        for plan in (starts, backfilled(jobs, gpus))
    )
    return {"waiting": round((waited + 1) / (good + 1), 4)}


# ---------------------------------------------------------------- fairness


def fair(capacity: dict[str, int], tenants: Sequence[dict[str, Any]]) -> list[list[int]]:
    """Progressive filling by weighted dominant shares (A. Ghodsi et al., 2011), task by task."""
    left = dict(capacity)
    tasks = [0] * len(tenants)
    out = [False] * len(tenants)

    def share(i: int) -> Fraction:
        task = tenants[i]["task"]
        most = max(Fraction(tasks[i] * need, capacity[resource]) for resource, need in task.items())
        return most / int(tenants[i]["weight"])

    while True:
        want = [
            i
            for i, tenant in enumerate(tenants)
            if not out[i] and tasks[i] < tenant["running"] + tenant["waiting"]
        ]
        if not want:
            break
        i = min(want, key=lambda i: (share(i), i))
        if all(need <= left[resource] for resource, need in tenants[i]["task"].items()):
            tasks[i] += 1
            for resource, need in tenants[i]["task"].items():
                left[resource] -= need
        else:
            out[i] = True
    return [[n, max(0, tenant["running"] - n)] for n, tenant in zip(tasks, tenants, strict=True)]


# ---------------------------------------------------------------- replicas


def autoscale(plan: Any, load: Sequence[int], capacity: int, delay: int, ready: int) -> dict[str, float]:
    """Runs the plan through the load; compares what is paid with the least that serves every minute."""
    _as_many(plan, len(load), "numbers", "minutes")
    for minute, wanted in enumerate(plan):
        _whole(wanted, 1001, f"the number of replicas in minute {minute}")
    found = cluster.scale(load, capacity, delay, ready, lambda minute, *_: plan[minute])
    need = [-(-now // capacity) for now in load]
    least = sum(max(need[t : t + delay + 1]) for t in range(len(load)))
    # Less than the least is possible where minutes are over; it is no merit then.
    return {"minutes over": found.minutes_over, "surplus": max(0, found.replica_minutes - least)}


# ---------------------------------------------------------------- manifests

GPU = "nvidia.com/gpu"


def manifest(text: Any, service: dict[str, Any]) -> dict[str, float]:
    """Holds the text to Kubernetes' schema, then to what this service needs; the first fault is told."""
    try:
        found = manifests.read(text)
        manifests.hold_to_schema(found, service["kind"])
    except manifests.BadManifest as bad:
        said = str(bad)
        raise WrongAnswer(said if said.endswith("?") else f"{said}.") from None
    pod: tuple[str | int, ...] = ("spec", "template", "spec")
    _field(found, ("metadata", "name"), service["name"], "the name that is asked for")
    containers = found.at(*pod, "containers") or []
    if len(containers) != 1:
        raise WrongAnswer(
            f"{found.where(*pod, 'containers')} has {len(containers)} containers; one is needed."
        )
    box = (*pod, "containers", 0)
    image = f"{service['image']}:{service['version']}"
    _field(found, (*box, "image"), image, "a fixed version: `latest` and no tag are whatever was pushed last")
    _resources(found, box, service)
    _place(found, pod, service)
    _shared_memory(found, pod, box, service)
    if service["kind"] == "Job":
        for field in ("completions", "parallelism"):
            _field(found, ("spec", field), service["pods"], "the number of pods")
        _field(
            found,
            (*pod, "restartPolicy"),
            ("Never", "OnFailure"),
            "the default is Always, which Kubernetes refuses for a Job",
        )
    else:
        _deployment(found, box, service)
    return {"right": 1}


def _field(found: manifests.Manifest, place: tuple[str | int, ...], wanted: Any, why: str) -> None:
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    if (got := found.at(*place)) not in wanted:
        said = "is missing" if got is None else f"is {got!r}"
        raise WrongAnswer(
            f"{found.where(*place)} {said}; it must be {' or '.join(map(repr, wanted))}: {why}."
        )


def _amount(found: manifests.Manifest, place: tuple[str | int, ...]) -> Fraction | None:
    value = found.at(*place)
    if value is None:
        return None
    try:
        return manifests.quantity(value)
    except ValueError:
        raise WrongAnswer(
            f"{found.where(*place)} is {value!r}, which is not a quantity such as 4 or 16Gi."
        ) from None


def _resources(found: manifests.Manifest, box: tuple[str | int, ...], service: dict[str, Any]) -> None:
    memory = service["memory_gib"] + service["shm_gib"]
    asked = {
        GPU: (service["gpus"], str(service["gpus"]), ""),
        "cpu": (service["cpu"], str(service["cpu"]), ""),
        "memory": (
            memory * 1024**3,
            f"{memory}Gi",
            f": {service['memory_gib']} for the processes and {service['shm_gib']} for /dev/shm, whose files "
            "count as memory of the container",
        ),
    }
    for name, (amount, words, why) in asked.items():
        limit, request = (_amount(found, (*box, "resources", half, name)) for half in ("limits", "requests"))
        if limit is None:
            more = " Kubernetes refuses a request without a limit for it." if name == GPU and request else ""
            raise WrongAnswer(
                f"{found.where(*box, 'resources', 'limits', name)} is missing; it must be {words}{why}.{more}"
            )
        if name == GPU and limit.denominator != 1:
            raise WrongAnswer(
                f"{found.where(*box, 'resources', 'limits', name)} is {float(limit)}: GPUs are counted in "
                "whole numbers. A part of a GPU is another resource, such as nvidia.com/mig-1g.10gb."
            )
        if limit != amount:
            raise WrongAnswer(
                f"{found.where(*box, 'resources', 'limits', name)} is "
                f"{found.at(*box, 'resources', 'limits', name)!r}; it must be {words}{why}."
            )
        if request is not None and request != limit:
            why_equal = (
                "for GPUs Kubernetes allows nothing else"
                if name == GPU
                else "so that the pod is Guaranteed, and the last to be evicted"
            )
            raise WrongAnswer(
                f"{found.where(*box, 'resources', 'requests', name)} differs from the limit; leave it out or "
                f"make both equal, {why_equal}."
            )


def _place(found: manifests.Manifest, pod: tuple[str | int, ...], service: dict[str, Any]) -> None:
    label = "nvidia.com/gpu.product"
    _field(found, (*pod, "nodeSelector", label), service["product"], "other nodes have other GPUs")
    tolerations = found.at(*pod, "tolerations") or []
    for index, toleration in enumerate(tolerations):
        if not toleration.get("key"):
            raise WrongAnswer(
                f"{found.where(*pod, 'tolerations', index)} names no key, so it tolerates every taint, that "
                "of a node in maintenance as well; name the key of the taint that you mean."
            )
    for toleration in tolerations:
        value = toleration.get("operator") == "Exists" or toleration.get("value") == "present"
        effect = toleration.get("effect") or "NoSchedule"
        if toleration["key"] == GPU and value and effect == "NoSchedule":
            return
    raise WrongAnswer(
        f"{found.where(*pod, 'tolerations')} has nothing that tolerates {GPU}=present:NoSchedule: the pod "
        "stays Pending, because the nodes with GPUs have this taint."
    )


def _shared_memory(
    found: manifests.Manifest, pod: tuple[str | int, ...], box: tuple[str | int, ...], service: dict[str, Any]
) -> None:
    mounts = found.at(*box, "volumeMounts") or []
    name = next((m["name"] for m in mounts if m.get("mountPath") == "/dev/shm"), None)
    if name is None:
        raise WrongAnswer(
            f"{found.where(*box, 'volumeMounts')} mounts nothing at /dev/shm: the container has the default "
            "of 64 MB, and processes that exchange tensors through it stop."
        )
    volumes = found.at(*pod, "volumes") or []
    index = next((i for i, volume in enumerate(volumes) if volume.get("name") == name), None)
    if index is None:
        raise WrongAnswer(f"{found.where(*pod, 'volumes')} has no volume `{name}`, which is mounted.")
    place = (*pod, "volumes", index, "emptyDir")
    _field(found, (*place, "medium"), "Memory", "without it the folder lies on the node's disk")
    if _amount(found, (*place, "sizeLimit")) != service["shm_gib"] * 1024**3:
        raise WrongAnswer(f"{found.where(*place, 'sizeLimit')} must be {service['shm_gib']}Gi.")


def _deployment(found: manifests.Manifest, box: tuple[str | int, ...], service: dict[str, Any]) -> None:
    _field(found, ("spec", "replicas"), service["pods"], "the number of pods")
    wanted = found.at("spec", "selector", "matchLabels") or {}
    labels = found.at("spec", "template", "metadata", "labels") or {}
    if not wanted or any(labels.get(key) != value for key, value in wanted.items()):
        raise WrongAnswer(
            f"{found.where('spec', 'selector', 'matchLabels')} must be among the labels of the template: the "
            "Deployment would not find its own pods, and Kubernetes refuses it."
        )
    if found.at("spec", "strategy", "type") != "Recreate":
        surge = ("spec", "strategy", "rollingUpdate", "maxSurge")
        _field(
            found,
            surge,
            (0, "0%", "0"),
            "the default starts a new pod first, and a full cluster has no GPU for it",
        )
        spare = found.at("spec", "strategy", "rollingUpdate", "maxUnavailable")
        if spare in (0, "0%", "0"):
            raise WrongAnswer(
                f"{found.where('spec', 'strategy', 'rollingUpdate', 'maxUnavailable')} is 0 like maxSurge: "
                "no pod may be added, and none removed."
            )
    for probe in ("startupProbe", "readinessProbe"):
        _field(
            found, (*box, probe, "httpGet", "path"), "/health", "the service answers there when it is ready"
        )
        _port(found, box, probe, service["port"])
    usual = {"initialDelaySeconds": 0, "periodSeconds": 10, "failureThreshold": 3}
    start = usual | {k: v for k, v in found.at(*box, "startupProbe").items() if v is not None}
    seconds = start["initialDelaySeconds"] + start["periodSeconds"] * start["failureThreshold"]
    needed = service["load_seconds"]
    if not needed <= seconds <= 2 * needed:
        raise WrongAnswer(
            f"{found.where(*box, 'startupProbe')} gives the service {start['initialDelaySeconds']} + "
            f"{start['periodSeconds']} · {start['failureThreshold']} = {seconds} s to start, but it "
            f"loads its weights for {needed} s. Allow {needed} to {2 * needed} s: with less it is killed "
            "while it loads, and with more a service that hangs is noticed too late."
        )


def _port(found: manifests.Manifest, box: tuple[str | int, ...], probe: str, port: int) -> None:
    """A probe names the port by number, or by the name that the container gives it."""
    names = {
        entry.get("name"): entry.get("containerPort")
        for entry in found.at(*box, "ports") or []
        if entry.get("name")
    }
    got = found.at(*box, probe, "httpGet", "port")
    if names.get(got, got) != port:
        raise WrongAnswer(
            f"{found.where(*box, probe, 'httpGet', 'port')} is {got!r}; the service listens at {port}."
        )


REFERENCES: dict[str, Callable[..., Any]] = {
    "cluster.mig": mig,
    "cluster.pack": pack,
    "cluster.gang": gang,
    "cluster.fair": fair,
    "cluster.autoscale": autoscale,
    "cluster.manifest": manifest,
}
