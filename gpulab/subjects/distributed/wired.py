"""A process group whose calls go over one connection to the network, and nowhere else.

It is a backend of torch.distributed: ``dist.send``, ``dist.all_reduce`` and DistributedDataParallel use it
without knowing. Calls return at once, and what they bring is fetched when it is waited for.
"""

from __future__ import annotations

import math
import socket
import threading
import zlib
from typing import Any

import torch
import torch.distributed as dist

from . import words
from .collectives import OPERATIONS
from .frames import Head, encode, read
from .group import Group
from .lines import running_line

NAME = "wired"


class Aborted(BaseException):
    """The run is over for all ranks. No Exception, so that `except Exception` lets it pass."""


class TensorChanged(Exception):
    """A tensor was changed while it was sent or received: chance decides what arrives in a real network."""


class Gone(BaseException):
    """The network is not there any more."""


class Wire:
    """The connection of this rank. `file` is the learner's: the network gets its line numbers."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.file = ""
        self.threads = threading.active_count()  # more than these may go on while one waits
        self._speaking, self._asking = threading.Lock(), threading.Lock()
        self._count = 0

    def say(self, head: Head, payload: bytes = b"") -> None:
        """Send a frame."""
        with self._speaking:
            self._send(encode(head, payload))

    def _send(self, data: bytes) -> None:
        try:
            self.connection.sendall(data)
        except OSError as error:
            raise Gone from error

    def hear(self) -> tuple[Head, bytes]:
        """The next frame."""
        try:
            return read(self.connection)
        except (EOFError, OSError) as error:
            raise Gone from error

    def post(self, head: Head, payload: bytes = b"") -> int:
        """Start a call; returns its number."""
        with self._speaking:
            self._count += 1
            number = self._count
            self._send(encode({**head, "id": number, "line": self.line()}, payload))
        return number

    def ask(self, op: str, number: int) -> bytes | None:
        """Wait for a call, or test whether it is done: what it brought, None if not yet. Raises Aborted."""
        with self._asking:
            alone = threading.active_count() <= self.threads
            self.say({"op": op, "id": number, "line": self.line(), "alone": alone})
            head, payload = self.hear()
        if head["op"] == "abort":
            raise Aborted
        return payload if head["op"] == "ok" else None

    def line(self) -> int:
        """The line of the learner's code that runs at the moment, the innermost; 0 where there is none."""
        return running_line(self.file)


