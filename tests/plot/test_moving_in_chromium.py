"""Figures that move, in Chromium, on a plain page: no kernel, no network, no server."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpulab.checks import pictures
from gpulab.checks.compare import mismatch
from gpulab.plot.moving import Moving, Pattern, RoofTrail, WarpAccess, bundle
from gpulab.plot.records import Point
from gpulab.simulator.observe import patterns
from gpulab.simulator.simt.errors import Outside
from tests.conftest import find_browser
from tests.plot.moving_samples import long_run, neighbours
from tests.plot.test_moving_frames import FIGURES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.browser

QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
SHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
READABLE = 4.5  # WCAG 2.2, level AA

START = datetime(2026, 1, 1)

Opener = Callable[..., "Page"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def show(chromium: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Opens figures in a page; what the browser complains of fails the test. Options are a context's."""
    contexts, complaints = [], []

    def open_page(*figures: Moving, html: str = "", drawn: bool = True, **options: Any) -> Page:
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        style = "<style>@media(prefers-color-scheme:dark){html{background:#111;color:#fff;color-scheme:dark}}</style>"
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Figures</title>{style}'
        (tmp_path / "page.html").write_text(head + "".join(f.html() for f in figures) + html)
        page.clock.install(time=START)
        page.goto((tmp_path / "page.html").as_uri())
        if drawn:
            for i in range(len(figures)):
                page.locator(".player").nth(i).wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def slider(page: Page) -> Locator:
    return page.locator(".controls input").first


def state(page: Page) -> list[Any]:
    """All that a figure of steps shows and that depends on the step."""
    return page.locator(".player").first.evaluate(
        """player => [player.querySelector(".caption").textContent,
            ...[...player.querySelectorAll(".cell, .lane, td, li")].map(e => e.className + "|" + e.textContent)]"""
    )


def test_every_step_says_what_python_says(show: Opener) -> None:
    page, steps = show(neighbours().figure()), neighbours()
    for i in range(len(steps.steps)):
        if i > 0:
            page.get_by_label("one step forward").click()
        assert page.locator(".caption").inner_text() == steps.told(i)
        assert page.locator(".place").inner_text() == f"step {i + 1} of 10"


def test_a_step_lights_its_line_fills_its_lanes_and_paints_its_cells(show: Opener) -> None:
    page = show(neighbours().figure())
    slider(page).fill("7")
    assert page.locator("li.current code").inner_text().strip() == "out[t] = tile[t] + tile[t + 1]"
    assert page.locator(".warp").nth(0).locator(".lane.active").count() == 16
    assert page.locator(".warp").nth(1).locator(".lane.barrier").count() == 32
    a, tile, out = (page.locator(".array").nth(i) for i in range(3))
    assert a.locator(".cell.earlier").count() == 64
    assert tile.locator(".cell.read").count() == 32
    assert out.locator(".cell.write").all_inner_texts() == [f"{4 * i + 1}.0" for i in range(16)]
    assert page.locator("td.changed").count() == 0
    slider(page).fill("8")
    assert page.locator("td.changed").all_inner_texts() == ["0"]  # of thread 32, not again of thread 0


def test_a_cell_says_who_touched_it(show: Opener) -> None:
    page = show(neighbours().figure())
    slider(page).fill("9")
    cell = page.locator(".array").nth(2).locator(".cell").nth(34)
    cell.hover()
    assert cell.get_attribute("title") == "out[34] = 69.0\nwritten by thread 34, line 8"


def test_going_back_shows_what_was_there(show: Opener) -> None:
    page = show(neighbours().figure())
    seen = []
    for i in range(10):
        slider(page).fill(str(i))
        seen.append(state(page))
    for i in (8, 3, 5, 0, 9):
        slider(page).fill(str(i))
        assert state(page) == seen[i]


def test_a_figure_says_how_to_use_it_until_somebody_does(show: Opener) -> None:
    page = show(neighbours().figure())
    assert page.locator(".how").inner_text().startswith("Press play, drag the slider or use the arrow keys.")
    assert "Point at a cell" in page.locator(".how").inner_text()
    page.get_by_label("one step forward").click()
    assert page.locator(".how").count() == 0


def test_the_keyboard_steps_plays_and_jumps(show: Opener) -> None:
    page = show(neighbours().figure())
    place = page.locator(".place")
    page.keyboard.press("Tab")  # the first button: arrows work on it, too
    said = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "Home"):
        page.keyboard.press(key)
        said.append(place.inner_text().split()[1])
    assert said == ["2", "3", "2", "10", "1"]
    slider(page).focus()
    page.keyboard.press("ArrowRight")
    assert place.inner_text() == "step 2 of 10"
    page.keyboard.press(" ")
    assert page.get_by_label("pause").count() == 1
    page.keyboard.press(" ")
    assert page.get_by_label("pause").count() == 0


