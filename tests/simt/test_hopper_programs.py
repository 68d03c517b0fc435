"""CUDA C++ for capability 9.0, compiled by NVRTC: barriers, bulk copies, TMA and clusters as programs use them."""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gpulab.simulator import ptx, simt
from gpulab.simulator.compile.cuda_c import cuda_c_module
from gpulab.simulator.observe import Races
from gpulab.simulator.observe.proxies import Proxies
from gpulab.simulator.observe.uninitialised import Uninitialised
from gpulab.simulator.simt.tensor_maps import encode_tiled

SOURCE = Path(__file__).with_name("hopper_programs.cu").read_text()
SCHEDULES = [simt.LOCKSTEP, simt.warp_serial(2), simt.two_teams(5), simt.BACKWARDS]
schedules = pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
NUMBERS = np.random.default_rng(3).integers(-1000, 1000, 1024).astype(np.int32)


@cache
def module() -> ptx.Module:
    return ptx.parse(cuda_c_module(SOURCE, (9, 0), "hopper programs").ptx)


def run(
    name: str, grid, block: int, arrays: list[np.ndarray], schedule, first: bytes = b""
) -> list[np.ndarray]:
    """The arrays after a launch; nothing that any tool of the doctor complains about happens in it."""
    memory, places = simt.Memory(), []
    for array in arrays:
        places.append(memory.allocate(array.nbytes))
        places[-1].data[:] = array.view(np.uint8).reshape(-1)
    if first:
        first = encode_tiled("f32", places[0].address, (32, 8), (128,), (32, 2))
        places_passed = places[1:]
    else:
        places_passed = places
    arguments = first + struct.pack(f"{len(places_passed)}Q", *(p.address for p in places_passed))
    tools = [Races(), Proxies(), Uninitialised()]
    program = simt.load(module(), name)
    simt.launch(program, grid, (block, 1, 1), arguments, memory, schedule=schedule, observers=tools)
    assert [str(found) for tool in tools for found in tool.findings] == []
    return [p.data.view(a.dtype).reshape(a.shape).copy() for p, a in zip(places, arrays, strict=True)]


@schedules
def test_memcpy_async_and_a_bulk_store(schedule) -> None:
    found = run("add_one", (4, 1, 1), 64, [NUMBERS, np.zeros(1024, np.int32)], schedule)
    assert np.array_equal(found[1], NUMBERS + 1)


@schedules
def test_a_barrier_of_the_block_counts_bytes_round_after_round(schedule) -> None:
    found = run("rounds", (4, 1, 1), 64, [NUMBERS, np.zeros(256, np.int32)], schedule)
    assert np.array_equal(found[1].reshape(4, 64), NUMBERS.reshape(4, 4, 64).sum(1))


@schedules
def test_blocks_add_into_the_first_one(schedule) -> None:
    found = run("cluster_sum", (16, 1, 1), 64, [NUMBERS, np.zeros(256, np.int32)], schedule)
    assert np.array_equal(found[1].reshape(4, 64), NUMBERS.reshape(4, 4, 64).sum(1))


@schedules
def test_two_blocks_swap(schedule) -> None:
    found = run("swap", (16, 1, 1), 64, [NUMBERS, np.zeros(1024, np.int32)], schedule)
    assert np.array_equal(found[1].reshape(8, 2, 64), NUMBERS.reshape(8, 2, 64)[:, ::-1])


@schedules
def test_a_cluster_tells_what_it_is(schedule) -> None:
    (found,) = run("places", (4, 2, 1), 32, [np.zeros((2, 4, 8), np.int32)], schedule)
    for y in range(2):
        for x in range(4):
            rank = x % 2 + 2 * y
            assert found[y, x].tolist() == [rank, 4, x % 2 + 10 * y, 22, 128, 64 + 2000, 32 * rank, 3]


@schedules
def test_two_blocks_load_one_box_together(schedule) -> None:
    tensor = np.arange(256, dtype=np.float32).reshape(8, 32)
    found = run("both", (4, 1, 1), 32, [tensor, np.zeros((4, 128), np.float32)], schedule, first=b"map")
    halves = tensor.reshape(2, 128)
    assert np.array_equal(found[1], halves[[0, 0, 1, 1]])
