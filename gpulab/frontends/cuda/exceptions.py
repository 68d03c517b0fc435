"""Exceptions that a kernel raises: with ``debug=True`` it leaves a number in memory and stops the thread."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from gpulab.simulator import device as devices
from gpulab.simulator.compile import CompiledKernel
from gpulab.simulator.simt import variables_of

ERROR, THREAD, BLOCK = "errcode", "tid", "ctaid"


def watch(kernel: CompiledKernel) -> Callable[[], None]:
    """To be called before a launch; what it returns is called after it, and raises what a thread has raised.

    The message says where: the function and line of the kernel, the thread and the block, (z, y, x) each.
    """
    if not kernel.exceptions:
        return lambda: None
    device = devices.current()
    places = variables_of(device.module(kernel.ptx), device.memory)

    def word(name: str) -> np.ndarray:
        address = places[f"{kernel.entry}__{name}__"]
        allocation = device.memory.find(address)
        assert allocation is not None
        return allocation.data[address - allocation.address :][:4].view(np.int32)

    def raise_it() -> None:
        number = int(word(ERROR)[0])
        if number not in kernel.exceptions:
            return
        kind, arguments, place = kernel.exceptions[number]
        where = ""
        if place is not None:
            function, file, line = place
            where = f"In function {function!r}, file {os.path.abspath(file)}, line {line}, "
        thread, block = ([int(word(name + axis)[0]) for axis in "zyx"] for name in (THREAD, BLOCK))
        where += f"tid={thread} ctaid={block}"
        first, *rest = arguments or ("",)
        raise kind(f"{where}: {first}" if arguments else where, *rest)

    word(ERROR)[0] = 0
    return raise_it
