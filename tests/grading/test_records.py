"""What comes out of the sandbox is believed in nothing: every field is checked before it is used."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpulab.checks.evidence.launch_replay import compiled
from gpulab.checks.run import reference_device
from grading.core.errors import RecordError
from grading.core.records import read_record

PTX = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }"
KERNEL: dict[str, Any] = {
    "line": "kernel", "digest": "d", "name": "k", "entry": "k", "ptx": PTX, "cc": [8, 0],
    "max_registers": None,
}  # fmt: skip
LAUNCH: dict[str, Any] = {
    "kernel": "d", "grid": [1, 1, 1], "block": [32, 1, 1], "shared_bytes": 0, "arguments": "00" * 16,
    "pointers": [[8, 0, 0]], "labels": [],
}  # fmt: skip
LABEL: dict[str, Any] = {
    "name": "a", "buffer": 0, "offset": 0, "shape": [1], "strides": [4], "dtype": "float32", "itemsize": 4,
}  # fmt: skip
CASE: dict[str, Any] = {"line": "case", "exercise": "e", "case": "1", "buffers": [64], "events": [LAUNCH]}


def record(*lines: Any) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def case(**changes: Any) -> bytes:
    return record(KERNEL, {**CASE, **changes})


def launch(**changes: Any) -> bytes:
    return case(events=[{**LAUNCH, **changes}])


def test_an_honest_record_is_read() -> None:
    trace = read_record(case())
    assert trace.recorded["launch trace"]["e"]["1"].launches[0].pointers == ((8, 0, 0),)


def test_a_launch_may_ask_for_clusters_and_for_scratch_memory() -> None:
    plain = read_record(case()).recorded["launch trace"]["e"]["1"].launches[0]
    assert (plain.cluster, plain.scratch) == (None, None)
    more = (
        read_record(launch(cluster=[2, 1, 1], scratch=[8, 4096]))
        .recorded["launch trace"]["e"]["1"]
        .launches[0]
    )
    assert (more.cluster, more.scratch) == ((2, 1, 1), (8, 4096))


def test_a_kernel_keeps_its_own_compiler_which_says_whether_lanes_hold_copies() -> None:
    kernels = {
        name: read_record(record({**KERNEL, "compiler": name})).kernels["d"] for name in ("Triton 3.0", "")
    }
    with reference_device() as device:
        assert [compiled(kernel, device).replicates for kernel in kernels.values()] == [True, False]


def test_a_line_that_was_cut_off_is_dropped() -> None:
    assert "e" in read_record(case() + b'{"line": "done').recorded["launch trace"]
    assert not read_record(case() + b'{"line": "done').done


@pytest.mark.parametrize(
    "content",
    [
        b"no json\n",
        b"[]\n",
        b"{}\n",
        record({"line": "unknown"}),
        record({"line": "start", "format": 2}),
        b"[" * 100_000 + b"\n",
        b'{"line": "answers", "exercise": "e", "case": "1", "answers": ' + b"[" * 60 + b"]" * 60 + b"}\n",
        b'{"line": "at"}\n' * 30_000,
        record(CASE),  # a kernel that was never recorded
        case(buffers=[-1]),
        case(buffers=[1 << 40]),
        case(buffers=[True]),
        case(buffers=[1] * 1000),
        case(buffers="64"),
        launch(grid=[0, 1, 1]),
        launch(grid=[1, 1]),
        launch(grid=[1e3, 1, 1]),
        launch(block=[1, 1, 1 << 40]),
        launch(arguments="zz"),
        launch(arguments="00" * 5000),
        launch(pointers=[[9, 0, 0]]),  # beyond the arguments
        launch(pointers=[[0, 1, 0]]),  # no such buffer
        launch(pointers=[[0, 0, 65]]),  # beyond the buffer
        launch(pointers=[[0, 0, -8]]),
        launch(labels=[{**LABEL, "dtype": "O); x"}]),
        launch(labels=[{**LABEL, "buffer": 1}]),
        launch(labels=[{**LABEL, "itemsize": 0}]),
        launch(cluster=[2, 1]),
        launch(cluster=[0, 1, 1]),
        launch(cluster="2"),
        launch(scratch=[9, 64]),  # beyond the arguments
        launch(scratch=[0, 1 << 40]),
        launch(scratch=[0]),
        case(events=[LAUNCH, {"buffer": 0, "fill": 0}]),  # from the host, between launches
        case(events=[{"buffer": 0, "data": "AAAA"}]),  # of another size
        case(events=[{"buffer": 0, "data": "!!"}]),
        case(events=[{"buffer": 0, "fill": 256}]),
        record({**KERNEL, "ptx": 5}),
        record({**KERNEL, "cc": [8]}),
        record({**KERNEL, "max_registers": 100_000}),
    ],
)  # fmt: skip
def test_a_record_that_the_recorder_does_not_write_is_refused_in_one_line(content: bytes) -> None:
    with pytest.raises(RecordError) as error:
        read_record(content)
    assert str(error.value).startswith("what was recorded cannot be replayed")
    assert "\n" not in str(error.value) and len(str(error.value)) < 200


def test_texts_of_a_record_are_cut_and_cleaned() -> None:
    label = {**LABEL, "name": "\x1b[31ma\u202e" * 50}
    trace = read_record(
        launch(labels=[label])
        + record({"line": "failed", "exercise": "x", "kind": "k", "error": "y" * 10_000})
    )
    name = trace.recorded["launch trace"]["e"]["1"].launches[0].labels[0].name
    assert "\x1b" not in name and "\u202e" not in name and len(name) <= 60
    assert len(trace.failures["x"].error) == 2000
