"""Every wrong kernel of the corpus is told with class and lines; nothing is said of its mended twin."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulab.analysis.sanitizer import sanitize
from gpulab.analysis.sanitizer.findings import KINDS
from tests.tiers import first_of_each

from .corpus import in_cuda_c, on_hopper
from .corpus.whole import ALL
from .pairs import Pair

CONSEQUENCES = {"order", "endless"}  # of something else that is wrong, and told beside it
WRONG = [pair for pair in ALL if pair.kind]


def each_kind(pairs: list[Pair]) -> pytest.MarkDecorator:
    """The first two pairs of each class and language, and all in which nothing is wrong; `make test-all` runs all."""
    first = first_of_each(
        pairs,
        kind=lambda pair: (pair.language, pair.kind or pair.name),
        name=lambda pair: f"{pair.language}: {pair.name}",
        first=2,
    )
    return pytest.mark.parametrize("pair", list(first))


@each_kind(WRONG)
def test_the_wrong_kernel_is_told_with_class_and_lines(pair: Pair):
    findings = sanitize(pair.launch(mended=False), *pair.arguments())
    told = {(f.kind, f.lines) for f in findings if f.kind == pair.kind or f.kind not in CONSEQUENCES}
    assert told == {(pair.kind, pair.lines)}, f"\n{findings}"
    assert any(pair.says in str(f) for f in findings)


@each_kind(ALL)
def test_nothing_is_said_of_the_mended_kernel(pair: Pair):
    findings = sanitize(pair.launch(mended=True), *pair.arguments())
    assert not findings, f"\n{findings}"


def test_the_page_on_the_sanitizer_is_of_this_corpus():
    page = (Path(__file__).parents[2] / "docs" / "sanitizer.md").read_text()
    rows = [
        line.split(" | ") for line in page.splitlines() if " | numba | " in line or " | CUDA C | " in line
    ]
    assert rows, "docs/make_sanitizer.py writes the page"
    for language in ("numba", "CUDA C"):
        told = sum(int(row[2]) for row in rows if row[1] == language)
        assert told == sum(pair.language == language for pair in WRONG)
    assert all(row[2] == row[3] for row in rows)
    assert f"{len(ALL) - len(WRONG)} kernels that look wrong" in page


def test_every_kernel_of_the_cuda_c_files_is_in_the_corpus():
    assert {pair.name for pair in ALL if pair.language == "CUDA C"} == in_cuda_c.kernels_of_the_files()


def test_the_corpus_has_all_classes_and_no_name_twice():
    hopper = {pair.kind for pair in on_hopper.PAIRS if pair.kind}
    assert {pair.kind for pair in WRONG} | hopper == set(KINDS)
    assert len({(pair.language, pair.name) for pair in ALL}) == len(ALL)
