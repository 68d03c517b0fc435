"""Lab 19, part A: what its nine exercises ask. Part B has `lab_19_decoding`.

| exercise | asks for | teaches | counted | naive | good | pts |
|---|---|---|---|---|---|---|
| count | count(model, gpu, batch, new, there) | prefill, decode | answers | – | – | 3 |
| step | step(q, k, v, keys, values, there, window), PyTorch | the cache | bytes | 3 caches | 2·seen | 5 |
| per_gpu | per_gpu(model, ranks) | what cannot be cut is copied | answers | – | – | 3 |
| quantise | quantise(k, v), a plan | outliers have an axis | key error, % | 250 | 100 | 4 |
| | | | value error, % | 250 | 100 | |
| | | | bytes | 4·m·d | 2·m·d + 4·max(m, d) | |
| split | split(q, k, v, outs, lses, out), Triton | one query fills a GPU | B a block | 4·m·d | a part | 5 |
| | | | load bytes | keys per query head | keys once | |
| allocate | allocate(operations, size, blocks), a plan | copy on write | blocks | 40 | 16 | 5 |
| | | | copies | 6 | 4 | |
| paged | paged(q, k, v, tables, lengths, out), Triton | tables | load bytes | the widest | each own | 4 |
| runs | runs(layout, table, size, heads, d, tokens, head) | NHD, HND | answers | – | – | 3 |
| rolled | rolled(q, k, v, keys, values, there), mended | a slot is not a position | answers | – | – | 3 |

Derivations; d numbers of a head.

**count**: a matrix of r × c numbers costs 2·r·c FLOP a token. A layer has width · d · (2·heads +
2·kv_heads) + 3·width·hidden numbers, the output layer vocabulary · width, once a sequence. A query that
sees s tokens costs 4·d·s FLOP a head: 2·d for the score, 2·d for its use. Over `new` tokens after `there`,
s adds up to new·there + new·(new + 1)/2. Bytes: all matrices once, the cache of `there` tokens read and of
`new` written.

**step**: keys and values that are seen are 2·kv_heads·s·d numbers, s = min(there + new, window + new − 1).
Scores and what is done with them are heads · new · s numbers about 12 times over: with 16 heads on 2, d =
64 and one token, 0.75 of the keys and values. The budget is twice these. A grown cache (`torch.cat`) reads
and writes all there is before it is read again: 3 times 2·kv_heads·(there + new)·d.

**per_gpu**: keys and values of ⌈kv_heads/ranks⌉ heads, or the whole latent and its key with a position, in
each layer. 32 layers of 32 heads of 128 in 16 bits: MHA 524,288 B on one GPU and 65,536 B on each of 8; with
8 key heads 131,072 and 16,384; with one 16,384 and 16,384; a latent of 512 + 64 36,864 and 36,864. So MLA has
less than GQA on one GPU, and more than twice as much on each of 8.

**quantise**: m tokens, d channels, a byte a code and 2 bytes a scale. K with a scale for each of d channels
and V with one for each of m tokens are 2·m·d + 2·(m + d); the budget lets each have the longer of both. In
16 bits it is 4·m·d. The errors are relative to those of these scales, taken as the largest absolute value
over 127, so that 100 % is this plan. The other way round K has about 300 to 400 % at 64 tokens, V more.

**split** (float16): 16 query heads share one of keys, so a block computes 16 × 32 scores at a time. For m
keys in p parts: k and v once, 2·2·kv·m·d bytes, q once a part, 2·p·16·kv·d. The merge reads outs and lses,
4·16·kv·p·(d + 1). Lanes that read what others read ask, too: a margin of 25 %, most of it used. A block for
each query head reads k and v 16 times. A block for all 1,536 keys loads 393 KB; one for each of 24 parts
loads 64 keys, their values and its queries, 18.4 KB.
One that merges a row of these loads 4·p·(d + 1): 6.2 KB. The two follow one another, so they add up.

**allocate**: a prompt of n tokens, f forks, t more tokens for each of the 1 + f, blocks of s; g more forks
end before they write. Shared are the ⌊n/s⌋ full blocks. The last one, if it is not full, is copied by all
but one. Blocks: ⌊n/s⌋ + (1 + f) · ⌈(n mod s + t)/s⌉; copies f. For 100, 4, 17, 2 and 16: 6 + 5 · 2 = 16 and
4. Who copies the last block at the fork has 4 + 2 = 6 copies; who copies all blocks there has (1 + f) ·
⌈(n + t)/s⌉ = 40 blocks, and more copies.

**paged** (float16, one head of keys for 16 of queries): q once, 2·16·d a sequence; keys and values of the
tokens that are there, 4·d each; 4 bytes a table entry and length. All of the widest table for each sequence
is the naive way.

**runs**: element (b, t, h, c) of blocks of s tokens, n heads and d numbers is at ((b·s + t)·n + h)·d + c in
NHD and at ((b·n + h)·s + t)·d + c in HND. A head's part of a full block is s runs of d numbers in NHD, and
one of s·d in HND; with one head the two are the same array, and neighbouring blocks join.

**rolled**: no count. A cache of `room` slots is right until token `room`: until then slot = position.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import count, prediction
from gpulab.checks.evidence import AnsweredCases, LaunchTrace, TensorGraph
from gpulab.checks.operators import COMMON
from gpulab.checks.spec import Array, Budget, Case, Exercise, Prediction, Scalar, Sizes
from gpulab.simulator import hardware
from gpulab.subjects.models import known

LAB = "19"
D = 64  # numbers of a head in the kernels
GROUP = 16  # query heads that share one of keys there
SIZE = 16  # tokens of a block in the paged cache
ALL = 1_000_000  # a window that leaves nothing out


# ---------------------------------------------------------------- counting


def shape_of(name: str, weight_bytes: float = 2, cache_bytes: float = 2) -> dict[str, Any]:
    """A published model's sizes as `count` gets them. `cache_bytes` are those of one number in the cache."""
    config = known.find(name).config
    return {
        "layers": config.layers,
        "width": config.width,
        "heads": config.heads,
        "kv_heads": config.kv_heads,
        "head_dim": config.head_width,
        "hidden": config.hidden,
        "vocabulary": config.vocabulary,
        "weight_bytes": weight_bytes,
        "cache_bytes": cache_bytes,
    }


