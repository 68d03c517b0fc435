"""Figures that move, as far as no browser is needed: records, captions, weight, and what the HTML is made of."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from gpulab.plot.moving import (
    MEANINGS,
    Array,
    CannotDraw,
    KernelSteps,
    Pattern,
    RoofTrail,
    Step,
    Touch,
    Warp,
    WarpAccess,
    bundle,
)
from gpulab.plot.moving.figure import WEIGHT
from gpulab.plot.moving.kernel_steps import runs
from gpulab.plot.records import Point
from tests.plot.moving_samples import ALL, EVEN, long_run, neighbours

ONE = [lane == 5 for lane in range(32)]


def steps_of(*steps: Step) -> KernelSteps:
    arrays = [Array("a", (64,)), Array("m", (4, 8))]
    return KernelSteps("k", [(1, "x"), (2, "y")], [Warp("warp 1", 32)], arrays, list(steps), ["thread 37"])


@pytest.mark.parametrize(
    ("step", "caption"),
    [
        (
            Step(1, ALL, touches=[Touch("a", "read", range(32))]),
            "Line 1: threads 32–63 read a[0…31].",
        ),
        (
            Step(1, EVEN, touches=[Touch("a", "read", range(0, 32, 2)), Touch("a", "read", range(1, 32, 2))]),
            "Line 1: threads 32, 34, 36 … 62 read a[0…31].",
        ),
        (
            Step(2, ONE, touches=[Touch("m", "read", [12]), Touch("a", "write", [3])]),
            "Line 2: thread 37 reads m[1, 4] and writes a[3].",
        ),
        (
            Step(1, ALL, touches=[Touch("a", "write", range(0, 64, 2))]),
            "Line 1: threads 32–63 write a[0], a[2] … a[62].",
        ),
        (Step(2, ALL, mark="barrier"), "Line 2: threads 32–63 wait at the barrier."),
        (Step(2, ONE, mark="finished"), "Line 2: thread 37 has finished."),
        (Step(2, ONE, values={"thread 37": {"i": "3", "j": "4"}}), "Line 2: thread 37 sets i and j."),
        (Step(2, ALL), "Line 2: threads 32–63 go on."),
        (Step(2, ALL, caption="Both warps have arrived."), "Both warps have arrived."),
    ],
)
def test_a_caption_says_which_threads_do_what_to_which_cells(step: Step, caption: str) -> None:
    assert steps_of(step).told(0) == caption


def test_cells_are_kept_as_runs_in_the_order_of_the_lanes() -> None:
    for cells in ([0, 1, 2, 3, 8], [5], [7, 7, 7], [31, 30, 29], [4, 9, 1, 1, 6], list(range(0, 64, 2))):
        unfolded = [first + step * i for first, step, count in runs(cells) for i in range(count)]
        assert unfolded == cells
    assert runs(range(32)) == [[0, 1, 32]]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([], "no step"),
        ([Step(3, ALL)], "line 3) is on a line that the source does not have"),
        ([Step(1, ALL, warp=1)], "of warp 1; the record has 1"),
        ([Step(1, [True])], "has 1 lanes"),
        ([Step(1, ALL, mark="sleeps")], "'sleeps'; there are barrier, finished"),
        ([Step(1, ALL, touches=[Touch("b", "read", [0])])], "'read' of array 'b'"),
        ([Step(1, ALL, touches=[Touch("a", "write", [0, 1, 2], ["1", "2"])])], "3 cells and has 2 values"),
        ([Step(1, ALL, values={"thread 9": {"i": "1"}})], "thread 9, which nobody watches"),
    ],
)
def test_a_record_that_does_not_fit_together_says_what_is_wrong(steps: list[Step], words: str) -> None:
    with pytest.raises(CannotDraw, match=re.escape(words)):
        steps_of(*steps)


def test_an_array_that_is_too_large_to_draw_is_refused_with_the_limit() -> None:
    with pytest.raises(CannotDraw, match="up to 4,096 cells"):
        replace(steps_of(Step(1, ALL)), arrays=[Array("a", (5000,))])


def test_a_realistic_figure_and_one_of_100000_accesses_stay_below_200_kilobytes() -> None:
    short, long = neighbours(), long_run(100_000)
    assert (len(short.steps), [a.size for a in short.arrays]) == (10, [64] * 3)
    accesses = sum(len(touch.cells) for step in long.steps for touch in step.touches)
    assert 99_900 < accesses <= 100_000
    assert short.figure().weight < 90_000
    assert long.figure().weight < 110_000
    assert max(short.figure().weight, long.figure().weight) < WEIGHT


def test_a_large_record_is_deflated_and_a_small_one_can_be_read() -> None:
    small = re.search(r'application/json">(.*?)</script>', neighbours().figure().html())
    assert small and json.loads(small[1]) == neighbours().record()
    large = re.search(r'data-packed="deflate">(.*?)</script>', long_run().figure().html())
    assert large and json.loads(zlib.decompress(base64.b64decode(large[1]))) == long_run().record()


def test_the_same_record_gives_the_same_bytes_and_no_ids() -> None:
    html = neighbours().figure().html()
    assert html == neighbours().figure().html()
    assert not re.search(r"\sid=", html)


def test_nothing_in_a_source_ends_the_element_that_carries_it() -> None:
    evil = replace(steps_of(Step(1, ALL)), source=[(1, "</script><script>alert(1)</script>")])
    html = evil.figure().html()
    assert html.count("</script>") == 2  # of the record and of the module
    assert "alert(1)</" not in html
    assert ElementTree.fromstring(evil.figure().picture) is not None


def test_a_site_links_the_script_once_instead_of_carrying_it() -> None:
    linked = neighbours().figure().html(script="_static/moving.js")
    assert linked.endswith('<script type="module" src="_static/moving.js"></script>')
    assert "customElements" not in linked
    tag = bundle.tag("kernel steps")
    assert tag in linked and f'define("{tag}"' in bundle.script("kernel steps")


def test_the_first_frame_is_an_image_that_says_what_the_first_step_does() -> None:
    figure = neighbours().figure()
    words = " ".join(ElementTree.fromstring(figure.picture).itertext())
    assert neighbours().told(0) in words
    for text in ("neighbours", "step 1 of 10", "out[t] = tile[t] + tile[t + 1]", "warp 1", "63.0"):
        assert text in words
    assert f'alt="{figure.caption}"' in figure.html()
    assert neighbours().told(0) in figure.caption


def test_the_first_frame_paints_what_the_first_step_reads_and_writes() -> None:
    load = steps_of(Step(1, EVEN, touches=[Touch("a", "read", range(16)), Touch("m", "write", [3, 4])]))
    marks = [node.get("class") for node in ElementTree.fromstring(load.figure().picture).iter()]
    counted = [marks.count(kind) for kind in ("read", "write", "cell", "active", "inactive")]
    assert counted == [16, 2, 64 + 32 - 18, 16, 16]


def test_a_figure_shows_itself_as_html_and_as_text() -> None:
    shown = WarpAccess([Pattern(stride=8)]).figure()._repr_mimebundle_()
    assert set(shown) == {"text/html", "text/plain"}
    assert "32 sectors of 32 bytes move, 128 of their 1024 bytes are used" in shown["text/plain"]


def test_a_pattern_refuses_what_no_lane_can_read() -> None:
    with pytest.raises(ValueError, match="1, 2, 4, 8, 16 bytes; got stride 1, shift 0, padding 0, size 3"):
        Pattern(size=3)
    with pytest.raises(ValueError, match="go from 0 to 64"):
        Pattern(stride=65)
    with pytest.raises(ValueError, match="padding from 0 to 4"):
        Pattern(padding=5)
    with pytest.raises(ValueError, match="one or two patterns"):
        WarpAccess([Pattern()] * 3)


def test_two_patterns_are_told_one_after_the_other() -> None:
    both = WarpAccess([Pattern(32, title="plain"), Pattern(32, padding=1, title="padded")], banks=True)
    assert both.told() == (
        "plain: 32 lanes read 4 bytes each, every 32nd element: 32 wavefronts, because one bank delivers one "
        "word at a time. padded: 32 lanes read 4 bytes each, every 33rd element: 1 wavefront, no conflict."
    )
    words = " ".join(ElementTree.fromstring(both.figure().picture).itertext())
    assert "1 wavefront, no conflict." in words


def test_a_trail_refuses_what_has_no_place_below_a_roof() -> None:
    with pytest.raises(ValueError, match="no intensity for copy"):
        RoofTrail([Point("copy", 0.0), Point("product", 8)])
    with pytest.raises(ValueError, match="at least one attempt"):
        RoofTrail([])
    with pytest.raises(ValueError, match="no rate is stated for bfloat16 on T4"):
        RoofTrail([Point("product", 8)], gpu="T4", dtype="bfloat16")


def test_each_colour_has_one_meaning() -> None:
    coloured = {name: m.colour for name, m in MEANINGS.items() if m.sign not in ("grey",)}
    inked = {"active", "inactive", "finished"}  # told by shape alone
    colours = [colour for name, colour in coloured.items() if name not in inked]
    assert len(set(colours)) == len(colours)
    assert len({m.sign for m in MEANINGS.values()}) == len(MEANINGS)


@pytest.mark.parametrize("scene", bundle.SCENES)
def test_the_modules_of_a_scene_join_to_one_and_stay_small(scene: str) -> None:
    names = [
        name
        for module in bundle.modules(scene)
        for name in re.findall(r"^(?:export )?(?:const|function) (\w+)", bundle.source(f"{module}.js"), re.M)
    ]
    assert len(set(names)) == len(names)
    assert not re.search(r"^(import|export) ", bundle.script(scene), re.M)
    assert "</script" not in bundle.script(scene)
    assert sum(len(bundle.source(f"{m}.js").splitlines()) for m in bundle.modules(scene)) <= 600