@pytest.mark.parametrize(("motion", "pace"), [("no-preference", 900), ("reduce", 1800)])
def test_playing_runs_to_the_end_and_slower_for_who_wants_less_motion(
    show: Opener, motion: Any, pace: int
) -> None:
    page = show(neighbours().figure(), reduced_motion=motion)
    place, caption = page.locator(".place"), page.locator(".caption")
    page.clock.pause_at(START + timedelta(days=1))
    page.get_by_label("play").click()
    assert caption.get_attribute("aria-live") == "off"
    page.clock.run_for(pace - 1)
    assert place.inner_text() == "step 1 of 10"
    page.clock.run_for(2)
    assert place.inner_text() == "step 2 of 10"
    page.clock.run_for(10 * pace)
    assert place.inner_text() == "step 10 of 10"
    assert page.get_by_label("pause").count() == 0
    assert caption.get_attribute("aria-live") == "polite"
    changing = page.locator(".cell").first.evaluate("cell => getComputedStyle(cell).transitionDuration")
    assert (changing == "0s") is (motion == "reduce")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 768, 390])
def test_figures_fit_the_page_and_can_be_read(
    show: Opener, record_property: Callable[[str, object], None], scheme: Any, width: int
) -> None:
    figures = (
        neighbours().figure(),
        WarpAccess([Pattern(stride=3, shift=1)]).figure(),
        WarpAccess([Pattern(32, title="plain"), Pattern(32, padding=1, title="padded")], banks=True).figure(),
        TRAIL.figure(),
        *(make() for make in FIGURES.values()),
    )
    page = show(*figures, viewport={"width": width, "height": 900}, color_scheme=scheme)
    slider(page).fill("7")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for player in page.locator(".player").all():
        assert [found for found in player.evaluate(CONTRASTS) if found[0] < READABLE] == []
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"moving {scheme} {width}.png", full_page=True)
    record_property("screenshot", f"build/screenshots/moving {scheme} {width}.png")


def test_nothing_is_cut_off_in_the_output_of_a_notebook_on_a_phone(show: Opener) -> None:
    """Beside prompts and margins, 250 of 390 pixels are left for a figure."""
    figures = neighbours().figure(), WarpAccess([Pattern(stride=3)]).figure()
    page = show(*figures, viewport={"width": 266, "height": 900})
    for player in page.locator(".player").all():
        edge = player.evaluate("p => p.getBoundingClientRect().right")
        for part in player.locator(".controls > *, .sliders > *, .wires svg, .cells > *").all():
            assert part.evaluate("p => p.getBoundingClientRect().right") <= edge
    assert page.locator(".cell").first.evaluate("cell => cell.getBoundingClientRect().width") > 30


# Of every text to what lies behind it, with half-transparent backgrounds laid over each other.
CONTRASTS = """root => {
    const numbers = colour => {
        const [r, g, b, alpha = 1] = colour.match(/[\\d.e-]+/g).filter(n => !isNaN(n)).map(Number)
        const whole = colour.startsWith("color(") ? 255 : 1
        return [r * whole, g * whole, b * whole, alpha]
    }
    const over = ([r, g, b, alpha], below) => [r, g, b].map((c, i) => alpha * c + (1 - alpha) * below[i])
    const behind = element => {
        if (!element) return [255, 255, 255]
        const above = element.parentElement ?? element.getRootNode().host
        return over(numbers(getComputedStyle(element).backgroundColor), behind(above))
    }
    const opacity = element => element ? getComputedStyle(element).opacity * opacity(element.parentElement) : 1
    const luminance = rgb => {
        const [r, g, b] = rgb.map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    return [...root.querySelectorAll("*")].flatMap(element => {
        const text = [...element.childNodes].filter(n => n.nodeType == 3).map(n => n.textContent).join("").trim()
        if (!text || !element.checkVisibility()) return []
        const style = getComputedStyle(element)
        const back = element.matches(".onfull") ? numbers(getComputedStyle(element.previousElementSibling).fill) : behind(element)
        const [r, g, b, alpha] = numbers(element instanceof SVGElement ? style.fill : style.color)
        const fore = over([r, g, b, alpha * opacity(element)], back)
        const [dark, bright] = [luminance(fore), luminance(back)].sort((a, b) => a - b)
        return [[(bright + 0.05) / (dark + 0.05), text]]
    })
}"""


