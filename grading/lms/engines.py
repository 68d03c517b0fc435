"""Where verdicts are worked out: on this machine, or on the workers of a Dask scheduler.

Both give futures of `concurrent.futures`, so that a class is judged by the same lines either way. Limits are
the judge's own: Dask is neither a sandbox nor a hard limit.
"""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Protocol

from grading.core import environment, sandbox, texts
from grading.core.errors import EngineError, Unjudged
from grading.core.graft import Graft
from grading.core.judge import Judge
from grading.core.notebooks import Question
from grading.core.sandbox import Limits
from grading.core.verdicts import NotebookVerdict

ATTEMPTS = 60  # seconds to reach a scheduler


class Engine(Protocol):
    """Judges notebooks, several at once: `room` is how many it wants to have, done or waiting."""

    room: int

    def submit(self, graft: Graft, asked: tuple[Question, ...], key: str) -> Future[NotebookVerdict]: ...

    def reason(self, error: BaseException) -> str:
        """Why there is no verdict on this one notebook; raises what stops the others, too."""
        ...

    def stop(self) -> None:
        """Drop what waits and end what runs."""
        ...


class Here:
    """Threads, each of which waits for its sandbox and for a limited child that replays.

    The threads and the server that children are forked from live as long as the class takes, so nothing is
    imported twice.
    """

    def __init__(self, judge: Judge, workers: int):
        self.judge, self.pool, self.room = judge, ThreadPoolExecutor(workers), 2 * workers

    def submit(self, graft: Graft, asked: tuple[Question, ...], key: str) -> Future[NotebookVerdict]:
        return self.pool.submit(self.judge.verdict, graft, asked, key)

    def reason(self, error: BaseException) -> str:
        if isinstance(error, Unjudged):
            return str(error)
        raise error

    def stop(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.judge.stop()
        sandbox.stop_all()
        self.pool.shutdown()


class Cluster:
    """The workers of a Dask scheduler: trusted, with the same gpulab, packages and sandbox as here."""

    room = 256  # for as many workers; more would only wait in memory

    def __init__(self, address: str, secret: bytes, limits: Limits, unsafe: bool):
        from distributed import Client

        try:
            self.client = Client(address, timeout=ATTEMPTS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise EngineError(texts.NO_SCHEDULER.format(address=texts.clean(address), why=error)) from error
        self.address, self.settings = address, (secret, limits, unsafe, environment.code())
        # What a killed worker had is given to another one; `retries` would repeat our own errors, too.
        self.pool: Executor = self.client.get_executor(pure=False)

    def submit(self, graft: Graft, asked: tuple[Question, ...], key: str) -> Future[NotebookVerdict]:
        return self.pool.submit(judged, self.settings, graft, asked, key)

    def reason(self, error: BaseException) -> str:
        from distributed import KilledWorker

        if isinstance(error, Unjudged):
            return str(error)
        if isinstance(error, KilledWorker):
            return texts.WORKERS_DIED
        if isinstance(error, CancelledError | OSError | TimeoutError):
            raise EngineError(texts.SCHEDULER_GONE.format(address=texts.clean(self.address))) from error
        if isinstance(error, RuntimeError) and "deserialization of the task graph" in str(error):
            raise EngineError(texts.OTHER_SCHEDULER.format(address=texts.clean(self.address))) from error
        raise error

    def stop(self) -> None:
        self.pool.shutdown(wait=False)
        self.client.close(timeout=5)


def judged(
    settings: tuple[bytes, Limits, bool, str], graft: Graft, asked: tuple[Question, ...], key: str
) -> NotebookVerdict:
    """A verdict, on a worker of a cluster. Raises EngineError where the worker is another version."""
    secret, limits, unsafe, code = settings
    if environment.code() != code:
        raise EngineError(texts.OTHER_VERSION.format(host=socket.gethostname()))
    multiprocessing.current_process().daemon = (
        False  # Dask's nanny says it is one; those may have no children
    )
    return _judge(secret, limits, unsafe).verdict(graft, asked, key)


@cache
def _judge(secret: bytes, limits: Limits, unsafe: bool) -> Judge:
    """One judge for as long as a worker lives: the server of its children imports everything once."""
    return Judge(secret, limits, unsafe=unsafe)


@contextmanager
def engine(judge: Judge, workers: int, scheduler: str = "") -> Iterator[Engine]:
    """The engine for a class: this machine's, or with an address a scheduler's. Stopped when it is left."""
    chosen: Engine
    if scheduler:
        chosen = Cluster(scheduler, judge.secret, judge.limits, judge.unsafe)
    else:
        chosen = Here(judge, workers)
    try:
        yield chosen
    finally:
        chosen.stop()
