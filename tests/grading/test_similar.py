"""Groups to look at: copies are found however they are dressed up, what everybody writes is not."""

from __future__ import annotations

import copy
import re
import shutil
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading.__main__ import main
from grading.core.course import Course
from grading.core.graft import graft
from grading.lms import classroom, similar, similar_page
from grading.lms.similar import SOLUTION, Group, Pair, compared, features, groups
from grading.lms.similar_page import aligned, side_by_side
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


def with_wrong(school: Class) -> Class:
    """The course knows the obvious answer."""
    wrong = school.course.solutions / LAB / "wrong" / "transpose_plain.py"
    wrong.write_text(f"# exercise: memory.transpose  fails: store sectors\n{USUAL}")
    return school


@pytest.fixture
def handed_in(school: Class) -> Class:
    with_wrong(school)
    for i in range(6):
        school.hand_in(f"usual{i}", {"transpose": USUAL})
    school.hand_in("other", {"transpose": OTHER})
    school.hand_in("ann", {"transpose": ODD})
    school.hand_in("zoe", {"transpose": RENAMED})
    return school


def found_in(school: Class, transposes: dict[str, str]) -> list[Group]:
    """The groups of a class in which everything but the transposition is the lab's solution."""
    submitted = {student: school.notebook({"transpose": text}) for student, text in transposes.items()}
    return compared(similar.given(school.course, LAB, LAB, school.released), submitted)


def test_a_renamed_copy_of_something_unusual_is_the_only_group(handed_in: Class) -> None:
    usual = dict.fromkeys((f"usual{i}" for i in range(6)), USUAL)
    (found,) = found_in(handed_in, usual | {"other": OTHER, "ann": ODD, "zoe": RENAMED})
    assert found.students == ("ann", "zoe")
    assert found.cells == {"transpose": pytest.approx(1)}
    assert {"step", "column"} <= set(found.words) and "begin" not in found.words


@pytest.mark.parametrize("size", [5, 6, 8, 16])
def test_a_ring_is_one_group_however_much_of_the_class_is_in_it(school: Class, size: int) -> None:
    ring = {f"ring{i:02}": ODD if i % 2 else RENAMED for i in range(size)}
    others = {f"usual{i}": USUAL for i in range(16 - size)}
    (found,) = found_in(with_wrong(school), ring | others)
    assert found.students == tuple(ring)
    assert found.share == pytest.approx(1)


def test_what_the_released_notebook_the_solution_or_a_wrong_answer_holds_is_no_sign(school: Class) -> None:
    class_of = {f"s{i}": USUAL for i in range(6)}
    assert [g.students for g in found_in(school, class_of)] == [tuple(class_of)]
    assert found_in(with_wrong(school), class_of) == []
    theirs = school.solutions["transpose"]
    assert found_in(school, {f"s{i}": theirs.replace("tile", f"buffer{i}") for i in range(6)}) == []


def test_who_has_the_solution_to_the_letter_is_named_beside_it(school: Class) -> None:
    theirs = school.solutions["transpose"]
    renamed = theirs.replace("tile", "buffer").replace("rows", "height").replace("cols", "width")
    (found,) = found_in(school, {"ann": theirs, "bob": renamed, "cy": OTHER})
    assert found.students == ("ann", SOLUTION)
    assert found.cells["transpose"] == pytest.approx(1)


def test_the_solution_with_the_same_new_names_and_remarks_is_found(school: Class) -> None:
    theirs = school.solutions["transpose"].replace("tile", "cupboard").replace("rows", "shelves")
    theirs = theirs.replace(
        "    cuda.syncthreads()", "    # all drawers must be shut first\n    cuda.syncthreads()"
    )
    other = school.solutions["transpose"].replace("tile", "buffer").replace("rows", "height")
    (found,) = found_in(school, {"ann": theirs, "bob": theirs, "cy": other})
    assert found.students == ("ann", "bob")
    assert {"cupboard", "shelves", "drawers"} <= set(found.words)


