"""A cell that uses an answer can be run again later: no cell below has given its arrays other contents.

Otherwise a right kernel is launched on what another section left there, and the message blames the kernel.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpulab.foundation.global_names import bound_and_used

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "labs").glob("[0-9]*/*.ipynb"))


def bound_again(path: Path) -> dict[str, list[str]]:
    """By the first line of a cell that needs an answer: names it uses that cells above and below it bind."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names = [bound_and_used(source) for source in sources]
    found = {}
    for number, source in enumerate(sources):
        if not source.startswith("gpulab.need("):
            continue
        binds, uses = names[number]
        above = frozenset().union(*(bound for bound, _ in names[:number]))
        below = frozenset().union(*(bound for bound, _ in names[number + 1 :]))
        if again := sorted((uses - binds) & above & below):
            found[f"{number}: {source.splitlines()[-1]}"] = again
    return found


@pytest.mark.parametrize(
    "path", [p for p in NOTEBOOKS if p.stem.startswith("04")], ids=lambda path: path.stem
)
def test_a_comparison_can_be_run_again_after_the_rest_of_the_lab(path: Path) -> None:
    assert bound_again(path) == {}
