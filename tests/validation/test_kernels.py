"""Every kernel of the validation computes what NumPy computes, on the simulator and on a GPU."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpulab.simulator import hardware
from validation import children
from validation.case import CUDA_C, NUMBA, Variant, in_cuda_c, in_numba, wrong
from validation.compiled import compiling_for
from validation.machine import CHILD, PATIENCE, child, installed, machine
from validation.model import model
from validation.table import FILES, KERNELS, UnknownKernel, chosen, variants

each = pytest.mark.parametrize("variant", variants(), ids=lambda variant: variant.key)


@each
@pytest.mark.parametrize("nth", [0, *(pytest.param(nth, marks=pytest.mark.slow) for nth in (1, 2))])
def test_a_kernel_computes_what_numpy_computes(variant: Variant, nth: int):
    case = variant.kernel.case(variant.kernel.sizes[nth])
    with compiling_for(hardware.find("H200")):
        launch, given = variant.prepared(case)
        launch(*given)
    assert not wrong(case, given)


@pytest.mark.gpu
@pytest.mark.parametrize("language", [CUDA_C, NUMBA])
@pytest.mark.parametrize("file", FILES)
def test_the_kernels_of_a_file_compute_the_same_on_a_gpu(file: str, language: str, tmp_path: Path):
    keys = [v.key for v in variants() if (v.kernel.file, v.language) == (file, language)]
    sheet, known, result = (
        machine(True, installed)["sheet"],
        tmp_path / "traces.json",
        tmp_path / "result.json",
    )
    for command in (
        child("compile", "--gpu", sheet, "--out", str(known), "--only", *keys),
        child("_launch", str(known), str(result), *keys),
    ):
        ended = children.run(command, PATIENCE, CHILD)
        assert ended.code == 0, ended.output
    found = json.loads(result.read_text())
    assert set(found) == set(keys)
    assert not {key: one["wrong"] for key, sizes in found.items() for one in sizes.values() if one["wrong"]}


@each
def test_a_case_grows_with_its_size(variant: Variant):
    smallest, middle, largest = variant.kernel.sizes
    assert smallest < middle < largest
    few, more = (variant.kernel.case(size) for size in (smallest, middle))
    bytes_of = [sum(a.nbytes for a in case.arguments if hasattr(a, "nbytes")) for case in (few, more)]
    assert bytes_of[0] < bytes_of[1]
    assert [type(a) for a in few.arguments] == [type(a) for a in more.arguments]


def test_a_wrong_result_is_told_with_its_place():
    (copy,) = chosen(["copy/numba"])
    case = copy.kernel.case(copy.kernel.sizes[0])
    launch, given = copy.prepared(case)
    launch(*given)
    other = case.expected[1].copy()
    other[7] += 1
    said = wrong(replace(case, expected={1: other}), given)
    assert "at [7]" in said and "argument 1" in said


def test_a_result_that_nobody_wrote_is_wrong():
    (copy,) = chosen(["copy/cuda"])
    case = copy.kernel.case(copy.kernel.sizes[0])
    _, given = copy.prepared(case)
    assert wrong(case, given)


def test_every_kernel_of_the_files_is_in_the_table_and_no_name_twice():
    for file in FILES:
        listed = {kernel.entry for kernel in KERNELS if kernel.file == file}
        assert listed == in_cuda_c(file) | set(in_numba(file))
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)


def test_there_are_about_forty_kernels_in_two_languages():
    found = {
        language: {v.kernel.entry for v in variants() if v.language == language}
        for language in (CUDA_C, NUMBA)
    }
    assert len(found[CUDA_C]) >= 40
    assert len(found[NUMBA]) >= 25


def test_kernels_are_chosen_by_name_and_language():
    assert [v.key for v in chosen(["copy"])] == ["copy/cuda", "copy/numba"]
    assert [v.key for v in chosen(["copy/numba"])] == ["copy/numba"]
    assert chosen([]) == variants()
    with pytest.raises(UnknownKernel, match="copi"):
        chosen(["copi"])


def test_bank_conflicts_are_as_wide_as_their_names_say():
    """Wavefronts of an instruction: 32 lanes of 4 bytes meet in 1, 2, 4 … passes."""
    gpu = hardware.find("H200")
    found = {}
    for stride in (1, 2, 32):
        (variant,) = chosen([f"banks-4B-{stride}/cuda"])
        counts = model(variant, variant.kernel.sizes[0], gpu)["counts"]
        found[stride] = counts["shared_load_wavefronts"] / counts["shared_load_requests"]
    assert found[1] == 1
    assert found[1] < found[2] < found[32]
