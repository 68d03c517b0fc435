"""What a report shows beside its words: bars at source lines, the way of the bytes, and two reports side by side."""

from __future__ import annotations

import numpy as np
import pytest
from bs4 import BeautifulSoup

import gpulab
from gpulab import cuda
from gpulab.analysis import machine
from gpulab.analysis.profile import memory_chart
from gpulab.analysis.profile.report import Report
from gpulab.foundation.display import Bar


@cuda.jit
def rows(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        value = a[y, x]
        out[y, x] = value * 2


@cuda.jit
def columns(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[0] and y < a.shape[1]:
        value = a[x, y]
        out[x, y] = value * 2


@pytest.fixture(scope="module")
def reports() -> tuple[Report, Report]:
    a = np.zeros((64, 64), np.float32)
    return tuple(gpulab.profile(kernel[(2, 2), (32, 32)], a, np.zeros_like(a)) for kernel in (rows, columns))  # type: ignore[return-value]


def bars(card) -> list[Bar]:
    return [piece for piece in card.pieces if isinstance(piece, Bar)]


def test_every_line_that_moves_sectors_has_a_bar_as_long_as_its_share(reports: tuple[Report, Report]) -> None:
    load, store = bars(reports[1].card())
    assert (load.text, load.share, load.bad) == ("value = a[x, y]", 0.5, True)
    assert store.text == "out[x, y] = value * 2" and "4,096 · 50 %" in store.words
    assert not any(bar.bad for bar in bars(reports[0].card()))
    assert "██████ " in str(reports[1])


def test_the_chart_says_what_was_asked_and_what_moved(reports: tuple[Report, Report]) -> None:
    plain, strided = (memory_chart.told(report) for report in reports)
    assert "32.8 KB of global memory, which lie in sectors of 32.8 KB (counted)" in plain
    assert "which lie in sectors of 262 KB (counted)" in strided
    assert "not modelled here" in plain and "memory bound" in plain
    image = BeautifulSoup(reports[1]._repr_html_(), "html.parser").img
    assert image and image["alt"] == strided


def test_modelled_traffic_is_called_modelled() -> None:
    a = np.zeros((64, 64), np.float32)
    report = machine.report(rows[(2, 2), (32, 32)], a, np.zeros_like(a))
    if report.modelled is None:
        pytest.skip("there is no ptxas here: nothing is modelled")
    assert "to DRAM (modelled)" in memory_chart.told(report)
    assert "not modelled" not in memory_chart.chart(report)


def test_a_comparison_sets_the_load_of_one_beside_the_load_of_the_other(
    reports: tuple[Report, Report],
) -> None:
    shown = bars(reports[0].compare(reports[1]).card())
    assert [bar.text for bar in shown] == [
        "rows: value = a[y, x]", "columns: value = a[x, y]", "rows: out[y, x] = value * 2", "columns: out[x, y] = value * 2",
    ]  # fmt: skip
    assert [(bar.share, bar.bad) for bar in shown] == [(0.125, False), (1.0, True)] * 2


def test_two_equal_reports_have_no_line_to_compare(reports: tuple[Report, Report]) -> None:
    assert bars(reports[0].compare(reports[0]).card()) == []
