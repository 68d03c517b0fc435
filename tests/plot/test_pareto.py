"""The Pareto front: who is beaten in both directions is not on it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.plot import pareto
from gpulab.plot.pareto import front
from gpulab.plot.style import NothingToDraw

costs = st.tuples(st.integers(0, 6), st.integers(0, 6))


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), costs, min_size=1, max_size=9))
def test_the_front_holds_a_point_for_every_one_that_no_other_beats(points):
    def beats(a, b):
        return a != b and a[0] <= b[0] and a[1] <= b[1]

    best = {place for place in points.values() if not any(beats(other, place) for other in points.values())}
    found = [points[name] for name in front(points)]
    assert set(found) == best and len(found) == len(best)
    assert found == sorted(found)


def test_names_do_not_lie_on_each_other():
    points = {f"point {k}": (1 + k / 1000, 1 + k / 1000) for k in range(5)}
    picture = pareto({**points, "far": (9, 9)}, "x", "y", "Five in a crowd.")
    picture.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in picture.axes.texts]
    assert len(boxes) == 6
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_nothing_is_no_figure():
    with pytest.raises(NothingToDraw, match="no point"):
        pareto({}, "x", "y", "Nothing.")