def data_sheet(name: str) -> dict[str, float]:
    """Peak in FLOP/s (16 bits, dense, tensor cores) and bandwidth in B/s of a GPU."""
    roof = hardware.roofline(name, "float16")
    return {"peak": roof.peak, "bandwidth": roof.bandwidth}


GATED = ("Llama 2 7B", "Llama 2 70B", "Llama 3 8B", "Llama 3 70B", "Llama 3 405B")


def count_questions(sizes: Sizes, numbers: np.random.Generator) -> list[tuple[Any, ...]]:
    """(model, gpu, batch, new, there)."""
    kind, asked = str(sizes["kind"]), []
    for _ in range(5):
        model = shape_of(str(numbers.choice(GATED)))
        if kind == "one byte":
            model |= {"weight_bytes": 1, "cache_bytes": float(numbers.choice((1, 0.5)))}
        if kind == "wide heads":  # heads · head_dim is not the width
            model |= {"head_dim": 256, "heads": 16, "kv_heads": int(numbers.choice((1, 4))), "width": 3072}
        batch, new, there = 1, int(numbers.integers(1, 5000)), 0
        if kind in ("decode", "one byte", "wide heads"):
            new, there = 1, int(numbers.integers(1, 9000))
        if kind == "a batch":
            batch, new, there = int(numbers.integers(2, 600)), 1, int(numbers.integers(1, 3000))
        if kind == "a chunk":
            batch = int(numbers.integers(1, 4))
            new, there = int(numbers.integers(2, 600)), int(numbers.integers(1, 9000))
        asked.append((model, data_sheet(str(numbers.choice(("A100", "H100", "L4")))), batch, new, there))
    return asked


# ---------------------------------------------------------------- what a GPU holds


def per_gpu_questions(sizes: Sizes, numbers: np.random.Generator) -> list[tuple[Any, ...]]:
    """(model, ranks): a model's layers and bytes a number, and either key heads or a latent."""
    asked: list[tuple[Any, ...]] = []
    for _ in range(5):
        model: dict[str, Any] = {
            "layers": int(numbers.integers(2, 90)),
            "bytes": float(numbers.choice((2, 1))),
        }
        ranks = 2 ** int(numbers.integers(0, 4))
        if sizes["kind"] == "a latent":
            model |= {"latent": 64 * int(numbers.integers(4, 13)), "place": 32 * int(numbers.integers(1, 4))}
        else:
            heads = ranks * 2 ** int(numbers.integers(0, 4))
            if sizes["kind"] == "one head":
                heads = 1
            if sizes["kind"] == "fewer heads than GPUs":
                ranks = 8 * 2 ** int(numbers.integers(0, 3))
                heads = 2 ** int(numbers.integers(1, 3))
            model |= {"kv_heads": heads, "head_dim": 32 * int(numbers.integers(2, 9))}
        asked.append((model, ranks))
    return asked


