"""Lab 25: CuTe's own algebra agrees with ours, naive kernels cost what is derived, the text's numbers are right."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

pytest.importorskip("nvidia_cutlass_dsl", reason="CuTe DSL is not installed")
pytest.importorskip("cuda.tile", reason="cuTile is not installed")

import gpulab
from gpulab import cupy as cp
from gpulab.checks import cases, find
from gpulab.checks.run import reference_device
from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_25_layouts_and_tiles import algebra, tiles
from gpulab.content.lab_25_layouts_and_tiles.references import algebra as right
from gpulab.cutlass import cute
from tests.labs import notebooks

LAB = "25_layouts_and_tiles"
WRONG = notebooks.wrong_files(LAB)

Modes = Sequence[tuple[int, int]]


def layout_of(modes: Modes) -> cute.Layout:
    return cute.make_layout(tuple(size for size, _ in modes), stride=tuple(stride for _, stride in modes))


def modes_of(layout: cute.Layout) -> list[tuple[int, int]]:
    flat = cute.flatten(cute.coalesce(layout))
    shape, stride = (x if isinstance(x, tuple) else (x,) for x in (flat.shape, flat.stride))
    return list(zip(shape, stride, strict=True))


def by_cute(work: partial[cute.Layout]) -> list[tuple[int, int]]:
    """The modes of a layout that CuTe makes, coalesced."""
    found: list[tuple[int, int]] = []

    @cute.jit
    def make() -> None:
        found.extend(modes_of(work()))

    make()
    return found


def asked(exercise: str) -> list[tuple]:
    """A question of each case."""
    found = find(exercise)
    return [cases.questions(found, case)[0] for case in found.cases]


@pytest.mark.parametrize("layout", [q[0] for q in asked("layout.coalesce")], ids=str)
def test_coalescing_gives_what_cute_gives(layout: Modes) -> None:
    assert by_cute(partial(layout_of, layout)) == right.coalesce(layout)


@pytest.mark.parametrize(("a", "size", "stride"), asked("layout.compose"), ids=str)
def test_a_composition_is_the_one_of_cute(a: Modes, size: int, stride: int) -> None:
    def work() -> cute.Layout:
        return cute.composition(layout_of(a), layout_of([(size, stride)]))

    assert by_cute(work) == right.compose(a, size, stride)


@pytest.mark.parametrize(("tile", "n"), asked("layout.complement"), ids=str)
def test_a_complement_is_the_one_of_cute(tile: Modes, n: int) -> None:
    assert by_cute(lambda: cute.complement(layout_of(tile), n)) == right.complement(tile, n)


@pytest.mark.parametrize(("a", "size", "stride"), asked("layout.divide"), ids=str)
def test_the_parts_of_a_division_are_those_of_cute(a: Modes, size: int, stride: int) -> None:
    def part(which: int) -> cute.Layout:
        return cute.get(cute.logical_divide(layout_of(a), layout_of([(size, stride)])), mode=[which])

    assert [by_cute(partial(part, i)) for i in (0, 1)] == right.divide(a, size, stride)


# ---------------------------------------------------------------- swizzles


@pytest.mark.parametrize(("row", "access"), list(itertools.product((16, 64, 128, 512), (4, 8, 16))))
def test_fewer_bits_than_the_answer_has_leave_conflicts(row: int, access: int) -> None:
    swizzle = notebooks.answers(LAB)["swizzle"]
    bits, base, shift = swizzle(row, access)
    assert right.swizzle([bits, base, shift], row, access) == {"conflicts": 0, "spare bits": 0}
    if bits:
        assert right.swizzle([bits - 1, base, shift], row, access)["conflicts"] > 0


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "three whole numbers"),
        ([3, 4, 99], "from 0 to 16"),
        ([3, 2, 5], "no longer lie together"),
        ([3, 4, 0], "same address"),
    ],
)
def test_an_answer_that_is_no_swizzle_of_the_tile_is_told_why(answer: object, said: str) -> None:
    with pytest.raises(WrongAnswer, match=said):
        right.swizzle(answer, 128, 16)


def test_the_swizzles_of_hopper_are_those_of_the_formula() -> None:
    swizzle = notebooks.answers(LAB)["swizzle"]
    assert [swizzle(row, 16) for row in (32, 64, 128)] == [[1, 4, 3], [2, 4, 3], [3, 4, 3]]


# ---------------------------------------------------------------- costs


@pytest.mark.parametrize(
    ("stem", "label"),
    [
        ("copy_32_bits", "load requests"),
        ("transpose_float_by_float", "stores to shared memory"),
        ("slow_as_it_was", "sectors"),
        ("gemm_from_global_memory", "loaded bytes"),
        ("gemm_without_ldmatrix", "requests to shared memory"),
        ("softmax_in_two_passes", "loaded bytes"),
        ("attention_all_tiles", "loaded bytes"),
        ("convert_never", "sectors"),
    ],
)
def test_a_naive_answer_costs_what_was_derived_and_earns_nothing_for_it(stem: str, label: str) -> None:
    part = notebooks.part_of_wrong(LAB, stem, label)
    assert part.measured == part.naive
    assert part.points == 0


def test_predictions_follow_from_layouts() -> None:
    answers = {p.name: p.answer for p in (*algebra.PREDICTIONS, *tiles.PREDICTIONS)}
    assert answers["layout.offset"] == 13 % 4 * 8 + 13 // 4 * 1
    banks = [64 * row // 4 % 32 for row in range(8)]
    assert banks.count(banks[0]) == answers["layout.colliding"]
    assert answers["tiles.values"] == 16 * 16 / 32
    assert answers["tiles.through"] == 128 * 32 * 4


def test_a_swizzle_for_other_accesses_leaves_the_transpose_four_ways_of_conflict() -> None:
    path = next(path for path in WRONG if path.stem == "transpose_swizzle_of_128_bytes")
    x, y = cp.zeros((32, 32), cp.float32), cp.zeros((32, 32), cp.float32)
    with reference_device("A100"):
        report = gpulab.profile(notebooks.wrong_answer(path)["transpose"], x, y)
    assert report["bank_conflicts"] == 3 * report["shared_load_requests"]


def test_scores_of_the_attention_exercise_are_exponents_of_two() -> None:
    from gpulab.content.lab_25_layouts_and_tiles.references.tiles import attention

    q, k, v = np.zeros((2, 64)), np.zeros((2, 64)), np.arange(128.0).reshape(2, 64)
    q[1, 0], k[1, 0] = 1, 1
    out = attention({"q": q, "k": k, "v": v}, {})["out"]
    assert np.allclose(out[1], (v[0] + 2 * v[1]) / 3)
