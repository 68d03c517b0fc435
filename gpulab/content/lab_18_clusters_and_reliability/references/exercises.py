"""Expected answers of lab 18's exercises; plans are carried out, and what they cost is counted."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, exp, inf, isfinite
from typing import Any

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_18_clusters_and_reliability.exercises import TENSOR_SIZES, serve_needs, train_needs


def max_flow(links: Sequence[tuple[str, str, int]], source: str, sink: str) -> int:
    """Shortest ways with something left, one after the other (J. Edmonds and R. Karp, 1972)."""
    left: dict[str, dict[str, int]] = {source: {}, sink: {}}
    for a, b, rate in links:
        there = left.setdefault(a, {})
        there[b] = there.get(b, 0) + rate
        left.setdefault(b, {}).setdefault(a, 0)  # what is sent may be sent back
    total = 0
    while True:
        before: dict[str, str] = {source: source}
        queue = deque([source])
        while queue and sink not in before:
            here = queue.popleft()
            for node, rest in left[here].items():
                if rest and node not in before:
                    before[node] = here
                    queue.append(node)
        if sink not in before:
            return total
        way = [sink]
        while way[-1] != source:
            way.append(before[way[-1]])
        pairs = list(zip(way[1:], way, strict=False))
        most = min(left[a][b] for a, b in pairs)
        for a, b in pairs:
            left[a][b] -= most
            left[b][a] += most
        total += most


# ---------------------------------------------------------------- plans


def _whole(value: Any, below: int, what: str) -> int:
    if type(value) is not int or not 0 <= value < below:
        raise WrongAnswer(f"{what} is {value!r}, but it must be a whole number from 0 to {below - 1}.")
    return value


def switches(hosts: int, ports: int) -> list[int] | None:
    half = ports // 2
    shares = [s for s in range(1, half + 1) if half % s == 0]  # spines that get equal shares of the cables

    def above(units: int) -> int:
        """Spines that `units` leaves, or pods, share."""
        return next(s for s in shares if 2 * s >= units)

    if hosts <= ports:
        return [1, 1]
    leaves, pods = ceil(hosts / half), ceil(hosts / half**2)
    if leaves <= ports:
        return [2, leaves + above(leaves)]
    return [3, pods * ports + half * above(pods)] if pods <= ports else None


def all_reduce(steps: Sequence[Any], nodes: int, per_node: int) -> dict[str, float]:
    """Carries the messages out. Each chunk of a rank is the set of ranks whose numbers are added up in it."""
    ranks = nodes * per_node
    held = [[1 << rank] * ranks for rank in range(ranks)]
    outside: Counter[int] = Counter()
    for number, step in enumerate(steps):
        arriving: list[tuple[int, int, list[int], list[int], str]] = []
        for message in step:
            if len(message) != 4:
                raise WrongAnswer(
                    f"step {number} has the message {message!r}, but a message is "
                    "[from, to, chunks, 'add' or 'copy']."
                )
            source, target, chunks, how = message
            _whole(source, ranks, f"in step {number} the sender")
            _whole(target, ranks, f"in step {number} the receiver")
            if source == target:
                raise WrongAnswer(f"in step {number} rank {source} sends to itself.")
            if how not in ("add", "copy"):
                raise WrongAnswer(f"in step {number} a message says {how!r}, not 'add' or 'copy'.")
            for chunk in chunks:
                _whole(chunk, ranks, f"in step {number} a chunk")
            if len(set(chunks)) < len(chunks):
                raise WrongAnswer(f"in step {number} rank {source} sends a chunk twice in one message.")
            arriving.append((source, target, list(chunks), [held[source][c] for c in chunks], how))
            if source // per_node != target // per_node:
                outside[source] += len(chunks)
        for role, place in (("sends", 0), ("receives", 1)):
            busiest = Counter(message[place] for message in arriving).most_common(1)
            if busiest and busiest[0][1] > 1:
                raise WrongAnswer(
                    f"in step {number} rank {busiest[0][0]} {role} {busiest[0][1]} messages, but only one "
                    "per step is allowed."
                )
        for source, target, chunks, sums, how in arriving:
            for chunk, got in zip(chunks, sums, strict=True):
                have = held[target][chunk]
                if how == "add" and have & got:
                    twice = (have & got).bit_length() - 1
                    raise WrongAnswer(
                        f"in step {number} rank {target} adds chunk {chunk} from rank {source}, but both "
                        f"sums already contain the numbers of rank {twice}, which would count twice."
                    )
                held[target][chunk] = have | got if how == "add" else got
    complete = (1 << ranks) - 1
    for rank in range(ranks):
        for chunk in range(ranks):
            if held[rank][chunk] != complete:
                missing = next(r for r in range(ranks) if not held[rank][chunk] >> r & 1)
                raise WrongAnswer(
                    f"at the end rank {rank}'s chunk {chunk} lacks the numbers of rank {missing}."
                )
    return {"NIC chunks": max(outside.values(), default=0), "steps": len(steps)}


def spread(choice: Sequence[int], flows: Sequence[tuple[int, int]], spines: int) -> dict[str, float]:
    """Flows on the busiest link, over the least that it can be."""
    if len(choice) != len(flows):
        raise WrongAnswer(f"it has {len(choice)} spine numbers for {len(flows)} flows.")
    links: Counter[tuple[str, int, int]] = Counter()
    ends: Counter[tuple[str, int]] = Counter()
    for number, ((start, stop), spine) in enumerate(zip(flows, choice, strict=True)):
        _whole(spine, spines, f"the spine of flow {number}")
        links["up", start, spine] += 1
        links["down", spine, stop] += 1
        ends["from", start] += 1
        ends["to", stop] += 1
    least = ceil(max(ends.values(), default=0) / spines)
    return {"share": max(links.values(), default=0) / max(1, least)}


# ---------------------------------------------------------------- how many GPUs


def _served(
    model: dict[str, Any],
    memory: float,
    users: int,
    context: int,
    *,
    both: int = 2,
    whole: bool = True,
    cut: bool = False,
    any_number: bool = False,
) -> list[Any]:
    """What `serve` asks for. The options are usual slips: keys alone, no whole heads, a head that is cut."""
    weights = model["parameters"] * model["weight_bits"] / 8
    heads, kv_heads = model["heads"], model["kv_heads"]
    one_head = both * model["layers"] * model["head_dim"] * context * users * model["cache_bytes"]
    for g in TENSOR_SIZES:
        shares = heads % g == 0 and (not whole or kv_heads % g == 0 or g % kv_heads == 0)
        held = kv_heads / g if cut else max(1, kv_heads // g)
        if (shares or any_number) and weights / g + one_head * held <= 0.9 * memory:
            return [weights, kv_heads * one_head, g]
    return [weights, kv_heads * one_head, None]


@usual_slips(
    (
        partial(_served, both=1),
        "The cache is half as large as it must be: there are keys and values.",
    ),
    (
        partial(_served, cut=True),
        "This divides a head among GPUs. With more GPUs than KV heads, each holds a whole head.",
    ),
    (
        partial(_served, whole=False),
        "This number of GPUs neither divides the KV heads nor is a multiple of them.",
    ),
    (
        partial(_served, any_number=True),
        "This number of GPUs does not divide the heads.",
    ),
)
def serve(model: dict[str, Any], memory: float, users: int, context: int) -> list[Any]:
    cache = (
        2 * model["layers"] * model["kv_heads"] * model["head_dim"] * context * model["cache_bytes"] * users
    )
    needs = serve_needs(model, memory, users, context)
    fits = (g for g, needed in needs.items() if needed <= 0.9 * memory)
    return [model["parameters"] * model["weight_bits"] / 8, cache, next(fits, None)]


def _trained(
    model: dict[str, Any], gpu: dict[str, Any], days: float, lost: float, node: int = 0
) -> list[Any]:
    by_memory, by_time = train_needs(model, gpu, days, lost)
    node = node or gpu["per_node"]
    gpus = node * ceil(max(by_memory, by_time) / node)
    return [gpus, "memory" if by_memory > by_time else "time", by_time * days / gpus]


@usual_slips(
    (
        partial(_trained, node=1),
        "These GPUs do not fill whole nodes. Round up to a multiple of `per_node`.",
    ),
    (
        lambda model, gpu, days, lost: _trained(model, gpu | {"utilisation": 1.0}, days, 0.0),
        "This plans with the peak. Only the share `utilisation` of it becomes work, and `lost` is lost.",
    ),
    (
        lambda model, gpu, days, lost: _trained(model, gpu, days, 0.0),
        "This leaves out the share `lost` of the time.",
    ),
    (
        lambda model, gpu, days, lost: _trained(model | {"active": model["parameters"]}, gpu, days, lost),
        "This counts the work of all parameters. Only the active ones compute for a token.",
    ),
    (
        lambda model, gpu, days, lost: _trained(model | {"parameters": model["active"]}, gpu, days, lost),
        "This holds only the active parameters. The state of all of them must fit.",
    ),
)
def train(model: dict[str, Any], gpu: dict[str, Any], days: float, lost: float) -> list[Any]:
    return _trained(model, gpu, days, lost)


# ---------------------------------------------------------------- reliability


def overhead(interval: float, cost: float, mtbf: float) -> float:
    """Time lost per second of work, on average: Daly's model (2006), failures without memory, no restarts."""
    exponent = (interval + cost) / mtbf
    return inf if exponent > 700 else mtbf * (exp(exponent) - 1) / interval - 1


