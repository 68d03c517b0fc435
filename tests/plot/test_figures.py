"""Every figure draws its sample, says in one sentence what to see, and reads on light and dark pages."""

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from PIL import Image

from gpulab import plot
from gpulab.plot import Coverage, Pass, Picture, Point, Request, Span, style
from gpulab.simulator import hardware
from gpulab.subjects import distributed
from gpulab.subjects.distributed.pipelines import Work, simulate

MODULES = (
    "accesses",
    "bank_grid",
    "bars",
    "bit_fields",
    "block_tables",
    "divergence",
    "fragments",
    "grid_map",
    "heat_maps",
    "lines",
    "listings",
    "mask",
    "matrix",
    "rounds",
    "mig_map",
    "network",
    "number_line",
    "occupancy",
    "panels",
    "parts",
    "ridges",
    "roofline",
    "schedule",
    "shares",
    "speedup",
    "stacked",
    "step_table",
    "stride_sweep",
    "tile_map",
    "tile_order",
    "timeline",
    "timeline_ranks",
    "units",
    "warp_lanes",
)
LANE = np.arange(32)


@cache
def sample(name: str) -> Picture:
    picture = importlib.import_module(f"gpulab.plot.{name}").sample()
    assert isinstance(picture, Picture)
    return picture


@pytest.mark.parametrize("name", MODULES)
def test_a_sample_is_drawn_with_its_caption_in_the_image(name: str, tmp_path: Path) -> None:
    picture = sample(name)
    picture.save(tmp_path / "sample.png")
    with Image.open(tmp_path / "sample.png") as image:
        assert image.info["Description"] == picture.caption
        alpha = np.asarray(image)[..., 3]
    assert alpha[0, 0] == 0, "the background is transparent"
    assert alpha.any(), "something is drawn"


@pytest.mark.parametrize("name", MODULES)
def test_a_caption_is_one_sentence(name: str) -> None:
    caption = sample(name).caption
    assert caption.endswith(".") and ". " not in caption and "\n" not in caption


@pytest.mark.parametrize("name", MODULES)
def test_a_notebook_gets_an_image_whose_alt_text_is_the_caption(name: str) -> None:
    picture = sample(name)
    html = picture._repr_html_()
    assert html is not None and 'src="data:image/svg+xml,' in html
    assert f'<img alt="{picture.caption}"' in re.sub("&#x27;", "'", html)


def test_a_module_can_be_run_to_save_its_sample(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "gpulab.plot.bars", str(tmp_path / "bars.png")], capture_output=True, text=True
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert (tmp_path / "bars.png").stat().st_size > 1000
    assert run.stdout.startswith(str(tmp_path / "bars.png"))


def test_the_unit_that_binds_is_the_one_that_is_named_and_hatched() -> None:
    needs = {"a": {"issue": 1.0, "shared memory": 2.0}, "b": {"issue": 3.0, "shared memory": 2.0}}
    picture = plot.units(needs, "cycles")
    assert "a by shared memory (2.00), b by issue (3.00)" in picture.caption
    hatched = [box.get_width() for box in picture.axes.findobj(Rectangle) if box.get_hatch()]
    assert hatched == [2.0, 3.0]
    with pytest.raises(style.NothingToDraw):
        plot.units({"a": {}}, "cycles")
    with pytest.raises(style.NothingToDraw):
        plot.units({}, "cycles")


def test_a_mask_counts_its_cells_and_hatches_the_wrong_ones() -> None:
    marked = np.eye(3, dtype=bool)
    marked[0, 2] = True
    picture = plot.mask(marked, "looks", "looked at", wrong=np.triu(np.ones((3, 3)), 1))
    assert "4 of 9 cells are marked, 1 of them to the right of the diagonal; 1 hatched" in picture.caption
    hatched = [box.get_xy() for box in picture.axes.findobj(Rectangle) if box.get_hatch()]
    assert hatched == [(2, 0)]
    with pytest.raises(style.NothingToDraw):
        plot.mask([], "looks", "looked at")


