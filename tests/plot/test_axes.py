"""What stands at an axis: whole numbers for counts, separators, and a start that is a power of ten."""

from itertools import pairwise

import pytest

from gpulab import plot


def labels(axis) -> list[str]:
    axis.get_figure(root=True).draw_without_rendering()
    return [tick.get_text() for tick in axis.get_xticklabels()]


def test_an_axis_of_counts_has_whole_numbers_only():
    picture = plot.lines({"visits": [(n, 2.0**n) for n in range(1, 21)]}, "doublings", "visits", "A count.")
    assert all(float(text).is_integer() for text in labels(picture.axes))
    halves = plot.lines({"loss": [(0.5, 1.0), (2.5, 2.0)]}, "hours", "loss", "Halves.")
    assert any(not float(text).is_integer() for text in labels(halves.axes))


def test_large_numbers_up_the_axis_of_lines_have_separators():
    axes = plot.lines({"fed": [(1, 10), (2, 1800)]}, "new", "fed", "It grows.").axes
    axes.get_figure(root=True).draw_without_rendering()
    assert "1,500" in [tick.get_text() for tick in axes.get_yticklabels()]


def test_bars_are_captioned_with_what_to_see_and_do_not_repeat_their_numbers():
    assert (
        plot.bars({"kept": 3, "not": 0}, "bytes").caption
        == "Bytes: kept has the most, 3, and not the least, 0."
    )
    three = plot.bars({"naive": 32, "tiled": 8, "best": 4}, "sectors").caption
    assert three == "Sectors: the largest, naive, is 8 times the smallest, best." and "32" not in three
    assert plot.bars({"one": 4, "two": 4}, "sectors").caption == "Sectors: all have 4."
    assert plot.bars({"kept": 3, "not": 0}, "bytes", caption="Some stay.").caption == "Some stay."


def test_large_numbers_at_an_axis_of_bars_have_separators():
    assert "100,000" in labels(plot.bars({"kept": 131_072, "not": 0}, "bytes kept").axes)


@pytest.mark.parametrize(("smallest", "start"), [(9, 1), (10, 1), (1000, 100), (0.02, 0.01)])
def test_logarithmic_counts_start_at_the_power_of_ten_below_the_smallest(smallest, start):
    picture = plot.bars({"few": smallest, "many": 1e9}, "parameters", log=True)
    assert picture.axes.get_xlim()[0] == pytest.approx(start)


def test_logarithmic_counts_are_dots_without_a_length_and_crosses_where_they_miss():
    axes = plot.bars({"none": 0, "few": 9, "many": 1e9}, "parameters", log=True, budget=100).axes
    assert not axes.patches
    marks = {line.get_marker(): line.get_xdata()[0] for line in axes.lines if line.get_marker() in "oX"}
    assert marks == {"o": 9, "X": 1e9}


def test_whole_hours_and_nodes_have_whole_numbers_at_their_axes():
    hours = plot.timeline([plot.Span("GPU 0", 0, 19, "job", "job")], "hours")
    nodes = plot.bars({"packed": 4, "spread": 0}, "empty nodes")
    assert all(float(text).is_integer() for text in labels(hours.axes) + labels(nodes.axes))


def test_a_figure_of_ones_own_looks_like_the_others_and_has_its_caption_as_alt_text():
    ax = plot.axes(4, 2)
    ax.plot([1, 2], [3, 4])
    assert ax.patch.get_alpha() == ax.figure.patch.get_alpha() == 0
    assert not ax.spines["top"].get_visible()
    assert 'alt="It grows &lt; twice."' in plot.picture(ax, "It grows < twice.").html()


def test_several_axes_make_one_picture_that_keeps_the_captions_of_what_was_drawn_there():
    axes = plot.axes(6, 2, 1, 2, sharey=True)
    for ax, name in zip(axes, ("left", "right"), strict=True):
        plot.bars({name: 2}, "bytes", ax)
    assert axes.shape == (2,) and axes[0].get_shared_y_axes().joined(*axes)
    assert plot.picture(axes[1]).caption == "Bytes: left 2. Bytes: right 2."


def test_numbers_along_a_short_axis_do_not_touch():
    ways = ("global memory to shared memory", "shared memory to tensor cores", "shared memory to registers")
    picture = plot.bars(dict(zip(ways, (163_840, 393_216, 0), strict=True)), "bytes")
    picture.png()
    shown = [label.get_window_extent() for label in picture.axes.get_xticklabels() if label.get_text()]
    assert len(shown) >= 2 and all(one.x1 < other.x0 for one, other in pairwise(shown))


def test_a_logarithmic_axis_of_less_than_two_decades_has_more_than_one_number():
    picture = plot.lines({"a": [(1, 3), (8, 20)]}, "n", "cost", "It grows.", log_x=True, log_y=True)
    picture.png()
    for axis, ends in ((picture.axes.xaxis, (1, 8)), (picture.axes.yaxis, (3, 20))):
        inside = [tick for tick in axis.get_majorticklocs() if ends[0] <= tick <= ends[1]]
        assert len(inside) >= 3