PER_GPU = ("enough heads", "one head", "fewer heads than GPUs", "a latent")


# ---------------------------------------------------------------- a step of attention


def step_case(heads: int, kv: int, d: int, new: int, there: int, window: int = ALL) -> Case:
    said = f"{new} new, {there} there" + ("" if window == ALL else f", window {window}")
    room = there + new + 3
    return Case(
        said, {"heads": heads, "kv": kv, "d": d, "new": new, "there": there, "window": window, "room": room}
    )


def step_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    heads, kv, d, new, room = (count(sizes, name) for name in ("heads", "kv", "d", "new", "room"))
    return (
        Array("q", (heads, new, d)),
        Array("k", (kv, new, d)),
        Array("v", (kv, new, d)),
        Array("keys", (kv, room, d), role="inout"),
        Array("values", (kv, room, d), role="inout"),
        Scalar("there", count(sizes, "there")),
        Scalar("window", count(sizes, "window")),
        Array("out", (heads, new, d), role="out"),
    )


def seen_bytes(sizes: Sizes) -> int:
    """Bytes of the keys and values that the new tokens see, float32."""
    new, there, window = (count(sizes, name) for name in ("new", "there", "window"))
    return 4 * 2 * count(sizes, "kv") * min(there + new, window + new - 1) * count(sizes, "d")


def grown_bytes(sizes: Sizes) -> int:
    """Bytes where all of the cache is read, written and read again."""
    return 3 * 4 * 2 * count(sizes, "kv") * (count(sizes, "there") + count(sizes, "new")) * count(sizes, "d")


def rolled_case(heads: int, kv: int, d: int, room: int, there: int) -> Case:
    sizes = {"heads": heads, "kv": kv, "d": d, "new": 1, "there": there, "room": room}
    return Case(f"{room} slots, {there} there", sizes)


def rolled_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    return tuple(a for a in step_arguments({**sizes, "window": ALL}) if a.name != "window")


# ---------------------------------------------------------------- fewer bytes


def quantise_questions(sizes: Sizes, numbers: np.random.Generator) -> list[tuple[Any, ...]]:
    """(k, v) of one head, rows are tokens: keys with two loud channels, values with loud tokens."""
    tokens, d = count(sizes, "tokens"), count(sizes, "d")
    k = numbers.standard_normal((tokens, d))
    loud = numbers.choice(d, 2, replace=False)
    k[:, loud] = 3 * k[:, loud] + 25 * numbers.choice((-1, 1), 2)
    v = numbers.standard_normal((tokens, d)) * np.exp(1.5 * numbers.standard_normal((tokens, 1)))
    if sizes["kind"] == "zeros":
        k[:, int(numbers.integers(d))] = 0
        v[int(numbers.integers(tokens))] = 0
    return [(k.round(4).tolist(), v.round(4).tolist())]


def cache_case(name: str, tokens: int, d: int, kind: str = "") -> Case:
    return Case(name, {"tokens": tokens, "d": d, "kind": kind})


def quantised_bytes(sizes: Sizes) -> int:
    tokens, d = count(sizes, "tokens"), count(sizes, "d")
    return 2 * tokens * d + 4 * max(tokens, d)


# ---------------------------------------------------------------- kernels


