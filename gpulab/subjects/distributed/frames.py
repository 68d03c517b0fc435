"""How ranks and their network talk: frames of a small JSON head and raw bytes. Nothing is unpickled.

A frame is the length of the head (4 bytes), the length of the payload (8 bytes, both big-endian), the head,
the payload. Whoever reads checks the lengths before it reads on. Imports nothing that is not in Python.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from typing import Any

LENGTHS = struct.Struct("!IQ")
LARGEST_HEAD = 64 << 10
LARGEST_PAYLOAD = 8 << 20

Head = dict[str, Any]


class BadFrame(ValueError):
    """These bytes are no frame."""


def encode(head: Head, payload: bytes = b"") -> bytes:
    """The bytes of a frame. Raises BadFrame for one that nobody would read."""
    text = json.dumps(head, separators=(",", ":")).encode()
    _check_lengths(len(text), len(payload))
    return LENGTHS.pack(len(text), len(payload)) + text + payload


def read(connection: socket.socket) -> tuple[Head, bytes]:
    """Wait for one frame. Raises EOFError where the other side is gone."""
    head, payload = LENGTHS.unpack(_read(connection, LENGTHS.size))
    _check_lengths(head, payload)
    return _head(_read(connection, head)), _read(connection, payload)


def _read(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


class Reader:
    """Makes frames of bytes as they come; of one that is larger than it may be, nothing is kept.

    `head` and `payload` are the most bytes of each.
    """

    def __init__(self, head: int = LARGEST_HEAD, payload: int = LARGEST_PAYLOAD) -> None:
        self.data = bytearray()
        self._most = head, payload

    def feed(self, data: bytes) -> Iterator[tuple[Head, bytes]]:
        """The frames that are whole now. Raises BadFrame."""
        self.data += data
        while len(self.data) >= LENGTHS.size:
            head, payload = LENGTHS.unpack_from(self.data)
            _check_lengths(head, payload, self._most)
            end = LENGTHS.size + head + payload
            if len(self.data) < end:
                return
            middle = LENGTHS.size + head
            with memoryview(self.data) as view:
                text, rest = bytes(view[LENGTHS.size : middle]), bytes(view[middle:end])
            del self.data[:end]
            yield _head(text), rest


def _check_lengths(head: int, payload: int, most: tuple[int, int] = (LARGEST_HEAD, LARGEST_PAYLOAD)) -> None:
    if head > most[0] or payload > most[1]:
        raise BadFrame(f"a frame of {head:,} + {payload:,} bytes")


def _head(text: bytes) -> Head:
    try:
        head = json.loads(text)
    except (ValueError, RecursionError):
        raise BadFrame("a head that is no JSON") from None
    if not isinstance(head, dict):
        raise BadFrame("a head that is no object")
    return head
