"""What runs in each rank's process. The server that ranks are forked from has imported this, and with it
PyTorch."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle
import torch
import torch._dynamo  # what DistributedDataParallel and optimizers load late: 3 s, here once for all ranks
import torch.distributed as dist
import torch.fx.experimental.symbolic_shapes  # what each rank's first backward would load

from . import member  # noqa: F401 - ranks of a check are forked from the same server
from .recorded import NAME, register
from .records import Call


class Lines:
    """A stream that hands whole lines to the notebook."""

    encoding = "utf-8"

    def __init__(self, say: Any) -> None:
        self.say, self.rest = say, ""

    def write(self, text: str) -> int:
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            self.say(("line", line))
        return len(text)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        if self.rest:
            self.say(("line", self.rest))
            self.rest = ""

    def isatty(self) -> bool:
        return False


def main(connection: Connection, rank: int, size: int, place: str, job: bytes, seconds: float) -> None:
    """Join the others, run the function, send what it returned or how it stopped."""
    lock = threading.Lock()

    def say(message: tuple[Any, ...]) -> None:
        with lock:
            connection.send(message)

    here = threading.get_ident()
    threading.Thread(target=_listen, args=(connection, say, here), daemon=True).start()
    lines = Lines(say)
    sys.stdout = sys.stderr = lines
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank))
    book: list[Call] = []
    try:
        fn, arguments = cloudpickle.loads(job)
        register(book)
        dist.init_process_group(
            NAME,
            init_method=f"file://{place}",
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=seconds),
        )
        dist.barrier()
        del book[:]
        result = fn(*arguments)
        lines.close()
        say(("result", cloudpickle.dumps(result), list(book)))
    except BaseException as error:
        lines.close()
        say(("error", type(error).__name__, str(error), _frames(error.__traceback__)))
    # The others may still read from this rank's sockets: it stays until it is told to go.
    threading.Event().wait()


def _frames(at: Any) -> list[tuple[str, int, str]]:
    """(file, line, function) from the outermost to the innermost, without this module's own."""
    return [
        (frame.filename, frame.lineno or 0, frame.name)
        for frame in traceback.extract_tb(at)
        if frame.filename != __file__
    ]


def _listen(connection: Connection, say: Any, main_thread: int) -> None:
    """Answers where this rank is; ends it when it is told to, or when the notebook is gone.

    Not by an ordinary exit: gloo's threads and the notebook's own hooks have no business here.
    """
    while True:
        try:
            asked = connection.recv()
        except (EOFError, OSError):
            os._exit(1)
        if asked == "go":
            os._exit(0)
        stack = traceback.extract_stack(sys._current_frames()[main_thread])
        say(("where", [(f.filename, f.lineno or 0, f.name) for f in stack if f.filename != __file__]))
