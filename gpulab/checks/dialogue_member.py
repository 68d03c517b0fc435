"""Calls a learner's function with functions that somebody else answers. In the judge's sandbox that is the
other end of a connection, so this imports little, and nothing that it says is believed."""

from __future__ import annotations

import socket
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from gpulab.subjects.distributed.frames import encode, read

from . import messages
from .compare import NotAnAnswer, normal
from .on_ranks import file_of

# What a function is given, as JSON: {"value": …}, or {"function": name} for one that is answered elsewhere.
Given = dict[str, Any]
# Answers a call: the place of the function among what is given, and the call's arguments.
Reply = Callable[[int, list[Any]], Any]


class Over(BaseException):
    """The other side wants no more calls. No Exception: `except Exception` lets it pass."""


def play(fn: Callable[..., Any], given: Sequence[Given], reply: Reply) -> Any:
    """Call `fn` with what is given; its answer in JSON's types.

    Raises what `fn` raises, and TypeError for an answer that JSON does not know.
    """
    values = [
        _stand_in(place, entry["function"], reply) if "function" in entry else entry["value"]
        for place, entry in enumerate(given)
    ]
    answer = fn(*values)
    try:
        return normal(answer)
    except NotAnAnswer as odd:
        raise TypeError(messages.odd_result(str(odd))) from None


def _stand_in(place: int, name: str, reply: Reply) -> Callable[..., Any]:
    """What the learner's function calls in the place of a function of the other side."""

    def call(*arguments: Any) -> Any:
        try:
            plain = [normal(argument) for argument in arguments]
        except NotAnAnswer as odd:
            raise TypeError(messages.odd_call(name, str(odd))) from None
        return reply(place, plain)

    call.__name__ = call.__qualname__ = name
    return call


def line_of(error: BaseException, file: str) -> int:
    """The innermost line of the learner's file that an error came through; 0 for none."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if file and f.filename == file]
    return frames[-1].lineno or 0 if frames else 0


def serve(connection: socket.socket, fn: Callable[..., Any] | None, exercise: str) -> None:
    """Play what the other side asks, until it goes on to the next exercise.

    Raises EOFError or OSError where it is gone.
    """

    def say(**head: Any) -> None:
        connection.sendall(encode(head))

    def reply(place: int, arguments: list[Any]) -> Any:
        say(op="call", place=place, arguments=arguments)
        head, _ = read(connection)
        if head["op"] != "reply":
            raise Over
        return head["value"]

    file = file_of(fn)
    say(op="ready", exercise=exercise, absent=fn is None)
    while True:
        head, _ = read(connection)
        if head["op"] == "next":
            return
        if head["op"] != "ask" or fn is None:  # told to stop after it had ended by itself
            continue
        try:
            said = encode({"op": "answer", "value": play(fn, head["given"], reply)})
        except (Exception, SystemExit, KeyboardInterrupt, Over) as error:
            kind, text = type(error).__name__, str(error)[:2000]
            line = line_of(error, file)
            said = encode({"op": "error", "kind": kind, "text": text, "line": line, "file": file})
        connection.sendall(said)
