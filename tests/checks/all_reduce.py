"""A toy exercise that several ranks compute together, and answers to it: right, naive, wrong, stuck."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from gpulab.checks import Array, Budget, Case, Exercise
from gpulab.checks.evidence import Communication

NAME = "toy.all_reduce"
ALL_REDUCE = Exercise(
    name=NAME,
    lab="99",
    correct_points=2.0,
    evidence=Communication(
        arguments=lambda s: (
            Array("x", (int(s["n"]),), fill="integers:-2097151:2097152"),
            Array("out", (int(s["n"]),), role="out"),
        ),
    ),
    cases=(
        Case("2 ranks × 6", {"ranks": 2, "n": 6}),
        Case("4 ranks × 1023", {"ranks": 4, "n": 1023}),
    ),
    budgets=(
        Budget(
            "busiest sender",
            lambda s: 8 * -(-s["n"] // s["ranks"]) * (s["ranks"] - 1),
            1.0,
            "busiest sender",
            naive=lambda s: 4 * s["n"] * (s["ranks"] - 1),
            unit="B",
            advice="It sends {times} × as much. Could others take some of that?",
        ),
        Budget("steps", lambda s: 2 * (s["ranks"] - 1), 1.0, "steps", unit="steps"),
    ),
)


def expected(inputs: Any, sizes: Any) -> dict[str, np.ndarray]:
    return {"out": np.broadcast_to(inputs["x"].sum(0), inputs["x"].shape)}


def ring(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    out = x.clone()
    parts = out.tensor_split(size)

    def swap(mine, theirs):
        sending = dist.isend(parts[mine % size], (rank + 1) % size)
        came = torch.empty_like(parts[theirs % size])
        dist.recv(came, (rank - 1) % size)
        sending.wait()
        return came

    for step in range(size - 1):
        parts[(rank - step - 1) % size].add_(swap(rank - step, rank - step - 1))
    for step in range(size - 1):
        parts[(rank - step) % size].copy_(swap(rank - step + 1, rank - step))
    return out


def naive(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        total = x.clone()
        for other in range(1, size):
            came = torch.empty_like(x)
            dist.recv(came, other)
            total += came
        for other in range(1, size):
            dist.send(total, other)
        return total
    dist.send(x, 0)
    total = torch.empty_like(x)
    dist.recv(total, 0)
    return total


def pairwise(x):
    operations, came = [], [torch.empty_like(x) for _ in range(dist.get_world_size())]
    for other in range(dist.get_world_size()):
        if other != dist.get_rank():
            operations.append(dist.P2POp(dist.isend, x, other))
            operations.append(dist.P2POp(dist.irecv, came[other], other))
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    came[dist.get_rank()] = x
    return sum(came)


def library(x):
    total = x.clone()
    dist.all_reduce(total)
    return total


def forgets_its_own(x):
    return ring(x) - x


def counts_its_own_twice(x):
    return ring(x) + x


def never_waits(x):
    """Right by the numbers, and with real messages it may end before they are out."""
    size = dist.get_world_size()
    total, came = x.clone(), torch.empty_like(x)
    for step in range(1, size):
        dist.isend(x, (dist.get_rank() + step) % size)
        dist.recv(came, (dist.get_rank() - step) % size)
        total += came
    return total


def waits_late(x):
    """Adds to what is still on its way."""
    total, came = x.clone(), torch.empty_like(x)
    sending = dist.isend(total, 1 - dist.get_rank())
    dist.recv(came, 1 - dist.get_rank())
    total += came
    sending.wait()
    return total


def writes_where_it_receives(x):
    came = torch.zeros_like(x)
    coming = dist.irecv(came, 1 - dist.get_rank())
    came += x
    dist.send(x, 1 - dist.get_rank())
    coming.wait()
    return x + came


def never_waits_for_the_library(x):
    total = x.clone()
    dist.all_reduce(total, async_op=True)
    return total


def in_place(x):
    return x.copy_(ring(x))


def off_by_one(x):
    total = ring(x)
    if dist.get_rank() == 1:
        total[3:] += 1
    return total


def all_send_first(x):
    dist.send(x, (dist.get_rank() + 1) % dist.get_world_size())
    dist.recv(x, (dist.get_rank() - 1) % dist.get_world_size())
    return x


def other_size(x):
    if dist.get_rank() == 0:
        dist.send(x[1:], 1)
    elif dist.get_rank() == 1:
        dist.recv(x, 0)
    return x


def never_taken(x):
    if dist.get_rank() == 0:
        dist.isend(x, 1)
    return x


def fails(x):
    if dist.get_rank() == 1:
        return x[5000]
    return ring(x)


def dies(x):
    if dist.get_rank() == 1:
        os._exit(0)
    return ring(x)


def whoever_comes(x):
    dist.recv(x)
    return x


def returns_nothing(x):
    ring(x)


def a_list(x):
    return ring(x).tolist()


def other_type(x):
    return ring(x).double()


def in_a_thread(x):
    """All wait for something that another thread of theirs sends much later: that is no deadlock."""

    def slow():
        time.sleep(0.8)
        dist.send(x, 1 - dist.get_rank())

    thread = threading.Thread(target=slow)
    thread.start()
    came = torch.empty_like(x)
    dist.recv(came, 1 - dist.get_rank())
    thread.join()
    return x + came


def empty(x):
    raise NotImplementedError()
