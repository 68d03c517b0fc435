"""The recorder and the writers: what they keep of real kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gpulab import cuda
from gpulab.checks import messages, patterns
from gpulab.simulator import device
from gpulab.simulator.observe.recorder import Recorder, Recording, Request, unravel
from gpulab.simulator.observe.writers import Range, Writers


@cuda.jit
def twice_each(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i]
        if i % 2:
            out[i] += 1


@cuda.jit
def strided(a, out, step):
    i = cuda.grid(1)
    if i * step < a.size:
        out[i] = a[i * step]


def record(launch: Callable[[], None], limit: int = 2) -> Recorder:
    recorders: list[Recorder] = []

    def make(seen: device.Launch) -> Recorder:
        recorders.append(Recorder(limit, seen.arrays))
        return recorders[-1]

    with device.current().observed(make):
        launch()
    return recorders[0]


def vectors(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


def test_the_first_requests_of_each_instruction_are_kept_and_no_more() -> None:
    kept = record(lambda: twice_each[8, 64](*vectors(500)), limit=3).requests
    by_instruction: dict[int, int] = {}
    for request in kept:
        by_instruction[request.index] = by_instruction.get(request.index, 0) + 1
    assert set(by_instruction.values()) == {3}
    assert [r.kind for r in kept if r.text == "out[i] = a[i]"] == ["load"] * 3 + ["store"] * 3


def test_a_request_knows_its_lanes_its_array_and_its_line() -> None:
    request = record(lambda: strided[1, 32](*vectors(100), 8)).requests[0]
    assert request.array is not None
    assert (request.array.name, request.space, request.kind, request.size) == ("a", "global", "load", 4)
    assert request.text == "out[i] = a[i * step]"
    assert request.lanes == tuple(range(13))  # 13 · 8 = 104 > 100
    assert [x - request.array.address for x in request.asked] == [32 * i for i in range(13)]
    assert request.sectors == 13


def test_a_recording_survives_a_dictionary() -> None:
    recording = record(lambda: twice_each[2, 64](*vectors(100))).recording
    assert recording.passes[0].lanes == (True,) * 32
    assert Recording.from_dict(recording.to_dict()) == recording


def test_writers_name_the_last_thread_its_block_and_its_line() -> None:
    a, out = cuda.to_device(vectors(100)[0]), cuda.device_array(100, np.float32)
    writers = Writers({"out": Range(out.address, 100, 4)})
    with device.current().observed(lambda launch: writers):
        twice_each[2, 64](a, out)
    assert writers.written("out").all()
    assert writers.times("out").tolist() == [1, 2] * 50
    last = writers.of("out", 99)
    assert last is not None
    assert str(last) == "thread (35, 0, 0) of block (1, 0, 0)"
    block, thread = writers.threads("out")
    assert (block[99], thread[99]) == (1, 35)


def test_what_nobody_wrote_has_no_writer() -> None:
    a, out = cuda.to_device(vectors(100)[0]), cuda.device_array(100, np.float32)
    writers = Writers({"out": Range(out.address, 100, 4)})
    with device.current().observed(lambda launch: writers):
        strided[1, 32](a, out, 10)
    assert writers.written("out").sum() == 10
    assert writers.of("out", 10) is None


def test_unravel_runs_x_fastest() -> None:
    assert [unravel(i, (2, 3, 2)) for i in (0, 1, 2, 6, 11)] == [
        (0, 0, 0),
        (1, 0, 0),
        (0, 1, 0),
        (0, 0, 1),
        (1, 2, 1),
    ]


def request(addresses: list[int | None], kind: str = "load", space: str = "global", size: int = 4) -> Request:
    return Request(0, "k.py", 1, "", space, kind, size, (0, 0, 0), 0, tuple(addresses))


LANES = range(32)
READ = "neighbouring threads (x = 0, 1, 2 …) read addresses"
WRITE = "neighbouring threads (y = 0, 1, 2 …) write addresses"
BEHIND = "5 sectors, because the first address lies 4 bytes behind the start of one"
TWO = "2 different words in one bank, a 2-way conflict"
THREE = "a warp's threads write up to 3 different words of one bank, a 3-way conflict"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ([4 * i for i in LANES], f"{READ} 4 bytes apart: 4 sectors of 32 bytes for 32 threads"),
        ([8 * i for i in LANES], f"{READ} 8 bytes apart: 8 sectors of 32 bytes for 32 threads"),
        ([384 * i for i in LANES], f"{READ} 384 bytes apart: one 32-byte sector each"),
        ([4 + 4 * i for i in LANES], f"{READ} 4 bytes apart: {BEHIND}"),
        ([64] * 32, "all threads of a warp read one address of global memory"),
        (
            [(i * i * 977) % 4096 * 4 for i in LANES],
            "the 32 threads of a warp read 32 different 32-byte sectors",
        ),
    ],
)
def test_global_requests_are_described(asked: list[int | None], words: str) -> None:
    assert patterns.describe(request(asked), (256, 1, 1)) == words


def test_numbers_side_by_side_are_known_from_numbers_with_gaps() -> None:
    assert patterns.side_by_side(request([16 * i for i in LANES], size=16))
    assert not patterns.side_by_side(request([8 * i for i in LANES]))
    assert not patterns.side_by_side(request([64] * 32))


@pytest.mark.parametrize(
    ("asked", "size", "words"),
    [
        ([4 * i for i in LANES], 4, ""),
        (
            [128 * i for i in LANES],
            4,
            f"{WRITE} 128 bytes apart: 32 threads share one bank, a 32-way conflict",
        ),
        ([8 * i for i in LANES], 4, f"{WRITE} 8 bytes apart: {TWO}"),
        ([8 * i for i in LANES], 8, ""),
        ([132 * i for i in LANES], 4, ""),
        ([128 * (i * i % 5) + 4 * (i % 3) for i in LANES], 4, THREE),
    ],
)
def test_shared_requests_are_described(asked: list[int | None], size: int, words: str) -> None:
    assert patterns.describe(request(asked, "store", "shared", size), (1, 64, 1)) == words


def test_a_request_of_local_memory_is_not_described() -> None:
    assert patterns.describe(request([0] * 32, space="local"), (32, 1, 1)) == ""


def test_one_thread_alone_has_no_pattern() -> None:
    assert patterns.describe(request([64, *[None] * 31]), (1, 1, 1)) == ""


@pytest.mark.parametrize("ways, said", [(4, "a 4-way"), (8, "an 8-way"), (11, "an 11-way"), (16, "a 16-way")])
def test_a_conflict_has_the_article_that_its_number_is_read_with(ways: int, said: str) -> None:
    assert messages.one_bank(ways, 32).endswith(f"{said} conflict")
