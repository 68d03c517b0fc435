"""A function of ours in a child with limits, for what it is given may come from a submission."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from grading import texts
from grading.sandbox import Limits

LARGEST = 256 << 20  # bytes of JSON that a child may say


class Ended(Exception):
    """The child came to no result; the text says how it ended."""


def restrict(limits: Limits) -> None:
    """Take from this process what it does not need: output, files, memory and time beyond the limits."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(quiet, stream)
    tempfile.gettempdir()  # Python finds it by writing there, which PyTorch asks for when it is imported
    resource.setrlimit(resource.RLIMIT_AS, (limits.replay_memory, limits.replay_memory))
    seconds = math.ceil(limits.seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 1, seconds + 2))
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
