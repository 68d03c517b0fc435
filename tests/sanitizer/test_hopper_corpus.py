"""Every wrong kernel of the corpus for Hopper is told with class and lines; nothing is said of its twin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpulab.analysis.sanitizer import sanitize
from gpulab.simulator import device

from .corpus import on_hopper
from .pairs import Pair
from .test_corpus import CONSEQUENCES, each_kind

WRONG = [pair for pair in on_hopper.PAIRS if pair.kind]


@pytest.fixture(autouse=True)
def hopper() -> Iterator[None]:
    before = device.current().gpu
    device.simulate(on_hopper.GPU)
    yield
    device.current().gpu = before


@each_kind(WRONG)
def test_the_wrong_kernel_is_told_with_class_and_lines(pair: Pair):
    findings = sanitize(pair.launch(mended=False), *pair.arguments())
    told = {(f.kind, f.lines) for f in findings if f.kind == pair.kind or f.kind not in CONSEQUENCES}
    assert told == {(pair.kind, pair.lines)}, f"\n{findings}"
    assert any(pair.says in str(f) for f in findings), f"\n{findings}"


@each_kind(on_hopper.PAIRS)
def test_nothing_is_said_of_the_mended_kernel(pair: Pair):
    findings = sanitize(pair.launch(mended=True), *pair.arguments())
    assert not findings, f"\n{findings}"


def test_every_kernel_of_the_files_is_in_the_corpus():
    assert {pair.name for pair in on_hopper.PAIRS} == on_hopper.kernels_of_the_files()
