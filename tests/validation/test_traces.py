"""Launch traces: what is carried to a GPU is what was compiled here, with the addresses that arrays have there."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.simulator import hardware
from gpulab.simulator.compile import ptxas
from validation.model import model
from validation.table import chosen
from validation.traces import arguments_of, code_of, load, record, recorded, save

H200 = hardware.find("H200")


@pytest.mark.parametrize("key", ["saxpy/cuda", "saxpy/numba"])
def test_addresses_alone_are_exchanged_in_the_parameters_of_a_launch(key: str):
    (variant,) = chosen([key])
    size = variant.kernel.sizes[0]
    launch, places = recorded(variant, size, H200)
    of = record([variant], H200)["kernels"][key]["launches"][str(size)]
    assert sorted(number for _, number in places) == [0, 1], "x and y; a and n are numbers"
    there = {0: 0x7F0000001000, 1: 0x7F0000002000}
    before = bytearray(launch.arguments)
    after = arguments_of(of, there).tobytes()
    for place, number in places:
        assert after[place : place + 8] == there[number].to_bytes(8, "little")
        before[place : place + 8] = after[place : place + 8]
    assert after == bytes(before)
    assert np.float32(3).tobytes() in after and np.int32(size).tobytes() in after


def test_the_code_in_a_file_is_that_which_is_counted(tmp_path):
    (variant,) = chosen(["copy/numba"])
    path = tmp_path / "traces.json"
    save(path, record([variant], H200))
    trace = load(path)["kernels"]["copy/numba"]
    launch, _ = recorded(variant, variant.kernel.sizes[0], H200)
    assert code_of(trace["code"]) == ptxas.link(launch.kernel.ptx, H200.cc, launch.kernel.max_registers)[1]
    assert trace["digest"] == model(variant, variant.kernel.sizes[0], H200)["digest"]