def test_without_javascript_the_first_frame_is_there(show: Opener) -> None:
    page = show(neighbours().figure(), drawn=False, java_script_enabled=False)
    picture = page.get_by_role("img")
    assert picture.is_visible()
    box = picture.bounding_box()
    assert box and box["width"] == 560 and box["height"] > 300  # it was decoded
    assert picture.get_attribute("alt") == neighbours().figure().caption


def test_a_figure_whose_record_is_broken_keeps_its_picture(show: Opener) -> None:
    tag = bundle.tag("kernel steps")
    broken = f'<{tag} data-scene="kernel steps"><img alt="first frame" src="data:,"></{tag}>'
    page = show(neighbours().figure(), html=f"<script>addEventListener('unhandledrejection', e => e.preventDefault())</script>{broken}")  # fmt: skip
    assert page.get_by_alt_text("first frame").is_visible()


def test_in_print_the_frame_is_there_and_the_buttons_are_not(show: Opener) -> None:
    page = show(neighbours().figure(), color_scheme="dark")
    slider(page).fill("4")
    page.emulate_media(media="print")
    assert page.locator(".caption").is_visible() and page.locator(".array .cell.write").count() == 32
    assert not page.locator("button").first.is_visible() and not slider(page).is_visible()
    assert page.locator(".caption").evaluate("e => getComputedStyle(e).color") == "rgb(0, 0, 0)"


def test_in_high_contrast_read_and_written_differ_by_their_frames(show: Opener) -> None:
    page = show(neighbours().figure(), forced_colors="active")
    slider(page).fill("4")
    outline = "cell => getComputedStyle(cell).outlineStyle"
    assert page.locator(".array .cell.read").first.evaluate(outline) == "dashed"
    assert page.locator(".array .cell.write").first.evaluate(outline) == "solid"


def test_figures_of_one_page_share_one_element_and_step_apart(show: Opener) -> None:
    page = show(neighbours().figure(), neighbours().figure(), WarpAccess().figure())
    slider(page).fill("3")
    assert [place.inner_text() for place in page.locator(".place").all()] == [
        "step 4 of 10",
        "step 1 of 10",
        "lane 32 of 32",
    ]


def test_a_figure_that_is_taken_out_and_put_back_stays_on_its_step(show: Opener) -> None:
    page = show(neighbours().figure())
    slider(page).fill("3")
    page.get_by_label("play").click()
    page.evaluate("tag => document.body.append(document.querySelector(tag))", bundle.tag("kernel steps"))
    assert page.get_by_label("pause").count() == 0  # nothing plays out of sight
    assert page.locator(".place").inner_text() == "step 4 of 10"
    page.get_by_label("one step forward").click()
    assert page.locator(".place").inner_text() == "step 5 of 10"


def test_a_step_of_a_long_run_changes_only_the_cells_that_it_must(show: Opener) -> None:
    """What makes it quick, and does not depend on how busy the machine is."""
    page = show(long_run().figure())
    changed = page.locator(".player").evaluate(
        """player => {
            player.querySelector(".controls input").value = 700
            player.querySelector(".controls input").dispatchEvent(new Event("input"))
            const seen = new MutationObserver(() => {})
            seen.observe(player, {subtree: true, attributes: true, attributeFilter: ["class"]})
            player.querySelectorAll("button")[2].click()
            return seen.takeRecords().filter(r => r.target.matches(".cell")).length
        }"""
    )
    assert changed == 4 * 32  # those of the step and those of the step before, in both arrays
    assert page.locator(".place").inner_text() == f"step 702 of {100_000 // 64}"


# ---- lanes to sectors ----------------------------------------------------------------------------


GRID = [
    Pattern(stride, shift, size, padding)
    for stride in (*range(34), 48, 63, 64)
    for shift, padding in ((0, 0), (1, 0), (3, 2), (8, 1), (31, 4))
    for size in (1, 2, 4, 8, 16)
]


