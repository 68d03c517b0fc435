"""A learner never reads 400 words without a picture, something that moves, or the end of a sitting."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulab import plot
from gpulab.plot import moving
from tests.labs.test_reading import NOTEBOOKS, words

WORDS = 400
PAUSE = "## End of sitting "
DRAWING = re.compile(r"!\[[^\]]{40,}\]\([^)\s]+\.svg\)")
# Calls whose result is a picture: the figures of gpulab.plot, what a run did, what moves.
STILL = {name for name in plot.__all__ if name.islower() and name != "axes"}
MOVES = {name for name in moving.__all__ if hasattr(getattr(moving, name), "figure")}
FIGURES = "|".join(sorted(STILL | MOVES))
SHOWS = re.compile(
    rf"\bgpulab\.(show|trace|watch)\(|\bplt\.show\(|\blab_map\(|\bmoving\.|(?<![\w.])(?:gpulab\.)?(?:plot\.)?({FIGURES})\("
)


def stretches(cells: list[dict]) -> Iterator[tuple[int, str]]:
    """How many words stand between two things to look at, and the words that they begin with."""
    run: list[str] = []
    for cell in [*cells, {"cell_type": "code", "source": "plot.bars()"}]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            *before, last = DRAWING.split(source)
            for text in before:
                yield words("\n\n".join([*run, text])), _start([*run, text])
                run = []
            run.append(last)
            if PAUSE in source:
                yield words("\n\n".join(run)), _start(run)
                run = []
        elif SHOWS.search(source):
            yield words("\n\n".join(run)), _start(run)
            run = []


def _start(texts: list[str]) -> str:
    return " ".join(" ".join(texts).split())[:70]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_there_is_something_to_look_at_every_400_words(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert {start: count for count, start in stretches(cells) if count > WORDS} == {}


def test_a_stretch_ends_at_a_drawing_a_cell_that_draws_a_sitting_and_nowhere_else() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["one two"]},
        {"cell_type": "code", "source": ["gpulab.profile(k)"]},
        {
            "cell_type": "markdown",
            "source": [f"three ![{'words that say what to see ' * 2}](drawings/a.svg) four"],
        },
        {"cell_type": "code", "source": ["gpulab.show(report)"]},
        {"cell_type": "markdown", "source": ["![too short](drawings/a.svg) five"]},
        {"cell_type": "markdown", "source": ["## End of sitting 1\n", "\n", "six seven"]},
    ]
    assert [count for count, _ in stretches(cells)] == [3, 1, 7, 0]
