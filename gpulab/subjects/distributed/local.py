"""Ranks on this machine that are joined by a network of ours, for the check of a notebook."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

from .launch import GRACE, server, start
from .network import Network
from .patience import Patience


@contextlib.contextmanager
def joined(
    target: Callable[..., None], size: int, *arguments: Any
) -> Iterator[tuple[Network, Callable[[], float]]]:
    """`size` processes that run ``target(connection, *arguments)``, the network between them, their clock.

    No process is left behind, whatever happens.
    """
    context = server()
    processes: list[Any] = []
    ours: list[socket.socket] = []
    network: Network | None = None
    try:
        for _ in range(size):
            mine, theirs = context.Pipe()
            process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
            start(process)
            theirs.close()
            ours.append(socket.socket(fileno=os.dup(mine.fileno())))
            mine.close()
            processes.append(process)
        network = Network(ours)
        yield network, Patience([process.pid for process in processes])
    finally:
        if network is not None:
            network.close()
        for process in processes:
            process.kill()
        for process in processes:
            process.join(GRACE)
            with contextlib.suppress(ValueError):
                process.close()
