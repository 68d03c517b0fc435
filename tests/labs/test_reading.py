"""A learner reads a little and then does something: how many words of a lab are read in one go."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "labs").glob("[0-9]*/*.ipynb"))

WORDS = 300  # a section's text is one idea, and its task, which says all that it needs, follows
WORDS_IN_A_TABLE = 40  # in one of its cells: a table is looked at, and no place for a page of text

# Headings under which the text is not read in one go, with the reason.
NOT_READ_IN_ONE_GO = {
    "Cheat sheet": "looked up when it is needed",
    "References": "looked up when it is needed",
    "Claims you will meet, and what is right": "a list to look a claim up in",
    "What common guides get wrong": "a list to look a claim up in",
    "6 · What to read": "a list of books and papers to choose from",
}

# What is folded until a learner asks for it, and what is looked at rather than read: tables, code,
# drawings (their alt text is for those who do not see them).
FOLDED_OR_LOOKED_AT = re.compile(
    r"<details>.*?</details>|^```.*?^```|^(?:\||    ).*?$|<!--.*?-->|!\[[^\]]*\]\([^)]*\)",
    re.DOTALL | re.MULTILINE,
)
ADDRESS_OR_TAG = re.compile(r"(?<=\])\([^)]*\)|</?\w[^>]*>")
TABLE_ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def words(text: str) -> int:
    """How many words a learner reads in one go in a stretch of Markdown."""
    parts = HEADING.split(FOLDED_OR_LOOKED_AT.sub("", text))  # text, heading, text, heading, text …
    read = [
        parts[0],
        *(
            s
            for h, t in zip(parts[1::2], parts[2::2], strict=True)
            if h not in NOT_READ_IN_ONE_GO
            for s in (h, t)
        ),
    ]
    plain = ADDRESS_OR_TAG.sub("", " ".join(read))
    return sum(any(letter.isalnum() for letter in word) for word in plain.split())


def stretches(cells: Iterable[dict]) -> Iterator[str]:
    """The texts between what a learner does, without the front page: cells of text in a row are one.

    A learner does something in a code cell, and in the cell of a written answer.
    """
    texts: list[str] = []
    begun = False
    for cell in [*cells, {"cell_type": "code"}]:
        written_answer = cell.get("metadata", {}).get("nbgrader", {}).get("solution", False)
        if cell["cell_type"] == "markdown" and not written_answer:
            texts.append("".join(cell["source"]))
        else:
            if begun and texts:
                yield "\n\n".join(texts)
            begun, texts = True, []


@cache
def lab_texts(path: Path) -> list[str]:
    return list(stretches(json.loads(path.read_text(encoding="utf-8"))["cells"]))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_between_two_code_cells_stands_no_more_than_is_read_in_one_go(path):
    long = {f"{text.strip().splitlines()[0]} …": n for text in lab_texts(path) if (n := words(text)) > WORDS}
    assert long == {}, "cut these in two, with something to run between them, or fold what is looked up"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_cell_of_a_table_is_no_paragraph(path):
    rows = [row for text in lab_texts(path) for row in TABLE_ROW.findall(text)]
    assert [cell for row in rows for cell in row.split("|") if words(cell) > WORDS_IN_A_TABLE] == []


def test_each_heading_that_is_not_read_in_one_go_is_in_some_lab():
    there = {h for path in NOTEBOOKS for text in lab_texts(path) for h in HEADING.findall(text)}
    assert set(NOT_READ_IN_ONE_GO) <= there


def test_words_are_those_that_a_learner_reads():
    assert words("## 1 · Two words\n\nA [link](https://a.example/b) and x – five.") == 3 + 5
    assert (
        words(
            "One.\n\n| a | table |\n\n```python\na = 1\n```\n\n<details><summary>Folded</summary>\nno\n</details>\n"
        )
        == 1
    )
    assert words("One.\n\n## References\n\nA book.\n\n## Next\n\nTwo.") == 3


def test_cells_of_text_in_a_row_are_one_stretch_and_the_front_page_is_none():
    cells = [
        ("markdown", "front"),
        ("code", ""),
        ("markdown", "a"),
        ("markdown", "b"),
        ("code", ""),
        ("markdown", "c"),
    ]
    assert list(stretches({"cell_type": kind, "source": [text]} for kind, text in cells)) == ["a\n\nb", "c"]
