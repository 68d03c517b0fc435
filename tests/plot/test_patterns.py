"""Masks side by side."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.plot import patterns
from gpulab.plot.style import NothingToDraw


def test_each_mask_is_filled_where_it_is_not_zero():
    mask = np.array([[0.0, 2.0], [0.0, 0.0], [-1.0, 0.0]])
    picture = patterns({"one": mask, "other": mask.T}, "What to see.")
    first, second = picture.figure.axes
    assert np.array_equal(first.images[0].get_array(), mask != 0)
    assert np.array_equal(second.images[0].get_array(), mask.T != 0)
    assert [ax.get_title() for ax in (first, second)] == ["one", "other"]
    assert picture.caption == "What to see." and picture.png()


@pytest.mark.parametrize("masks", [{}, {"flat": np.ones(4)}, {"empty": np.ones((0, 3))}])
def test_without_rows_and_columns_there_is_nothing_to_draw(masks):
    with pytest.raises(NothingToDraw):
        patterns(masks, "")
