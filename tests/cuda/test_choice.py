"""Whether `gpulab.cuda` is numba.cuda or the simulator follows the machine and the environment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gpulab.simulator import device, hardware
from gpulab.simulator.device import choice


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No answer of before, and none of the environment's."""
    monkeypatch.delenv("GPULAB_GPU", raising=False)
    monkeypatch.delenv("GPULAB_SIMULATE", raising=False)
    monkeypatch.setattr(choice, "_current", None)
    choice.uses_gpu.cache_clear()
    yield
    choice.uses_gpu.cache_clear()


@pytest.mark.parametrize(
    ("gpu_there", "environment", "expected"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"GPULAB_GPU": "none"}, True),
        (True, {"GPULAB_GPU": "H100"}, False),
        (True, {"GPULAB_GPU": "H100", "GPULAB_SIMULATE": "0"}, True),
        (True, {"GPULAB_SIMULATE": "1"}, False),
        (False, {"GPULAB_SIMULATE": "0"}, False),
    ],
)
def test_a_gpu_is_used_where_there_is_one_unless_the_environment_says_otherwise(
    monkeypatch, gpu_there: bool, environment: dict[str, str], expected: bool
) -> None:
    monkeypatch.setattr(choice, "has_gpu", lambda: gpu_there)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert choice.uses_gpu() is expected


def test_the_simulated_gpu_is_an_a100_unless_named(monkeypatch) -> None:
    assert device.current().gpu is hardware.find("A100")
    monkeypatch.setattr(choice, "_current", None)
    monkeypatch.setenv("GPULAB_GPU", "t4")
    assert device.current().gpu.name == "T4" and device.current() is device.current()


def test_a_wrong_name_in_the_environment_is_one_line_with_the_names(monkeypatch) -> None:
    monkeypatch.setenv("GPULAB_GPU", "H1000")
    with pytest.raises(hardware.UnknownGPU) as caught:
        device.current()
    assert str(caught.value).startswith("GPULAB_GPU: no GPU is named 'H1000'; did you mean H100?")
    assert "\n" not in str(caught.value)
    assert caught.value._render_traceback_() == [str(caught.value)]  # all that a notebook shows


def test_a_machine_without_a_driver_has_no_gpu(monkeypatch) -> None:
    monkeypatch.setattr(choice, "DRIVERS", ("libcuda-that-is-not-there.so",))
    choice.has_gpu.cache_clear()
    assert not choice.has_gpu()
    choice.has_gpu.cache_clear()


def run(code: str, **environment: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=True,
    )
    return done.stdout.strip()


def test_importing_the_face_does_not_load_numba_and_is_quick() -> None:
    code = (
        "import numpy, sys, time; start = time.process_time(); from gpulab import cuda;"
        "print('numba' in sys.modules, time.process_time() - start < 3)"
    )
    assert run(code) == "False True"


def test_with_a_gpu_the_face_is_numba_cuda_itself() -> None:
    code = """
from gpulab.simulator.device import choice
choice.has_gpu = lambda: True
from gpulab import cuda
import gpulab.cuda as again
from gpulab.cuda import grid, jit
import numba.cuda
print(cuda is again is numba.cuda, grid is numba.cuda.grid, jit is numba.cuda.jit)
"""
    assert run(code) == "True True True"


def test_without_a_gpu_all_ways_of_importing_lead_to_one_face() -> None:
    code = """
import gpulab.cuda
import gpulab.cuda as a
from gpulab import cuda as b
from gpulab.cuda import jit
import gpulab.cuda.random
import gpulab.frontends.cuda as c
print(gpulab.cuda is a is b is c, jit is c.jit, gpulab.cuda.random.to_device is c.to_device)
"""
    assert run(code, GPULAB_SIMULATE="1") == "True True True"
