"""How long NVIDIA's tile languages take from import to the first result, and what a launch adds to simulating it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpulab.simulator.compile import cute_dsl, cutile
from gpulab.simulator.compile.packages import Internals

ROOT = Path(__file__).parents[2]
# Seconds are of the processor, children's included: the compiler of cuTile is a program.
PROGRAM = """
import json, os
def now():
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system
import numpy as np
from gpulab.simulator.device.simulated import Simulator
simulating, launch = [0.0], Simulator.launch
def timed(self, *arguments):
    start = now()
    launch(self, *arguments)
    simulating[0] += now() - start
Simulator.launch = timed
{imports}
a = np.arange(1000, dtype=np.float32)
c = np.zeros_like(a)
{run}
first = now()
assert (c == 2 * a).all()
simulating[0] = 0.0
{run}
print(json.dumps([first, now() - first - simulating[0]]))
"""
PARTS = {
    "CuTe DSL": {
        "imports": "from gpulab.cutlass.cute.runtime import from_dlpack\nfrom tests.cutlass_dsl import kernels",
        "run": "kernels.add(*map(from_dlpack, (a, a, c)))",
    },
    "cuTile": {
        "imports": "from gpulab import tile as ct\nfrom tests.cutile import kernels",
        "run": "ct.launch(0, (8,), kernels.add, (a, a, c, 128))",
    },
}


@pytest.mark.parametrize(
    ("package", "limit"),
    [(cute_dsl.PACKAGE, 8.0), (cutile.PACKAGE, 6.0)],
    ids=lambda each: each.name if isinstance(each, Internals) else "",
)
def test_a_first_kernel_and_a_second_launch_are_quick(package: Internals, limit: float) -> None:
    if not package.version:
        pytest.skip(f"{package.name} is not installed")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(**PARTS[package.name])],
        capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "GPULAB_GPU": "A100"},
    )  # fmt: skip
    first, more = json.loads(done.stdout)
    assert first < limit, f"{first:.1f} s from the start of Python to the first result"
    assert more < 0.1, f"{more:.2f} s more than the simulation"
    print(f"{package.name}: {first:.1f} s to the first result; a second launch {more * 1000:.0f} ms more")
