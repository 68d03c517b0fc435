"""Figures of what fills a memory say and draw what they were given."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from gpulab import plot
from gpulab.plot import style


def boxes(picture, colour):
    found = [a for a in picture.axes.get_children() if isinstance(a, Rectangle)]
    return [b for b in found if b.get_facecolor()[:3] == pytest.approx(style.to_rgb(colour))]


def words(picture):
    return [text.get_text() for text in picture.axes.texts]


def test_a_block_is_filled_as_far_as_it_holds_tokens():
    picture = plot.block_tables({"a": [7, 3]}, {"a": 20}, 16)
    assert sorted(b.get_width() for b in boxes(picture, style.GOOD)) == pytest.approx([0.92 / 4, 0.92])
    assert words(picture) == ["7", "3"]


def test_blocks_of_several_tables_have_a_colour_of_their_own():
    picture = plot.block_tables({"a": [0, 1], "b": [0, 2], "c": [0, 2]}, {"a": 5, "b": 5, "c": 5}, 4)
    assert len(boxes(picture, style.SERIES[1])) == 5  # block 0 three times, block 2 twice
    assert "6 table entries name 3 blocks" in picture.caption and "ones, 2," in picture.caption


def test_parts_stand_side_by_side_and_their_sum_behind_them():
    picture = plot.stacked({"x": {"weights": 16.0, "cache": 2.5}}, "GB", "What to see.", limits={"card": 24})
    (cache,) = [b for b in boxes(picture, style.SERIES[1]) if b.get_height() == pytest.approx(0.6)]
    assert (cache.get_x(), cache.get_width()) == (16.0, 2.5)
    assert "18.5" in words(picture) and "card 24" in words(picture)


def test_magnitudes_share_one_scale_and_have_no_sign():
    arrays = {"K": np.array([[1.0, -100.0]]), "V": np.array([[0.0, 2.0]])}
    picture = plot.heat_maps(arrays, "token", "channel", "What to see.")
    first, second = (ax.images[0] for ax in picture.figure.axes[:2])
    assert first.get_clim() == second.get_clim() == (0.1, 100)
    assert first.get_array().tolist() == [[1, 100]] and second.get_array().tolist() == [[0.1, 2]]