def interval(answer: float, cost: float, restart: float, mtbf: float) -> dict[str, float]:
    """How much more time is lost than need be, in %; restarts add the same to both and are left out."""
    if isinstance(answer, bool) or not isinstance(answer, int | float) or not isfinite(answer) or answer <= 0:
        raise WrongAnswer("the interval must be a positive number of seconds.")
    low, high = 1e-3 * cost, 10 * mtbf
    for _ in range(200):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if overhead(a, cost, mtbf) < overhead(b, cost, mtbf) else (a, high)
    excess = overhead(answer, cost, mtbf) / overhead(low, cost, mtbf) - 1
    return {"excess": round(min(1e9, 100 * excess), 2)}


def _replayed(
    work: int,
    interval: int,
    cost: int,
    restart: int,
    failures: Sequence[int],
    *,
    last: bool = False,
    saving: bool = False,
    half: bool = False,
    calm: bool = False,
) -> list[int]:
    """What `replay` asks for. The options are usual slips: a save at the end, saving that counts as work,
    a save that counts before it is finished, restarts that no failure meets."""
    clock = saved = redone = 0
    waiting = deque(failures)
    while saved < work:
        stretch = min(interval, work - saved)
        end = clock + stretch + (cost if last or saved + stretch < work else 0)
        while calm and waiting and waiting[0] < clock:
            waiting.popleft()
        if waiting and waiting[0] < end:
            worked = max(0, waiting[0] - clock)
            if half and worked >= stretch:
                saved += stretch
            else:
                redone += worked if saving else min(stretch, worked)
            clock = waiting.popleft() + restart
            while not calm and waiting and waiting[0] < clock:
                clock = waiting.popleft() + restart
        else:
            clock, saved = end, saved + stretch
    return [clock, redone]