def test_a_map_of_tiles_says_how_many_are_visited_and_need_a_mask() -> None:
    picture = plot.tile_map([[0.5, 0, 0], [1, 0.5, 0]], "queries", "keys")
    assert "3 of 6 tiles are visited; ½ marks the 2 that need a mask" in picture.caption
    filled = [box.get_xy() for box in picture.axes.findobj(Rectangle) if box.get_facecolor()[3] > 0]
    assert {(0, 0), (0, 1), (1, 1)} <= set(filled)
    assert [text.get_text() for text in picture.axes.texts].count("½") == 2
    with pytest.raises(style.NothingToDraw):
        plot.tile_map([], "queries", "keys")


def test_an_order_of_tiles_colours_waves_and_hatches_what_nobody_computes() -> None:
    axes = importlib.import_module("gpulab.plot.tile_order").sample().axes.figure.axes
    hatched = [[box.get_hatch() for box in ax.findobj(Rectangle)].count(style.HATCH) for ax in axes]
    assert hatched == [0, 2]
    numbers = [text.get_text() for text in axes[0].texts]
    assert numbers == [str(n) for n in range(16)]
    assert len({box.get_facecolor() for box in axes[0].findobj(Rectangle)[:16]}) == 4
    with pytest.raises(style.NothingToDraw):
        plot.tile_order({}, (2, 2), 1, "Nothing.")


def test_parts_of_matrices_are_to_scale_and_carry_their_rank() -> None:
    chain = [
        ("X", (2, 4), "whole"),
        "·",
        ("A", (4, 8), "columns"),
        ("B", (8, 4), "rows"),
        ("Y", (2, 4), "terms"),
    ]
    axes = plot.parts(chain, 2, "Two ranks.").axes
    boxes = [box for box in axes.findobj(Rectangle) if box is not axes.patch]
    assert sorted((box.get_width(), box.get_height()) for box in boxes) == [(4, 2)] * 3 + [(4, 4)] * 4
    said = [text.get_text() for text in axes.texts]
    assert said.count("0") == said.count("1") == 2 and {"all", "+", "·", "A\n4 × 8"} <= set(said)
    with pytest.raises(style.NothingToDraw):
        plot.parts(["·"], 2, "Nothing.")


def test_fragments_say_the_lane_and_colour_the_register() -> None:
    lanes, registers = np.array([[0, 1], [2, 3]]), np.array([[0, 0], [1, 1]])
    axes = plot.fragments({"a": (lanes, registers), "b": (lanes, registers)}, "Two.").axes.figure.axes
    for ax in axes:
        assert [text.get_text() for text in ax.texts] == ["0", "1", "2", "3"]
        boxes = sorted((b for b in ax.findobj(Rectangle) if b is not ax.patch), key=lambda b: b.get_y())
        assert [to_hex(box.get_facecolor()) for box in boxes] == [style.DEEP] * 2 + [style.AMBER] * 2
    with pytest.raises(style.NothingToDraw):
        plot.fragments({}, "Nothing.")


