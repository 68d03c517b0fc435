"""`run`: one process a rank, from a notebook cell, with their output, results and accidents."""

from __future__ import annotations

import contextlib
import linecache
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import cloudpickle

from gpulab.foundation import underway
from gpulab.foundation.errors import Message

from .patience import Patience
from .records import Call, sent

MOST = 64  # ranks; one machine has no use for more
GRACE = 2.0  # seconds for ranks to say where they are, and for the others to end


class RanksStopped(Message):
    """A rank failed, died, or the ranks waited for one another too long. `rank` is the one to look at."""

    def __init__(self, text: str, rank: int | None = None) -> None:
        super().__init__(text)
        self.rank = rank


class Results(list[Any]):
    """What each rank returned, by rank. `calls` are all calls on the network, in order of their start."""

    def __init__(self, values: list[Any], calls: list[Call], seconds: float) -> None:
        super().__init__(values)
        first = min((call.start for call in calls), default=0.0)  # one clock for all processes of a machine
        self.calls = tuple(
            replace(call, start=call.start - first, end=call.end - first)
            for call in sorted(calls, key=lambda call: (call.start, call.rank))
        )
        self.seconds = seconds

    @property
    def links(self) -> dict[tuple[int, int], int]:
        """Bytes that were sent from one rank to another, by (from, to)."""
        return sent(self.calls)

    @property
    def bytes_sent(self) -> list[int]:
        """Bytes that each rank sent by `send` and `isend`. Those of collectives are not known."""
        return [sum(n for (a, _), n in self.links.items() if a == rank) for rank in range(len(self))]


@dataclass
class _Rank:
    process: Any
    connection: Connection
    result: bytes | None = None
    calls: list[Call] = field(default_factory=list)
    where: list[tuple[str, int, str]] | None = None
    done: bool = False


def run(
    fn: Callable[..., Any],
    world_size: int = 4,
    *arguments: Any,
    timeout: float = 60.0,
    show: Callable[[str], None] | None = print,
) -> Results:
    """Run ``fn(*arguments)`` in `world_size` processes that torch.distributed has joined (gloo, CPU).

    Inside `fn`, ``torch.distributed`` is ready: ``dist.get_rank()``, ``dist.send``, ``dist.all_reduce`` and
    so on. `fn` may be defined in a cell; what it uses from the notebook is copied to the ranks. Lines that
    ranks print come out as they are printed, with the rank in front; `show` is called with each, and None
    silences them.

    Returns the results by rank; `gpulab.plot.timeline_ranks` draws their calls. Raises RanksStopped if a rank
    fails (with its line and error), if one dies, or after `timeout` seconds (with the line at which each rank
    waits). Time in which ranks wait for a processor is not part of the `timeout`. All ranks have ended by
    then; KeyboardInterrupt ends them, too. Raises ValueError for a world size that is not a whole number from
    1 to 64.

    >>> run(lambda: torch.distributed.get_rank(), 2)  # doctest: +SKIP
    [0, 1]
    """
    if not isinstance(world_size, int) or not 1 <= world_size <= MOST:
        raise ValueError(f"world_size is a whole number from 1 to {MOST}, not {world_size!r}")
    job = cloudpickle.dumps((fn, arguments))
    began = time.monotonic()
    what = f"{world_size} ranks run {getattr(fn, '__name__', 'a function')}"
    with underway.work(what), tempfile.TemporaryDirectory(prefix="gpulab-") as folder:
        ranks = _start(world_size, str(Path(folder, "meeting")), job, timeout)
        try:
            _attend(ranks, timeout, show)
        finally:
            _end(ranks)
    values = [cloudpickle.loads(rank.result) for rank in ranks]
    return Results(values, [call for rank in ranks for call in rank.calls], time.monotonic() - began)


