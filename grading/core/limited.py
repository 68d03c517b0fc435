"""A function of ours in a child with limits, for what it is given may come from a submission."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from grading.core import texts
from grading.core.sandbox import Limits

LARGEST = 256 << 20  # bytes that a child may say
PATIENCE = 60  # times the processor time of a call, in case that a child gets none


class Ended(Exception):
    """The child came to no result; the text says how it ended."""


def restrict(limits: Limits) -> None:
    """Take from this process what it does not need: output, files, memory and time beyond the limits."""
    _confine(limits.replay_memory)
    seconds = math.ceil(limits.seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 1, seconds + 2))


def _confine(memory: int) -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(quiet, stream)
    tempfile.gettempdir()  # Python finds it by writing there, which PyTorch asks for when it is imported
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(5000)


def call(function: Callable[..., Any], *arguments: Any, limits: Limits) -> Any:
    """What ``function(*arguments)`` gives, as JSON carries it. Raises Ended.

    The function is found by its name in its module; what it raises ends the child.
    """
    context = multiprocessing.get_context("forkserver")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(there, limits, function, arguments), daemon=True)
    child.start()
    there.close()
    try:
        if not here.poll(limits.seconds):
            raise Ended(texts.TIMER_SLOW.format(seconds=limits.seconds))
        return json.loads(here.recv_bytes(LARGEST))
    except (EOFError, OSError, ValueError):
        child.join(5)
        raise Ended(texts.TIMER_DIED.format(how=f"exit status {child.exitcode}")) from None
    finally:
        child.kill()
        child.join()
        here.close()


def _work(say: Connection, limits: Limits, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    restrict(limits)
    say.send_bytes(json.dumps(function(*arguments)).encode())
    say.close()


class Kept:
    """A child that stays for the next call, for calls that come by the hundred and take milliseconds.

    Each call has `seconds` of processor time, however busy the machine is. A child that used them up, or
    ended, is replaced when it is needed again.
    """

    def __init__(self, seconds: float, memory: int = Limits.replay_memory):
        self.seconds, self.memory = seconds, memory
        self._turn = threading.Lock()
        self._child: BaseProcess | None = None

    def call(self, function: Callable[..., str], *arguments: Any) -> str:
        """What ``function(*arguments)`` gives. Raises Ended.

        The function is found by its name in its module; what it raises ends the child.
        """
        with self._turn:
            if self._child is not None and not self._child.is_alive():  # somebody killed it
                self._drop(self._child)
            if self._child is None:
                self._start()
            assert self._child is not None
            try:
                self._pipe.send((function, arguments))
                if not self._pipe.poll(PATIENCE * self.seconds):
                    raise EOFError
                return self._pipe.recv_bytes(LARGEST).decode()
            except BaseException as error:  # an interrupt, too: the next call must not get this one's answer
                code = self._drop(self._child)
                if not isinstance(error, EOFError | OSError):
                    raise
                slow = code == -signal.SIGPROF
                why = texts.SLOW if slow else texts.TIMER_DIED
                raise Ended(why.format(seconds=self.seconds, how=f"exit status {code}")) from None

    def _drop(self, child: BaseProcess) -> int | None:
        self._child = None
        self._pipe.close()
        child.join(1)
        child.kill()
        child.join()
        return child.exitcode

    def _start(self) -> None:
        context = multiprocessing.get_context("forkserver")
        self._pipe, there = context.Pipe()
        self._child = context.Process(target=_serve, args=(there, self.seconds, self.memory), daemon=True)
        self._child.start()
        there.close()


def _serve(pipe: Connection, seconds: float, memory: int) -> None:
    _confine(memory)
    with suppress(EOFError):  # whoever calls is gone
        while True:
            function, arguments = pipe.recv()
            signal.setitimer(signal.ITIMER_PROF, seconds)  # the kernel ends what goes on: no Python is asked
            answer = function(*arguments).encode()
            signal.setitimer(signal.ITIMER_PROF, 0)
            pipe.send_bytes(answer)
