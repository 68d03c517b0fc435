"""The parts of a modelled time."""

from __future__ import annotations

import pytest

from gpulab.plot import time_breakdown
from gpulab.plot.style import NothingToDraw


def test_the_longest_part_comes_first_and_short_ones_are_left_out():
    picture = time_breakdown({"issue": 1e-6, "DRAM": 4e-6, "xu": 1e-9}, 4.5e-6)
    (ax,) = picture.figure.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["DRAM", "issue"]
    assert "Modelled 4.5 µs" in picture.caption and "DRAM 4" in picture.caption
    assert "xu" not in picture.caption
    assert picture.png()


def test_without_any_time_there_is_nothing_to_draw():
    with pytest.raises(NothingToDraw):
        time_breakdown({"DRAM": 0.0}, 2e-6)