def test_pairs_that_overlap_are_groups_in_which_each_two_are_a_pair() -> None:
    shares = {("a", "b"): 0.9, ("a", "c"): 0.8, ("b", "c"): 0.7, ("c", "d"): 0.5}
    pairs = [Pair(who, share, {"x": share}) for who, share in shares.items()]
    first, second = groups(pairs, {"a": frozenset({"odd"}), "b": frozenset({"odd"})})
    assert first.students == ("a", "b", "c") and first.share == pytest.approx(0.8)
    assert first.words == ("odd",)
    assert second.students == ("c", "d")


def test_a_class_of_one_and_an_empty_class_have_no_groups(school: Class) -> None:
    assert found_in(school, {}) == []
    assert found_in(school, {"ann": ODD}) == []


def test_the_released_stub_is_nobodys_work(school: Class) -> None:
    notebooks = {s: copy.deepcopy(school.released) for s in ("ann", "bob")}
    assert compared(similar.given(school.course, LAB, LAB, school.released), notebooks) == []


def test_a_course_without_solutions_still_knows_its_released_notebook(school: Class) -> None:
    shutil.rmtree(school.course.solutions)
    assert next(g.students for g in found_in(school, {"ann": ODD, "zoe": RENAMED})) == ("ann", "zoe")


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
    assert all("\x1b" not in line for line in side_by_side(text, text[::-1], frozenset()))


def test_lines_that_differ_in_names_and_remarks_alone_are_alike() -> None:
    first = "x = tile[0]  # mine\ny = 1\nz = x"
    second = "x = box[0]\ny = 1\nw = f(x)"
    rows = list(aligned(first, second, frozenset({"x", "y", "z", "w", "f"})))
    assert [row.how for row in rows] == ["alike", "same", "different"]


def test_the_command_names_groups_and_shows_two_answers_side_by_side(
    handed_in: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["similar", LAB, str(handed_in.folder)], handed_in.course) == 0
    out = capsys.readouterr().out
    assert "ann" in out and "zoe" in out and "usual" not in out
    assert "no proof" in out
    assert main(["similar", LAB, str(handed_in.folder), "--pair", "ann", "zoe"], handed_in.course) == 0
    out = capsys.readouterr().out
    assert "row, column = divmod" in out and " │ " in out and " ┊ " in out
    assert main(["similar", LAB, str(handed_in.folder), "--pair", "ann", SOLUTION], handed_in.course) == 0
    assert "tile = cuda.shared.array" in capsys.readouterr().out
    assert main(["similar", LAB, str(handed_in.folder), "--pair", "ann", "nobody"], handed_in.course) == 1
    assert "nobody" in capsys.readouterr().out