def contents(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor's elements, in the order of its axes."""
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def fill(tensors: list[torch.Tensor], data: bytes) -> None:
    """Write bytes into tensors, one after the other."""
    at = 0
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        if size:
            piece = torch.frombuffer(bytearray(data[at : at + size]), dtype=tensor.dtype)
            with torch.no_grad():
                tensor.copy_(piece.reshape(tensor.shape))
        at += size


def _bytes(tensors: list[torch.Tensor]) -> list[int]:
    return [t.numel() * t.element_size() for t in tensors]


def _row(tensor: torch.Tensor) -> int:
    """Bytes of a row."""
    return int(math.prod(tensor.shape[1:]) * tensor.element_size())


class _Work(dist._Work):
    """A call that was started. What it brings is written into `into` when somebody waits for it."""

    def __init__(self, wire: Wire, number: int, into: list[torch.Tensor], result: Any = None) -> None:
        super().__init__()
        self.wire, self.number, self.into, self.result = wire, number, into, result
        self.done = False

    def unchanged(self) -> None:
        """Raises TensorChanged if something that this call needs was changed since it was started."""

    def _ask(self, op: str) -> bool:
        if not self.done and (data := self.wire.ask(op, self.number)) is not None:
            self.unchanged()
            fill(self.into, data)
            self.done = True
        return self.done

    def wait(self, *timeout: Any) -> bool:
        return self._ask("wait")

    def is_completed(self) -> bool:
        return self._ask("test")

    def is_success(self) -> bool:
        return self.done

    def get_future(self) -> Any:
        """Waits: a future that nobody waits for would never be filled."""
        self.wait()
        future: Any = torch.futures.Future()
        future.set_result(self.into if self.result is None else self.result)
        return future


class _Message(_Work):
    """A send or a receive. Its `tensors` are the network's until it is waited for."""

    def __init__(self, wire: Wire, head: Head, tensors: list[torch.Tensor]) -> None:
        data = b"".join(map(contents, tensors))
        self.call, self.line = f"i{head['op']}", wire.line()
        self.tensors, self.sum = list(tensors), zlib.crc32(data)
        sends = head["op"] == "send"
        super().__init__(wire, wire.post(head, data if sends else b""), [] if sends else self.tensors)

    def unchanged(self) -> None:
        if zlib.crc32(b"".join(map(contents, self.tensors))) != self.sum:
            raise TensorChanged(words.changed(self.call, self.line))


class Wired(Group):
    """Ranks `members` of the world, joined by the network at the other end of `wire`."""

    backend = NAME

    def __init__(self, wire: Wire, rank: int, members: tuple[int, ...]) -> None:
        super().__init__(rank, len(members))
        self.wire, self.members, self.place = wire, members, rank

    # ------------------------------------------------------------ point to point

    def send(self, tensors: list[torch.Tensor], to: int, tag: int = 0) -> Any:
        self._another(to, sends=True)
        return _Message(self.wire, {"op": "send", "peer": self.members[to], "tag": tag}, tensors)

    def recv(self, tensors: list[torch.Tensor], source: int, tag: int = 0) -> Any:
        self._another(source, sends=False)
        head = {"op": "recv", "peer": self.members[source], "tag": tag, "bytes": sum(_bytes(tensors))}
        return _Message(self.wire, head, tensors)

    def _another(self, place: int, *, sends: bool) -> None:
        if place == self.place:
            raise ValueError(words.to_itself(self.members[place], sends))

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Any:
        raise NotImplementedError(
            "recv without src takes whatever comes first, which depends on chance here: name the rank"
        )

    # ------------------------------------------------------------ collectives

    def _call(
        self,
        name: str,
        given: list[torch.Tensor],
        into: list[torch.Tensor],
        opts: Any = None,
        root: int = 0,
        cuts: list[int] | None = None,
        result: Any = None,
        wants: list[int] | None = None,
        row: int = 0,
    ) -> Any:
        """Post a collective. `cuts` are the bytes for each rank, `wants` those expected from each, `row`
        those of a row, all where the collective has them."""
        reduces = name in ("all_reduce", "reduce", "reduce_scatter")
        sample = (given or into or [torch.empty(0, dtype=torch.uint8)])[0]
        head = {
            "op": "collective",
            "name": name,
            "ranks": self.members,
            "root": root,
            "cuts": cuts or [],
            "wants": wants or [],
            "row": row,
            "bytes": sum(_bytes(into)),
            "dtype": str(sample.dtype).removeprefix("torch.") if reduces else "uint8",
            "operation": _operation(opts.reduceOp) if reduces else "",
        }
        return _Work(self.wire, self.wire.post(head, b"".join(map(contents, given))), into, result)

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        return self._call("all_reduce", tensors, tensors, opts or dist.AllreduceOptions())

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        root = opts.rootRank
        given = tensors if root == self.place else []
        return self._call("broadcast", given, tensors, root=root)

    def reduce(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        root = opts.rootRank
        return self._call("reduce", tensors, tensors if root == self.place else [], opts, root)

    def allgather(self, into: list[list[torch.Tensor]], given: list[torch.Tensor], opts: Any = None) -> Any:
        return self._call("all_gather", given, into[0], result=into)

    def _allgather_base(self, into: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        return self._call("all_gather", [given], [into])

    all_gather_single = _allgather_base

    def reduce_scatter(
        self, into: list[torch.Tensor], given: list[list[torch.Tensor]], opts: Any = None
    ) -> Any:
        opts = opts or dist.ReduceScatterOptions()
        return self._call("reduce_scatter", given[0], into, opts, cuts=_bytes(given[0]))

    def _reduce_scatter_base(self, into: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        opts = opts or dist.ReduceScatterOptions()
        return self._call("reduce_scatter", [given], [into], opts, cuts=self._even(given))

    reduce_scatter_single = _reduce_scatter_base

    def alltoall(self, into: list[torch.Tensor], given: list[torch.Tensor], opts: Any = None) -> Any:
        return self._call("all_to_all", given, into, cuts=_bytes(given), wants=_bytes(into))

    def alltoall_base(
        self,
        into: torch.Tensor,
        given: torch.Tensor,
        rows_in: list[int],
        rows: list[int],
        opts: Any = None,
    ) -> Any:
        """`rows` of `given` go to each rank, `rows_in` of `into` come from each; nothing said means as many
        to each."""
        cuts, wants = self._pieces("input", given, rows), self._pieces("output", into, rows_in)
        return self._call("all_to_all", [given], [into], cuts=cuts, wants=wants, row=_row(given))

    def _pieces(self, which: str, tensor: torch.Tensor, rows: Any) -> list[int]:
        """Bytes of a tensor's parts, of so many rows each."""
        if isinstance(rows, list | tuple) and not rows:
            return self._even(tensor)
        if not isinstance(rows, list | tuple) or not all(type(n) is int for n in rows):
            some = rows[0] if isinstance(rows, list | tuple) else rows
            inside = "" if some is rows else "a list of "
            raise TypeError(words.not_counts(f"{inside}{type(some).__name__}"))
        if sum(rows) != len(tensor):
            raise ValueError(words.other_rows(which, sum(rows), len(tensor)))
        return [n * _row(tensor) for n in rows]

    all_to_all_single = alltoall_base

    def gather(self, into: list[list[torch.Tensor]], given: list[torch.Tensor], opts: Any) -> Any:
        root = opts.rootRank
        return self._call("gather", given, into[0] if root == self.place else [], root=root)

    def scatter(self, into: list[torch.Tensor], given: list[list[torch.Tensor]], opts: Any) -> Any:
        root = opts.rootRank
        pieces = given[0] if root == self.place else []
        return self._call("scatter", pieces, into, root=root, cuts=_bytes(pieces))

    def barrier(self, opts: Any = None) -> Any:
        return self._call("barrier", [], [])

    def _even(self, tensor: torch.Tensor) -> list[int]:
        each, rest = divmod(_bytes([tensor])[0], len(self.members))
        if rest:
            raise ValueError(
                f"{tensor.numel():,} elements cannot be split among {len(self.members)} ranks evenly"
            )
        return [each] * len(self.members)


def _operation(asked: Any) -> str:
    """``SUM`` of ``ReduceOp.SUM``."""
    known = (*OPERATIONS, "BAND", "BOR", "BXOR")
    return next((name for name in known if asked == getattr(dist.ReduceOp, name)), "another operation")


def join(wire: Wire, rank: int, size: int) -> None:
    """Make the backend known and join the world through it."""

    def create(options: Any, _: Any) -> Any:
        members = tuple(options.global_ranks_in_group) or tuple(range(size))
        return Wired(wire, options.group_rank, members)

    dist.Backend._plugins.pop(NAME.upper(), None)
    if hasattr(dist.Backend, NAME.upper()):
        delattr(dist.Backend, NAME.upper())
    dist.Backend.register_backend(NAME, create, extended_api=True, devices=["cpu"])
    dist.init_process_group(NAME, store=dist.HashStore(), rank=rank, world_size=size)


def leave() -> None:
    """Forget the world and all its groups."""
    if dist.is_initialized():
        dist.destroy_process_group()
