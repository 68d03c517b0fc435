"""The drawings of the labs: committed as they are drawn, each in its lab with its words, and all can be read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest

from gpulab.plot.drawing import TooWide, box, flow, page, palette
from grading.authoring import drawings
from grading.core.course import Course

ROOT = Path(__file__).resolve().parents[2]
ALL = list(drawings.drawings())
USED = re.compile(r"!\[([^\]]*)\]\(drawings/(\w+)\.svg\)")
SVG = "{http://www.w3.org/2000/svg}"
READABLE = 4.5  # WCAG 2.2, level AA


def used(folder: Path) -> dict[str, str]:
    """Names and alt texts of the drawings in a lab's sources."""
    return {
        name: alt for source in folder.glob("*.py") for alt, name in USED.findall(source.read_text("utf-8"))
    }


def test_there_are_as_many_as_the_course_needs_and_no_two_of_one_name():
    assert len(ALL) >= 80
    assert len({(each.lab, each.name) for each in ALL}) == len(ALL)


def test_the_files_are_what_the_data_says():
    wanted = drawings.files(Course(ROOT))
    assert {path for path in (ROOT / "solutions").glob("*/drawings/*")} == set(wanted)
    assert [path.name for path, text in wanted.items() if path.read_text("utf-8") != text] == [], (
        "run: python -m grading draw"
    )


@pytest.mark.parametrize("lab", sorted({each.lab for each in ALL}))
def test_every_drawing_is_in_its_lab_with_the_words_that_it_has_itself(lab):
    assert used(ROOT / "solutions" / lab) == {each.name: each.alt for each in ALL if each.lab == lab}


def test_no_drawing_tears_a_table_from_its_heads():
    torn = [
        f"{source.name}, line {number}"
        for source in sorted((ROOT / "solutions").glob("*/*.py"))
        for lines in [source.read_text("utf-8").splitlines()]
        for number, (before, line) in enumerate(pairwise(lines), 2)
        if re.fullmatch(r"# \|[-:| ]*-[-:| ]*", line) and not before.startswith("# |")
    ]
    assert torn == []


@pytest.mark.parametrize("each", ALL, ids=lambda each: f"{each.lab[:2]}-{each.name}")
def test_a_drawing_is_valid_says_what_to_see_and_stays_on_its_card(each):
    root = ET.fromstring(page(each.part, each.alt))
    assert root.attrib["aria-label"] == each.alt and len(each.alt) > 40 and each.alt.endswith(".")
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert width == 600 and 60 < height < 620
    assert root.find(f".//{SVG}text") is not None, "a drawing without a word"
    assert len(page(each.part, each.alt)) < 60_000


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("on", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
def test_words_can_be_read_on_every_colour_of_both_papers(on):
    assert contrast(on.soft, on.paper) >= READABLE
    for name, colour in palette.TONES.items():
        share = on.share / 2 if name == "plain" else on.share
        assert contrast(on.ink, palette.mixed(colour, share, on.paper)) >= READABLE, name


def test_what_is_too_wide_to_be_read_on_a_card_is_refused():
    with pytest.raises(TooWide, match="fit on a card"):
        page(flow(*[box("a rather long box")] * 6), "Six boxes.")
    with pytest.raises(ValueError, match="needs words"):
        page(box("a"), " ")
