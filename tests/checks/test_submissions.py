"""Each file in `submissions/` is handed in; the file beside it holds every word that the learner then reads.

``GPULAB_RENEW=1`` writes the words anew; read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from gpulab.checks import check

FOLDER = Path(__file__).parent / "submissions"
FIGURE = re.compile(r'<(gpulab-moving-\w+) .*?</\1><script type="module">.*?</script>', re.DOTALL)
FILES = sorted(FOLDER.glob("*.py"))


def handed_in(path: Path) -> tuple[str, Any]:
    """The exercise that the first line names, and what the file calls `answer`."""
    source = path.read_text()
    match = re.match(r"# (toy\.\w+): ", source)
    assert match, f"{path.name}: the first line must say '# exercise: what is wrong with it'"
    names: dict[str, Any] = {"__name__": "learner"}
    exec(compile(source, str(path), "exec"), names)
    return match.group(1), names["answer"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_submission_gets_these_words_and_no_others(path: Path) -> None:
    text = f"{check(*handed_in(path))}\n"
    expected = path.with_suffix(".txt")
    if os.environ.get("GPULAB_RENEW"):
        expected.write_text(text)
    assert text == expected.read_text()


@pytest.mark.parametrize("name", ["transpose_race", "transpose_half_padded"])
def test_the_page_of_a_verdict_stays_as_it_was_looked_at(name: str) -> None:
    page = check(*handed_in(FOLDER / f"{name}.py"))._repr_html_().replace("</div>", "</div>\n")
    page = FIGURE.sub("a figure", page)
    kept = FOLDER / f"{name}.html"
    if os.environ.get("GPULAB_RENEW"):
        kept.write_text(page)
    assert page == kept.read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_only_right_submissions_pass_and_every_lost_point_has_a_reason(path: Path) -> None:
    words = path.with_suffix(".txt").read_text()
    assert ("passed at attempt 1" in words) == path.stem.endswith("_right")
    for line in words.splitlines():
        if line[:1] in "✘◐":
            below = words.split(line, 1)[1].splitlines()[1]
            assert below.startswith("  "), f"nothing explains: {line}"
