"""A launch as the recorder notes it is the launch that the judge reads back."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from gpulab.checks.evidence.launch_recorder import Tracer
from gpulab.checks.evidence.launch_records import RecordedLaunch, read_case, read_kernel
from gpulab.checks.on_host import Rules
from gpulab.checks.run import reference_device
from gpulab.simulator.compile import CompiledKernel

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 scratch) { ret; }"""


def recorded(**more: Any) -> RecordedLaunch:
    """A launch of a kernel with one pointer, through the recorder, JSON, and the judge's reader."""
    lines: list[dict[str, Any]] = []
    record = SimpleNamespace(kernels=set(), line=lambda kind, **facts: lines.append(facts))
    tracer = Tracer(record, Rules([], [], set()))
    with reference_device() as device, device.executed_by(tracer):
        device.launch(CompiledKernel("k", "k", PTX, (8, 0), ""), (4, 1, 1), (32, 1, 1), bytes(8), **more)
    kernels = {facts["digest"]: read_kernel(facts) for facts in json.loads(json.dumps(lines))}
    events = json.loads(json.dumps(tracer.events))
    return read_case({"buffers": [], "events": events}, kernels).launches[0]


def test_clusters_and_scratch_memory_that_a_launch_asks_for_are_kept() -> None:
    launch = recorded(cluster=(1, 1, 1), scratch=(0, 256))
    assert (launch.cluster, launch.scratch) == ((1, 1, 1), (0, 256))


def test_a_launch_that_asks_for_neither_has_neither() -> None:
    launch = recorded()
    assert (launch.cluster, launch.scratch) == (None, None)
    assert (launch.grid, launch.block, launch.arguments) == ((4, 1, 1), (32, 1, 1), bytes(8))