@usual_slips(
    (partial(_replayed, last=True), "This saves at the end as well, when all work is done."),
    (partial(_replayed, saving=True), "The lost seconds contain time for saving. Only work counts as lost."),
    (partial(_replayed, half=True), "This keeps work whose save a failure interrupted. It must be lost."),
    (partial(_replayed, calm=True), "A failure during a restart makes the restart begin again."),
)
def replay(work: int, interval: int, cost: int, restart: int, failures: Sequence[int]) -> list[int]:
    return _replayed(work, interval, cost, restart, failures)


_STEP = re.compile(r"step-(\d+)")
_FOLDER = re.compile(r"step-(\d+)(\.tmp)?")


def _newest(names: dict[str, int]) -> tuple[int, str] | None:
    """What the loader takes: the folder `step-N` with the largest N."""
    steps = {match[1]: name for name in {n.split("/")[0] for n in names} if (match := _STEP.fullmatch(name))}
    return max(((int(n), name) for n, name in steps.items()), default=None)


def save(
    plan: Sequence[Sequence[str]], step: int, there: Sequence[str], shards: int, keep: int
) -> dict[str, float]:
    """Carries the operations out, and stops the machine after each of them, in the worst way.

    Of what happened to names, any first part that holds all before the last synchronisation of ``.`` is on
    the disk (a journal keeps their order); of contents, what was synchronised after it was last written.
    """
    new = f"step-{step}"
    # What is left of the same step is of more ranks: two files more than the new save writes.
    files = {folder: shards + 2 * (folder == f"{new}.tmp") for folder in there}
    held = [f"{folder}/{i}" for folder in there for i in range(files[folder])]
    names = {name: number for number, name in enumerate(held)}
    durable = frozenset(names.values())
    old = _newest(names)
    moments = [(dict(names), durable, 0)]  # names, contents on the disk, first part that is surely there
    most = len({name.split("/")[0] for name in names})
    synced, fresh = 0, len(names)
    for number, operation in enumerate(plan):
        floor = moments[-1][2]
        match list(operation):
            case ["write", str(path)]:
                folder, slash, shard = path.partition("/")
                if not _FOLDER.fullmatch(folder) or not slash or shard not in map(str, range(shards)):
                    raise WrongAnswer(
                        f"operation {number} writes {path!r}, but files are called step-N/I or step-N.tmp/I, "
                        f"with I from 0 to {shards - 1}."
                    )
                if path not in names:
                    names[path], fresh = fresh, fresh + 1
                durable -= {names[path]}
            case ["sync", "."]:
                floor, synced = number + 1, synced + 1
            case ["sync", str(path)]:
                if path not in names:
                    raise WrongAnswer(f"operation {number} synchronises {path!r}, but there is no such file.")
                durable |= {names[path]}
                synced += 1
            case ["rename", str(a), str(b)]:
                if not _FOLDER.fullmatch(b):
                    raise WrongAnswer(
                        f"operation {number} renames to {b!r}, but folders are called step-N or step-N.tmp."
                    )
                if any(name.startswith(f"{b}/") for name in names):
                    raise WrongAnswer(f"operation {number} renames to {b!r}, but that exists already.")
                moved = {name: at for name, at in names.items() if name.startswith(f"{a}/")}
                if not moved:
                    raise WrongAnswer(f"operation {number} renames {a!r}, but there is no such folder.")
                names = {name: at for name, at in names.items() if name not in moved}
                names |= {f"{b}/{name.split('/')[1]}": at for name, at in moved.items()}
            case ["delete", str(path)]:
                rest = {n: at for n, at in names.items() if n != path and not n.startswith(f"{path}/")}
                if len(rest) == len(names):
                    raise WrongAnswer(f"operation {number} deletes {path!r}, but it does not exist.")
                names = rest
            case _:
                raise WrongAnswer(
                    f"operation {number} is {list(operation)!r}, but the operations are ['write', file], "
                    "['sync', file or '.'], ['rename', folder, folder] and ['delete', folder or file]."
                )
        moments.append((dict(names), durable, floor))
        most = max(most, len({name.split("/")[0] for name in names}))
    wanted = _kept(step, there, keep)
    kept = {name.split("/")[0] for name in names}
    if missing := [name for name in wanted if name not in kept]:
        raise WrongAnswer(
            f"in the end `{missing[0]}` is missing. With keep = {keep}, these should be there: "
            f"{', '.join(wanted)}."
        )
    _survives(moments, plan, old, step, shards)
    if surplus := sorted(kept - {*wanted}):
        raise WrongAnswer(
            f"in the end `{surplus[0]}` is still there. With keep = {keep}, only these should be: "
            f"{', '.join(wanted)}."
        )
    if odd := sorted(n for n in names if n.startswith(f"{new}/") and int(n.split("/")[1]) >= shards):
        raise WrongAnswer(
            f"in the end `{odd[0]}` is there, but a save has only the shards 0 to {shards - 1}. It was in "
            f"`{new}.tmp` at the start, so delete that folder first. A loader that counts files would read "
            "it."
        )
    return {"copies": most, "synchronisations": synced}


