"""Data sheets side by side, drawn."""

from __future__ import annotations

import pytest

from gpulab.plot import gpus
from gpulab.plot.style import NothingToDraw
from gpulab.simulator import hardware


def test_each_figure_of_the_data_sheets_has_a_panel_with_a_bar_for_each_gpu():
    picture = gpus(hardware.compare("A100", "H100"))
    drawn = {ax.get_xlabel(): [text.get_text() for text in ax.texts] for ax in picture.figure.axes}
    assert drawn["float32 peak\nTFLOP/s"] == ["19.5", "66.9"]
    assert drawn["DRAM bandwidth, peak\nGB/s"] == ["2,039", "3,350"]
    assert picture.caption.startswith(
        "Highest in float32 peak, float16 tensor, L2, DRAM bandwidth and power: H100."
    )
    assert picture.png()


def test_what_one_data_sheet_lacks_is_left_out_for_all():
    picture = gpus(hardware.compare("A100", "H100", "AGX Thor"))
    labels = [ax.get_xlabel() for ax in picture.figure.axes]
    assert "not all data sheets state it: float16 tensor and float8 tensor." in picture.caption
    assert not any("float8" in label or "float16" in label for label in labels)
    assert any("power" in label for label in labels)


def test_no_gpus_are_nothing_to_draw():
    with pytest.raises(NothingToDraw):
        gpus(hardware.Comparison(()))
