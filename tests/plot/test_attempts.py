"""Attempts of a job: numbered where they start, crossed where they were stopped."""

from __future__ import annotations

import importlib

import pytest

from gpulab import plot
from gpulab.plot import style


def test_each_attempt_is_numbered_at_its_start_and_all_but_the_last_end_in_a_cross() -> None:
    runs = [[(0, 0), (2, 40)], [(3, 20), (4, 20)], [(5, 20), (9, 90)]]
    picture = plot.attempts(runs, "seconds", "step", "Two stops.")
    assert {text.get_text(): text.xy for text in picture.axes.texts} == {  # type: ignore[attr-defined]
        "1": (0, 0),
        "2": (3, 20),
        "3": (5, 20),
    }
    crosses = [line for line in picture.axes.lines if line.get_marker() == "x"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in crosses] == [(2, 40), (4, 20)]
    assert picture.caption == "Two stops." and picture.png()


def test_the_sample_is_drawn() -> None:
    assert importlib.import_module("gpulab.plot.attempts").sample().png()


@pytest.mark.parametrize("runs", [[], [[(0, 0)], []]])
def test_an_attempt_without_a_point_is_refused(runs) -> None:
    with pytest.raises(style.NothingToDraw):
        plot.attempts(runs, "seconds", "step", "Nothing.")
