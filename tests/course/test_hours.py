"""Hours follow from one formula: what a notebook states is in its range, and its front names the range."""

from __future__ import annotations

import re

import pytest

from gpulab.app.course import catalogue
from grading.authoring import hours

NOTEBOOKS = hours.notebooks()
MOST = 4  # hours of a sitting
ROW = re.compile(r"^# \| (\d) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
END = "# ## End of sitting "
SAID = re.compile(r"^# \*\*([\d.]+) to ([\d.]+) hours\.\*\*", re.MULTILINE)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_states_hours_within_the_range_of_the_formula(path) -> None:
    low, high = hours.effort(path).range
    assert low - 0.5 <= hours.stated(path) <= high + 0.5, (
        "work the range out again: grading/authoring/hours.py"
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_the_front_of_a_notebook_names_that_range(path) -> None:
    said = SAID.findall(path.read_text(encoding="utf-8"))
    assert len(said) == 1
    for here, there in zip(map(float, said[0]), hours.effort(path).range, strict=True):
        assert abs(here - there) <= 0.5, f"the formula says {hours.effort(path).said}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_no_sitting_takes_more_than_four_hours(path) -> None:
    parts = hours.sittings(path)
    assert hours.stated(path) <= MOST or len(parts) > 1, "its metadata state more than four hours"
    if len(parts) == 1:
        assert hours.effort(path).hours <= MOST, "end a sitting at a good place: '## End of sitting 1'"
    else:
        slow = [part.range[1] for part in parts]
        assert max(slow) <= MOST, f"somebody who gets stuck needs {slow} hours: end a sitting elsewhere"
        assert sum(part.hours for part in parts) == pytest.approx(hours.effort(path).hours, abs=1e-3)


CUT = [path for path in NOTEBOOKS if len(hours.sittings(path)) > 1]


@pytest.mark.parametrize("path", CUT, ids=[path.stem for path in CUT])
def test_the_front_of_a_notebook_lists_its_sittings_with_their_hours(path) -> None:
    front = path.read_text(encoding="utf-8").partition("\n# %%\n")[0]
    rows = ROW.findall(front)
    said = [f"{number}: {hours} hours" for number, _, hours, _ in rows]
    parts = enumerate(hours.sittings(path), start=1)
    assert said == [f"{number}: {part.said}" for number, part in parts]
    assert all(sections and about for _, sections, _, about in rows)


@pytest.mark.parametrize("path", CUT, ids=[path.stem for path in CUT])
def test_a_sitting_ends_with_what_is_done_what_comes_and_how_to_go_on(path) -> None:
    ends = path.read_text(encoding="utf-8").split(END)[1:]
    for number, end in enumerate(ends, start=1):
        heading, _, text = end.partition("\n\n# %%")[0].partition("\n")
        words = " ".join(text.replace("\n#", " ").split())
        assert int(heading) == number
        assert "The second sitting" in words or "the second sitting" in words
        assert "Run All Above Selected Cell" in words and 50 <= len(words.split()) <= 120


def test_the_map_names_as_many_sittings_as_the_notebooks_have() -> None:
    by_name = {path.stem: len(hours.sittings(path)) for path in NOTEBOOKS}
    wrong = {
        lab.key: lab.time
        for lab in catalogue.labs().values()
        if lab.sittings != max(by_name[page.partition("/")[2]] for page in lab.pages)
    }
    assert not wrong
    assert catalogue.labs()["04"].time == "5 h in 2 sittings" and catalogue.labs()["07a"].time == "3 h"


def test_every_kind_of_work_counts() -> None:
    nothing = hours.Effort(0, 0, 0, 0, 0, 0)
    assert nothing.hours == 0
    for field, minutes in (
        ("words", 1 / 140), ("exercises", 8), ("lines", 1), ("predictions", 2), ("answers", 10), ("cells", 0.75)
    ):  # fmt: skip
        more = hours.Effort(**{**vars(nothing), field: 1})
        assert 60 * more.hours == pytest.approx(minutes)
    assert hours.Effort(0, 2, 0, 0, 1, 0, project=True).hours == pytest.approx((2 * 45 + 40) / 60)


def test_a_range_is_in_half_hours_and_reads_as_one() -> None:
    effort = hours.Effort(1400, 6, 50, 6, 1, 40)  # 10 + 48 + 50 + 12 + 10 + 30 minutes
    assert effort.hours == pytest.approx(160 / 60)
    assert effort.range == (2.0, 3.5) and effort.said == "2 to 3.5 hours"
