"""When warps work and wait: actions replayed by hand, and kernels whose waits are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpulab
from gpulab import cuda, hardware
from gpulab import cupy as cp
from gpulab.analysis.machine.overlap import Interval, NoTimeline, Rates, Replay, Timeline
from gpulab.checks.run import reference_device
from gpulab.simulator import device, simt
from gpulab.simulator.observe import Action
from tests.labs import notebooks

RATES = Rates(issue=4, latency=100, bytes_a_cycle=10, products={"float16": 1000})
FULL, EMPTY = ("phase", 0, 0, 0), ("phase", 0, 8, 0)
TILES = 8


def replayed(**warps: list[Action]) -> Replay:
    return Replay({(0, number): actions for number, actions in enumerate(warps.values())}, [], RATES)


def spans(intervals: list[Interval]) -> list[tuple[str, float, float]]:
    return [(each.kind, each.start, each.stop) for each in intervals]


def test_a_warp_that_waits_for_its_copy_waits_for_latency_and_bytes() -> None:
    found = replayed(one=[Action("work", 5), Action("copy", 200, (FULL,)), Action("wait", events=(FULL,))])
    assert spans(found.warps[0, 0]) == [("works", 0, 20), ("waits", 20, 20 + 20 + 100)]
    assert spans(found.copies) == [("on its way", 20, 140)]


def test_work_between_sending_and_waiting_is_hidden() -> None:
    actions = [
        Action("copy", 200, (FULL,)),
        Action("work", 50),
        Action("wait", events=(FULL,)),
        Action("work", 1),
    ]
    assert spans(replayed(one=actions).warps[0, 0]) == [("works", 0, 204)]


def test_copies_share_the_bandwidth_and_not_the_latency() -> None:
    found = replayed(one=[Action("copy", 500, (FULL,)), Action("copy", 500, (EMPTY,))])
    assert spans(found.copies) == [("on its way", 0, 150), ("on its way", 0, 200)]


def test_a_consumer_waits_for_all_that_arrive_in_its_phase() -> None:
    found = replayed(
        early=[Action("work", 1), Action("arrive", events=(FULL,))],
        late=[Action("work", 9), Action("arrive", events=(FULL,)), Action("wait", events=(EMPTY,))],
        consumer=[Action("wait", events=(FULL,)), Action("work", 2), Action("arrive", events=(EMPTY,))],
    )
    assert spans(found.warps[0, 2]) == [("waits", 0, 36), ("works", 36, 44)]
    assert spans(found.warps[0, 1]) == [("works", 0, 36), ("waits", 36, 44)]


def test_products_are_made_one_after_the_other() -> None:
    asked = [("product", 0, 0, n) for n in range(2)]
    instruction = next(
        i
        for i in device.current().program(wgmma_kernel()).instructions
        if i.parts[:2] == ("wgmma", "mma_async")
    )
    actions = [Action("product", 65536, (each,), 0) for each in asked] + [Action("wait", events=(asked[0],))]
    found = Replay({(0, 0): actions}, [instruction], RATES)
    assert spans(found.products) == [("made", 0, 65.536), ("made", 65.536, 131.072)]
    assert spans(found.warps[0, 0]) == [("waits", 0, 65.536)]


def wgmma_kernel() -> Any:
    seen = []
    with reference_device("H100"), device.current().observed(lambda launch: seen.append(launch.kernel)):
        a, b = (cp.zeros((64, 64), cp.float16) for _ in range(2))
        notebooks.answers("24_tensor_cores")["product"](a, b, cp.zeros((64, 64), cp.float32))
    return seen[-1]


def of_lab_23(name: str, gpu: str, threads: int, tile: int, kernel: Any = None) -> Timeline:
    x = cp.asarray(np.arange(2 * TILES * tile, dtype=np.float32))
    kernel = kernel or notebooks.answers("23_asynchronous_pipelines")[name]
    with reference_device(gpu):
        return gpulab.timeline(kernel, (2,), (threads,), (x, cp.empty_like(x), cp.int32(TILES)))


def test_a_ring_waits_less_than_a_copy_after_the_other() -> None:
    names = {"np": np, "gpulab": gpulab, "cp": cp, **notebooks.answers("23_asynchronous_pipelines")}
    exec(notebooks.cell_with("23_asynchronous_pipelines", "def expected"), names)
    single = of_lab_23("single", "A100", 128, 512, names["single"])
    ring = of_lab_23("ring", "A100", 128, 512)
    latency = float(hardware.find("A100").dram_latency or 0)
    assert single.total("warps 0 to 3", "waits") >= TILES * latency
    assert ring.total("warps 0 to 3", "waits") < TILES / 2 * latency
    assert ring.cycles < single.cycles / 2


def test_a_producer_and_its_consumers_have_a_row_each() -> None:
    found = of_lab_23("roles", "H100", 160, 512)
    assert list(found.rows) == ["warps 0 to 3", "warp 4", "copies"]
    assert len(found.rows["copies"]) == TILES
    at_once = max(
        sum(other.start <= each.start < other.stop for other in found.rows["copies"])
        for each in found.rows["copies"]
    )
    assert at_once == 4  # as many as there are slots


@pytest.mark.parametrize("schedule", [simt.BACKWARDS, simt.warp_serial(3), simt.two_teams(5)])
@pytest.mark.parametrize(
    "name, gpu, threads, tile", [("handshake", "A100", 64, 128), ("roles", "H100", 160, 512)]
)
def test_a_timeline_is_that_of_the_kernel_and_not_of_the_simulators_order(
    name: str, gpu: str, threads: int, tile: int, schedule: simt.Schedule
) -> None:
    """Above all, what a warp runs while it looks at an mbarrier in vain is no work."""
    expected = of_lab_23(name, gpu, threads, tile)
    with device.current().using(schedule=schedule):
        found = of_lab_23(name, gpu, threads, tile)
    for row in expected.rows:
        for kind in ("works", "waits", "on its way"):
            assert found.total(row, kind) == pytest.approx(expected.total(row, kind), rel=0.05)


def test_all_blocks_of_a_cluster_are_there() -> None:
    a, v = cp.asarray(np.ones((8, 512), np.float32)), cp.asarray(np.ones(512, np.float32))
    share = notebooks.answers("23_asynchronous_pipelines")["share"]
    with reference_device("H100"):
        found = gpulab.timeline(share, (8,), (256,), (a, v, cp.empty_like(a), cp.int32(512)))
    assert {row.partition(",")[0] for row in found.rows} == {*(f"block {b}" for b in range(4)), "copies"}


def test_tensor_cores_have_a_row_and_who_waits_for_a_commit_waits_for_them() -> None:
    a, b = (cp.asarray(np.ones((128, 256), np.float16)[:n]) for n in (128, 64))
    by_one_thread = notebooks.answers("24_tensor_cores")["by_one_thread"]
    with reference_device("B200"):
        found = gpulab.timeline(by_one_thread, a, b, cp.empty((128, 64), cp.float32))
    made = found.rows["tensor cores"]
    assert len(made) == 256 // 16
    assert found.total("warps 1 to 3", "waits") > 0.5 * made[-1].stop


def test_a_kernel_without_copies_has_its_warps_alone() -> None:
    @cuda.jit
    def double(a):
        a[cuda.grid(1)] *= 2

    found = gpulab.timeline(double[2, 64], np.zeros(128, np.float32))
    assert list(found.rows) == ["warps 0 to 1"]
    assert [each.kind for each in found.rows["warps 0 to 1"]] == ["loads", "works"] or found.total(
        "warps 0 to 1", "loads"
    ) > 500


def test_it_shows_a_figure_and_in_a_terminal_a_table() -> None:
    found = of_lab_23("bulk", "H100", 256, 1024)
    shown = found._repr_mimebundle_()
    assert "cycles, modelled" in shown["text/plain"] and "not a measurement" in shown["text/plain"]
    assert "data-scene" in shown["text/html"]
    captions = [frame["caption"] for frame in found.figure().record["frames"]]
    assert any(caption.endswith("2 copies are on their way.") for caption in captions)


def test_what_launches_nothing_is_said() -> None:
    with pytest.raises(NoTimeline, match="launched no kernel"):
        gpulab.timeline(lambda: None)
    with pytest.raises(NoTimeline, match="how many blocks and threads"):
        gpulab.timeline(cuda.jit(lambda a: None))


def test_a_block_that_does_too_much_is_refused_and_not_cut_off_in_silence(monkeypatch) -> None:
    monkeypatch.setattr("gpulab.simulator.observe.warp_roles.MOST", 100)
    with pytest.raises(NoTimeline, match=r"too much to be drawn.*fewer tiles"):
        of_lab_23("roles", "H100", 160, 512)
