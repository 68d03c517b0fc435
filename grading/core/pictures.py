"""Pictures that a learner pastes into a written answer: PNG and JPEG, recognised by what is in them."""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

from grading.core import texts

CELL, NOTEBOOK = 4_000_000, 8_000_000  # bytes of the pictures of one answer, and of all answers
PIXELS = 100_000_000  # of one picture: a browser needs four bytes for each
MOST = 50  # attachments of a cell that are looked at
SEGMENTS = 1000  # of a JPEG, before its size is found

Attachments = dict[
    str, dict[str, str]
]  # by name: a MIME type and base64, or text/plain and why there is none

REFUSALS = (
    texts.NO_PICTURE,
    texts.PICTURE_PIXELS.format(pixels=PIXELS),
    texts.PICTURE_BYTES.format(cell=CELL, notebook=NOTEBOOK),
)
_KIND, _PIXELS, _BYTES = REFUSALS


class Album:
    """The pictures of one notebook, answer by answer."""

    def __init__(self) -> None:
        self.room = NOTEBOOK

    def of(self, cell: Mapping[str, Any], source: str) -> Attachments:
        """The attachments of a submitted cell that its text shows.

        One that is refused is replaced by the reason (of REFUSALS), as text/plain. What this gives is not
        changed by doing it again.
        """
        room = min(CELL, self.room)
        found: Attachments = {}
        for name, bundle in _shown(cell.get("attachments"), source):
            kind, content = _picture(bundle)
            if kind in REFUSALS:
                found[name] = {"text/plain": kind}
            elif len(content) > room:
                found[name] = {"text/plain": _BYTES}
            else:
                found[name] = {kind: base64.b64encode(content).decode()}
                room -= len(content)
                self.room -= len(content)
        return found


def _shown(attachments: object, source: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Those that the text refers to; JupyterLab keeps others, too, and quotes a name with blanks."""
    if not isinstance(attachments, dict):
        return
    for name, bundle in islice(attachments.items(), MOST):
        names = (name, quote(name, errors="replace"))
        if isinstance(bundle, dict) and any(f"attachment:{n}" in source for n in names):
            yield name, bundle


def _picture(bundle: Mapping[str, Any]) -> tuple[str, bytes]:
    """MIME type and content of the first picture in it, or one of REFUSALS and nothing."""
    why = bundle.get("text/plain")
    if len(bundle) == 1 and why in REFUSALS:
        return str(why), b""
    for value in islice(bundle.values(), MOST):
        if not isinstance(value, str):
            continue
        text = "".join(value.split())
        if len(text) > 4 * (CELL // 3 + 1):
            return _BYTES, b""
        try:
            content = base64.b64decode(text, validate=True)
            kind, pixels = header(content)
        except (ValueError, binascii.Error):
            continue
        return (kind, content) if pixels <= PIXELS else (_PIXELS, b"")
    return _KIND, b""


def note(attachments: Mapping[str, Mapping[str, str]]) -> str:
    """What a grader must know of an answer's pictures; empty where all are shown. Quotes no learner."""
    refused = [bundle["text/plain"] for bundle in attachments.values() if "text/plain" in bundle]
    why = "; ".join(dict.fromkeys(refused))
    return texts.PICTURES_NOTE.format(number=len(refused), of=len(attachments), why=why) if refused else ""


def header(content: bytes) -> tuple[str, int]:
    """The MIME type and the number of pixels that the header of a PNG or JPEG gives.

    Raises ValueError for anything else.
    """
    try:
        if content.startswith(b"\x89PNG\r\n\x1a\n"):
            kind, (width, height) = "image/png", _png(content)
        elif content.startswith(b"\xff\xd8\xff"):
            kind, (width, height) = "image/jpeg", _jpeg(content)
        else:
            raise ValueError("neither PNG nor JPEG")
    except (struct.error, IndexError) as error:
        raise ValueError("cut off") from error
    if not width * height:
        raise ValueError("no pixels")
    return kind, width * height


def _png(content: bytes) -> tuple[int, int]:
    length, name, width, height = struct.unpack_from(">I4sII", content, 8)
    (check,) = struct.unpack_from(">I", content, 29)
    if (length, name) != (13, b"IHDR") or check != zlib.crc32(content[12:29]):
        raise ValueError("no header of a PNG")
    return width, height


def _jpeg(content: bytes) -> tuple[int, int]:
    place = 2
    for _ in range(SEGMENTS):
        while content[place : place + 2] == b"\xff\xff":  # padding
            place += 1
        start, mark = struct.unpack_from(">BB", content, place)
        if start != 0xFF or mark in (0x00, 0xD9, 0xDA):  # the picture itself begins, and has no size
            break
        place += 2
        if mark == 0x01 or 0xD0 <= mark <= 0xD7:  # marks that stand alone
            continue
        (length,) = struct.unpack_from(">H", content, place)
        if 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", content, place + 3)
            return width, height
        place += max(length, 2)
    raise ValueError("no header of a JPEG")
