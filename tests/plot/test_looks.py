"""What was once broken in how figures and cards look."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np
import pytest
from bs4 import BeautifulSoup
from PIL import Image

from gpulab import plot
from gpulab.foundation.display import Card, Code, Heading, Note, Row, Span, Table
from gpulab.plot import drawing, on_paper, style
from gpulab.plot.records import Point
from gpulab.simulator import hardware
from tests.conftest import find_browser
from tests.labs.notebooks import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SOURCES = sorted((ROOT / "solutions").glob("*/*.py"))
HEX = re.compile(r"[\"']#[0-9a-fA-F]{6}[\"']")
READABLE = 4.5  # WCAG 2.2, level AA
CARD = Card(
    (
        Heading(Span("memory.transpose", "strong"), "1.6 of 5 points"),
        Row("store sectors", "32.0 per request   budget 4   a plain copy needs 4", "0", "fail"),
        Code(9, "out[x, y] = a[y, x]"),
        Note("Neighbouring threads write addresses 384 bytes apart.", inset=True),
        Row("bank conflicts", "not looked at until the stores are fixed", "", "wait"),
        Table(("exercise", "points"), (("a", "2"),)),
    )
)


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    "paper, ink",
    [(on_paper.LIGHT, on_paper.LIGHT_INK), (on_paper.DARK, on_paper.DARK_INK), ("#ffffff", style.INK)],
)
def test_the_ink_of_figures_can_be_read_on_light_and_on_dark_paper(paper: str, ink: str) -> None:
    assert contrast(paper, ink) >= READABLE


@pytest.mark.parametrize("key", on_paper.TEXTS.values())
def test_a_word_in_a_colour_can_be_read_on_light_and_on_dark_paper(key: str) -> None:
    for paper, shade in zip((on_paper.LIGHT, on_paper.DARK), on_paper.SHADES[key], strict=True):
        assert contrast(paper, shade) >= READABLE


def test_a_blue_line_is_seen_and_white_is_read_on_a_blue_cell_on_either_paper() -> None:
    for paper, shade in zip((on_paper.LIGHT, on_paper.DARK), on_paper.SHADES[style.DEEP], strict=True):
        assert contrast(paper, shade) >= 3 and contrast("#ffffff", shade) >= READABLE


def test_every_colour_of_the_course_may_be_that_of_a_word() -> None:
    assert set(on_paper.TEXTS) == {"black", *style.SERIES, style.ALARM}
    keys = list(on_paper.SHADES)
    channels = np.array([[int(key[at : at + 2], 16) for at in (1, 3, 5)] for key in keys])
    apart = np.abs(channels[:, None] - channels).max(axis=-1)
    assert (apart[~np.eye(len(keys), dtype=bool)] > 4).all()  # no pixel belongs to two


def test_words_are_painted_for_their_paper_and_a_file_keeps_the_colour_that_was_asked_for() -> None:
    ax = plot.axes(3, 2)
    word = ax.annotate("here", (0.5, 0.5), color=plot.AMBER)
    assert "#8a5a00" in unquote(plot.picture(ax, "A word in amber.").html())
    assert word.get_color() == plot.AMBER


def test_a_word_without_a_colour_is_seen_on_dark_paper_and_one_in_a_cell_stays_as_it_is() -> None:
    ax = plot.axes(3, 2)
    ax.bar_label(ax.barh(["a", "b"], [1, 2], color=plot.AMBER))
    style.cell(ax, 0, 0, "7", style.AMBER)
    svg = unquote(plot.picture(ax, "Two bars and their numbers.").html())
    mask, colours = (
        np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
        for data in re.findall(r"data:image/png;base64,([^\"]+)", svg)
    )
    black = (colours[..., :3] < 40).all(axis=-1) & (colours[..., 3] > 200)
    rows, columns = np.nonzero(black)
    assert 0 < black.sum() < 60 and np.ptp(columns) < 30 and np.ptp(rows) < 30  # the 7 alone
    assert mask.any()


def test_a_figure_in_a_notebook_is_its_colours_and_its_ink_apart() -> None:
    html = plot.bars({"naive": 32, "yours": 4}, "sectors per request", budget=4).html()
    svg = unquote(BeautifulSoup(html, "html.parser").img["src"])  # type: ignore[index,arg-type]
    *masks, colours = (
        np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
        for data in re.findall(r"data:image/png;base64,([^\"]+)", svg)
    )
    assert len(masks) == 2 and all(mask.any() for mask in masks) and colours[..., 3].any()
    seen = colours[colours[..., 3] > 0][:, :3].astype(int)
    for colour in (style.INK, style.DEEP):
        key = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)])
        assert not (np.abs(seen - key) <= 2).all(axis=1).any()
    assert len(html) < 80_000


def test_a_grid_of_a_thousand_cells_weighs_less_than_200_kilobytes() -> None:
    place = np.arange(1200).reshape(30, 40)
    picture = plot.grid_map(plot.Coverage(place // 256, place % 256, np.ones_like(place), 0, "out"))
    assert len(picture.html()) < 200_000


def test_an_image_has_twice_the_dots_of_its_place_on_the_page() -> None:
    picture = plot.bars({"naive": 32, "yours": 4}, "sectors per request")
    shown = unquote(str(BeautifulSoup(picture.html(), "html.parser").img["src"]))  # type: ignore[index]
    width = float(re.search(r'<svg[^>]* width="([\d.]+)"', shown)[1])  # type: ignore[index]
    dots = re.search(r'viewBox="0 0 (\d+) \d+"', shown)[1]  # type: ignore[index]
    assert int(dots) == 2 * width == 2 * Image.open(io.BytesIO(picture.png())).size[0]


def test_the_caption_stands_below_the_figure_as_text_and_not_in_the_pixels() -> None:
    picture = plot.bars({"naive": 32, "yours": 4}, "sectors per request")
    shown = BeautifulSoup(picture.html(), "html.parser")
    assert shown.figcaption and shown.figcaption.get_text() == picture.caption
    assert shown.img and shown.img["alt"] == picture.caption
    whole = Image.open(io.BytesIO(picture.png())).size
    assert int(re.search(r'height="(\d+)', unquote(str(shown.img["src"])))[1]) <= whole[1]  # type: ignore[index]
    assert picture.figure.get_supxlabel() == " ".join(
        picture.caption.split()
    )  # for a file it is in the image


def test_a_point_above_the_roof_is_not_said_to_lie_under_it() -> None:
    roof = hardware.roofline("A100", "float32")
    points = [Point("cached", 1.0, 3 * roof.attainable(1.0)), Point("plain", 1.0, 0.5 * roof.attainable(1.0))]
    said = plot.roofline(points, "A100").caption
    assert "cached lies above the roof" in said and "plain lies under the slope" in said


def test_the_stroke_before_a_curves_name_is_dashed_as_the_curve_is() -> None:
    picture = plot.lines({"a": [(0, 1), (9, 2)], "b": [(0, 2), (9, 5)]}, "n", "value", "Both grow.")
    lines = [line.get_linestyle() for line in picture.axes.lines]
    strokes = [
        text.arrow_patch.get_linestyle() for text in picture.axes.texts if text.get_text() in ("a", "b")
    ]  # type: ignore[attr-defined]
    assert lines == ["-", "--"] and sorted(strokes) == sorted(lines)


def test_a_curve_that_stops_early_is_named_at_its_end_and_the_others_beside_the_axes() -> None:
    curves = {"short": [(0, 1), (4, 5)], "long": [(0, 1), (9, 2)], "again": [(0, 1), (9, 2)]}
    picture = plot.lines(curves, "n", "value", "One stops.")
    picture.png()
    inside = picture.axes.get_window_extent()
    named = {text.get_text(): text.get_window_extent() for text in picture.axes.texts if text.get_text()}
    assert inside.x0 < named["short"].x0 and named["short"].x1 < inside.x1
    assert min(named["long"].x0, named["again"].x0) > inside.x1 - 30  # with the strokes before them
    assert not named["long"].overlaps(named["again"])


def test_labs_take_the_colours_of_their_figures_from_the_course() -> None:
    assert {path.name: found for path in SOURCES if (found := HEX.findall(path.read_text()))} == {}


def test_the_lane_view_names_its_colours_its_warps_and_its_scale() -> None:
    axes = import_module("gpulab.plot.warp_lanes").sample().axes
    texts = " ".join(text.get_text() for text in axes.texts)
    assert "all 32 lanes take part" in texts and "some lanes" in texts
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == ["warp 0", "warp 1"]
    (scale,) = axes.child_axes
    assert [label.get_text() for label in scale.get_yticklabels()] == ["0 lanes", "32 lanes"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())
        yield browser
        browser.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1400, 600, 390, 320])
def test_a_card_keeps_its_words_whole_on_a_narrow_page(width: int, chromium: Browser) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 800})
    page.set_content(f"<!doctype html><body>{CARD.html()}</body>")
    for words in ("a plain copy needs 4", "not looked at until"):
        body = page.get_by_text(words)
        assert body.evaluate("e => e.getBoundingClientRect().width") >= min(180, width - 140)
        assert body.evaluate("e => e.getBoundingClientRect().height") < 90
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_words_at_a_point_of_a_drawing_stay_clear_of_the_name_at_the_end_of_its_line() -> None:
    words = "compute bound: at most 19,500 GFLOP/s"
    lines = [("roof", [(0, 0), (0.6, 0.8), (1, 0.8)], "read")]
    for across, side in ((0.1, "small"), (0.7, "end small")):
        part = drawing.curve(lines, "FLOP per byte", "FLOP/s", points=[(across, 0.8, words)])
        x, y, kind = re.search(rf'<text[^>]*x="([\d.]+)" y="([\d.]+)"[^>]*class="([^"]+)"[^>]*>{words}', part.svg).groups()  # fmt: skip # type: ignore[union-attr]
        assert kind == side and float(x) <= 26 + 400
        line = re.search(r'y="([\d.]+)"[^>]*>roof<', part.svg)
        assert side == "small" or (line and float(y) < float(line[1]) - 12)
