"""Schedules, rounds, batches and walks over tiles: their frames say what the records say."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpulab
from gpulab import cuda, serving
from gpulab.distributed.pipelines import Work, simulate
from gpulab.plot.moving import (
    AttentionWalk,
    Batching,
    Drawing,
    Frame,
    Frames,
    MessageRounds,
    Moving,
    PipelineSteps,
    ProductWalk,
)
from gpulab.plot.moving.figure import WEIGHT

Marks = dict[str, int]


def gpipe(devices: int, batches: int) -> Any:
    order = [Work("F", i) for i in range(batches)] + [Work("B", i) for i in range(batches)]
    return simulate([order] * devices)


@serving.admission
def admit(queue: Any, running: Any, blocks: int, slots: int) -> list[int]:
    chosen = []
    for request in queue[:slots]:
        blocks -= math.ceil((request.prompt + request.most) / 16)
        if blocks < 0:
            break
        chosen.append(request.number)
    return chosen


def served(reserve: bool = True, slots: int = 3, blocks: int = 16) -> Batching:
    machine = serving.Machine(slots=slots, blocks=blocks, reserve=reserve)
    few = [serving.Request(i, 0.0, prompt=16, output=8 + 8 * (i % 3), most=32) for i in range(6)]
    run = serving.run(machine, few, admit.decide)
    return Batching(run, serving.stays(run))


def kinds(figure: Moving, index: int) -> list[str]:
    """What each mark looks like in a frame."""
    changed = figure.record["frames"][index].get("kinds", {})
    return [changed.get(str(i), mark["kind"]) for i, mark in enumerate(figure.record["marks"])]


FIGURES: dict[str, Callable[[], Moving]] = {
    "pipeline": lambda: PipelineSteps(gpipe(4, 8).slots).figure(),
    "ring": lambda: MessageRounds([[(r, (r + 1) % 8, 3) for r in range(8)]] * 14, 8, "shares").figure(),
    "batching": lambda: served().figure(),
    "product": lambda: ProductWalk(64, 64, 64, (16, 16, 16)).figure(),
    "attention": lambda: AttentionWalk(512, 512, causal=True).figure(),
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_light_and_every_frame_says_something_of_its_own(name: str) -> None:
    figure = FIGURES[name]()
    assert figure.weight <= WEIGHT
    captions = [frame["caption"] for frame in figure.record["frames"]]
    assert all(caption.endswith(".") for caption in captions)
    assert len(set(captions)) > len(captions) // 2
    assert captions[figure.record["start"]] in figure.caption


def test_a_moment_of_a_pipeline_says_who_works_on_what_and_holds_how_much() -> None:
    figure = PipelineSteps(gpipe(2, 2).slots).figure()
    captions = [frame["caption"] for frame in figure.record["frames"]]
    assert captions[0] == "At time 0 (steps): device 0 forward 0. Device 1 waits."
    assert captions[1] == "At time 1 (steps): device 0 forward 1, device 1 forward 0."
    assert captions[-1] == "At time 6 (steps): all are through."
    words = [list(frame.get("words", {}).values()) for frame in figure.record["frames"]]
    assert words[0] == ["1", "0"] and words[2] == ["2", "2"] and words[-1] == ["0", "0"]


def test_the_most_that_devices_hold_is_what_the_simulation_says() -> None:
    run = gpipe(4, 8)
    figure = PipelineSteps(run.slots).figure()
    held = [[int(n) for n in frame["words"].values()] for frame in figure.record["frames"]]
    assert tuple(np.max(held, axis=0)) == run.peak


def test_rounds_add_up_what_each_rank_has_sent() -> None:
    figure = MessageRounds([[(0, 1, 5), (1, 2, 2)], [(0, 2, 1)]], 3, "numbers").figure()
    first, second = figure.record["frames"]
    assert first["caption"] == (
        "Round 1: 2 messages (0 → 1, 1 → 2). Most that one rank has sent so far, in numbers: 5."
    )
    assert second["caption"].startswith("Round 2: 1 message (0 → 2)")
    assert sorted(second["words"].values()) == ["2", "6"]
    assert kinds(figure, 0).count("moves") == 2 and kinds(figure, 1).count("moves") == 1
    assert kinds(figure, 1).count("rank gets") == 1


def test_blocks_and_slots_are_those_of_the_engine() -> None:
    batching = served()
    figure, run = batching.figure(), batching.run
    for number, step in enumerate(run.steps):
        marks = kinds(figure, number)
        held = sum(marks.count(kind) for kind in ("earlier", "write", "reserved"))
        assert held == step.blocks
        assert f"{len(step.gave)} request" in figure.record["frames"][number]["caption"]


def test_without_reservations_no_block_is_held_empty() -> None:
    figure = served(reserve=False).figure()
    assert all("reserved" not in kinds(figure, i) for i in range(len(figure.record["frames"])))


@cuda.jit
def tiled(a, b, c):
    a_tile = cuda.shared.array((16, 16), np.float32)
    b_tile = cuda.shared.array((16, 16), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    total = np.float32(0)
    for first in range(0, a.shape[1], 16):
        a_tile[ty, tx] = a[row, first + tx]
        b_tile[ty, tx] = b[first + ty, col]
        cuda.syncthreads()
        for k in range(16):
            total += a_tile[ty, k] * b_tile[k, tx]
        cuda.syncthreads()
    c[row, col] = total


def test_the_bytes_of_a_product_are_those_that_the_simulator_counts() -> None:
    walk = ProductWalk(32, 48, 64, (16, 16, 16))
    a, b = np.ones((32, 64), np.float32), np.ones((64, 48), np.float32)
    report = gpulab.profile(tiled[(3, 2), (16, 16)], a, b, np.zeros((32, 48), np.float32))
    assert report["global_load_bytes"] == 6 * walk.loaded(64)
    last = walk.figure().record["frames"][-1]
    assert f"loaded from global memory: {walk.loaded(64):,} B" in last["words"].values()


def test_each_k_reads_a_column_of_one_tile_and_a_row_of_the_other() -> None:
    figure = ProductWalk(32, 32, 32, (16, 16, 8), (2, 4)).figure()
    marks = kinds(figure, 11)
    assert marks.count("byte") == 2 * (2 + 4)  # in shared memory, and in the thread's registers
    assert marks.count("ahead") == 16 - 2 + 16 - 4
    assert figure.record["frames"][11]["caption"] == (
        "k = 11: each thread reads 2 + 4 numbers of shared memory for 8 multiply-adds."
    )
    assert "after the block has loaded" in figure.record["frames"][8]["caption"]


def test_attention_moves_q_and_o_once_and_k_and_v_for_each_row_of_tiles() -> None:
    walk = AttentionWalk(256, 512, 64, (64, 128))
    last = len(walk.visited()) - 1
    assert walk.moved(last) == (2 * 256 * 64 + 4 * 2 * 512 * 64) * 2
    assert walk.moved(0) == (64 + 2 * 128) * 64 * 2


def test_a_causal_mask_skips_the_tiles_that_nobody_sees() -> None:
    walk = AttentionWalk(256, 256, tile=(64, 64), causal=True)
    assert walk.visited() == [(r, c) for r in range(4) for c in range(r + 1)]
    assert kinds(walk.figure(), 0).count("coming") == 6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PipelineSteps([]), "no device does anything"),
        (lambda: MessageRounds([], 4), "no message is sent"),
        (lambda: MessageRounds([[(0, 4, 1)]], 4), "rank 4 sends or receives, and ranks are 0 to 3"),
        (lambda: MessageRounds([[(0, 1, 1)]], 64), "2 to 32 ranks fit"),
        (lambda: ProductWalk(30, 32, 32), "do not divide 30 × 32 × 32"),
        (lambda: ProductWalk(1024, 32, 1024), "400 steps of k"),
        (lambda: AttentionWalk(100, 64), "do not divide 100 queries × 64 keys"),
        (lambda: AttentionWalk(4096, 4096), "at most 24 tiles"),
        (lambda: served(blocks=1000), "1,000 blocks"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_reason(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_panels_of_a_picture_stand_beside_each_other_where_there_is_room() -> None:
    drawing = Drawing(300)
    drawing.box(0, 0, 300, 50, "cell")
    drawing.panel(300)
    drawing.box(0, 0, 300, 50, "cell")
    drawing.panel(300)
    drawing.box(0, 0, 300, 50, "cell")
    picture = Frames(drawing, [Frame("Three.")], "boxes").figure().picture
    assert [part in picture for part in ("translate(16 38)", "translate(340 38)", "translate(16 100)")] == [
        True
    ] * 3
