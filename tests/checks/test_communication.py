"""Exercises that several ranks compute together: checked in a notebook's way, with real processes."""

from __future__ import annotations

import dataclasses
import multiprocessing
import sys
import threading
import types
from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

import gpulab  # noqa: E402
from gpulab.checks import Array, Budget, Case, Exercise, Scalar, cases, registry  # noqa: E402
from gpulab.checks.evidence import Communication, communication  # noqa: E402
from gpulab.checks.evidence.communication import NotAResult, results, task, whole  # noqa: E402
from gpulab.subjects.distributed.collectives import NAMES  # noqa: E402
from tests.checks import all_reduce  # noqa: E402
from tests.checks.all_reduce import ALL_REDUCE, NAME  # noqa: E402


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    registry.add(ALL_REDUCE, all_reduce.expected)
    yield
    registry.remove(NAME)


def text(verdict: object) -> str:
    return " ".join(str(verdict).split())


def test_a_ring_passes_within_its_budgets() -> None:
    verdict = gpulab.check(NAME, all_reduce.ring)
    assert verdict.passed, str(verdict)
    assert [part.measured for part in verdict.parts] == [None, 6140, 6]
    assert "PyTorch" in verdict.compiler


def test_gather_and_broadcast_is_right_and_costs_twice_as_much() -> None:
    verdict = gpulab.check(NAME, all_reduce.naive)
    assert [part.points for part in verdict.parts] == [2.0, 0.0, 0.0]
    assert "12,276 B budget 6,144 naive 12,276" in text(verdict)
    assert "Rank 0 sends most: 4,092 B to rank 1, 4,092 B to rank 2, 4,092 B to rank 3" in text(verdict)
    assert "It sends 2 × as much." in text(verdict)


def test_batched_sends_and_receives_count_as_one_step() -> None:
    loose = dataclasses.replace(ALL_REDUCE, budgets=ALL_REDUCE.budgets[1:])
    verdict = gpulab.check(loose, all_reduce.pairwise)
    assert verdict.passed and verdict.parts[1].measured == 1


