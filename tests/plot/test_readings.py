"""A still figure answers the pointer and the arrow keys, with numbers that it was given."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest
from bs4 import BeautifulSoup, Tag
from PIL import Image

from gpulab import plot
from gpulab.plot import Coverage, Request, Span, readings, style
from tests.conftest import find_browser

if TYPE_CHECKING:
    from playwright.sync_api import Page

SQUARES = {"twice": [(n, 2 * n) for n in range(1, 9)], "squared": [(n, n * n) for n in range(1, 9)]}


def buttons(picture: plot.Picture) -> list[Tag]:
    return list(BeautifulSoup(picture.html(), "html.parser").select(".gpulab-read input"))


def said(picture: plot.Picture) -> list[str]:
    return [str(button["aria-label"]) for button in buttons(picture)]


def number(look: str, name: str) -> float:
    found = re.search(rf"(?:^|;){name}:([\d.]+)%", look)
    assert found
    return float(found[1]) / 100


def test_a_curve_says_its_own_points_and_nothing_in_between() -> None:
    words = said(plot.lines(SQUARES, "n", "value", "One is steeper."))
    assert words == [f"n: {n}\ntwice: {2 * n}\nsquared: {n * n}" for n in range(1, 9)]


def test_a_curve_without_a_point_at_a_place_is_silent_there() -> None:
    words = said(plot.lines({"a": [(0, 1), (9, 2)], "b": [(0, 3), (5, 4), (9, 5)]}, "n", "v", "Two."))
    assert words[1] == "n: 5\nb: 4"


def test_points_that_lie_too_near_together_to_be_pointed_at_are_thinned_out() -> None:
    words = said(plot.lines({"a": [(n, n) for n in range(5000)]}, "n", "v", "Many."))
    assert readings.STRIPS / 2 < len(words) <= readings.STRIPS + 1
    assert "n: 0\nv: 0" in words


def test_places_on_a_logarithmic_axis_are_as_easy_to_hit_as_others() -> None:
    found = buttons(plot.lines({"a": [(2**k, k) for k in range(1, 13)]}, "n", "v", "Powers.", log_x=True))
    widths = [number(str(button["style"]), "width") for button in found]
    assert len(widths) == 12 and max(widths[1:-1]) < 1.1 * min(widths[1:-1])


@pytest.mark.parametrize("log", [False, True])
def test_the_dot_of_a_reading_lies_on_its_curve(log: bool) -> None:
    curve = [(n, 2 + (n * 7) % 5) for n in range(1, 12)]
    picture = plot.lines({"a": curve}, "n", "value", "It jumps.", log_x=log, log_y=log)
    image = np.asarray(Image.open(io.BytesIO(picture._without_caption(220))).convert("RGB")).astype(int)
    height, width = image.shape[:2]
    key = np.array([int(style.DEEP[at : at + 2], 16) for at in (1, 3, 5)])
    found = buttons(picture)
    assert len(found) == len(curve)
    for button in found[1:-1]:
        look = str(button["style"])
        across = number(look, "left") + number(look, "width") * number(look, "--x")
        down = re.search(r"circle at 50% ([\d.]+)%", look)
        assert down
        x = round(width * across)
        y = round(height * (number(look, "top") + number(look, "height") * float(down[1]) / 100))
        near = image[y - 6 : y + 7, x - 6 : x + 7].reshape(-1, 3)
        assert (np.abs(near - key) <= 40).all(axis=1).any(), look


def test_a_bar_says_how_it_compares() -> None:
    counts = {"naive": 32, "yours": 4}
    assert said(plot.bars(counts, "sectors", budget=4))[0] == "naive\n32 sectors\n8 × the budget"
    assert said(plot.bars(counts, "sectors")) == ["naive\n32 sectors\n8 × yours", "yours\n4 sectors"]
    assert len(said(plot.bars({"a": 1, "b": 0, "c": 5000}, "ms", log=True))) == 3


def test_a_span_says_when_it_begins_and_ends() -> None:
    picture = plot.timeline(
        [Span("copy", 0, 4, "tile 1", "tile 1"), Span("kernel", 4, 9, "tile 1", "tile 1")]
    )
    assert said(picture) == ["copy: tile 1\n0 to 4: 4 µs", "kernel: tile 1\n4 to 9: 5 µs"]


def test_a_sector_says_who_asked_for_it_and_how_much_of_it_is_used() -> None:
    request = Request(4096 + 8 * np.arange(32), base=4096, array="a", line=9, text="out[i] = a[2 * i]")
    words = said(plot.accesses(request))
    assert words[1] == "bytes 32 to 63\nasked for by lanes 4 to 7\n16 of 32 bytes are used"
    assert len(words) == 8


def test_elements_say_which_threads_touch_them_and_that_nobody_does() -> None:
    place = np.arange(70)
    words = said(plot.grid_map(Coverage(np.where(place < 66, place // 48, -1), place % 48, array="out")))
    assert words[:3] == [
        "out[0 to 31]\nblock 0, threads 0 to 31",
        "out[32 to 47]\nblock 0, threads 32 to 47",
        "out[48 to 63]\nblock 1, threads 0 to 15",
    ]
    assert words[-1] == "out[66 to 69]\nno thread"


def test_readings_weigh_less_than_their_image() -> None:
    picture = plot.lines({str(k): [(n, n * k) for n in range(500)] for k in range(4)}, "n", "v", "Many.")
    html = picture.html()
    assert html.count("<input") > 50 and len(html) < 130_000


# ---- in a browser, without a script ----------------------------------------------------------------


@pytest.fixture
def page() -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())
        context = browser.new_context(java_script_enabled=False, viewport={"width": 1000, "height": 700})
        page = context.new_page()
        figure = plot.lines(SQUARES, "n", "value", "One is steeper.").html()
        page.set_content(f'<!doctype html><meta charset="utf-8"><body>{figure}</body>')
        yield page
        browser.close()


def shown(page: Page) -> list[str]:
    """The words that are to be seen."""
    return [
        button.get_attribute("aria-label") or ""
        for button in page.locator(".gpulab-read input").all()
        if button.evaluate("b => getComputedStyle(b, '::after').visibility") == "visible"
    ]


@pytest.mark.browser
def test_pointing_and_the_arrow_keys_show_a_reading_without_a_script(page: Page) -> None:
    assert shown(page) == []
    page.locator(".gpulab-read input").nth(3).hover()
    assert shown(page) == ["n: 4\ntwice: 8\nsquared: 16"]
    page.mouse.move(990, 690)
    assert shown(page) == []
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert shown(page) == ["n: 3\ntwice: 6\nsquared: 9"]
    page.locator(".gpulab-read input").nth(6).hover()  # the keys have the word
    assert shown(page) == ["n: 3\ntwice: 6\nsquared: 9"]


@pytest.mark.browser
def test_a_reading_stays_inside_its_figure_and_print_has_none(page: Page) -> None:
    frame = page.locator(".gpulab-figure")
    for index in range(8):
        page.locator(".gpulab-read input").nth(index).hover()
        assert frame.evaluate("f => f.scrollWidth <= f.clientWidth && f.scrollHeight <= f.clientHeight")
    page.emulate_media(media="print")
    assert not page.locator(".gpulab-read input").first.is_visible()


@pytest.mark.browser
def test_a_figure_is_as_wide_as_its_letters_need_on_a_phone_and_its_readings_stay_on_it(page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 700})
    image = page.locator(".gpulab-read img").bounding_box()
    cover = page.locator(".gpulab-read").bounding_box()
    assert image and cover and image["width"] == cover["width"] == style.READABLE
