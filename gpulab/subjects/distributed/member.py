"""A rank's side of the network: gets tasks over one connection, computes them with torch.distributed joined
through it, and sends back what came out or how it stopped."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

import torch

from .frames import Head
from .wired import Aborted, Gone, Wire, join, leave

# What a rank computes: from the head and the payload of a task to those of the result.
Work = Callable[[Head, bytes], tuple[Head, bytes]]


def serve(wire: Wire, work: Work, file: str = "") -> Head:
    """Compute tasks until something else comes, which is returned. `file` is that of the learner's code.

    Raises Gone when the network is gone.
    """
    wire.file = file
    torch.set_num_threads(1)
    while True:
        head, payload = wire.hear()
        if head["op"] != "task":
            return head
        rank, size = head["rank"], head["size"]
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank))
        try:
            join(wire, rank, size)
            result, data = work(head, payload)
            wire.say({**result, "op": "result"}, data)
        except Gone:
            raise
        except BaseException as error:
            wire.say(
                {
                    "op": "error",
                    "kind": type(error).__name__,
                    "text": "" if isinstance(error, Aborted) else str(error)[:2000],
                    "line": _line(error, file),
                }
            )
        finally:
            leave()


def _line(error: BaseException, file: str) -> int:
    """The innermost line of the learner's code that an error came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if file and f.filename == file]
    return frames[-1].lineno or 0 if frames else 0