def test_what_a_student_zipped_is_compared_and_whoever_handed_in_no_notebook_is_named(
    handed_in: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    zipped = handed_in.path("zoe")
    with zipfile.ZipFile(zipped.with_name("final.zip"), "w") as file:
        file.write(zipped, f"final/{zipped.name}")
    zipped.unlink()
    page = handed_in.path("yan").with_name("page.html")
    page.parent.mkdir(parents=True)
    page.write_text("<html>")
    assert main(["similar", LAB, str(handed_in.folder)], handed_in.course) == 0
    out = capsys.readouterr().out
    assert f"not compared: yan: no notebook of {LAB}; found: page.html" in out
    assert f"{LAB}:\n" in out and "ann" in out and "zoe" in out


class Page(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_needs_no_other_file_and_runs_nothing_that_somebody_handed_in(
    school: Class, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = ODD.replace("# walk", "# <script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m walk")
    school.hand_in("<b>ann", {"transpose": evil})
    for student in ("zoe", "yan"):
        school.hand_in(student, {"transpose": RENAMED})
    file = tmp_path / "similar.html"
    assert main(["similar", LAB, str(school.folder), "--html", str(file)], school.course) == 0
    assert f"wrote {file}" in capsys.readouterr().out.replace("\n", "")
    text = file.read_text(encoding="utf-8")
    page = Page(text)
    assert not {"script", "img", "b", "link", "iframe"} & {tag for tag, _ in page.tags}
    assert not any(name.startswith("on") or name in ("src", "href") for _, a in page.tags for name in a)
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert "\x1b" not in text and "<script>alert(1)</script>" in page.text
    assert "prefers-color-scheme: dark" in page.text
    assert "yan · zoe" in page.text  # who wrote the same to the letter, in one column
    assert [tag for tag, _ in page.tags].count("details") >= 1
    assert {"same", "alike"} <= {a.get("class") for tag, a in page.tags if tag == "tr"}


def test_a_class_without_groups_and_a_folder_without_a_class_are_one_line(
    school: Class, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    school.hand_in("ann", {"transpose": OTHER})
    assert main(["similar", LAB, str(school.folder)], school.course) == 0
    assert "no group among 1 student stands out" in capsys.readouterr().out
    for arguments in ([str(tmp_path / "none")], [str(school.folder), "--html", str(tmp_path / "none" / "x")]):
        assert main(["similar", LAB, *arguments], school.course) == 1
        assert len(capsys.readouterr().out.strip().splitlines()) <= 2
    (tmp_path / "other" / "ann" / "91_other").mkdir(parents=True)
    assert main(["similar", LAB, str(tmp_path / "other")], school.course) == 1
    assert "nothing is compared" in capsys.readouterr().out


def test_the_command_used_wrongly_says_what_to_do(
    school: Class, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    school.hand_in("ann", {"transpose": ODD})
    school.hand_in("torn").write_text('{"cells": [')
    for arguments, words in {
        ("--pair", "ann", "torn"): "no notebook of torn to compare; there are: ann, solutions/",
        ("--pair", "ann", SOLUTION, "--html", str(tmp_path / "x.html")): "leave one of them out",
        ("--html", str(tmp_path)): "give the name of a file in a folder that exists",
    }.items():
        assert main(["similar", LAB, str(school.folder), *arguments], school.course) == 1
        assert words in " ".join(capsys.readouterr().out.split())
    assert main(["similar", LAB, str(school.folder)], school.course) == 0
    assert "not compared: torn: notebook is not JSON" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["similar", LAB, "--top", "many"], school.course)
    assert "many is not a whole number above 0" in capsys.readouterr().err


def test_who_has_a_labs_whole_solution_is_named_though_each_answer_alone_has_few_words(school: Class) -> None:
    course = Course()
    lab = classroom.open_lab(course, "04_memory_hierarchy")
    ((name, released),) = lab.notebooks.items()
    holds = similar.given(course, lab.name, name, released)
    assert holds.solution is not None
    copied, partly = (graft(released, holds.solution.cells, name, lab.name).notebook for _ in range(2))
    for cell in partly.cells:  # a student who chose other names
        cell.source = re.sub(r"\b(staged|words_of_bank|cols)\b", r"my_\1", cell.source)
    (found,) = compared(holds, {"ann": copied, "bob": partly})
    assert found.students == ("ann", SOLUTION) and similar.TOGETHER in found.cells
    answers = {who: similar.answers(n) for who, n in (("ann", copied), (SOLUTION, holds.solution))}
    shown = similar_page.page(lab.name, {name: ([found], answers, holds.known)})
    assert "all answers together" in shown and "words_of_bank" in shown


def test_who_has_a_whole_solution_without_a_word_of_its_own_is_named_and_who_wrote_some_of_it_is_not() -> (
    None
):
    course = Course()
    lab = classroom.open_lab(course, "03_cuda_with_numba")
    ((name, released),) = lab.notebooks.items()
    holds = similar.given(course, lab.name, name, released)
    assert holds.solution is not None
    copied, own = (graft(released, holds.solution.cells, name, lab.name).notebook for _ in range(2))
    by_id = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in own.cells}
    by_id["block_sum"].source = by_id["block_sum"].source.replace("stride", "half").replace("tile", "part")
    by_id["diffuse"].source = re.sub(r"\bi\b", "x", by_id["diffuse"].source)
    (found,) = compared(holds, {"ann": copied, "bob": own, "cy": released})
    assert found.students == ("ann", SOLUTION) and found.cells[similar.TOGETHER] == pytest.approx(1)
    assert similar_page.names(replace(found, students=(SOLUTION, "tia"))) == "tia · the lab's solution"