def _survives(
    moments: list[Any], plan: Sequence[Sequence[str]], old: tuple[int, str] | None, step: int, shards: int
) -> None:
    for stop, (_, contents, floor) in enumerate(moments):
        last = list(plan[stop - 1]) if stop else None
        when = f"when the machine stops after operation {stop - 1}, {last!r}," if last else "at the start"
        if stop == len(moments) - 1:
            when = "when the machine stops right after your last operation,"
        for there, _, _ in moments[floor : stop + 1]:
            found = _newest(there)
            if found is None and old is None and stop < len(moments) - 1:
                continue
            if found is None:
                raise WrongAnswer(f"{when} there may be no folder `step-N` on the disk that could be loaded.")
            for shard in range(shards):
                if there.get(f"{found[1]}/{shard}") not in contents:
                    raise WrongAnswer(
                        f"{when} the newest folder on the disk may be `{found[1]}`, but its shard {shard} is "
                        "missing or without contents."
                    )
            if old and found[0] < old[0]:
                raise WrongAnswer(
                    f"{when} only `{found[1]}` may be left, although `{old[1]}` was saved before."
                )
            if stop == len(moments) - 1 and found[0] != step:
                raise WrongAnswer(
                    f"{when} the disk may still have only `{found[1]}` and not `step-{step}`, whose name "
                    "may be in memory only. Synchronise the names after the rename."
                )