def server() -> Any:
    """What ranks are forked from: one server for all runs, which has imported PyTorch once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["gpulab.distributed.worker"])
    return context


def start(process: Any) -> None:
    """Start a process from the server without the main module being run in it once more.

    What a rank needs travels with its job. A script that asks for ranks where nothing guards that line would
    ask for them in each rank again.
    """
    main = sys.modules["__main__"]
    hidden: dict[str, Any] = {
        name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)
    }
    main.__spec__ = None
    try:
        process.start()
    finally:
        vars(main).update({"__spec__": None, **hidden})


def _start(size: int, place: str, job: bytes, timeout: float) -> list[_Rank]:
    context = server()
    from . import worker  # by name only: the ranks have it from the server

    ranks: list[_Rank] = []
    for rank in range(size):
        mine, theirs = context.Pipe()
        process = context.Process(
            target=worker.main, args=(theirs, rank, size, place, job, timeout + 60), daemon=True
        )
        start(process)
        theirs.close()
        ranks.append(_Rank(process, mine))
    return ranks


def _attend(ranks: list[_Rank], timeout: float, show: Callable[[str], None] | None) -> None:
    """Listen to all ranks until the last has sent its result."""
    clock = Patience([rank.process.pid for rank in ranks])
    while not all(rank.done for rank in ranks):
        left = timeout - clock()
        if left <= 0:
            raise RanksStopped(_too_long(ranks, timeout))
        waited = [rank.connection for rank in ranks if not rank.done]
        for ready in wait(waited, min(left, 0.5)):
            number = next(n for n, rank in enumerate(ranks) if rank.connection is ready)
            try:
                _hear(ranks, number, ranks[number].connection.recv(), show)
            except (EOFError, OSError):
                raise RanksStopped(_died(ranks, number), number) from None
            except RanksStopped:
                if (dead := _dead(ranks)) is not None:
                    raise RanksStopped(_died(ranks, dead), dead) from None
                raise


def _dead(ranks: list[_Rank]) -> int | None:
    """A rank whose process has ended. Others fail because of it, and may say so first."""
    gone = wait([rank.process.sentinel for rank in ranks], GRACE / 4)
    return next((n for n, rank in enumerate(ranks) if rank.process.sentinel in gone), None)


def _hear(
    ranks: list[_Rank], number: int, message: tuple[Any, ...], show: Callable[[str], None] | None
) -> None:
    rank = ranks[number]
    match message:
        case ("line", text):
            if show is not None:
                show(f"[rank {number}] {text}")
        case ("result", value, calls):
            rank.result, rank.calls, rank.done = value, calls, True
        case ("where", frames):
            rank.where = frames
        case ("error", kind, text, frames):
            raise RanksStopped(_failed(ranks, number, kind, text, frames), number)


def _end(ranks: list[_Rank]) -> None:
    """No process is left behind, whatever happened."""
    finished = all(rank.done for rank in ranks)
    for rank in ranks:
        if finished:
            with contextlib.suppress(OSError):
                rank.connection.send("go")
        else:
            rank.process.kill()
    for rank in ranks:
        rank.process.join(GRACE)
        if rank.process.is_alive():
            rank.process.kill()
            rank.process.join()
        rank.connection.close()
        with contextlib.suppress(ValueError):
            rank.process.close()


# ---------------------------------------------------------------- what to say


def _failed(ranks: list[_Rank], number: int, kind: str, text: str, frames: list[tuple[str, int, str]]) -> str:
    what = f"{kind}: {text}" if text else kind
    return f"rank {number} of {len(ranks)} stopped{_at(frames)} — {what}\nThe other ranks were ended."


def _died(ranks: list[_Rank], number: int) -> str:
    rank = ranks[number]
    rank.process.join(GRACE)
    code = rank.process.exitcode
    if code is not None and code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
    else:
        how = f"ended without a result (exit code {code})"
    return f"rank {number} of {len(ranks)} {how}. The other ranks were ended."


def _too_long(ranks: list[_Rank], timeout: float) -> str:
    """Where each rank is. They are asked; one that does not answer is busy outside Python."""
    for rank in ranks:
        if not rank.done:
            with contextlib.suppress(OSError):
                rank.connection.send("where")
    until = time.monotonic() + GRACE
    while any(not r.done and r.where is None for r in ranks) and time.monotonic() < until:
        for ready in wait([r.connection for r in ranks if not r.done and r.where is None], 0.1):
            number = next(n for n, rank in enumerate(ranks) if rank.connection is ready)
            with contextlib.suppress(EOFError, OSError, RanksStopped):
                _hear(ranks, number, ranks[number].connection.recv(), None)
    lines = []
    for number, rank in enumerate(ranks):
        if rank.done:
            lines.append(f"  rank {number} is done")
        else:
            lines.append(f"  rank {number} is{_at(rank.where or []) or ' somewhere in compiled code'}")
    return (
        f"after {timeout:g} s not all ranks are done. Do all make the same calls, in the same order?\n"
        + "\n".join(lines)
        + "\nAll ranks were ended."
    )


def _at(frames: list[tuple[str, int, str]]) -> str:
    """`` in line 3: x = y[4]``, of the innermost frame that is the learner's."""
    for file, line, _ in reversed(frames):
        if _is_ours_or_library(file):
            continue
        text = linecache.getline(file, line).strip()
        where = (
            f" in line {line}"
            if file.startswith("<") or "ipykernel" in file
            else f" in {Path(file).name}, line {line}"
        )
        return f"{where}: {text}" if text else where
    return ""


def _is_ours_or_library(file: str) -> bool:
    parts = Path(file).parts
    return (
        "site-packages" in parts
        or file.startswith("<frozen")
        or str(Path(__file__).parent) in file
        or os.path.dirname(os.__file__) in file
    )
