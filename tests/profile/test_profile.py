"""`gpulab.profile` on real kernels: what the simulator counts becomes a report."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gpulab
from gpulab import cuda


@cuda.jit
def transpose(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        out[x, y] = a[y, x]


@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


def matrices() -> tuple[np.ndarray, np.ndarray]:
    return np.ones((96, 128), np.float32), np.zeros((128, 96), np.float32)


def test_a_launch_is_profiled_by_calling_the_package() -> None:
    a, out = matrices()
    report = gpulab.profile(transpose[(4, 3), (32, 32)], a, out)
    assert out.all()
    assert report.name == "transpose"
    assert report["global_load_sectors_per_request"] == 4
    assert report["global_store_sectors_per_request"] == 32
    assert report["global_bytes"] == 2 * a.nbytes
    assert report["registers"] > 8
    assert 0 < report["occupancy"] <= 100
    assert report.gpu == gpulab.hardware.find("A100").name
    assert report.compiler.startswith("NVVM")


def test_the_instruction_mix_is_all_instructions_by_kind() -> None:
    mix = gpulab.profile(transpose[(4, 3), (32, 32)], *matrices()).instruction_mix
    report = gpulab.profile(transpose[(4, 3), (32, 32)], *matrices())
    assert sum(mix.values()) == report["instructions"]
    assert mix["special functions"] == 0 < mix["loads and stores"] < mix["arithmetic"]


def test_host_code_is_profiled_with_all_its_launches() -> None:
    a, out = matrices()

    def twice(a, out):
        transpose[(4, 3), (32, 32)](a, out)
        transpose[(4, 3), (32, 32)](a, out)

    report = gpulab.profile(twice, a, out)
    assert report.name == "twice"
    assert report["launches"] == 2
    assert report["global_store_sectors"] == 2 * 12288


def test_the_costliest_line_is_the_learners_own() -> None:
    report = gpulab.profile(transpose[(4, 3), (32, 32)], *matrices())
    line = report.lines.costliest("global_sectors")
    assert line is not None
    assert line.text == "out[x, y] = a[y, x]"


def test_an_axpy_has_two_operations_for_twelve_bytes() -> None:
    """Per element: one fma (2 FLOP), 4 bytes of x and 4 of y read, 4 of y written."""
    report = gpulab.profile(axpy[4, 256], np.float32(2), np.ones(1024, np.float32), np.ones(1024, np.float32))
    assert report["flops"] == 2 * 1024
    assert report["arithmetic_intensity"] == pytest.approx(2 / 12)
    assert report.roofline is not None
    assert report.roofline.bound == "memory"


def test_the_roofline_is_that_of_the_type_that_computes() -> None:
    report = gpulab.profile(axpy[1, 32], 2.0, np.ones(32), np.ones(32))
    assert report.roofline is not None
    assert report.roofline.dtype == "float64"


def test_a_report_of_a_real_run_survives_json_with_its_recording() -> None:
    report = gpulab.profile(transpose[(4, 3), (32, 32)], *matrices())
    again = gpulab.profile.Report.from_dict(json.loads(json.dumps(report.to_dict())))
    assert again == report
    assert len(again.launches[0].recording.requests) == 4  # two of the load, two of the store


def test_host_code_that_launches_nothing_is_told_so() -> None:
    def idle():
        pass

    with pytest.raises(gpulab.profile.NothingLaunched, match="`idle` launched no kernel"):
        gpulab.profile(idle)


def test_nothing_is_watched_any_more_after_a_fault() -> None:
    from gpulab.simulator import device

    with pytest.raises(Exception, match="OutOfBounds"):
        gpulab.profile(
            transpose[(4, 3), (32, 32)], np.ones((96, 128), np.float32), np.zeros((1, 1), np.float32)
        )
    assert device.current().observer_factories == ()


def test_a_launch_that_has_run_already_is_told_how_to_be_profiled() -> None:
    with pytest.raises(
        gpulab.profile.NothingLaunched, match=r"profile\(kernel\[blocks, threads\], a, out\)`. It got None"
    ):
        gpulab.profile.profile(None)