def _kept(step: int, there: Sequence[str], keep: int) -> list[str]:
    """The folders that a save leaves, the newest first."""
    old = sorted((int(m[1]) for folder in there if (m := _STEP.fullmatch(folder))), reverse=True)
    return [f"step-{n}" for n in [step, *old][:keep]]


def _resharded(
    held: Callable[[int], int], wanted: Callable[[int], int], old: int, new: int, inside: bool = True
) -> list[list[list[int]]]:
    """What new ranks read if old rank r begins at held(r) and new rank r at wanted(r)."""
    plan = []
    for rank in range(new):
        pieces = []
        for shard in range(old):
            a, b = max(wanted(rank), held(shard)), min(wanted(rank + 1), held(shard + 1))
            if a < b:
                first = held(shard) if inside else 0
                pieces.append([shard, a - first, b - first])
        plan.append(pieces)
    return plan


def _begin(elements: int, ranks: int) -> Callable[[int], int]:
    return lambda rank: min(elements, rank * -(-elements // ranks))


@usual_slips(
    (
        lambda n, old, new: _resharded(_begin(n, old), _begin(n, new), old, new, inside=False),
        "These places count in the whole vector. They must count inside the old shard.",
    ),
    (
        lambda n, old, new: _resharded(lambda r: r * n // old, lambda r: r * n // new, old, new),
        "These shards differ by at most one element. Here each has ⌈n/p⌉, and only the last ones have fewer.",
    ),
)
def reshard(elements: int, old: int, new: int) -> list[list[list[int]]]:
    return _resharded(_begin(elements, old), _begin(elements, new), old, new)


REFERENCES: dict[str, Callable[..., Any]] = {
    "cluster.max_flow": max_flow,
    "cluster.switches": switches,
    "cluster.all_reduce": all_reduce,
    "cluster.spread": spread,
    "cluster.serve": serve,
    "cluster.train": train,
    "cluster.interval": interval,
    "cluster.replay": replay,
    "cluster.save": save,
    "cluster.reshard": reshard,
}
