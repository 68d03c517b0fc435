"""Lab 23, part A: what its four exercises ask, all on the A100.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| async.depth | depth(…) → slots | Little's law | answers | – | – | 3 |
| async.ring | kernel, 128 threads, 4 slots | cp.async in groups | bytes | – | 8·n | 5 |
| | | | bytes in flight | 0 | 29 B/thread | |
| | | | barriers | 2 a tile | 1 a tile | |
| | | | shared memory | – | 4 tiles | |
| async.handshake | kernel, 2 warps, 2 slots | mbarriers | mixed warps | 1 | 0 | 4 |
| | | | barriers | 2 a tile and 1 | 1 | |
| | | | phases | 1 a tile | 1 for 2 tiles | |
| | | | bytes | – | 8·n | |
| async.parity | kernel, corrected | phases, parity | mixed warps | – | 0 | 3 |

Derivations:

**depth**: bandwidth · latency bytes must be on their way all the time (J. Little, 1961). With B GB/s and L
ns that is B·L bytes, because the powers of ten cancel. Each of sms · blocks blocks brings ⌈B·L / (sms ·
blocks · tile)⌉ tiles at a time, and needs one slot more for the tile that it works on.

**ring**: when a thread waits for tile k, the tiles k + 1 and k + 2 are on their way: with S slots and one
barrier a tile the slot of tile k − 1 is refilled behind the barrier, so S − 2 tiles are behind a wait, of
16 bytes a thread each. Behind the last tile is nothing, behind the one before it one tile: (S − 2)·(tiles −
S + 2) + … + 1 + 0 tiles over all waits, divided by the number of tiles. For 16 tiles and S = 4 that is
29/16 tiles or 29 bytes. A kernel that waits at once for what it has sent has 0. Every float4 is needed by two
threads. One that copies all it reads itself needs no barrier, but then more than 8·n bytes.

**handshake**: one block barrier, behind which all threads see the initialised mbarriers. With block
barriers in place of the mbarriers each tile needs two, one when it is there and one when it may be
overwritten. What a warp loads and another one writes has to go through shared memory: a warp that does both
hands nothing over. With one slot its mbarriers pass through a phase for every tile; with two slots each has
those of every second tile, ⌈tiles / 2⌉.

**parity**: tile k uses slot k mod S for the (k div S)-th time. The consumer waits for the phase of that
number of *full*, whose parity is (k div S) mod 2. The producer waits for the consumer's previous round,
whose number is k div S − 1 and whose parity is the other one. With the same parity the producer waits for
nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import count, prediction
from gpulab.checks.evidence import AnsweredCases, LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes
from gpulab.content.pipelines import phases_budget, roles_apart

LAB = "23"

SLOTS = 4  # of async.ring
RING_TILE = 512  # floats: one float4 for each of 128 threads
WARP_TILE = 128  # floats: one float4 for each lane of a warp


def tiled(blocks: int, tiles: int) -> Case:
    """Each of `blocks` blocks works on `tiles` tiles."""
    return Case(f"{blocks} × {tiles} tiles", {"blocks": blocks, "tiles": tiles})


def tiles(sizes: Sizes) -> int:
    """Of a block."""
    return count(sizes, "tiles")


def all_tiles(sizes: Sizes) -> int:
    return count(sizes, "blocks") * tiles(sizes)


def streamed(tile: int, sizes: Sizes) -> tuple[Array | Scalar, ...]:
    """The arguments of a kernel that reads and writes all tiles, of `tile` floats each."""
    n = all_tiles(sizes) * tile
    return Array("x", (n,)), Array("out", (n,), role="out"), Scalar("tiles", count(sizes, "tiles"), "int32")


def bytes_once(tile: int, sizes: Sizes) -> int:
    """Every element read once and written once."""
    return 2 * 4 * tile * all_tiles(sizes)


def behind(sizes: Sizes) -> float:
    """Bytes of a thread behind a wait, on average, with `SLOTS` slots and one barrier a tile."""
    tiles = count(sizes, "tiles")
    return 16 * sum(min(SLOTS - 2, tiles - 1 - k) for k in range(tiles)) / tiles


def depth_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """Machines with tiles of the case's `kind`: ``small``, ``large`` (one is enough), or ``whole``, which
    means that a block's share of the bytes is a whole number of tiles."""
    found = []
    for _ in range(count(sizes, "questions")):
        sms, blocks = int(generator.integers(10, 180)), int(generator.integers(1, 5))
        bandwidth, latency = int(generator.integers(200, 8000)), 4 * int(generator.integers(75, 225))
        tile = 128 * int(generator.integers(2, 17))
        if sizes["kind"] == "large":
            tile = -(-bandwidth * latency // (1024 * sms * blocks)) * 1024
        if sizes["kind"] == "whole":
            tile, bandwidth = 4 * latency, 4 * sms * blocks * int(generator.integers(1, 5))
        found.append((bandwidth, latency, sms, blocks, tile))
    return found


def _barriers(warps: int, of_tiles: int, first: int, sizes: Sizes) -> int:
    """Block barriers of all warps: `of_tiles` for each tile and `first` besides."""
    return warps * count(sizes, "blocks") * (of_tiles * count(sizes, "tiles") + first)


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="async.depth",
        lab=LAB,
        correct_points=3,
        evidence=AnsweredCases(questions=depth_questions),
        cases=tuple(
            Case(f"{kind} tiles", {"kind": kind, "questions": 8}) for kind in ("small", "large", "whole")
        ),
        hints=(
            "How many bytes arrive during the latency, at full bandwidth? GB/s times ns is bytes.",
            "Those bytes are shared by `sms * blocks` blocks. How many tiles is one block's share? Part of a "
            "tile needs a whole one: `-(-a // b)` rounds up.",
            "The tile that is being worked on has arrived, so it is not on its way. It needs a slot all the "
            "same.",
        ),
        section="1 · How much must be on its way",
    ),
    Exercise(
        name="async.ring",
        lab=LAB,
        correct_points=1.5,
        evidence=LaunchTrace(
            arguments=partial(streamed, RING_TILE),
            shape=lambda sizes: Shape((count(sizes, "blocks"),), (128,)),
            face="cupy",
        ),
        cases=tuple(tiled(*each) for each in ((2, 8), (1, 1), (1, 2), (3, 3), (2, 5), (4, 16))),
        rtol=1e-6,
        atol=1e-6,
        budgets=(
            Budget(
                "global_bytes",
                partial(bytes_once, RING_TILE),
                1,
                "bytes",
                why="each element read once, written once",
                advice="That is {times} × one pass. Is a tile copied twice, or beyond the last one?",
                case=EVERY,
            ),
            Budget(
                "async_bytes_in_flight",
                behind,
                1.5,
                "bytes in flight",
                naive=0,
                sense=">=",
                why="two tiles after each wait, fewer at the end",
                advice="Which tiles have been sent when a thread waits for tile k? "
                "`__pipeline_wait_prior(n)` leaves the n youngest groups on their way.",
                case=EVERY,
            ),
            Budget(
                "barriers",
                partial(_barriers, 4, 1, 0),
                0.6,
                "block barriers",
                naive=partial(_barriers, 4, 2, 0),
                why="one a tile, for each of 4 warps",
                advice="A barrier says that tile k is there for all, and also that all are done with tile "
                "k − 1. Which slot is free after it?",
                case=EVERY,
            ),
            Budget(
                "shared_bytes",
                4 * SLOTS * RING_TILE,
                0.4,
                "shared memory",
                why="four tiles",
                advice="A ring of four slots is enough. What lies in the others?",
            ),
        ),
        hints=(
            "Send the tiles 0, 1 and 2 before the loop, each as a group of its own "
            "(`__pipeline_commit()`), even where there is no such tile: an empty group keeps the count.",
            "In turn k: wait until only the two youngest groups are on their way, meet at the barrier, send "
            "tile k + 3 into slot (k + 3) % 4, and only then read tile k.",
            "Slot (k + 3) % 4 is that of tile k − 1. All threads have read it before they come to the "
            "barrier of turn k.",
        ),
        section="2 · A ring of slots",
    ),
    Exercise(
        name="async.handshake",
        lab=LAB,
        correct_points=0.75,
        evidence=LaunchTrace(
            arguments=partial(streamed, WARP_TILE),
            shape=lambda sizes: Shape((count(sizes, "blocks"),), (64,)),
            face="cupy",
        ),
        cases=tuple(tiled(*each) for each in ((2, 6), (1, 1), (1, 2), (2, 3), (3, 5), (2, 16))),
        budgets=(
            roles_apart(0.5),
            Budget(
                "barriers",
                partial(_barriers, 2, 0, 1),
                0.75,
                "block barriers",
                naive=partial(_barriers, 2, 2, 1),
                why="one for each of 2 warps: the mbarriers are initialised",
                advice="In the loop a warp waits for the other one at an mbarrier, not at `__syncthreads()`.",
                case=EVERY,
            ),
            phases_budget(2, tiles, 1.75),
            Budget(
                "global_bytes",
                partial(bytes_once, WARP_TILE),
                0.25,
                "bytes",
                why="each element read once, written once",
                advice="That is {times} × one pass. Do both warps load the same tile?",
                case=EVERY,
            ),
        ),
        hints=(
            "Tile k is in slot s = k % 2, for the (k / 2)-th time. So the consumer waits at `full[s]` for "
            "the phase of parity `k / 2 & 1`.",
            "The producer waits at `empty[s]` for the phase before that one. In the first round there is "
            "none, and a wait for parity 1 at a fresh mbarrier is over at once.",
            "The consumer arrives at `empty[s]` when it has read the slot, the producer at `full[s]` when it "
            "has written it; all 32 lanes do, because the mbarriers were initialised for 32.",
        ),
        section="3 · Two warps hand over tiles",
    ),
    Exercise(
        name="async.parity",
        lab=LAB,
        correct_points=1,
        evidence=LaunchTrace(
            arguments=partial(streamed, WARP_TILE),
            shape=lambda sizes: Shape((count(sizes, "blocks"),), (64,)),
            face="cupy",
        ),
        cases=tuple(tiled(*each) for each in ((2, 8), (1, 1), (1, 3), (2, 4), (1, 7), (2, 17))),
        rtol=1e-5,
        atol=1e-5,
        budgets=(roles_apart(2),),
        hints=(
            "Three tiles work and four do not. What happens for the first time with the fourth tile?",
            "Write down, for slot 0 and the rounds 0, 1 and 2: which phase of `empty[0]` must be over before "
            "the producer writes, and what is that phase's parity?",
            "In round r the producer needs the end of phase r − 1.",
        ),
        section="Detective · Right with three tiles",
        detective=True,
    ),
)


_prediction = partial(prediction, "", LAB)

PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "async.flight",
        "Bytes that each SM of an A100 must have on their way: 2,039 GB/s, 391 ns, 108 SMs",
        "bytes",
        7382,
        "2,039 · 391 = 797,249 bytes for the whole GPU, and 797,249 / 108 = 7,382.",
        0.05,
    ),
    _prediction(
        "async.slots",
        "Tiles of 2 KiB on their way in each of 2 blocks of that SM",
        "tiles",
        2,
        "7,382 / 2 = 3,691 bytes for each block are more than one tile of 2,048 bytes, so two.",
    ),
    _prediction(
        "async.rounds",
        "With two slots, the round in which tile 9 is written (the first is round 0)",
        "",
        4,
        "9 div 2 = 4. The slots are filled in rounds 0 to 4 by the tiles 1, 3, 5, 7 and 9.",
    ),
)
