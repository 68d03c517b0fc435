"""Ranks from a cell: joined, watched, recorded, and ended whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from gpulab.subjects import distributed

ROOT = Path(distributed.__file__).parents[2]


def forked() -> set[int]:
    """The living processes of the server that ranks are forked from."""
    server = forkserver._forkserver._forkserver_pid
    listed = ["ps", "-o", "pid=", "--ppid", str(server)] if server else ["true"]
    return {int(pid) for pid in subprocess.run(listed, capture_output=True, text=True).stdout.split()}


@pytest.fixture
def leaves_no_process_behind() -> Iterator[None]:
    """The judge's processes come from the same server, and may live longer: only new ones count."""
    before = forked()
    yield
    assert not forked() - before


def test_every_rank_returns_its_result_and_what_it_took_from_the_notebook():
    factor = 10

    def product(offset):
        return dist.get_rank() * factor + offset, dist.get_world_size()

    assert distributed.run(product, 3, 5) == [(5, 3), (15, 3), (25, 3)]


UNGUARDED = """
import sys
from pathlib import Path

import torch.distributed as dist

with open(sys.argv[1], "a") as file:
    file.write("once ")

from gpulab import distributed
from gpulab.distributed.local import joined
from gpulab.checks import on_ranks

print(distributed.run(lambda: dist.get_rank(), 2))
with joined(on_ranks.main, 2, b"") as (network, clock):
    pass
assert Path(__file__).name == "script.py" and __spec__ is None
"""


def test_a_script_that_guards_nothing_is_not_run_again_by_its_ranks(tmp_path):
    script, runs = tmp_path / "script.py", tmp_path / "runs"
    script.write_text(UNGUARDED)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, script, runs],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.stdout == "[0, 1]\n", ran.stderr
    assert runs.read_text() == "once "


def test_one_rank_alone_is_a_world_too():
    def alone():
        x = torch.ones(2)
        dist.all_reduce(x)
        return x.tolist()

    assert distributed.run(alone, 1) == [[1.0, 1.0]]


def test_ranks_that_work_can_be_seen_below_their_server():
    before, seen = forked(), []
    distributed.run(lambda: print("here"), 2, show=lambda line: seen.append(forked() - before))
    assert any(seen), "a leftover process would not be seen either"


def test_lines_come_out_with_their_rank_and_whole():
    lines = []

    def speak():
        print("one", end=" ")
        print("line")
        sys.stderr.write("no end of line")

    distributed.run(speak, 2, show=lines.append)
    for rank in (0, 1):
        assert [x for x in lines if x.startswith(f"[rank {rank}]")] == [
            f"[rank {rank}] one line",
            f"[rank {rank}] no end of line",
        ]


def test_sends_are_recorded_by_link_and_collectives_by_call():
    def ring():
        rank, size = dist.get_rank(), dist.get_world_size()
        out, back = torch.full((100,), float(rank)), torch.empty(100)
        sending = dist.isend(out, (rank + 1) % size)
        dist.recv(back, (rank - 1) % size)
        sending.wait()
        dist.all_reduce(back)
        gathered = torch.empty(size * 100)
        dist.all_gather_into_tensor(gathered, out)
        dist.barrier()
        return float(back[0])

    results = distributed.run(ring, 4)
    assert list(results) == [6.0] * 4
    assert results.links == {(rank, (rank + 1) % 4): 400 for rank in range(4)}
    assert results.bytes_sent == [400] * 4
    mine = [(c.operation, c.bytes, c.peer) for c in results.calls if c.rank == 1]
    assert mine == [
        ("send", 400, 2),
        ("recv", 400, 0),
        ("all_reduce", 400, -1),
        ("all_gather_into_tensor", 400, -1),
        ("barrier", 0, -1),
    ]
    assert all(0 <= c.start <= c.end for c in results.calls)
    ends = [c.end for c in results.calls if c.operation == "barrier"]
    starts = [c.start for c in results.calls if c.operation == "barrier"]
    assert max(starts) <= min(ends), "nobody leaves a barrier before all have come"


