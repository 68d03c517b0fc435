"""Pairs to look at: copies are found however they are dressed up, what everybody writes is not."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.__main__ import main
from grading.lms.similar import features, pairs, side_by_side
from tests.grading.conftest import LAB, Class

USUAL = """
@cuda.jit
def transpose(a, out):
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        out[x, y] = a[y, x]
"""
ODD = """
@cuda.jit
def transpose(a, out):
    # walk along the diagonal, because the teacher said so
    start = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    for step in range(0, a.shape[0] * a.shape[1], 1024):
        place = (start + step * 7) % (a.shape[0] * a.shape[1])
        row, column = divmod(place, a.shape[1])
        if row < a.shape[0] and column >= 0:
            out[column, row] = a[row, column] + 0 * step
"""
RENAMED = (
    re.sub(r"#.*", "# quite another remark", ODD).replace("start", "begin").replace("place", "where_i_am")
)
OTHER = """
@cuda.jit
def transpose(a, out):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        height, width = a.shape
        y = i // width
        x = i - y * width
        out[x, y] = a[y, x]
"""


@pytest.fixture
def handed_in(school: Class) -> Class:
    for i in range(6):
        school.hand_in(f"usual{i}", {"transpose": USUAL})
    school.hand_in("other", {"transpose": OTHER})
    school.hand_in("ann", {"transpose": ODD})
    school.hand_in("zoe", {"transpose": RENAMED})
    return school


def test_a_renamed_copy_of_something_unusual_is_the_only_pair(handed_in: Class) -> None:
    answers = {"transpose": dict.fromkeys((f"usual{i}" for i in range(6)), USUAL)}
    answers["transpose"] |= {"other": OTHER, "ann": ODD, "zoe": RENAMED}
    submitted = {
        student: handed_in.notebook({"transpose": text}) for student, text in answers["transpose"].items()
    }
    (found,) = pairs(handed_in.released, submitted)
    assert found.students == ("ann", "zoe")
    assert found.cells == {"transpose": pytest.approx(1)}
    assert {"step", "column"} <= set(found.words) and "begin" not in found.words


def test_a_class_of_one_and_an_empty_class_have_no_pairs(school: Class) -> None:
    assert pairs(school.released, {}) == []
    assert pairs(school.released, {"ann": school.notebook({"transpose": ODD})}) == []


def test_the_released_stub_is_nobodys_work(school: Class) -> None:
    notebooks = {s: copy.deepcopy(school.released) for s in ("ann", "bob")}
    assert pairs(school.released, notebooks) == []


@given(st.permutations(["start", "step", "place", "row", "column"]))
def test_renaming_changes_no_structure(names: list[str]) -> None:
    new = dict(zip(["start", "step", "place", "row", "column"], (f"v{n}" for n in names), strict=True))
    renamed = re.sub(r"\b(start|step|place|row|column)\b", lambda m: new[m[0]], ODD)
    assert features(renamed).structure == features(ODD).structure


LOOP = """
def total(a, first):
    result = 0
    for place in range(first, a.size, 2):
        if a[place] > first + 1:
            result += a[place] * 3
        else:
            result -= 1
    return result
"""
REWRITTEN = """
%%time
def total(values, start) -> float:
    'adds some of them up'
    found: int = 0
    at = start
    while values.size > at:
        if not 1 + start < values[at]:
            found = found - 1
        else:
            found = 3 * values[at] + found
        at += 2
    return found
"""


def test_another_loop_and_turned_operands_conditions_and_branches_change_no_structure() -> None:
    assert features(REWRITTEN).structure == features(LOOP).structure
    assert features(LOOP.replace("2)", "4)")).structure != features(LOOP).structure
    assert features(LOOP.replace("-= 1", "+= 1")).structure != features(LOOP).structure


def test_what_is_no_sum_and_no_product_keeps_its_order() -> None:
    for one, other in (("a - b(1)", "b(1) - a"), ("a[1] / b", "b / a[1]"), ("a(1) @ b", "b @ a(1)")):
        long = "x = [y, y, y, {}]\nz = f(g(h))\n"
        assert features(long.format(one)).structure != features(long.format(other)).structure


def test_a_kernel_in_a_string_and_what_is_no_python_have_their_tokens() -> None:
    kernel = "__global__ void twice(float *a) { // twice\n  a[threadIdx.x] = 2 * a[threadIdx.x]; }"
    alone, within = features(kernel).structure, features(f"k = RawKernel('''{kernel}''', 'twice')").structure
    assert alone and alone <= within


@given(st.text(max_size=300))
def test_any_text_has_features(text: str) -> None:
    features(text)
    assert all("\x1b" not in line for line in side_by_side(text, text[::-1]))


def test_the_command_names_pairs_and_shows_two_answers_side_by_side(
    handed_in: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["similar", LAB, str(handed_in.folder)], handed_in.course) == 0
    out = capsys.readouterr().out
    assert "ann" in out and "zoe" in out and "usual" not in out
    assert "no proof" in out
    assert main(["similar", LAB, str(handed_in.folder), "--pair", "ann", "zoe"], handed_in.course) == 0
    out = capsys.readouterr().out
    assert "row, column = divmod" in out and " │ " in out
    assert main(["similar", LAB, str(handed_in.folder), "--pair", "ann", "nobody"], handed_in.course) == 1
    assert "nobody" in capsys.readouterr().out


def test_a_class_without_pairs_and_a_folder_without_a_class_are_one_line(
    school: Class, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    school.hand_in("ann")
    assert main(["similar", LAB, str(school.folder)], school.course) == 0
    assert "no pair" in capsys.readouterr().out
    assert main(["similar", LAB, str(tmp_path / "none")], school.course) == 1
    assert len(capsys.readouterr().out.strip().splitlines()) == 1
