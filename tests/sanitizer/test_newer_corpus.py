"""Every wrong kernel of the corpora for Hopper and Blackwell is told with class and lines; nothing is said of
its twin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpulab.analysis.sanitizer import sanitize
from gpulab.simulator import device
from tests.tiers import first_of_each

from .corpus import on_blackwell, on_hopper
from .pairs import Pair
from .test_corpus import CONSEQUENCES

CORPORA = (on_hopper, on_blackwell)
ALL = [(corpus.GPU, pair) for corpus in CORPORA for pair in corpus.PAIRS]


def each_kind(cases: list[tuple[str, Pair]]) -> pytest.MarkDecorator:
    """The first two pairs of each class and GPU, and all in which nothing is wrong; `make test-all` runs all."""
    first = first_of_each(
        cases,
        kind=lambda case: (case[0], case[1].kind or case[1].name),
        name=lambda case: f"{case[0]}: {case[1].name}",
        first=2,
    )
    return pytest.mark.parametrize(("gpu", "pair"), list(first))


each_corpus = pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: corpus.GPU)


@pytest.fixture(autouse=True)
def simulated(request: pytest.FixtureRequest) -> Iterator[None]:
    before = device.current().gpu
    if "gpu" in request.fixturenames:
        device.simulate(request.getfixturevalue("gpu"))
    yield
    device.current().gpu = before


@each_kind([case for case in ALL if case[1].kind])
def test_the_wrong_kernel_is_told_with_class_and_lines(gpu: str, pair: Pair):
    findings = sanitize(pair.launch(mended=False), *pair.arguments())
    told = {(f.kind, f.lines) for f in findings if f.kind == pair.kind or f.kind not in CONSEQUENCES}
    assert told == {(pair.kind, pair.lines)}, f"\n{findings}"
    assert any(pair.says in str(f) for f in findings), f"\n{findings}"


@each_kind(ALL)
def test_nothing_is_said_of_the_mended_kernel(gpu: str, pair: Pair):
    findings = sanitize(pair.launch(mended=True), *pair.arguments())
    assert not findings, f"\n{findings}"


@each_corpus
def test_every_kernel_of_the_files_is_in_the_corpus(corpus):
    assert {pair.name for pair in corpus.PAIRS} == corpus.FOLDER.kernels()


@pytest.mark.parametrize(("corpus", "wrong", "harmless"), [(on_hopper, 40, 10), (on_blackwell, 25, 5)])
def test_the_corpora_are_large_enough(corpus, wrong, harmless):
    assert sum(bool(pair.kind) for pair in corpus.PAIRS) >= wrong
    assert sum(not pair.kind for pair in corpus.PAIRS) >= harmless
