"""A process group that writes down every call and hands it to gloo.

It is a backend of torch.distributed, not a patch of its functions: what DistributedDataParallel or FSDP
do is seen, too.
"""

from __future__ import annotations

import time
from typing import Any

import torch
import torch.distributed as dist

from .group import Group
from .records import Call

NAME = "recorded"

# Methods of a process group: the name that a learner knows, gloo's method, and which argument holds the
# tensors that go out. PyTorch 2.13 renamed some; both names are here.
COLLECTIVES = {
    "allreduce": ("all_reduce", "allreduce", 0),
    "allreduce_coalesced": ("all_reduce", "allreduce_coalesced", 0),
    "broadcast": ("broadcast", "broadcast", 0),
    "reduce": ("reduce", "reduce", 0),
    "allgather": ("all_gather", "allgather", 1),
    "_allgather_base": ("all_gather_into_tensor", "_allgather_base", 1),
    "all_gather_single": ("all_gather_into_tensor", "_allgather_base", 1),
    "reduce_scatter": ("reduce_scatter", "reduce_scatter", 1),
    "_reduce_scatter_base": ("reduce_scatter_tensor", "_reduce_scatter_base", 1),
    "reduce_scatter_single": ("reduce_scatter_tensor", "_reduce_scatter_base", 1),
    "alltoall": ("all_to_all", "alltoall", 1),
    "alltoall_base": ("all_to_all_single", "alltoall_base", 1),
    "all_to_all_single": ("all_to_all_single", "alltoall_base", 1),
    "gather": ("gather", "gather", 1),
    "scatter": ("scatter", "scatter", 1),
    "barrier": ("barrier", "barrier", 0),
}


def nbytes(values: Any) -> int:
    """Bytes of all tensors in nested lists."""
    if isinstance(values, torch.Tensor):
        return int(values.numel() * values.element_size())
    if isinstance(values, list | tuple):
        return sum(map(nbytes, values))
    return 0


class Recorded(Group):
    """gloo, with every call in `book`."""

    backend = NAME

    def __init__(self, inner: Any, rank: int, size: int, book: list[Call]) -> None:
        super().__init__(rank, size)
        self.inner, self.book = inner, book

    def note(self, operation: str, size: int, peer: int, work: Any, start: float) -> Any:
        """Write a call down; its end is entered when the work is done."""
        place = len(self.book)
        rank = dist.get_rank()
        self.book.append(Call(rank, operation, size, peer, start, start))
        return _Watched(work, lambda: self._ended(place))

    def _ended(self, place: int) -> None:
        call = self.book[place]
        if call.end == call.start:
            self.book[place] = Call(
                call.rank, call.operation, call.bytes, call.peer, call.start, time.monotonic()
            )

    def send(self, tensors: Any, peer: int, tag: int = 0) -> Any:
        start = time.monotonic()
        return self.note("send", nbytes(tensors), peer, self.inner.send(tensors, peer, tag), start)

    def recv(self, tensors: Any, peer: int, tag: int = 0) -> Any:
        start = time.monotonic()
        return self.note("recv", nbytes(tensors), peer, self.inner.recv(tensors, peer, tag), start)


def _collective(name: str, method: str, out: int) -> Any:
    def call(self: Recorded, *arguments: Any, **named: Any) -> Any:
        start = time.monotonic()
        size = nbytes(arguments[out]) if len(arguments) > out and name != "barrier" else 0
        return self.note(name, size, -1, getattr(self.inner, method)(*arguments, **named), start)

    return call


for _method, _row in COLLECTIVES.items():
    setattr(Recorded, _method, _collective(*_row))


class _Watched(dist._Work):
    """Work of gloo that says when it was waited for."""

    def __init__(self, work: Any, ended: Any) -> None:
        super().__init__()
        self.work, self.ended = work, ended

    def wait(self, *timeout: Any) -> bool:
        done = self.work.wait(*timeout) if self.work is not None else True
        self.ended()
        return bool(done)

    def is_completed(self) -> bool:
        done = bool(self.work.is_completed())
        if done:
            self.ended()
        return done

    def get_future(self) -> Any:
        future = self.work.get_future()
        future.add_done_callback(lambda _: self.ended())
        return future


def register(book: list[Call]) -> None:
    """Make the backend known; its groups write into `book`."""

    def create(store: Any, rank: int, size: int, timeout: Any) -> Any:
        inner = dist.ProcessGroupGloo(store, rank, size, timeout)
        return Recorded(inner, rank, size, book)

    if not hasattr(dist.Backend, NAME.upper()):
        dist.Backend.register_backend(NAME, create, devices=["cpu"])