def test_what_ddp_does_is_recorded_too():
    def step():
        torch.manual_seed(0)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(5, 3))
        model(torch.full((2, 5), float(dist.get_rank()))).sum().backward()
        return model.module.weight.grad

    results = distributed.run(step, 2)
    assert torch.equal(results[0], results[1])
    reduced = [c for c in results.calls if c.operation == "all_reduce" and c.rank == 0]
    assert reduced[-1].bytes == 4 * (5 * 3 + 3)


def test_what_fsdp_does_is_recorded_too():
    def step():
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        linear = torch.nn.Linear(4, 2, bias=False)
        fully_shard(linear, mesh=init_device_mesh("cpu", (2,)))
        linear(torch.ones(1, 4)).sum().backward()
        return linear.weight.grad.full_tensor()

    results = distributed.run(step, 2)
    assert torch.equal(results[0], torch.ones(2, 4))
    mine = [(c.operation, c.bytes) for c in results.calls if c.rank == 0]
    assert mine == [
        ("all_gather_into_tensor", 16),
        ("reduce_scatter_tensor", 32),
        ("all_gather_into_tensor", 16),
    ]


def test_new_groups_are_recorded_too():
    def halves():
        groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        x = torch.tensor([float(dist.get_rank())])
        dist.all_reduce(x, group=groups[dist.get_rank() // 2])
        return x.item()

    results = distributed.run(halves, 4)
    assert list(results) == [1.0, 1.0, 5.0, 5.0]
    assert sum(c.operation == "all_reduce" for c in results.calls) == 4


# ---------------------------------------------------------------- accidents


def test_a_rank_that_fails_is_named_with_its_line_and_the_others_are_ended(leaves_no_process_behind):
    def fails():
        if dist.get_rank() == 2:
            return [1][5]
        dist.barrier()

    with pytest.raises(distributed.RanksStopped) as stopped:
        distributed.run(fails, 4)
    said = str(stopped.value)
    assert stopped.value.rank == 2
    assert said.startswith("rank 2 of 4 stopped in test_run.py, line ")
    assert "return [1][5] — IndexError: list index out of range" in said


def test_a_rank_that_dies_is_reported_at_once(leaves_no_process_behind):
    def dies():
        if dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.barrier()

    began = time.monotonic()
    with pytest.raises(distributed.RanksStopped, match="rank 1 of 3 was killed by SIGKILL"):
        distributed.run(dies, 3, timeout=50)
    assert time.monotonic() - began < 25  # long before the time is up


def test_ranks_that_wait_for_one_another_are_named_with_their_lines(leaves_no_process_behind):
    def mismatched():
        if dist.get_rank() == 0:
            dist.recv(torch.empty(1), 1)
        elif dist.get_rank() == 1:
            dist.recv(torch.empty(1), 0)

    with pytest.raises(distributed.RanksStopped) as stopped:
        distributed.run(mismatched, 3, timeout=10)
    said = str(stopped.value)
    assert "after 10 s not all ranks are done" in said
    assert "rank 0 is in test_run.py" in said and "dist.recv(torch.empty(1), 1)" in said
    assert "rank 2 is done" in said


def test_an_interrupt_ends_all_ranks(leaves_no_process_behind):
    def forever():
        time.sleep(1000)

    timer = threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        distributed.run(forever, 2)
    timer.join()


def test_ranks_end_when_the_notebook_is_killed(tmp_path):
    script = tmp_path / "notebook.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, sys, time
            from gpulab import distributed
            def forever():
                print(os.getpid())
                time.sleep(1000)
            if __name__ == "__main__":
                distributed.run(forever, 2, show=lambda line: print(line.split()[-1], flush=True))
            """
        )
    )
    notebook = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    pids = [int(notebook.stdout.readline()) for _ in range(2)]
    notebook.kill()
    notebook.wait()
    until = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


@pytest.mark.parametrize("size", [0, -1, 65, 2.0, "4"])
def test_a_world_size_that_is_none_is_refused(size):
    with pytest.raises(ValueError, match="world_size is a whole number from 1 to 64"):
        distributed.run(print, size)


def test_four_ranks_share_the_memory_of_what_they_are_forked_from():
    def touched():
        dist.barrier()
        shared = open("/proc/self/smaps_rollup").read()  # noqa: SIM115
        dist.barrier()
        return int(next(line.split()[1] for line in shared.splitlines() if line.startswith("Pss:")))

    kilobytes = sum(distributed.run(touched, 4))
    assert kilobytes < 300_000
