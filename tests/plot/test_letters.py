"""A text with a number for each character: every one is drawn, low ones stand out."""

from __future__ import annotations

import importlib

import pytest

from gpulab import plot
from gpulab.plot.style import NothingToDraw


def test_each_character_has_a_bar_as_high_as_its_value_and_low_ones_are_hatched() -> None:
    picture = plot.letters("ab c\n", [1, 0.25, 0.5, 0.75, 0], "The b is low.", across=3)
    bars = picture.axes.patches
    assert [round(bar.get_height() / 0.7, 6) for bar in bars] == [1, 0.25, 0.5, 0.75, 0]
    assert [bool(bar.get_hatch()) for bar in bars] == [False, True, False, False, True]
    assert [text.get_text() for text in picture.axes.texts] == ["a", "b", "␣", "c", "↵"]
    assert len({round(bar.get_y(), 6) for bar in bars}) == 2, "three characters a row"
    assert picture.caption == "The b is low."


def test_its_module_shows_a_sample() -> None:
    assert importlib.import_module("gpulab.plot.letters").sample().png()


def test_an_empty_text_and_another_number_of_values_are_refused() -> None:
    with pytest.raises(NothingToDraw):
        plot.letters("", [], "Nothing.")
    with pytest.raises(ValueError, match="2 characters have 1 values"):
        plot.letters("ab", [1], "One.")