def _scaled(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Queries whose products with normal keys have the standard deviation `scale`."""
    return float(sizes["scale"]) / np.sqrt(D) * numbers.standard_normal(shape)


def split_case(kv: int, m: int, parts: int, scale: float = 1) -> Case:
    name = f"{kv} head{'s' * (kv > 1)}, {m} keys, {parts} part{'s' * (parts > 1)}"
    return Case(
        name + (f", ±{scale:g}" if scale > 1 else ""), {"kv": kv, "m": m, "parts": parts, "scale": scale}
    )


def split_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    kv, m, parts = (count(sizes, name) for name in ("kv", "m", "parts"))
    return (
        Array("q", (GROUP * kv, D), "float16", fill=_scaled),
        Array("k", (kv, m, D), "float16"),
        Array("v", (kv, m, D), "float16"),
        Array("outs", (GROUP * kv, parts, D), role="out"),
        Array("lses", (GROUP * kv, parts), role="out"),
        Array("out", (GROUP * kv, D), role="out"),
    )


def split_bytes(sizes: Sizes, heads_a_block: int = GROUP) -> int:
    """Bytes that both kernels load, at so many query heads for each block."""
    kv, m, parts = (count(sizes, name) for name in ("kv", "m", "parts"))
    keys = 4 * kv * m * D * (GROUP // heads_a_block)
    return keys + 2 * parts * GROUP * kv * D + 4 * GROUP * kv * parts * (D + 1)


def part_bytes(sizes: Sizes) -> int:
    """Bytes of a part's keys and values, and of the queries that see them."""
    return 4 * -(-count(sizes, "m") // count(sizes, "parts")) * D + 2 * GROUP * D


def merge_bytes(sizes: Sizes) -> int:
    """Bytes of one row of all parts' results."""
    return 4 * count(sizes, "parts") * (D + 1)


def paged_case(*lengths: int, blocks: int = 0, scale: float = 1) -> Case:
    """Sequences of these lengths; `blocks` of the pool, as many as they need and two by default."""
    needed = sum(-(-n // SIZE) for n in lengths)
    name = f"lengths {', '.join(map(str, lengths))}" + (f", ±{scale:g}" if scale > 1 else "")
    return Case(
        name, {"lengths": " ".join(map(str, lengths)), "blocks": blocks or needed + 2, "scale": scale}
    )


def lengths_of(sizes: Sizes) -> list[int]:
    return [int(n) for n in str(sizes["lengths"]).split()]


def _tables(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Block tables over a shuffled pool; what stands behind a sequence's last block is no block.

    Its keys begin 2³¹ bytes behind the pool, and 2³⁰ numbers are still an int32: at 2²² an address made of
    int32 would wrap to block 0, and reading it would look right.
    """
    free = list(numbers.permutation(count(sizes, "blocks")))
    tables = np.full(shape, 2**30 // (SIZE * D))
    for row, length in zip(tables, lengths_of(sizes), strict=True):
        for i in range(-(-length // SIZE)):
            row[i] = free.pop()
    return tables


def paged_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    lengths, blocks = lengths_of(sizes), count(sizes, "blocks")
    width = max(-(-n // SIZE) for n in lengths) + 1
    return (
        Array("q", (len(lengths), GROUP, D), "float16", fill=_scaled),
        Array("k", (blocks, SIZE, D), "float16"),
        Array("v", (blocks, SIZE, D), "float16"),
        Array("tables", (len(lengths), width), "int32", fill=_tables),
        Array("lengths", (len(lengths),), "int32", fill=lambda numbers, shape, sizes: np.array(lengths)),
        Array("out", (len(lengths), GROUP, D), role="out"),
    )


def paged_bytes(sizes: Sizes, lengths: Callable[[list[int]], list[int]] = list) -> int:
    """Bytes to load where a sequence's tokens are loaded once; `lengths` changes how many these are."""
    tokens = lengths(lengths_of(sizes))
    return sum(2 * GROUP * D + 4 * D * n + 4 + 4 * -(-n // SIZE) for n in tokens)


def _all_widest(lengths: list[int]) -> list[int]:
    return [-(-max(lengths) // SIZE) * SIZE] * len(lengths)


# ---------------------------------------------------------------- layouts


def runs_questions(sizes: Sizes, numbers: np.random.Generator) -> list[tuple[Any, ...]]:
    """(layout, table, size, heads, d, tokens, head)."""
    asked: list[tuple[Any, ...]] = []
    for _ in range(6):
        size, heads, d = (int(n) for n in numbers.integers((2, 2, 4), (7, 6, 33)))
        heads = 1 if sizes["kind"] == "one head" else heads
        blocks = int(numbers.integers(2, 5))
        pool = numbers.permutation(9)[:blocks]
        if sizes["kind"] == "one head":  # neighbours, in both orders, and one that is apart
            pool = np.array([3, 4, 2, 7, 8])[: blocks + 1]
        tokens = size * len(pool) - (0 if sizes["kind"] == "full blocks" else int(numbers.integers(size)))
        layout = (
            str(sizes["kind"]) if sizes["kind"] in ("NHD", "HND") else str(numbers.choice(("NHD", "HND")))
        )
        asked.append((layout, pool.tolist(), size, heads, d, tokens, int(numbers.integers(heads))))
    return asked


LAID_OUT = ("full blocks", "NHD", "HND", "one head")


# ---------------------------------------------------------------- blocks


def allocate_questions(sizes: Sizes, numbers: np.random.Generator) -> list[tuple[Any, ...]]:
    """(operations, size, blocks)."""
    if sizes["kind"] == "branches":
        return [_branches(sizes)]
    return [_operations(str(sizes["kind"]), numbers) for _ in range(4)]


def _branches(sizes: Sizes) -> tuple[Any, ...]:
    prompt, forks, more, size = (count(sizes, name) for name in ("prompt", "forks", "more", "size"))
    names = [f"a{i}" for i in range(forks + 1)]
    operations = [["start", names[0], prompt], *(["fork", names[0], name] for name in names[1:])]
    for i in range(count(sizes, "ended")):
        operations += [["fork", names[0], f"b{i}"], ["free", f"b{i}"]]
    operations += [["append", name] for _ in range(more) for name in names]
    return operations, size, 2 * (forks + 1) * -(-(prompt + more) // size)


def _operations(kind: str, numbers: np.random.Generator) -> tuple[Any, ...]:
    size = int(numbers.integers(2, 7))

    def some(low: int = 2, high: int = 8) -> int:
        return int(numbers.integers(low, high))

    def appends(*names: str, count: int = 0) -> list[list[Any]]:
        return [["append", name] for _ in range(count or some()) for name in names]

    start, most = ["start", "a", some(1, 3 * size)], 40
    match kind:
        case "one":
            operations = [start, *appends("a", count=2 * size)]
        case "two in turn":
            operations = [start, ["start", "b", some()], *appends("a", "b", count=2 * size)]
        case "blocks come back":
            most = 4
            operations = [["start", "a", 2 * size], ["start", "b", size], ["free", "a"]]
            operations += [["start", "c", 3 * size], ["free", "b"], *appends("c", count=size)]
        case "forks":
            operations = [["start", "a", 2 * size + 1], ["fork", "a", "b"], ["fork", "b", "c"]]
            operations += appends(*numbers.permutation(["a", "b", "c"]).tolist(), count=size + 1)
        case "a full block":
            operations = [["start", "a", 2 * size], ["fork", "a", "b"], *appends("b", "a", count=size)]
        case "the first one ends":
            operations = [["start", "a", size + 1], ["fork", "a", "b"], ["free", "a"]]
            operations += [*appends("b", count=size), ["free", "b"], ["start", "c", most * size]]
        case "too full":  # for a start, for another block; later there is room
            most = 4
            operations = [["start", "a", 3 * size], ["start", "b", size + 1], ["start", "c", size - 1]]
            operations += [["append", "a"], ["append", "c"], ["append", "c"], ["free", "a"]]
            operations += appends("c", count=some(2, 4) * size)
        case _:
            alive, operations = ["a"], [start]
            for i in range(40):
                name = str(numbers.choice(alive))
                what = str(numbers.choice(("append", "append", "append", "fork", "start", "free")))
                if what == "append" or (what == "free" and len(alive) == 1) or len(alive) == 5:
                    operations += appends(name)
                elif what == "free":
                    operations.append(["free", name])
                    alive.remove(name)
                else:
                    alive.append(f"s{i}")
                    operations.append(
                        ["fork", name, alive[-1]] if what == "fork" else ["start", alive[-1], some()]
                    )
            most = 999
    return operations, size, most


def branches_case(prompt: int, forks: int, more: int, size: int, ended: int = 2) -> Case:
    """1 + forks answers; `ended` forks end before they write."""
    sizes: dict[str, int | float | str] = {
        "kind": "branches",
        "prompt": prompt,
        "forks": forks,
        "more": more,
        "size": size,
        "ended": ended,
    }
    return Case(f"{forks + 1} answers to {prompt} tokens", sizes)


def branches_blocks(sizes: Sizes, shared: bool = True) -> int:
    prompt, forks, more, size = (count(sizes, name) for name in ("prompt", "forks", "more", "size"))
    if not shared:
        return (1 + forks) * -(-(prompt + more) // size)
    return prompt // size + (1 + forks) * -(-(prompt % size + more) // size)


def branches_copies(sizes: Sizes, at_once: bool = False) -> int:
    """Copies of the last block; `at_once`: in every fork, also in those that end before they write."""
    prompt, forks, ended, size = (count(sizes, name) for name in ("prompt", "forks", "ended", "size"))
    return (forks + at_once * ended) * int(prompt % size > 0)


def kinds(*names: str, suffix: str = "") -> tuple[Case, ...]:
    return tuple(Case(name + suffix, {"kind": name}) for name in names)


COUNTED = ("prefill", "decode", "a batch", "a chunk", "one byte", "wide heads")
ALLOCATED = (
    "one",
    "two in turn",
    "blocks come back",
    "forks",
    "a full block",
    "the first one ends",
    "too full",
    "any",
)

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="kv.count",
        lab=LAB,
        evidence=AnsweredCases(questions=count_questions),
        correct_points=3,
        cases=kinds(*COUNTED),
        rtol=1e-9,
        hints=(
            "Write a line for each: numbers of a layer's matrices, numbers of the output layer, FLOP of the "
            "matrices, pairs of a query and a key it sees, bytes of the cache.",
            "The first new token sees `there` + 1 tokens, the last one `there` + new. Layers multiply pairs "
            "and cache; heads multiply FLOP, kv_heads multiply bytes.",
            "All new tokens of all sequences go through the layers, the last one of each sequence through "
            "the output layer. Weights are read once, however many tokens there are.",
        ),
        section="2 · Prefill and decode",
    ),
    Exercise(
        name="kv.step",
        lab=LAB,
        evidence=TensorGraph(arguments=step_arguments, operators=COMMON | {"_softmax"}),
        correct_points=2.5,
        cases=(
            step_case(2, 2, 8, 5, 0),
            step_case(4, 2, 8, 1, 9),
            step_case(6, 2, 8, 4, 7),
            step_case(4, 1, 8, 1, 20, 6),
            step_case(4, 4, 8, 9, 8, 5),
            step_case(2, 1, 8, 3, 1, 1),
            step_case(16, 2, 64, 1, 1400, 512),
        ),
        rtol=1e-3,  # positions of 1,400 turn by angles that float32 knows to 1e-4
        atol=5e-4,
        budgets=(
            Budget(
                "bytes",
                lambda s: 2 * seen_bytes(s),
                2.5,
                "bytes",
                naive=grown_bytes,
                why="twice the keys and values that are seen",
                advice="Which of your tensors is as large as the cache: one that is copied, one that is "
                "repeated "
                "for each query head, or one with keys that the window hides?",
                unit="B",
            ),
        ),
        hints=(
            "New keys are turned, then written: keys[:, there:there + new] = …. The first key that any new "
            "token sees is max(0, there + 1 − window).",
            "Queries can be put together (lab 12): q.reshape(kv heads, group · new, d). In row g · new + t "
            "stands query t of a head.",
            "Position of row g · new + t: there + t. `torch.arange(there, there + "
            "new).repeat(group)[:, None]` minus the keys' positions says how far behind a key is: seen "
            "are 0 … window − 1.",
        ),
        section="3 · The cache",
    ),
    Exercise(
        name="kv.per_gpu",
        lab=LAB,
        evidence=AnsweredCases(questions=per_gpu_questions),
        correct_points=3,
        cases=kinds(*PER_GPU),
        hints=(
            "What does one layer store for a token if there is one GPU? Keys and values are two vectors for "
            "each key head. A latent serves as both.",
            "Eight key heads on four GPUs are two on each. How many are on each of sixteen GPUs, if each of "
            "them must answer for its query heads?",
            "The heads on a GPU are `max(1, kv_heads // ranks)`. A latent and the key with the position are "
            "not divided at all. Multiply by the layers and by the bytes of a number.",
        ),
        section="5 · A smaller cache",
    ),
    Exercise(
        name="kv.quantise",
        lab=LAB,
        evidence=AnsweredCases(questions=quantise_questions, measured=True),
        correct_points=1,
        cases=(
            cache_case("few tokens", 3, 8),
            cache_case("zeros", 12, 8, "zeros"),
            cache_case("64 tokens", 64, 32),
        ),
        budgets=(
            Budget(
                "bytes",
                quantised_bytes,
                1,
                "bytes",
                naive=lambda s: 4 * count(s, "tokens") * count(s, "d"),
                unit="B",
                why="a byte a number, and one scale for each row or column",
                advice="How many scales do you give back? Each is 2 bytes.",
            ),
            Budget(
                "key error",
                110,
                1,
                "error of keys",
                unit="% of ours",
                why="the outputs' error if only keys are quantised",
                advice="Look at the figure: what do the largest numbers of K have in common?",
            ),
            Budget(
                "value error",
                110,
                1,
                "error of values",
                unit="% of ours",
                why="the outputs' error if only values are quantised",
                advice="Look at the figure: what do the largest numbers of V have in common?",
            ),
        ),
        hints=(
            "A scale serves the numbers that share it; the largest of them decides it. Who should share?",
            "For a column: scale = largest absolute value / 127. A column of zeros has no largest; any "
            "scale but 0 does.",
            "One array has scales [[s₀, s₁, …]] (1 × d), the other [[s₀], [s₁], …] (m × 1). np.round(x / "
            "scales).astype(int).tolist() are the codes.",
        ),
        section="5 · A smaller cache",
    ),
    Exercise(
        name="kv.split",
        lab=LAB,
        correct_points=2,
        cases=(
            split_case(1, 40, 2),
            split_case(1, 33, 1),
            split_case(2, 100, 3, 30),
            split_case(1, 5, 4),
            split_case(1, 1536, 24),
        ),
        evidence=LaunchTrace(arguments=split_arguments, race_case="1 head, 40 keys, 2 parts"),
        budgets=(
            Budget(
                "global_load_bytes",
                lambda s: int(1.25 * split_bytes(s)),
                2,
                "loaded bytes",
                naive=lambda s: split_bytes(s, 1),
                why="keys and values once, q and the parts' results",
                advice="16 query heads want the same keys. How many of your blocks load them?",
            ),
            Budget(
                "block_load_bytes",
                lambda s: int(1.25 * part_bytes(s)) + merge_bytes(s),
                1,
                "loaded by a block",
                naive=lambda s: 4 * count(s, "m") * D,  # a block for each head of keys
                why="a part's keys, values and queries, and a row of all parts' results",
                advice="Which axis of the grid says which part a block computes? How many rows does a block "
                "merge?",
            ),
        ),
        rtol=3e-3,  # weights are rounded to float16
        atol=3e-3,
        hints=(
            "The first kernel is lab 12's `blocks` with 16 query heads in the place of 64 queries, and "
            "a loop from part · each to min(m, (part + 1) · each). Nothing is causal: the last token "
            "sees all.",
            "A part without keys must leave out 0 and lse −∞: total / tl.maximum(s, 1.0), and largest + "
            "log(s) with both at −∞ and 0. The loop then runs no turn.",
            "The second kernel has a program for each row: lse of all parts (tl.arange to a power of two, "
            "masked, other=−∞), weights = exp(lse − max), out = Σ weights · outs / Σ weights.",
        ),
        section="6 · One query, many keys",
    ),
    Exercise(
        name="kv.allocate",
        lab=LAB,
        evidence=AnsweredCases(questions=allocate_questions, measured=True),
        correct_points=2,
        cases=(*kinds(*ALLOCATED), branches_case(100, 4, 17, 16)),
        budgets=(
            Budget(
                "blocks",
                branches_blocks,
                1.5,
                "blocks",
                naive=lambda s: branches_blocks(s, shared=False),
                unit="blocks at once",
                why="what is shared counts once",
                advice="Which blocks do two sequences hold that have the same contents?",
            ),
            Budget(
                "copies",
                branches_copies,
                1.5,
                "copies",
                naive=lambda s: branches_copies(s, at_once=True),
                unit="blocks copied",
                why="only blocks that are written, and only while somebody else holds them",
                advice="Is a block copied before somebody writes into it? Does the last holder copy, too?",
            ),
        ),
        hints=(
            "Keep for each block how many tables it stands in, and for each sequence its table and length.",
            "An append writes at place `length`, in table[length // size]. If the table is too short, take a "
            "block. If the block is there and others hold it, copy it first.",
            "Count what an operation needs before you do anything. If fewer blocks are free, the answer is "
            '"full" and nothing changes: no length, no table.',
        ),
        section="7 · Pages",
    ),
    Exercise(
        name="kv.paged",
        lab=LAB,
        correct_points=2,
        cases=(
            paged_case(5, 16),
            paged_case(17),
            paged_case(1, 40, 3, scale=30),
            paged_case(100, 7, 18, 33),
        ),
        evidence=LaunchTrace(arguments=paged_arguments, race_case="lengths 5, 16"),
        budgets=(
            Budget(
                "global_load_bytes",
                lambda s: int(1.15 * paged_bytes(s)),
                2,
                "loaded bytes",
                naive=lambda s: paged_bytes(s, _all_widest),
                why="each token once",
                advice="Where does the loop of a short sequence end? What is loaded of the last block?",
            ),
        ),
        rtol=3e-3,
        atol=3e-3,
        hints=(
            "A program for each sequence. `tl.load(lengths + sequence)` gives one number, and a loop may run "
            "to it.",
            "A turn of the loop is one block of 16 tokens: its number is in the table, at sequence · width + "
            "first // 16. Its tokens start at number · 16.",
            "Mask loads and scores by first + tl.arange(0, 16) < length. Everything else is the loop of "
            "`split`.",
        ),
        section="8 · A kernel behind a table",
    ),
    Exercise(
        name="kv.runs",
        lab=LAB,
        evidence=AnsweredCases(questions=runs_questions),
        correct_points=3,
        cases=kinds(*LAID_OUT),
        hints=(
            "Where does token t's key begin? Its block is `table[t // size]`, and its slot in the block is "
            "t % size.",
            "In NHD, count the vectors before it: those of whole blocks, of earlier slots and of earlier "
            "heads. In HND, slots and heads change places.",
            "Go through the tokens in order. If a key begins where the last stretch ends, make that one d "
            "numbers longer; otherwise begin a new one.",
        ),
        section="8 · A kernel behind a table",
    ),
    Exercise(
        name="kv.rolled",
        lab=LAB,
        evidence=TensorGraph(arguments=rolled_arguments, operators=COMMON | {"_softmax"}),
        correct_points=3,
        cases=(
            rolled_case(4, 2, 8, 8, 0),
            rolled_case(4, 2, 8, 8, 5),
            rolled_case(4, 2, 8, 8, 7),
            rolled_case(4, 2, 8, 8, 8),
            rolled_case(2, 1, 16, 7, 45),
            rolled_case(4, 4, 8, 12, 131),
        ),
        rtol=1e-3,
        atol=5e-4,
        hints=(
            "Write down, for 4 slots, which token each slot holds after the sixth.",
            "What does `theirs` give `turn` as positions, for the keys and for the query? What were they "
            "when the tokens came?",
            "Slot s holds the newest token t ≤ there with t mod room = s. How old it is: (there − s) "
            "mod room.",
        ),
        detective=True,
        section="Detective · The lost thread",
    ),
)


_prediction = partial(prediction, "kv", LAB)


_LLAMA = known.find("Llama 3 8B").config
_ROOF = hardware.roofline("H100", "float16")
CACHE_OF_A_TOKEN = 2 * _LLAMA.layers * _LLAMA.kv_heads * _LLAMA.head_width * 2  # bytes, 16 bits a number

PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "ridge",
        "An H100, weights of 16 bits, cache left aside: a step computes as long as it reads weights at",
        "tokens",
        _ROOF.ridge,
        "A weight is 2 bytes and 2 FLOP a token. So tokens = FLOP/B, and the ridge is 989 TFLOP/s over "
        "3.35 TB/s.",
        0.05,
    ),
    _prediction(
        "token",
        "In Llama 3 8B (32 layers, 8 key heads of 128 numbers, 16 bits) a token's keys and values are",
        "B",
        CACHE_OF_A_TOKEN,
        "2 · 32 · 8 · 128 numbers of 2 bytes: 128 KiB.",
        0.01,
    ),
    _prediction(
        "counter",
        "A cache has one counter, which `extend` moves on. After 6 tokens through 2 layers it says",
        "tokens",
        12,
        "Each layer calls `extend`: a token comes by twice.",
    ),
    _prediction(
        "outgrow",
        "The cache of one sequence outgrows the 16.1 GB of weights of Llama 3 8B at",
        "tokens",
        122_500,
        "16.06 GB over 131,072 B.",
        0.05,
    ),
    _prediction(
        "latent",
        "Cache of a token on one GPU, in a model with 32 layers, a latent of 512 and a key of 64, 16 bits",
        "B",
        None,
        "32 · (512 + 64) numbers of 2 bytes. The latent serves as key and as value, so it is stored once.",
        0.01,
    ),
    _prediction(
        "layout",
        "Sectors that reading one head's keys takes in NHD, compared with HND (8 heads of 64 in 16 bits)",
        "×",
        None,
        "A key of one head is 128 bytes in either layout, which are four whole sectors.",
        0.01,
    ),
    _prediction(
        "busy",
        "One sequence, 8 heads of keys, a block for each: at work of an A100's SMs are",
        "%",
        100 * 8 / float(hardware.find("A100").sms),
        "8 of 108.",
        0.05,
    ),
    _prediction(
        "reserved",
        "Room for 2,048 tokens is reserved for each request, and requests have 1 to 512, all as likely. "
        "Unused are",
        "%",
        100 * (1 - 256.5 / 2048),
        "On average 256.5 of 2,048 are used.",
        0.02,
    ),
)