def test_a_collective_is_used_where_the_exercise_lists_it_and_refused_elsewhere() -> None:
    verdict = gpulab.check(NAME, all_reduce.library)
    assert verdict.points == 0
    assert "calls all_reduce, which this exercise does not allow" in text(verdict)
    assert "dist.all_reduce(total)" in text(verdict)
    allowed = dataclasses.replace(
        ALL_REDUCE,
        evidence=dataclasses.replace(ALL_REDUCE.evidence, calls=frozenset({"all_reduce"})),
        budgets=(*ALL_REDUCE.budgets, Budget("calls of all_reduce", 1, 1.0, "calls", unit="calls")),
    )
    verdict = gpulab.check(allowed, all_reduce.library)
    assert verdict.passed, str(verdict)
    assert [part.measured for part in verdict.parts] == [None, 6140, 6, 1]
    verdict = gpulab.check(allowed, all_reduce.never_waits_for_the_library)
    assert "rank 0 returned while its all_reduce in line " in text(verdict)


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (all_reduce.off_by_one, ["rank 1: `out[3]` is ", "It is wrong on rank 1 of 2"]),
        (all_reduce.forgets_its_own, ["the addend of rank 0 is missing"]),
        (all_reduce.counts_its_own_twice, ["the addend of rank 0 counts twice"]),
        (
            all_reduce.all_send_first,
            [
                "the ranks wait for one another, and none can go on",
                "for rank 1 to receive rank 1 waits in line",
            ],
        ),
        (all_reduce.other_size, ["rank 0 sends 20 bytes to rank 1, which waits for 24"]),
        (all_reduce.never_taken, ["rank 0 sent a message to rank 1, which never took it"]),
        (
            all_reduce.never_waits,
            [
                "rank 0 returned while its isend in line ",
                "was never waited for",
                "dist.isend(x, (dist.get_rank() + step) % size)",
            ],
        ),
        (all_reduce.waits_late, ["the tensor of the isend in line ", "was changed before its wait()"]),
        (all_reduce.writes_where_it_receives, ["the tensor of the irecv in line "]),
        (all_reduce.in_place, ["rank 0: your function changed the input `x`"]),
        (all_reduce.fails, ["rank 1: IndexError in line", "return x[5000]"]),
        (all_reduce.dies, ["rank 1 of 2 ended before it returned anything"]),
        (all_reduce.whoever_comes, ["name the rank"]),
        (
            all_reduce.returns_nothing,
            ["rank 0: your function returns 0 tensors; it should return 1 tensor: `out`"],
        ),
        (all_reduce.a_list, ["it should return 1 tensor"]),
        (all_reduce.other_type, ["rank 0: `out` is 6 float64, should be 6 float32"]),
        (all_reduce.empty, ["`empty` is still empty"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_wrong_is_said_in_words(fn, words) -> None:
    verdict = gpulab.check(NAME, fn)
    assert verdict.points == 0
    assert [each for each in words if each not in text(verdict)] == [], str(verdict)
    assert "Traceback" not in text(verdict)


def test_a_rank_that_is_busy_in_another_thread_is_waited_for() -> None:
    two = dataclasses.replace(ALL_REDUCE, cases=ALL_REDUCE.cases[:1])
    verdict = gpulab.check(two, all_reduce.in_a_thread)
    assert verdict.right, str(verdict)


def test_what_ranks_print_is_shown_with_the_rank(capsys: pytest.CaptureFixture[str]) -> None:
    def prints(x):
        print("sum", int(x.sum()) * 0)
        return all_reduce.ring(x)

    gpulab.check(dataclasses.replace(ALL_REDUCE, cases=ALL_REDUCE.cases[:1]), prints)
    assert {"[rank 0] sum 0", "[rank 1] sum 0"} <= set(capsys.readouterr().out.splitlines())


def test_a_function_that_cannot_be_copied_is_told_of() -> None:
    lock = threading.Lock()

    def locks(x):
        with lock:
            return x

    verdict = gpulab.check(NAME, locks)
    assert verdict.points == 0
    assert "`locks` cannot be copied to the ranks (cannot pickle '_thread.lock' object" in text(verdict)


def test_a_function_of_a_module_that_ranks_do_not_have_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("here_only")
    exec("def away(x):\n    return x", module.__dict__)
    monkeypatch.setitem(sys.modules, "here_only", module)
    verdict = gpulab.check(NAME, module.away)
    assert "rank 0: ModuleNotFoundError: No module named 'here_only'" in text(verdict)


def test_no_process_of_a_check_is_left_behind() -> None:
    before = {process.pid for process in multiprocessing.active_children()}  # of other tests
    for fn in (all_reduce.ring, all_reduce.all_send_first, all_reduce.dies):
        gpulab.check(NAME, fn)
    assert {process.pid for process in multiprocessing.active_children()} <= before


def test_endless_ranks_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(communication, "SECONDS", 2.0)

    def endless(x):
        while dist.get_rank() == 0:
            pass
        return x

    verdict = gpulab.check(NAME, endless)
    assert "after 2 s not all ranks have returned: rank 0 computes rank 1" in text(verdict)


# ---------------------------------------------------------------- all of torch.distributed

STEP = Exercise(
    name="toy.step",
    lab="99",
    correct_points=1.0,
    evidence=Communication(
        arguments=lambda s: (
            Array("x", (2, 5)),
            Array("w", (3, 5), placement="replicated"),
            Array("slope", (3, 5), role="out", placement="replicated"),
        ),
        calls=frozenset(NAMES),
    ),
    cases=(Case("4 ranks", {"ranks": 4}),),
    rtol=1e-5,
    atol=1e-5,
)


def data_parallel(x, w):
    linear = torch.nn.Linear(5, 3, bias=False)
    linear.weight = torch.nn.Parameter(w.clone())
    model = torch.nn.parallel.DistributedDataParallel(linear)
    model(x).sum().backward()
    return linear.weight.grad


def sharded(x, w):
    from torch.distributed.device_mesh import init_device_mesh  # here: a second, when tests are collected
    from torch.distributed.fsdp import fully_shard

    linear = torch.nn.Linear(5, 3, bias=False)
    linear.weight = torch.nn.Parameter(w.clone())
    fully_shard(linear, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    linear(x).sum().backward()
    return linear.weight.grad.full_tensor()


def in_groups(x, w):
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    total = x.sum(0)
    dist.all_reduce(total, group=halves[dist.get_rank() // 2])
    found = [torch.empty_like(total) for _ in range(4)]
    dist.all_gather(found, total)
    return ((found[0] + found[2]) / 4).expand(3, 5)


def by_every_call(x, w):
    rank = dist.get_rank()
    mine = x.sum(0)
    came = [torch.empty(5) for _ in range(4)] if rank == 1 else None
    dist.gather(mine, came, dst=1)
    total = torch.empty(5)
    dist.scatter(total, [sum(came) / 4] * 4 if rank == 1 else None, src=1)
    pairs = torch.empty(8)
    dist.all_to_all_single(pairs, 10.0 * rank + torch.arange(8.0))
    assert pairs.tolist() == [10.0 * r + 2 * rank + i for r in range(4) for i in range(2)]
    found = [torch.empty(2) for _ in range(4)]
    dist.all_to_all(found, list((10.0 * rank + torch.arange(8.0)).split(2)))
    assert torch.equal(torch.cat(found), pairs)
    uneven = torch.empty(4 * (rank + 1), 2)
    dist.all_to_all_single(uneven, torch.full((10, 2), float(rank)), [rank + 1] * 4, [1, 2, 3, 4])
    assert uneven[:, 0].tolist() == [float(r) for r in range(4) for _ in range(rank + 1)]
    two = torch.empty(2)
    dist.reduce_scatter_tensor(two, torch.arange(8.0))
    assert two.tolist() == [8.0 * rank, 8.0 * rank + 4]
    dist.reduce_scatter(two, list(torch.arange(8.0).split(2)))
    assert two.tolist() == [8.0 * rank, 8.0 * rank + 4]
    every = torch.empty(8)
    dist.all_gather_into_tensor(every, two)
    assert every.tolist() == [4.0 * i for i in range(8)]
    dist.reduce(two, 2, op=dist.ReduceOp.MAX)
    assert two.tolist() == [24.0, 28.0] if rank == 2 else [8.0 * rank, 8.0 * rank + 4]
    dist.broadcast(two, 2)
    dist.barrier()
    names = [None] * 4
    dist.all_gather_object(names, f"rank {rank}")
    assert names == ["rank 0", "rank 1", "rank 2", "rank 3"]
    work = dist.all_reduce(two, op=dist.ReduceOp.AVG, async_op=True)
    work.wait()
    assert work.is_completed() and two.tolist() == [24.0, 28.0]
    half = torch.full((), 1.5, dtype=torch.bfloat16)
    dist.all_reduce(half, op=dist.ReduceOp.PRODUCT)
    assert half.item() == 5.0625
    return total.expand(3, 5)


@pytest.mark.parametrize("fn", [data_parallel, sharded, in_groups, by_every_call])
def test_what_torch_distributed_offers_works_through_the_network(fn) -> None:
    registry.add(STEP, lambda x, sizes: {"slope": np.tile(x["x"].sum((0, 1)) / 4, (3, 1))})
    try:
        verdict = gpulab.check("toy.step", fn)
        assert verdict.right, str(verdict)
    finally:
        registry.remove("toy.step")


def counts_as_a_tensor(x, w):
    each = torch.tensor([1, 1, 1, 0])
    dist.all_to_all_single(torch.empty(3), torch.zeros(3), each, each)


def counts_of_another_tensor(x, w):
    dist.all_to_all_single(torch.empty(3), torch.zeros(3), [1, 1, 1, 1], [1, 1, 1, 0])


def counts_that_nobody_expects(x, w):
    rank = dist.get_rank()
    leaving = [1 if to != rank else 0 for to in range(4)]
    dist.all_to_all_single(torch.empty(3), torch.zeros(3), [1, 1, 1, 0], leaving)


def to_itself(x, w):
    dist.isend(x, dist.get_rank())


@pytest.mark.parametrize(
    ("fn", "said"),
    [
        (counts_as_a_tensor, "are lists of whole numbers, not Tensor"),
        (counts_of_another_tensor, "for `output` add up to 4; the tensor has 3"),
        (counts_that_nobody_expects, "rank 0 sends 0 rows to rank 0, which expects 1 from it"),
        (to_itself, "rank 0 sends to itself"),
    ],
)
def test_messages_name_the_numbers_that_do_not_fit(fn, said) -> None:
    registry.add(STEP, lambda x, sizes: {"slope": x["x"].sum((0, 1))})
    try:
        assert said in text(gpulab.check("toy.step", fn))
    finally:
        registry.remove("toy.step")


# ---------------------------------------------------------------- who has what

PLACED = Exercise(
    name="toy.placed",
    lab="99",
    correct_points=1.0,
    evidence=Communication(
        arguments=lambda s: (
            Array("rows", (int(s["n"]), 2), placement="sharded"),
            Array("weights[0]", (2,), placement="replicated", grad=True),
            Array("weights[1]", (3,), placement="replicated"),
            Scalar("factor", 2.0, "float64"),
            Array("seen", (), "int64", "inout", "integers:0:50"),
            Array("sums", (int(s["n"]),), role="out", placement="sharded"),
            Array("weights[0].grad", (2,), role="out"),
        ),
    ),
    cases=(Case("3 ranks × 7", {"ranks": 3, "n": 7}),),
    rtol=1e-5,
    atol=1e-5,
)


def placed(rows, weights, factor, seen):
    seen += len(rows)
    sums = factor * rows @ weights[0]
    sums.sum().backward()
    return sums.detach()


def placed_reference(inputs, sizes):
    rows = np.array_split(inputs["rows"], 3)
    return {
        "sums": 2.0 * inputs["rows"] @ inputs["weights[0]"],
        "seen": inputs["seen"] + [len(r) for r in rows],
        "weights[0].grad": np.stack([2.0 * r.sum(0) for r in rows]),
    }


def test_arrays_are_sharded_replicated_or_each_ranks_own_and_come_back_so() -> None:
    registry.add(PLACED, placed_reference)
    try:
        verdict = gpulab.check("toy.placed", placed)
        assert verdict.passed, str(verdict)

        def without_slopes(rows, weights, factor, seen):
            with torch.no_grad():
                return factor * rows @ weights[0]

        assert "the loss of this rank did not use `weights[0]`" in text(
            gpulab.check("toy.placed", without_slopes)
        )

        def counts_all(rows, weights, factor, seen):
            seen += 7
            sums = factor * rows @ weights[0]
            sums.sum().backward()
            return sums.detach()

        said = text(gpulab.check("toy.placed", counts_all))
        assert "rank 0: `seen` is" in said and "It is wrong on every rank" in said
    finally:
        registry.remove("toy.placed")


def test_a_rank_is_given_its_own_part_and_nothing_else() -> None:
    made = cases.arguments(whole(PLACED), PLACED.cases[0])
    given = task(PLACED, made, 3).given
    values = {a.name: a.value for a in made}
    assert values["rows"].shape == (7, 2) and values["seen"].shape == (3,)
    for rank, (head, payload) in enumerate(given):
        parts = [np.array_split(values["rows"], 3)[rank], values["weights[0]"], values["weights[1]"]]
        assert payload == b"".join(p.tobytes() for p in parts) + values["seen"][rank].tobytes()
        assert head["arguments"][0]["shape"] == parts[0].shape


FORGED = [
    {},
    {"returned": "x", "named": []},
    {"returned": [["float32", [6]]] * 2, "named": []},
    {"returned": [["float32", [-6]]], "named": []},
    {"returned": [["object", [6]]], "named": []},
    {"returned": [["float32", [6, 1]]], "named": []},
    {"returned": [["float32", [1 << 39, 1 << 39]]], "named": []},
    {"returned": [[["float32"], [6]]], "named": []},
    {"returned": [["float32", [6]]], "named": [["float32", [6]]]},
    {"returned": [["x" * 5000]], "named": []},
]


@pytest.mark.parametrize("head", FORGED)
def test_results_of_another_form_are_refused(head) -> None:
    made = cases.arguments(whole(ALL_REDUCE), ALL_REDUCE.cases[0])
    with pytest.raises(NotAResult):
        results(made, 0, 2, head, bytes(24))


def test_results_that_are_too_short_are_refused() -> None:
    made = cases.arguments(whole(ALL_REDUCE), ALL_REDUCE.cases[0])
    head = {"returned": [["float32", [6]]], "named": []}
    assert results(made, 0, 2, head, bytes(24))["out"].tolist() == [0.0] * 6
    with pytest.raises(NotAResult):
        results(made, 0, 2, head, bytes(23))
