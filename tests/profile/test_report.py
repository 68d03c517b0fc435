"""Reports: the words of the screen, lines, comparison, the trip through JSON."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpulab.analysis.profile import METRICS, Report
from tests.profile.by_hand import ROOFLINE, TEXTS, TRANSPOSE, launch, report
from tests.profile.test_metrics import SHARED

SCREEN = """\
transpose   (4, 3) blocks of (32, 32)   A100 simulated                            0.04 s
what it asked   49,152 B read + 49,152 B written   AI 0.00 FLOP/B                counted
global loads    sectors/request 4.0   ideal 4.0                                  counted
global stores   sectors/request 32.0   ideal 4.0   ← 8 × the traffic             counted
shared          no access                                                        counted
instructions    1,920 by warps   32.0 of 32 lanes take part                      counted
branches        100 % uniform                                                    counted
occupancy       64 of 64 warps (100 %)   limited by warps; 16 registers, 0 B    modelled
                shared
costliest line  9   out[x, y] = a[y, x]   100 % of all sectors                   counted
instructions by source line
   7  x, y = cuda.grid(2)                                 ██            384 · 20 %
   8  if x < a.shape[1] and y < a.shape[0]:               ██            384 · 20 %
   9  out[x, y] = a[y, x]                                 ███████       1,152 · 60 %
per line: report.lines · picture: gpulab.show(report) · compare: report.compare(other)
counted: exact for this PTX (NVVM 13.5) · modelled: counts and the data sheet of the
A100 · the 0.04 s are the simulation's, not a GPU's"""


def test_a_report_shows_what_was_asked_what_it_cost_and_how_that_is_known() -> None:
    assert str(report()) == SCREEN


def test_the_page_of_a_report_stays_as_it_was_looked_at() -> None:
    """``GPULAB_RENEW=1`` writes it anew: open it in a browser, light and dark, before you commit it."""
    page = report()._repr_html_().replace("</div>", "</div>\n")
    kept = Path(__file__).parent / "report.html"
    if os.environ.get("GPULAB_RENEW"):
        kept.write_text(page)
    assert page == kept.read_text()


def test_bank_conflicts_are_blamed_on_their_line() -> None:
    assert "66 wavefronts   ideal 4   ← 32-way bank conflicts in line 5" in str(report(launch(SHARED)))


def test_a_roofline_position_is_modelled_and_says_what_binds() -> None:
    text = replace(report(), roofline=ROOFLINE).card().text(150)
    assert "left of the ridge at 9.56 FLOP/B (float32): memory bound, at most 1.02 TFLOP/s" in text


def test_a_roofline_of_tensor_cores_says_so() -> None:
    there = replace(ROOFLINE, dtype="float16", ridge=153.0, tensor=True)
    text = replace(report(), roofline=there).card().text(150)
    assert "left of the ridge at 153.0 FLOP/B (float16, tensor cores): memory bound" in text


def test_several_launches_are_listed_by_shape() -> None:
    text = str(report(launch(), launch(), launch(SHARED, "tiled"), name="both"))
    assert text.startswith("both   3 launches   A100 simulated")
    assert "2 × transpose   (4, 3) blocks of (32, 32)" in text
    assert "1 × tiled" in text


def test_a_report_survives_json() -> None:
    whole = replace(report(launch(), launch(SHARED)), roofline=ROOFLINE)
    again = Report.from_dict(json.loads(json.dumps(whole.to_dict())))
    assert again == whole
    assert str(again) == str(whole)


def test_a_report_answers_by_the_names_of_its_metrics() -> None:
    whole = report()
    assert list(whole) == list(METRICS)
    assert "blocks" in whole and "blokcs" not in whole and 0 not in whole
    assert dict(whole)["blocks"] == whole["blocks"]


def test_a_report_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="no report of format 1"):
        Report.from_dict({"format": 0})


def test_lines_add_up_to_the_whole() -> None:
    whole = report()
    for name in ("instructions", "global_sectors", "global_bytes"):
        assert sum(line.metrics[name] or 0 for line in whole.lines) == whole[name]
        assert sum(line.share(name) for line in whole.lines) == pytest.approx(1)


def test_lines_know_their_text_and_the_costliest_is_found() -> None:
    line = report().lines.costliest("global_sectors")
    assert line is not None
    assert (line.line, line.text) == (9, TEXTS["kernel.py", 9])
    assert report().lines.costliest("flops") is None


def test_the_table_of_lines_leaves_out_columns_that_would_be_empty() -> None:
    assert (
        str(report().lines)
        == """\
line  source                                 instructions   %  requests  sectors    %  per request
7     x, y = cuda.grid(2)                             384  20         –        –    0            –
8     if x < a.shape[1] and y < a.shape[0]:           384  20         –        –    0            –
9     out[x, y] = a[y, x]                           1,152  60       768   13,824  100         18.0"""
    )


def test_a_comparison_shows_only_what_differs() -> None:
    coalesced = tuple(
        (*row[:4], row[4] | {"sectors": 1536}) if row[0].startswith("st") else row for row in TRANSPOSE
    )
    other = report(launch(coalesced), name="tiled")
    comparison = report().compare(other)
    assert (
        str(comparison)
        == """\
transpose beside tiled
metric                            transpose  tiled  factor  unit
global_store_sectors                 12,288  1,536   ÷ 8.0  sectors
global_store_sectors_per_request       32.0    4.0   ÷ 8.0  sectors/request
most sectors stored
   9  transpose: out[x, y] = a[y, x]                      ████████████  12,288
   9  tiled: out[x, y] = a[y, x]                          ██            1,536"""
    )
    assert comparison.ratio("global_store_sectors") == 1 / 8
    assert str(report().compare(report())).endswith("No metric differs.")


def test_spilled_registers_are_told_even_where_the_counts_of_ptx_see_no_local_memory() -> None:
    spilling = report(replace(launch(), spill_bytes=552))
    assert "local memory    552 B spilled per thread" in str(spilling)
    assert "local memory" not in str(report())
    row = next(line for line in str(report().compare(spilling)).splitlines() if "spill_bytes" in line)
    assert row.split() == ["spill_bytes", "0", "552", "B"]


def test_reports_of_two_compilers_are_not_compared_in_silence() -> None:
    assert "They were not counted alike" in str(report().compare(replace(report(), compiler="NVVM 12.9")))


def test_a_report_without_any_count_still_shows_itself() -> None:
    empty = report(launch(()))
    assert "no access" in str(empty)
    assert empty.lines.costliest("instructions") is None
