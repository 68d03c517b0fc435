"""What the time model takes for all GPUs alike has a source or is called assumed, and the docs show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulab.analysis.machine import PIPES
from gpulab.simulator.hardware import pipelines
from gpulab.simulator.hardware.sources import ASSUMED

DOCS = Path(__file__).parents[2] / "docs" / "time_model.md"


def rows() -> list[str]:
    """The table of docs/time_model.md, as it must be."""
    return [
        f"| {name} | {figure} | {figure.source} | {figure.note} |"
        for name, figure in pipelines.FIGURES.items()
    ]


def test_the_docs_show_every_figure_with_its_source():
    text = DOCS.read_text(encoding="utf-8")
    missing = [row for row in rows() if row not in text]
    assert not missing, "docs/time_model.md lacks:\n" + "\n".join(missing)


@pytest.mark.parametrize("name", pipelines.FIGURES)
def test_what_is_assumed_says_so_and_what_is_not_names_where_it_can_be_read(name):
    figure = pipelines.FIGURES[name]
    assert figure.value > 0
    if figure.source is ASSUMED:
        assert "assumed" in str(figure.source)
    else:
        assert figure.source.where or figure.source.publisher == "NVIDIA"
        assert figure.note, "of which GPU, or what is counted"


def test_every_pipe_has_a_latency_or_is_that_of_loads():
    assert set(PIPES) - set(pipelines.LATENCY) == {"lsu"}
