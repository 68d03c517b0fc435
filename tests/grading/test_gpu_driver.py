"""The process that holds a device makes the calls of CUDA's driver as the header has them.

On a GPU, and on a stand-in that is compiled against the header and copies what it is told to copy. With
``--noconftest`` this file needs neither nbgrader nor jupytext, so that a bare machine with a GPU runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpulab.simulator.compile import ptxas
from gpulab.simulator.compile.cuda_c import cuda_c_module
from grading.gpu_stage.child import hear, say
from tests.validation import stand_in

ROOT = Path(__file__).resolve().parents[2]
COUNT = 1 << 20
# Through as much shared memory as the launch gave the block.
COPY = """
extern "C" __global__ void copy(const float *a, float *b, int n) {
    extern __shared__ float tile[];
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        tile[threadIdx.x] = a[i];
        b[i] = tile[threadIdx.x];
    }
}
"""


@contextmanager
def started(index: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "grading.gpu_stage.child", index],
        cwd=ROOT, env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def head(launches: int, shared_bytes: int, count: int = COUNT) -> dict[str, Any]:
    """A program that copies one array into another."""
    one = {
        "kernel": 0, "entry": "copy", "grid": [64, 1, 1], "block": [256, 1, 1], "shared_bytes": shared_bytes,
        "arguments": (bytes(16) + count.to_bytes(4, "little")).hex(), "pointers": [[0, 0, 0], [8, 1, 0]],
    }  # fmt: skip
    return {"given": 2, "buffers": [4 * count] * 2, "uploads": [], "launches": [one] * launches}


def turns(process: subprocess.Popen[bytes], program: dict[str, Any], code: bytes) -> list[dict[str, float]]:
    """Two turns on contents of their own, each of which must come out right."""
    assert process.stdin and process.stdout
    say(process.stdin, program, [code])
    assert hear(process.stdout)[0]["empty"] >= 0
    found = []
    for number in (3, 4):
        say(process.stdin, {}, [np.full(COUNT, number, np.float32).tobytes(), bytes(4 * COUNT)])
        times, left = hear(process.stdout)
        assert all((np.frombuffer(part, np.float32) == number).all() for part in left)
        found.append({name: times[name] for name in ("seconds", "flush", "waited")})
    return found


def test_its_calls_are_those_of_the_header(tmp_path: Path) -> None:
    stand_in.driver(tmp_path)
    with started("0", {"LD_LIBRARY_PATH": str(tmp_path)}) as process:
        about, _ = hear(process.stdout)
        assert about["name"] == "NVIDIA H200" and about["place"] == "0000:01:00.0"
        times = turns(process, head(launches=9, shared_bytes=64 << 10), b"\x7fELF")
    assert all(turn["waited"] >= turn["flush"] > 0 for turn in times)


def test_what_the_driver_refuses_is_told_by_its_name(tmp_path: Path) -> None:
    stand_in.driver(tmp_path)
    with started("0", {"LD_LIBRARY_PATH": str(tmp_path), "STAND_IN_MISSING": "copy"}) as process:
        hear(process.stdout)
        say(process.stdin, head(1, 0), [b"\x7fELF"])
        hear(process.stdout)
        say(process.stdin, {}, [bytes(4 * COUNT)] * 2)
        assert hear(process.stdout)[0]["failed"] == "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"


@pytest.mark.gpu
@pytest.mark.parametrize("shared_bytes", [1 << 10, 64 << 10], ids=["a little", "more than without asking"])
def test_a_gpu_runs_and_times_what_it_is_given(shared_bytes: int) -> None:
    found = []
    for launches in (1, 40):
        with started("0", {}) as process:
            about, _ = hear(process.stdout)
            cc = (about["cc"][0], about["cc"][1])
            code = ptxas.link(cuda_c_module(COPY, cc, "copy").ptx, cc)[1]
            found.append(turns(process, head(launches, shared_bytes), code)[1])
    few, many = found
    assert 0 < few["seconds"] < many["seconds"] < 1
    assert few["flush"] > 0 and many["waited"] >= many["seconds"]
