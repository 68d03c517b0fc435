"""Calls a learner's function on one rank: arguments from bytes, results to bytes. Runs in the rank's process,
so it imports little, and nothing that it says is believed."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

Head = dict[str, Any]
Entry = list[Any]  # [type, shape] of an array, or [name of a type] for what is none
TYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


def work_of(fn: Callable[..., Any]) -> Callable[[Head, bytes], tuple[Head, bytes]]:
    """The function as a rank's work: see `gpulab.distributed.member`.

    A task's head lists "arguments": arrays with "name", "dtype", "shape", "role" and "grad", whose contents
    are the payload (none for ``out``), and scalars with "name" and "value". The result's head has as entries
    what the function "returned", and "named" arrays: those that are ``inout``, then gradients that are asked
    for. "changed" names the inputs that are not what they were.
    """

    def work(head: Head, payload: bytes) -> tuple[Head, bytes]:
        given = _tensors(head["arguments"], payload)
        returned = list(_flat(fn(*_arguments(head["arguments"], given))))
        named = [given[a["name"]] for a in head["arguments"] if a.get("role") == "inout"]
        named += [given[name].grad for name in _gradients(head["arguments"])]
        entries, data = _entries(returned + named)
        said = {"returned": entries[: len(returned)], "named": entries[len(returned) :]}
        return {**said, "changed": _changed(head["arguments"], payload, given)}, data

    return work


def _gradients(arguments: list[Head]) -> list[str]:
    """The arguments whose gradients are outputs."""
    names = [a["name"] for a in arguments if a.get("role") == "out"]
    return [name.removesuffix(".grad") for name in names if name.endswith(".grad")]


def _tensors(arguments: list[Head], payload: bytes) -> dict[str, Any]:
    import torch

    found: dict[str, Any] = {}
    at = 0
    for argument in arguments:
        if argument.get("role") not in ("in", "inout"):
            continue
        tensor = torch.empty(argument["shape"], dtype=getattr(torch, argument["dtype"]))
        size = tensor.numel() * tensor.element_size()
        if size:
            data = torch.frombuffer(bytearray(payload[at : at + size]), dtype=tensor.dtype)
            tensor.copy_(data.reshape(tensor.shape))
        at += size
        found[argument["name"]] = tensor.requires_grad_() if argument["grad"] else tensor
    return found


def _changed(arguments: list[Head], payload: bytes, tensors: dict[str, Any]) -> list[str]:
    """The ``in`` arrays that differ from the task's."""
    before = _tensors(arguments, payload)
    return [
        a["name"]
        for a in arguments
        if a.get("role") == "in" and _entries([tensors[a["name"]]]) != _entries([before[a["name"]]])
    ]


def _arguments(arguments: list[Head], tensors: dict[str, Any]) -> list[Any]:
    """What the function is called with: ``a[0]``, ``a[1]`` … become one list."""
    given: dict[str, Any] = {}
    for argument in arguments:
        name = argument["name"]
        group, bracket, _ = name.partition("[")
        if "value" in argument:
            given[name] = argument["value"]
        elif name in tensors and bracket:
            given.setdefault(group, []).append(tensors[name])
        elif name in tensors:
            given[name] = tensors[name]
    return list(given.values())


def _flat(values: Any) -> Iterator[Any]:
    if isinstance(values, list | tuple):
        for value in values:
            yield from _flat(value)
    elif values is not None:
        yield values


def _entries(values: list[Any]) -> tuple[list[Entry], bytes]:
    import torch

    entries: list[Entry] = []
    parts: list[bytes] = []
    for value in values:
        dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
        if not isinstance(value, torch.Tensor):
            entries.append([type(value).__name__])
        elif dtype not in TYPES:
            entries.append([f"tensor of {dtype}"])
        else:
            array = value.detach().contiguous().cpu().numpy()
            entries.append([dtype, list(value.shape)])
            parts.append(array.tobytes())
    return entries, b"".join(parts)


# ---------------------------------------------------------------- ranks of a notebook


def main(connection: Any, job: bytes) -> None:
    """A rank of a notebook's check, in a process of its own: serves until the notebook is done with it."""
    import cloudpickle

    from gpulab.subjects.distributed.member import serve
    from gpulab.subjects.distributed.wired import Wire
    from gpulab.subjects.distributed.worker import Lines

    threading.Thread(target=_end_with_the_server, args=(os.getppid(),), daemon=True).start()
    wire = Wire(socket.socket(fileno=os.dup(connection.fileno())))
    fn: Any = None
    trouble: Exception | None = None
    try:
        fn = cloudpickle.loads(job)
    except Exception as error:  # said when the rank is asked, as what the function itself raises is
        trouble = error
    lines = Lines(lambda said: wire.say({"op": "line", "text": said[1][:2000]}))
    sys.stdout = sys.stderr = lines

    def work(head: Head, payload: bytes) -> tuple[Head, bytes]:
        try:
            if trouble:
                raise trouble
            return work_of(fn)(head, payload)
        finally:
            lines.close()

    with contextlib.suppress(BaseException):
        serve(wire, work, file_of(fn))
    os._exit(0)


def file_of(fn: Any) -> str:
    """The file of a function's code; empty where it has none."""
    return str(getattr(getattr(fn, "__code__", None), "co_filename", ""))


def _end_with_the_server(parent: int) -> None:
    """The server that ranks are forked from ends with the notebook."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