def test_the_script_counts_sectors_and_wavefronts_as_the_simulator_does(show: Opener) -> None:
    page = show(drawn=False)
    source = bundle.source("elements.js") + "\n" + bundle.source("warp_access.js").partition("\n")[2]
    found = page.evaluate(
        """async ([code, grid]) => {
            const {sectorsOf, banksOf, toldOf} = await import("data:text/javascript;base64," + code)
            return grid.map(pattern => {
                const {sectors, used} = sectorsOf(pattern)
                return [sectors.length, used, banksOf(pattern).wavefronts, toldOf(pattern, false), toldOf(pattern, true)]
            })
        }""",
        [base64.b64encode(source.encode()).decode(), [asdict(pattern) for pattern in GRID]],
    )
    for pattern, (sectors, used, wavefronts, moved, passed) in zip(GRID, found, strict=True):
        address = np.asarray(pattern.request().addresses)[None]
        assert sectors == patterns.sectors(address, pattern.size, None)[0][0]
        assert used == patterns.distinct(address, None)[0] * pattern.size
        assert wavefronts == patterns.wavefronts(address, pattern.size, None)[0][0]
        assert moved == pattern.told(banks=False)
        assert passed == pattern.told(banks=True)


def test_padding_takes_the_conflicts_away(show: Opener) -> None:
    page = show(WarpAccess([Pattern(32, title="plain"), Pattern(32, title="mine")], banks=True).figure())
    counts = page.locator(".counts strong")
    assert counts.all_inner_texts() == ["32", "32"]
    page.get_by_label("padding").nth(1).fill("1")
    assert counts.all_inner_texts() == ["32", "1"]
    assert (
        "mine: 32 lanes read 4 bytes each, every 33rd element: 1 wavefront"
        in page.locator(".caption").inner_text()
    )


def test_two_patterns_stand_on_one_scale(show: Opener) -> None:
    page = show(WarpAccess([Pattern(1), Pattern(8)]).figure())
    few, many = (page.locator(".pattern").nth(i).locator("rect.cell") for i in range(2))
    assert (few.count(), many.count()) == (4, 32)
    widths = [cells.first.evaluate("cell => cell.width.baseVal.value") for cells in (few, many)]
    assert widths[0] == widths[1]
    bars = [bar.bounding_box()["width"] for bar in page.locator(".gauge i").all()]
    assert bars[1] == pytest.approx(8 * bars[0], abs=2)


def test_sliders_of_stride_shift_and_size_move_the_counts(show: Opener) -> None:
    page = show(WarpAccess().figure())
    count, part = (page.locator(".counts strong").nth(i) for i in range(2))
    assert (count.inner_text(), part.inner_text()) == ("4", "100 %")
    page.get_by_label("shift").fill("1")
    assert (count.inner_text(), part.inner_text()) == ("5", "80 %")
    page.get_by_label("element size").fill("3")
    assert page.get_by_label("element size").get_attribute("aria-valuetext") == "8 B"
    assert (count.inner_text(), part.inner_text()) == ("9", "89 %")
    page.get_by_label("stride").fill("32")
    assert (count.inner_text(), part.inner_text()) == ("32", "25 %")
    assert page.locator(".caption").inner_text() == Pattern(32, 1, 8).told(banks=False)


def test_the_player_adds_one_lane_after_the_other(show: Opener) -> None:
    page = show(WarpAccess([Pattern(stride=8)]).figure())
    page.locator(".controls input").fill("0")
    assert page.locator(".caption").inner_text() == "1 lane reads 4 bytes: 1 sector of 32 bytes moves, 4 of its 32 bytes are used."  # fmt: skip
    page.get_by_label("one lane forward").click()
    assert page.locator(".counts strong").first.inner_text() == "2"
    assert page.locator(".wire").count() == 2


# ---- the roofline --------------------------------------------------------------------------------

TRAIL = RoofTrail([Point("naive", 0.25), Point("tiled", 8), Point("blocked", 32, 9e12)])


def test_attempts_in_one_place_are_all_named_and_the_chosen_one_lies_on_top(show: Opener) -> None:
    trail = RoofTrail([Point("one", 0.25), Point("two", 16.0), Point("three", 16.1), Point("four", 16.2)])
    page = show(trail.figure())
    assert page.get_by_text("2, 3, 4", exact=True).is_visible()
    assert page.locator(".tried.now + text").text_content() == "4"
    page.get_by_label("one attempt back").click()
    assert page.locator(".tried.now + text").text_content() == "3"
    assert page.locator("svg[role=img] .tried").last.evaluate("e => e.classList.contains('now')")


