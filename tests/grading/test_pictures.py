"""Pictures that are pasted into a written answer reach the grader; what is no picture is a sentence."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib

import pytest
from bs4 import BeautifulSoup
from nbformat import NotebookNode
from PIL import Image

from grading.core import pictures, texts
from grading.core.graft import Graft, graft
from grading.core.notebooks import read_submitted
from grading.core.pictures import CELL, NOTEBOOK, REFUSALS, Album, header, note
from tests.grading import pages
from tests.grading.conftest import LAB, Class, cell_of

KIND, PIXELS, BYTES = REFUSALS
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
LONG = "x" * 200


def image(kind: str, size: tuple[int, int] = (40, 30), **options: object) -> bytes:
    said = io.BytesIO()
    Image.new("RGB", size, "teal").save(said, kind, **options)
    return said.getvalue()


def padded(content: bytes, size: int) -> bytes:
    """A picture of so many bytes; browsers ignore what follows its end."""
    return content + b"\0" * (size - len(content))


def text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def cell(**attachments: bytes) -> dict[str, object]:
    """A written answer that shows its pictures, all of which claim to be PNG."""
    bundles = {name: {"image/png": text(content)} for name, content in attachments.items()}
    return {"source": " ".join(f"![{n}](attachment:{n})" for n in attachments), "attachments": bundles}


def carried(album: Album | None = None, **attachments: bytes) -> dict[str, str]:
    """MIME type or reason, by name."""
    given = cell(**attachments)
    found = (album or Album()).of(given, str(given["source"]))
    return {name: bundle.get("text/plain", next(iter(bundle))) for name, bundle in found.items()}


def hand_in(school: Class, student: str, source: str, attachments: object) -> Graft:
    def paste(notebook: NotebookNode) -> None:
        cell_of(notebook, "why").attachments = attachments

    path = school.hand_in(student, {"why": source}, paste)
    return graft(school.released, read_submitted(path), LAB, LAB)


def test_a_pasted_picture_is_in_the_feedback_and_in_formgrader(school: Class) -> None:
    photo = image("JPEG")
    named = {"image.png": {"image/png": text(image("PNG"))}, "my sketch.jpg": {"image/jpeg": text(photo)}}
    hand_in(school, "ann", "Banks: ![the banks](attachment:image.png) ![](attachment:my%20sketch.jpg)", named)
    pages.write(school, "ann")
    for page in pages.pages(school, "ann").values():
        first, second = BeautifulSoup(page, "html.parser").select("img")
        assert first["alt"] == "the banks" and first["src"] == f"data:image/png;base64,{text(image('PNG'))}"
        assert second["src"] == f"data:image/jpeg;base64,{text(photo)}"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (image("PNG"), "image/png"),
        (image("JPEG"), "image/jpeg"),
        (image("JPEG", progressive=True, exif=b"Exif\0\0" + b"\0" * 40), "image/jpeg"),
        (image("GIF"), KIND),
        (image("WEBP"), KIND),
        (SVG, KIND),
        (b"\x89PNG\r\n\x1a\n" + SVG, KIND),
        (b"\xff\xd8\xff" + SVG, KIND),
        (image("PNG")[:28], KIND),
        (image("PNG").replace(b"IHDR", b"IHDX"), KIND),
        (image("JPEG")[:20], KIND),
        (b"\xff\xd8\xff\xe0\0\2" + b"\xff\xe0\0\2" * 300_000, KIND),
        (b"\xff" * 300_000, KIND),
        (b"", KIND),
        (padded(image("PNG"), CELL + 1), BYTES),
    ],
    ids=lambda value: texts.clean(value[:12] if isinstance(value, bytes) else value, 20),
)
def test_a_picture_is_what_its_bytes_say(content: bytes, kind: str) -> None:
    assert carried(x=content) == {"x": kind}


def test_a_picture_of_too_many_pixels_is_not_carried() -> None:
    head = b"IHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    huge = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    assert header(huge) == ("image/png", 3_600_000_000)
    assert carried(x=huge) == {"x": PIXELS}


def test_pictures_have_a_limit_for_a_cell_and_one_for_a_notebook() -> None:
    half = padded(image("PNG"), CELL // 2)
    assert carried(a=half, b=half, c=image("JPEG")) == {"a": "image/png", "b": "image/png", "c": BYTES}
    album = Album()
    for _ in range(NOTEBOOK // CELL):
        assert carried(album, a=half, b=half) == {"a": "image/png", "b": "image/png"}
    assert carried(album, a=image("PNG")) == {"a": BYTES}


@pytest.mark.parametrize(
    "attachments",
    [
        None,
        [],
        "x",
        {"x": None},
        {"x": []},
        {"x": {}},
        {"x": {"image/png": None}},
        {"x": {"image/png": ["iVBO"]}},
        {"x": {"image/png": "no base64!"}},
        {"x": {"image/svg+xml": text(SVG)}},
        {"x": {"text/html": "<script>alert(1)</script>"}},
        {"x": {"text/plain": "<script>alert(1)</script>"}},
        {"x": {"text/plain": KIND, "image/svg+xml": text(SVG)}},
        {f"x{i}": {"image/png": "x"} for i in range(10_000)},
    ],
    ids=lambda value: texts.clean(value, 40),
)
def test_whatever_attachments_are_the_page_says_a_sentence_and_no_more(
    school: Class, attachments: object
) -> None:
    hand_in(school, "ann", "![x](attachment:x) End.", attachments)
    pages.write(school, "ann")
    for page in pages.pages(school, "ann").values():
        assert "The picture “x” is not shown" in page and "End." in page
        assert not BeautifulSoup(page, "html.parser").select("img")
        assert "alert(1)" not in page and text(SVG) not in page


def test_a_grader_is_told_of_pictures_that_are_not_shown_and_the_learner_of_the_reason(
    school: Class,
) -> None:
    hand_in(school, "ann", "![x](attachment:x)", {"x": {"image/svg+xml": text(SVG)}})
    pages.write(school, "ann")
    shown = pages.pages(school, "ann")
    for page in shown.values():
        assert KIND in page
    assert "Pictures not shown: 1 of 1" in shown["formgrader"]
    assert "Pictures not shown" not in shown["feedback"]
    assert note({"x": {"image/png": ""}}) == ""


def test_a_picture_is_shown_once_and_one_that_the_text_does_not_show_stays_behind(school: Class) -> None:
    named = {"a": {"image/png": text(image("PNG"))}, "old": {"image/png": text(padded(image("PNG"), CELL))}}
    found = hand_in(school, "ann", "![x](attachment:a)" * 1000, named)
    assert set(cell_of(found.notebook, "why").attachments) == {"a"}
    pages.write(school, "ann")
    for page in pages.pages(school, "ann").values():
        assert page.count("data:image/png") == 1 and page.count("it is shown further up") == 999


def test_another_picture_makes_another_submission_and_a_graft_of_a_graft_is_the_same(school: Class) -> None:
    def of(content: bytes) -> Graft:
        bundles = {"x": {"image/png": text(content)}, "y": {"image/svg+xml": text(SVG)}}
        return hand_in(school, "ann", "![x](attachment:x)![y](attachment:y)", bundles)

    first, second = of(image("PNG")), of(image("JPEG"))
    assert first.digest != second.digest
    for base in (school.released, first.notebook):
        again = graft(base, json.loads(json.dumps(first.notebook.cells)), LAB, LAB)
        assert again.digest == first.digest
        assert cell_of(again.notebook, "why") == cell_of(first.notebook, "why")


def test_no_answer_is_read_beyond_its_limits() -> None:
    many = {f"x{i}": {"image/png": "x"} for i in range(10_000)}
    found = Album().of({"attachments": many}, "attachment:x")
    assert len(found) <= pictures.MOST