def test_gpulab_itself_does_not_import_matplotlib() -> None:
    code = "import sys, gpulab, gpulab.hardware; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_figures_on_given_axes_leave_showing_to_their_owner() -> None:
    figure, (left, right) = plt.subplots(1, 2, layout="constrained")
    before = plot.bars({"naive": 32}, "sectors per request", left)
    plot.bars({"yours": 4}, "sectors per request", right)
    assert before._repr_html_() is None
    assert before.axes is left
    assert figure.get_supxlabel() == "Sectors per request: naive 32.\nSectors per request: yours 4."
    plt.close(figure)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2, from the relative luminance of both colours."""

    def luminance(colour: str) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", ["#ffffff", "#111111"])
def test_axes_and_text_read_on_a_light_and_on_a_dark_page(page: str) -> None:
    assert contrast(style.INK, page) >= 4


@pytest.mark.parametrize("fill", [*style.SERIES, style.BAD, style.GOOD])
def test_text_in_a_cell_reads_on_its_fill(fill: str) -> None:
    assert contrast(style.on(fill), fill) >= 4.5


# Severe blindness as matrices on linear RGB, from G. M. Machado, M. M. Oliveira and L. A. F. Fernandes,
# IEEE Transactions on Visualization and Computer Graphics 15 (6), 2009, at severity 1.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def lab(linear: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear sRGB under D65 (IEC 61966-2-1, CIE 15)."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    t = xyz / (0.9505, 1.0, 1.089)
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_stay_apart_for_all_eyes(kind: str) -> None:
    """A distance of 20 in L*a*b* is many times what the eye can just tell apart (about 2)."""
    rgb = [np.array(to_rgb(colour)) for colour in style.SERIES]
    linear = [np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in rgb]
    seen = [lab(np.clip(np.array(BLINDNESS[kind]) @ c, 0, 1)) for c in linear]
    assert min(np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i]) >= 20


def test_the_captions_name_what_was_drawn() -> None:
    wide = plot.accesses(Request(384 * LANE, array="out", kind="store"))
    assert wide.caption == (
        "This store of 'out' moves 32 sectors of 32 bytes (1,024 B) "
        "for the 128 B that its 32 lanes asked for; hollow cells travel unused."
    )
    assert plot.accesses(Request(4 * LANE)).caption.endswith("nothing travels unused.")
    assert "takes 32 wavefronts where one would do" in plot.bank_grid(Request(128 * LANE)).caption
    assert "takes 2 wavefronts: no bank" in plot.bank_grid(Request(8 * LANE, size=8)).caption
    assert (
        plot.divergence([Pass("all", LANE >= 0)]).caption
        == "Lanes of one warp over time: no lane ever waits."
    )
    assert (
        "50 % of the lane slots wait"
        in plot.divergence([Pass("if", LANE < 16), Pass("else", LANE >= 16)]).caption
    )


def test_elements_that_nobody_or_several_touch_are_told() -> None:
    block = np.where(np.arange(100) < 96, np.arange(100) // 32, -1)
    assert "4 elements (hatched) are touched by nobody" in plot.grid_map(Coverage(block, block)).caption
    times = np.ones(33, int)
    times[32] = 2
    told = plot.grid_map(Coverage(np.zeros(33, int), np.arange(33), times, outside=31)).caption
    assert "1 element is touched more than once; 31 threads fall outside" in told


def test_an_impossible_launch_is_drawn_with_its_reason() -> None:
    picture = plot.occupancy(hardware.occupancy("A100", 1024, 80))
    assert picture.caption.startswith("This launch cannot run: 80 registers")
    assert picture.png()


def test_a_number_line_counts_its_numbers_unless_its_caller_says_what_to_see() -> None:
    assert (
        plot.number_line({"a": [1, 2, 2, 4]}).caption
        == "Numbers of each format: a has 3 numbers from 1 to 4."
    )
    assert plot.number_line({"a": [1, 2, 4]}, caption="Each step doubles.").caption == "Each step doubles."


def test_each_dtype_has_its_roof() -> None:
    picture = plot.roofline([Point("gemm", 400, 8e14, "float16"), Point("softmax", 1, 2e12)], "H100")
    texts = {text.get_text() for text in picture.axes.texts}
    assert texts >= {"989.4 TFLOP/s float16", "66.91 TFLOP/s float32", "ridge 20 FLOP/B", "ridge 295 FLOP/B"}
    assert "gemm lies under the flat part" in picture.caption


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plot.bars({}, "sectors"),
        lambda: plot.timeline([]),
        lambda: plot.panels({}, "none"),
        lambda: plot.shares({}, "instructions", "none"),
        lambda: plot.heat_maps({"K": np.zeros((2, 2))}, "row", "column", "none"),
        lambda: plot.stacked({}, "GB", "none"),
        lambda: plot.stacked({"idle": {"weights": 0}}, "GB", "none"),
        lambda: plot.block_tables({"a": []}, {"a": 0}, 16),
        lambda: plot.shares({"idle": {"memory": 0}}, "instructions", "none"),
        lambda: plot.divergence([]),
        lambda: plot.matrix([], (4, 4)),
        lambda: plot.memory_map([], []),
        lambda: plot.stride_sweep({"yours": []}, "sectors"),
    ],
)
def test_nothing_to_draw_is_said_in_one_line(draw: Callable[[], Picture]) -> None:
    with pytest.raises(ValueError, match=r"nothing to|no request"):
        draw()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plot.bars({"none": 0}, "conflicts", budget=0),
        lambda: plot.bars({"none": 0, "many": 1e9}, "conflicts", log=True),
        lambda: plot.grid_map(Coverage(np.full(1, -1), np.zeros(1))),
        lambda: plot.grid_map(Coverage(np.zeros((300, 2), int), np.zeros((300, 2), int))),
        lambda: plot.matrix([Request(4 * LANE)], (1, 32)),
        lambda: plot.matrix([Request(8 * LANE, size=8)], (4, 16), itemsize=8),
        lambda: plot.accesses(Request(LANE * 10_000, size=16)),
        lambda: plot.divergence([Pass("loop", k % 33 > LANE, 2) for k in range(500)]),
        lambda: plot.roofline([Point("copy", 0.0, 0.0), Point("huge", 1e5)], "T4"),
        lambda: plot.stride_sweep({"yours": [(1, 4)]}, "sectors", ideal=4),
        lambda: plot.timeline([Span("copy", 0, 0)]),
    ],
)
def test_odd_data_is_drawn_all_the_same(draw: Callable[[], Picture]) -> None:
    assert draw().png()


def test_curves_that_end_in_one_are_named_where_they_start() -> None:
    curves = {"A100": [(1, 64), (2, 8)], "T4": [(1, 32), (2, 8)]}
    picture = plot.lines(curves, "registers", "warps", "They meet.", names_at="start")
    named = {text.get_text(): text.xy for text in picture.axes.texts}  # type: ignore[attr-defined]
    assert named == {"A100": (1, 64), "T4": (1, 32)}


def calls_of_ranks(*rows: tuple[int, str, int, int, float, float]) -> list[distributed.Call]:
    return [distributed.Call(r, op, size, peer, start, end) for r, op, size, peer, start, end in rows]


def test_each_message_of_ranks_is_an_arrow_from_its_send_to_its_receive() -> None:
    picture = plot.timeline_ranks(
        calls_of_ranks(
            (0, "send", 8, 1, 0.0, 1.0),
            (0, "send", 16, 1, 1.0, 3.0),
            (1, "recv", 8, 0, 0.5, 1.0),
            (1, "recv", 16, 0, 2.0, 3.0),
            (1, "recv", 16, 2, 3.0, 4.0),  # its send is not there
            (0, "barrier", 0, -1, 3.0, 4.0),
        ),
        "s",
    )
    arrows = [(text.xyann[0], text.xy[0]) for text in picture.axes.texts if hasattr(text, "arrow_patch")]
    assert arrows == [(0.0, 1.0), (1.0, 3.0)]
    assert "2 ranks over 4 s: 2 messages, each" in picture.caption
    assert "rank 0 sends most, 24 bytes; 1 call of collectives" in picture.caption
    dashed = [box.get_width() for box in picture.axes.findobj(Rectangle) if box.get_linestyle() == "--"]
    assert dashed == [0.5, 1.0, 1.0]
    quiet = plot.timeline_ranks(calls_of_ranks((0, "barrier", 0, -1, 0.0, 0.0)))
    assert "message" not in quiet.caption
    with pytest.raises(style.NothingToDraw):
        plot.timeline_ranks([])


@pytest.mark.parametrize(
    ("ends", "said"),
    [((4, 9), "warp 1 is busy longest, 9 µs."), ((4, 4), "each is busy for 4 µs.")],
)
def test_a_timeline_names_the_busiest_row_only_where_there_is_one(ends: tuple[int, int], said: str) -> None:
    spans = [Span(f"warp {row}", 0, end, "", "load") for row, end in enumerate(ends)]
    assert plot.timeline(spans).caption.endswith(said)
    assert plot.timeline(spans, caption="Look at warp 1.").caption == "Look at warp 1."


def test_a_count_that_is_missing_is_named_in_one_line() -> None:
    with pytest.raises(style.NothingToDraw, match="no count for yours: the run did nothing of this kind"):
        plot.bars({"naive": 32, "yours": None}, "sectors")  # type: ignore[dict-item]
    with pytest.raises(style.NothingToDraw, match="no intensity for copy"):
        plot.roofline([Point("copy", None)], "A100")  # type: ignore[arg-type]


def test_a_unit_that_is_a_symbol_keeps_its_letters() -> None:
    assert plot.bars({"call 1": 199.3}, "ms on this computer").caption.startswith("In ms on this computer:")


def test_a_limit_of_occupancy_lies_where_it_is() -> None:
    picture = plot.occupancy(hardware.occupancy("A100", 256, registers=14))
    bars = {box.get_width() for box in picture.axes.patches if isinstance(box, Rectangle)}
    assert {64, 128, 192} <= bars  # warps, registers; blocks and shared memory are cut


def test_two_versions_of_a_kernel_share_the_axis_of_their_lanes() -> None:
    lengths = (428, 260)
    ends = [plot.divergence([Pass("all", LANE >= 0, n)]).axes.get_xlim()[1] for n in lengths]
    assert ends == [500, 500]


def test_lines_of_one_source_line_have_one_colour_and_those_of_none_have_no_bar() -> None:
    columns = [plot.Listing("C", (("a", 1), ("b", 2))), plot.Listing("PTX", (("x", 2), ("y", 1), ("z", 0)))]
    picture = plot.listings(columns)
    bars = [p.get_facecolor() for p in picture.axes.findobj(Rectangle) if p.get_height() == 0.84]
    assert len(bars) == 4 and len(set(bars)) == 2
    assert bars[0] == bars[3] and bars[1] == bars[2]
    assert "2 lines of C, 3 lines of PTX" in picture.caption
    with pytest.raises(style.NothingToDraw):
        plot.listings([plot.Listing("C", ())])


def test_a_roof_of_its_own_is_drawn_as_a_gpus_is() -> None:
    roof = hardware.Roofline("this CPU", "float32", 6e10, 1.2e10)
    picture = plot.roofline([Point("add", 1 / 12), Point("product", 64, 5e10)], roof)
    assert picture.caption.startswith("The roof of this CPU: add lies under the slope")
    assert "60 GFLOP/s float32" in [text.get_text() for text in picture.axes.texts]


def test_the_speed_up_ends_where_the_laws_put_it() -> None:
    """1 / (0.05 + 0.95 / 1024) = 19.6; 0.05 + 0.95 × 1024 = 972.85."""
    picture = plot.speedup([0.05], most=1024)
    assert "973 with Gustafson" in picture.caption and "19.6 with Amdahl" in picture.caption
    with pytest.raises(ValueError, match="between 0 and 1; got 5"):
        plot.speedup([5])
    with pytest.raises(style.NothingToDraw):
        plot.speedup([])


def test_a_gpu_without_a_dtype_has_no_ridge_for_it() -> None:
    picture = plot.ridges(["T4", "H100"], ["float32", "float8"])
    marks = [line for line in picture.axes.lines if line.get_marker() in ("o", "s")]
    assert len(marks) == 3
    assert "25.4" in [text.get_text() for text in picture.axes.texts]  # T4: 8.14 TFLOP/s over 320 GB/s
    with pytest.raises(style.NothingToDraw, match="rate for float8"):
        plot.ridges(["T4"], ["float8"])


def test_names_at_the_ends_of_lines_do_not_overlap() -> None:
    picture = plot.lines(
        {"one": [(0, 9), (1, 1)], "two": [(0, 5), (1, 1.01)]},
        "n",
        "cost",
        "Both end low.",
        limits={"bound": 1},
    )
    picture.png()
    texts = [text for text in picture.axes.texts if text.get_text() in ("one", "two", "bound")]
    bottoms = sorted(Text.get_window_extent(text).y0 for text in texts)  # without their connectors
    assert len(bottoms) == 3 and min(np.diff(bottoms)) > 8
    with pytest.raises(style.NothingToDraw):
        plot.lines({"one": []}, "n", "cost", "Nothing.")


def test_messages_are_counted_and_no_arrow_of_a_round_lies_over_another() -> None:
    ring = [(rank, (rank + 1) % 4, 1) for rank in range(4)]
    picture = plot.messages([ring, [(0, 3, 2)], []], 4, "shares")
    assert "the more is sent, the wider" in picture.caption
    assert "wider" not in plot.messages([ring], 4, "shares").caption
    assert "5 messages in 3 rounds" in picture.caption and "in shares: 1, 2, 0." in picture.caption
    places = [line.get_xdata()[0] for line in picture.axes.lines if line.get_marker() == "o"]
    assert len(places) == 5 and len(set(places[:4])) >= 3, "0→1 and 2→3 may share a lane, no others"
    with pytest.raises(style.NothingToDraw):
        plot.messages([[], []], 4)


def test_a_schedule_says_how_long_devices_idle_and_what_they_hold() -> None:
    picture = importlib.import_module("gpulab.plot.schedule").sample()
    assert (
        "through after 8 steps and idle for 25.0 %" in picture.caption
        and "2 micro-batches" in picture.caption
    )
    assert [t.get_text() for t in picture.axes.texts].count("0") == 4  # F0 and B0 of two devices
    with pytest.raises(style.NothingToDraw):
        plot.schedule([])
    long = plot.schedule(simulate([[Work(kind, i) for kind in "FB" for i in range(11)]]).slots)
    assert all(tick == int(tick) for tick in long.axes.get_xticks()), "a step has no halves"


def test_the_numbers_of_a_panel_are_rounded_alike() -> None:
    counts = {"loads": {"a": 3, "b": 2.125}, "work": {"a": 139.26, "b": 50.12}, "rest": {"a": 512, "b": 0.25}}
    axes = plot.panels(counts, "Fewer.").figure.axes
    seen = [[text.get_text() for text in ax.texts if text.get_text()] for ax in axes]
    assert seen == [["3.00", "2.12"], ["139", "50"], ["512.0", "0.2"]]


def test_panels_have_scales_of_their_own_and_name_the_kernels_once() -> None:
    counts = {"loads": {"three": 3, "one": 1}, "barriers": {"three": 20, "one": 0}}
    picture = plot.panels(counts, "Fewer of both.")
    first, second = picture.figure.axes
    assert [label.get_text() for label in first.get_yticklabels()] == ["three", "one"]
    assert not any(label.get_text() for label in second.get_yticklabels())
    assert (first.get_xlim()[1], second.get_xlim()[1]) == (4.5, 30)
    with pytest.raises(style.NothingToDraw, match="no count of barriers for one"):
        plot.panels({"loads": {"one": 1}, "barriers": {}}, "none")


def test_panels_of_one_whole_share_a_scale() -> None:
    counts = {"% a": {"one": 60, "two": 90}, "% b": {"one": 40, "two": 10}}
    found = plot.panels(counts, "Two parts.", most=100).figure.axes
    assert found[0].get_xlim() == found[1].get_xlim() and found[0].get_xlim()[1] >= 100


def test_shares_of_a_whole_lie_end_to_end() -> None:
    picture = plot.shares({"sum": {"memory": 1, "arithmetic": 3}}, "instructions", "Mostly arithmetic.")
    bars = [box for box in picture.axes.findobj(Rectangle) if box.get_height() == 0.64]
    assert [(box.get_x(), box.get_width()) for box in bars] == [(0, 25), (25, 75)]