def test_the_script_words_every_roof_as_python_does(show: Opener) -> None:
    page = show(drawn=False)
    source = bundle.source("elements.js") + "\n" + bundle.source("roof_trail.js").partition("\n")[2]
    chosen = [
        (gpu, dtype, i) for gpu, formats in TRAIL.roofs().items() for dtype in formats for i in range(3)
    ]
    found = page.evaluate(
        """async ([code, record, chosen]) => {
            const {toldOfRoof} = await import("data:text/javascript;base64," + code)
            return chosen.map(([gpu, dtype, i]) => toldOfRoof(record, gpu, dtype, i))
        }""",
        [base64.b64encode(source.encode()).decode(), TRAIL.record(), chosen],
    )
    assert found == [replace(TRAIL, gpu=gpu, dtype=dtype).told(i) for gpu, dtype, i in chosen]


def test_another_gpu_and_another_format_move_the_roof_and_not_the_scale(show: Opener) -> None:
    page = show(TRAIL.figure())
    caption, tried = page.locator(".caption"), page.locator("circle.tried")
    before = [dot.get_attribute("cx") for dot in tried.all()]
    page.get_by_label("GPU").select_option("H100")
    page.get_by_label("format").select_option("float16")
    assert caption.inner_text() == replace(TRAIL, gpu="H100", dtype="float16").told(2)
    assert [dot.get_attribute("cx") for dot in tried.all()] == before
    page.get_by_label("GPU").select_option("T4")
    page.get_by_label("GPU").select_option("V100")
    assert "bfloat16" not in page.get_by_label("format").locator("option").all_inner_texts()
    page.get_by_label("one attempt back").click()
    assert caption.inner_text().startswith("2, tiled: 8 FLOP/B. There the roof of V100 for float16")


# ---- drawings with frames --------------------------------------------------------------------------


def test_a_frame_dresses_its_marks_and_the_next_one_undresses_them(show: Opener) -> None:
    page = show(FIGURES["pipeline"]())
    slider(page).fill("0")
    assert page.locator(".drawing rect.current").count() == 1
    assert page.locator(".drawing rect.ahead").count() == 1
    slider(page).fill("5")
    assert page.locator(".drawing rect.current").count() == 4
    slider(page).fill("0")
    assert page.locator(".drawing rect.ahead").count() == 1
    assert (
        page.locator(".caption").inner_text()
        == "At time 0 (steps): device 0 forward 0. Devices 1, 2, 3 wait."
    )


def test_a_wrong_cell_that_is_clicked_is_the_one_the_caption_is_about(show: Opener) -> None:
    expected = np.arange(64, dtype=np.float32).reshape(8, 8)
    got = expected.copy()
    got[2, 3] = got[5, 6] = -1
    found = mismatch("out", got, expected)
    assert found
    figure = pictures.wrong(found, None)
    assert figure
    page = show(figure)
    caption = page.locator(".caption")
    assert caption.inner_text() == "out[2, 3] is -1.0 and should be 19.0."
    page.locator(".drawing rect.wrong").nth(1).click()
    assert caption.inner_text() == "out[5, 6] is -1.0 and should be 46.0."
    assert page.locator(".drawing rect.frame").count() == 2  # in what was expected and in what came out
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    assert "out[2, 3]" in caption.inner_text()


def test_a_figure_of_one_frame_has_no_buttons(show: Opener) -> None:
    page = show(pictures.outside(Outside("a", (8,), (8,), "read"), "thread 8 of block 0", 3, "s += a[i]"))
    assert page.locator(".caption").is_visible()
    assert not page.get_by_label("play").is_visible() and not page.locator(".how").is_visible()


def test_a_figure_of_100000_accesses_opens_quickly_and_steps_smoothly(show: Opener) -> None:
    """Counted in processor time of the page, which does not depend on what else the machine does."""
    page = show(drawn=False)
    counter = page.context.new_cdp_session(page)
    counter.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy() -> float:
        found = counter.send("Performance.getMetrics")["metrics"]
        return float(next(m["value"] for m in found if m["name"] == "TaskDuration"))

    before = busy()
    page.evaluate("html => { document.body.innerHTML = html }", long_run().figure().html())
    page.evaluate(
        """() => { for (const old of document.querySelectorAll("body > script")) {
            const script = document.createElement("script"); script.type = "module"
            script.textContent = old.textContent; old.replaceWith(script) } }"""
    )
    page.locator(".player").wait_for()
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    opened = busy() - before
    before = busy()
    page.evaluate(
        """async () => {
            const forward = document.querySelector("[data-scene]").shadowRoot.querySelectorAll("button")[2]
            for (let i = 0; i < 120; i++) { forward.click(); await new Promise(requestAnimationFrame) }
        }"""
    )
    stepped = (busy() - before) / 120
    assert opened < 1.0
    assert stepped < 1 / 30
