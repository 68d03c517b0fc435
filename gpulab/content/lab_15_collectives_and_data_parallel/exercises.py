"""Lab 15: what its exercises ask. Part A is about collectives, part B about data parallel training.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| broadcast | broadcast(ranks, root): rounds | who has it passes it on | rounds | p − 1 | ⌈log2 p⌉ | 3 |
| reduce_scatter | reduce_scatter(x) | send what is needed | busiest sender | 3 S | 0.75 S | 4 |
| all_reduce | all_reduce(x) | a ring, there and back | busiest sender | 3 S | 1.5 S | 5 |
| halving | halving(ranks): rounds | few messages, few bytes | shares sent | p log2 p | 2 (p − 1) | 5 |
| | | | rounds | 2 (p − 1) | 2 log2 p | |
| factors | factors(counts) | a mean of means is not the mean | answers | – | – | 3 |
| indices | indices(length, ranks, rank, …) | each sample once, in new orders | answers | – | – | 3 |
| exchange | exchange(weights, x, capacity) | DDP after backward | buckets reduced | – | 4 | 5 |
| | | | busiest sender | 3 S | 1.5 S | |
| buckets | buckets(sizes, log, …): a plan | send early, in large pieces | waiting | 3 × | 1.1–1.5 × | 5 |
| compress | compress(gradient, memory, k) | not sent is not lost | lost | all | 0 | 4 |
| | | | still held | – | the least | |

Derivations, with p ranks, S elements; figures of S are for p = 4:

**broadcast**: in a round each rank sends at most one message and receives at most one, so the ranks that have
the data at most double: ⌈log2 p⌉ rounds, and a binomial tree takes no more. One that sends to all
others takes p − 1.

**reduce_scatter**, **all_reduce**: each of the S numbers of a sum needs p − 1 numbers from elsewhere, so
(p − 1) S numbers travel in all, and the busiest of p ranks sends at least (p − 1) S / p; in all-reduce twice
that, because each number must reach p − 1 ranks. With shares that differ in length, or padded ones, it is
(p − 1) ⌈S / p⌉, the budget. With p = 4 and S = 1,023 numbers, 4,092 bytes, the ring's busiest rank sends
6,140 bytes; one that sends everything to everybody 12,276.

**halving**: the array is p shares. In reduce-scatter a rank sends p/2, then p/4, …, 1 shares, p − 1 together,
and as many when it gathers: 2 (p − 1) in 2 log2 p rounds. A ring sends as many in 2 (p − 1) rounds. Swapping
all p shares with a partner at distance 1, 2, 4 … takes log2 p rounds and p log2 p shares.

**factors**: rank r has the mean of n_r samples, the all-reduce gives (Σ f_r m_r) / p. The mean of all samples
is (Σ n_r m_r) / Σ n_r, so f_r = p n_r / Σ n_r. Every rank may have a different number, and 0 too.

**exchange**: parameters in reverse order fill buckets of at most `capacity` bytes; one all-reduce each, no
more and no fewer. Counted are those of a bucket's size, because empty ones would make up any number. Sending
all gradients to everybody would take (p − 1) S from each rank.

**buckets**: an all-reduce takes latency + bytes / rate, one after the other, and starts when all gradients in
it are there. Counted is the time from the end of backward to the end of the last all-reduce, over the
least possible. That comes from dynamic programming over the gradients in the order in which they are ready:
to move one that is ready early into an earlier bucket delays nothing. With 12 layers one bucket for all
waits almost 20 times the least, one for each 8 to 11 times where messages are slow, fixed ones of 25 MB, as
PyTorch's DDP fills, 2.3 to 3.1 times, and "send all that is ready when the network is free" at most 1.5
times (tests/labs/test_15 holds these figures).

**compress**: what is not sent stays in the memory: sent + new memory = gradient + old memory. The least
norm that k numbers can leave behind is that without the k largest magnitudes.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from math import ceil, log2
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import AnsweredCases, Communication
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Sizes, several
from gpulab.subjects.distributed.traffic import Traffic

LAB = "15"
FLOAT = 4  # bytes
Numbers = np.random.Generator


def _case(name: str, **sizes: int | float | str) -> Case:
    return Case(name, sizes)


def _ranks(*counts: int) -> tuple[Case, ...]:
    return tuple(Case(f"{n} rank{'s' * (n != 1)}", {"ranks": n}) for n in counts)


def _what(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"what": name}) for name in names)


def _on(ranks: int, numbers: int) -> Case:
    return Case(f"{ranks} × {numbers}", {"ranks": ranks, "numbers": numbers})


def least_rounds(sizes: Sizes) -> int:
    """Rounds in which one rank's data can reach all."""
    return ceil(log2(int(sizes["ranks"])))


def _of(sizes: Sizes) -> tuple[int, int]:
    """Ranks and numbers of a case."""
    return int(sizes["ranks"]), int(sizes["numbers"])


def longest_share(sizes: Sizes) -> int:
    """Numbers in the longest of the shares that an array is cut into."""
    ranks, count = _of(sizes)
    return -(-count // ranks)


def everything(sizes: Sizes) -> float:
    """Bytes that a rank sends when it sends its array to all others: 30 bits a number, which it needs."""
    ranks, count = _of(sizes)
    return 30 / 32 * FLOAT * (ranks - 1) * count


# ---------------------------------------------------------------- what ranks are given


# Whole numbers, so that every order of additions is exact, in int32 and so large that four of them just fit:
# they need all their bytes. A float32 would hold whole numbers of 24 bits, which travel in three bytes.
WHOLE = "integers:-536870911:536870912"


def reduce_scatter_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    count = int(sizes["numbers"])
    return (
        Array("x", (count,), "int32", fill=WHOLE),
        Array("out", (count,), "int32", role="out", placement="sharded"),
    )


def all_reduce_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    count = int(sizes["numbers"])
    return (
        Array("x", (count,), "int32", fill=WHOLE),
        Array("out", (count,), "int32", role="out", placement="replicated"),
    )


def exchange_shapes(sizes: Sizes) -> list[tuple[int, int]]:
    """The tied matrix, the two branches, and the matrices between."""
    width = int(sizes["width"])
    return [(width, width)] * (3 + int(sizes["layers"]))


def exchange_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    width, shapes = int(sizes["width"]), exchange_shapes(sizes)

    def small(numbers: Numbers, shape: tuple[int, ...], _: Sizes) -> np.ndarray:
        return numbers.standard_normal(shape) / width**0.5

    return (
        *several("weights", shapes, fill=small, grad=True, placement="replicated"),
        Array("x", (int(sizes["ranks"]) * int(sizes["rows"]), width), placement="sharded"),
        Scalar("capacity", int(sizes["capacity"])),
        *(
            Array(f"weights[{i}].grad", shape, role="out", placement="replicated")
            for i, shape in enumerate(shapes)
        ),
    )


def buckets(sizes: Sizes) -> list[int]:
    """Bytes of each bucket, at most `capacity`; all matrices are of one size."""
    matrix, left = FLOAT * int(sizes["width"]) ** 2, len(exchange_shapes(sizes))
    in_one = max(1, int(sizes["capacity"]) // matrix)
    return [matrix * min(in_one, left - first) for first in range(0, left, in_one)]


def reduced_buckets(traffic: Traffic, sizes: Sizes) -> int:
    """All-reduces that carried a bucket, each bucket once: one of another size, or of nothing, is none."""
    wanted = Counter(buckets(sizes))
    return sum(min(count, traffic.calls["all_reduce", size]) for size, count in wanted.items())


def exchange_bytes(sizes: Sizes) -> float:
    """Bytes that a rank sends in all-reduces of all gradients; 10 % for shares that differ by a number."""
    ranks, shapes = int(sizes["ranks"]), exchange_shapes(sizes)
    return 1.1 * 2 * (ranks - 1) / ranks * FLOAT * len(shapes) * int(sizes["width"]) ** 2


def exchange_naive(sizes: Sizes) -> float:
    """Bytes that a rank sends when it sends all gradients to all others."""
    return (int(sizes["ranks"]) - 1) * FLOAT * len(exchange_shapes(sizes)) * int(sizes["width"]) ** 2


# ---------------------------------------------------------------- questions


def broadcast_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    ranks = int(sizes["ranks"])
    roots = {0, ranks - 1, int(numbers.integers(ranks))}
    return [(ranks, root) for root in sorted(roots)]


def halving_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    return [(int(sizes["ranks"]),)]


def factor_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """How many labels each rank counts."""
    match sizes["what"]:
        case "equal counts":
            return [([8, 8, 8, 8],), ([5],)]
        case "a short last batch":
            return [([32, 32, 32, 7],), ([16, 1],)]
        case "one has none":
            return [([4, 0, 4],), ([0, 9],)]
    return [([int(n) for n in numbers.integers(1, 400, int(numbers.integers(2, 9)))],) for _ in range(8)]


def indices_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(samples, ranks, rank, seed, epoch)."""
    match sizes["what"]:
        case "12 samples, 4 ranks":
            return [(12, 4, rank, 7, 0) for rank in range(4)]
        case "10 samples, 4 ranks":
            return [(10, 4, rank, 7, 3) for rank in range(4)]
        case "3 samples, 8 ranks":
            return [(3, 8, rank, 1, 2) for rank in range(8)]
        case "three epochs":
            return [(24, 3, rank, 5, epoch) for epoch in range(3) for rank in range(3)]
    found = []
    for _ in range(10):
        ranks = int(numbers.integers(1, 9))
        found.append(
            (
                int(numbers.integers(1, 200)),
                ranks,
                int(numbers.integers(ranks)),
                int(numbers.integers(1000)),
                int(numbers.integers(30)),
            )
        )
    return found


def backward(
    numbers: Numbers, layers: int, width: int, tied: bool = False, unused: bool = False
) -> tuple[dict[str, int], list[list[Any]]]:
    """Bytes of a GPT's weight matrices, and when backward adds to which gradient, in ms.

    The time goes with the FLOPs, that is with the size, give or take 30 %. A tied embedding is added to at
    the start, as the head, and at the end; what is unused is never added to.
    """
    square, ms = width * width, 4.0
    sizes: dict[str, int] = {}
    log: list[list[Any]] = []
    now = 0.0

    def add(name: str, size: int) -> None:
        nonlocal now
        now += ms * size / (12 * square) * float(numbers.uniform(0.7, 1.3))
        sizes[name] = 4 * size
        log.append([round(now, 3), name])

    add("embedding" if tied else "head", 8 * square)
    for layer in reversed(range(layers)):
        for name, size in (("down", 4), ("up", 4), ("out", 1), ("qkv", 3)):
            add(f"{layer}.{name}", size * square)
    add("embedding", 8 * square)
    if unused:
        sizes |= {"adapter.0": 4 * square, "adapter.1": 4 * square}
    order = list(sizes)
    numbers.shuffle(order)
    return {name: sizes[name] for name in order}, log


def bucket_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(bytes by parameter, [[ms, parameter], …], ms a message, bytes per ms)."""
    if sizes["layers"] == 0:
        return [({"w": 400}, [[2.5, "w"]], 0.1, 100.0), ({"a": 8, "b": 8}, [[1.0, "a"]], 0.5, 4.0)]
    found = []
    for latency in (0.05, 0.4, 1.0):
        for share in (0.4, 0.9):  # of all-reduces in the time of backward
            given, log = backward(
                numbers, int(sizes["layers"]), 512, sizes["kind"] == "tied", sizes["kind"] == "unused"
            )
            rate = sum(given.values()) / (share * log[-1][0])
            found.append((given, log, latency, round(rate, 1)))
    return found


def compress_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(gradient, memory, k)."""
    match sizes["what"]:
        case "no memory yet":
            return [([0.5, -3.0, 1.0, 2.0], [0.0] * 4, 2), ([1.0], [0.0], 1)]
        case "memory decides":
            return [([0.5, -3.0, 1.0, 2.0], [4.0, 2.5, 0.25, -1.75], 2)]
        case "room for all":
            return [([1.0, -2.0], [0.5, 0.0], 5), ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], 1)]
    found = []
    for _ in range(8):
        n = int(numbers.integers(5, 60))
        gradient, memory = numbers.standard_normal(n), 3 * numbers.standard_normal(n)
        found.append(
            (
                [round(float(g), 4) for g in gradient],
                [round(float(m), 4) for m in memory],
                int(numbers.integers(1, n // 2)),
            )
        )
    return found


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="collective.broadcast",
        lab=LAB,
        evidence=AnsweredCases(questions=broadcast_questions, measured=True),
        correct_points=1,
        cases=_ranks(1, 2, 7, 8, 40),
        budgets=(
            Budget(
                "rounds",
                least_rounds,
                2,
                "rounds",
                naive=lambda sizes: int(sizes["ranks"]) - 1,
                unit="rounds",
                why="those that have it at most double",
                advice="After a round, how many ranks have the data? Which of them send in the next?",
                case=EVERY,
            ),
        ),
        hints=(
            "A rank that has just received can send in the next round. Who is idle in your rounds?",
            "Number the ranks from the root: d = (rank − root) mod ranks. First 0 sends to 1, then 0 and 1 "
            "send to 2 and 3, then 0 to 3 send to 4 to 7.",
            "In a round with `have` ranks that have it, each d < have sends to d + have, if that is below "
            "`ranks`. Turn both back into ranks.",
        ),
        section="A2 · One to all",
    ),
    Exercise(
        name="collective.reduce_scatter",
        lab=LAB,
        evidence=Communication(arguments=reduce_scatter_arguments),
        correct_points=2,
        cases=(
            _on(2, 6),
            _on(1, 5),
            _on(3, 10),
            _on(4, 2),
            _on(4, 1023),
        ),
        budgets=(
            Budget(
                "busiest sender",
                lambda sizes: FLOAT * (int(sizes["ranks"]) - 1) * longest_share(sizes),
                2,
                "busiest sender",
                naive=everything,
                unit="bytes",
                why="a share in each of p − 1 steps",
                advice="Which numbers of its array does a rank need to send at all? And how often?",
                case=EVERY,
            ),
        ),
        hints=(
            "Cut a copy of x into shares by `tensor_split(size)`. In step s a rank sends one share and "
            "receives another.",
            "Step s, from 1 to size − 1: send share (rank − s) % size to (rank + 1) % size, receive share "
            "(rank − s − 1) % size from (rank − 1) % size, add.",
            "`isend` first, then `recv` into an empty tensor as long as the share that comes, then `wait`, "
            "then add. After the last step the own share is complete.",
        ),
        section="A3 · Shares of a sum",
    ),
    Exercise(
        name="collective.all_reduce",
        lab=LAB,
        evidence=Communication(arguments=all_reduce_arguments),
        correct_points=2,
        cases=(
            _on(2, 6),
            _on(1, 5),
            _on(3, 10),
            _on(4, 2),
            _on(4, 1023),
        ),
        budgets=(
            Budget(
                "busiest sender",
                lambda sizes: 2 * FLOAT * (int(sizes["ranks"]) - 1) * longest_share(sizes),
                3,
                "busiest sender",
                naive=everything,
                unit="bytes",
                why="reduce-scatter and all-gather",
                advice="Your reduce-scatter leaves each rank with one share of the sum. How do the shares "
                "travel from there?",
                case=EVERY,
            ),
        ),
        hints=(
            "First reduce-scatter. Then every rank has the share with its own number, complete.",
            "In step s, from 0 to size − 2: send share (rank − s) % size to the next rank, receive share "
            "(rank − s − 1) % size from the one before. Nothing is added.",
            "Keep the shares in a list with an empty tensor for each that is to come; `torch.cat` makes one "
            "tensor of them.",
        ),
        section="A4 · All-reduce",
    ),
    Exercise(
        name="collective.halving",
        lab=LAB,
        evidence=AnsweredCases(questions=halving_questions, measured=True),
        correct_points=1,
        cases=_ranks(1, 2, 4, 8, 16),
        budgets=(
            Budget(
                "shares sent",
                lambda sizes: 2 * (int(sizes["ranks"]) - 1),
                2,
                "shares sent",
                naive=lambda sizes: int(sizes["ranks"]) * log2(int(sizes["ranks"])),
                unit="shares",
                why="by the busiest rank",
                advice="After the first round of adding, how many shares is a rank still responsible for?",
                case=EVERY,
            ),
            Budget(
                "rounds",
                lambda sizes: 2 * least_rounds(sizes),
                2,
                "rounds",
                naive=lambda sizes: 2 * (int(sizes["ranks"]) - 1),
                unit="rounds",
                why="log2 p to add, log2 p to gather",
                advice="How many shares does each message of yours carry? The first could carry half of all.",
                case=EVERY,
            ),
        ),
        hints=(
            "In the first round the partner is half the ranks away. Each keeps one half of the shares and "
            "sends the other half away, to be added there.",
            "With distance d (ranks/2, …, 2, 1) the partner is rank ^ d. A rank keeps those of its shares "
            "whose number has the same bit d as the rank itself.",
            "At the end of adding, rank r has share r alone, complete. Then go back: distances 1, 2, …, each "
            "rank sends all complete shares that it has, to be copied.",
        ),
        section="A6 · Halving and doubling",
    ),
    Exercise(
        name="parallel.factors",
        lab=LAB,
        evidence=AnsweredCases(questions=factor_questions),
        detective=True,
        correct_points=3,
        cases=_what("equal counts", "a short last batch", "one has none", "any"),
        rtol=1e-9,
        hints=(
            "How much does one label weigh in the average over ranks if its rank has few labels, and how "
            "much if its rank has many?",
            "The mean over all labels is the sum over all labels, divided by their number. A rank's own mean "
            "is its own sum, divided by its own number. By what must it be multiplied?",
            "The average also divides by the number of ranks, and ranks without labels are among them. With "
            "counts [6, 2] the first rank's mean must weigh 6/8 in the result, so its factor is 2 · 6/8.",
        ),
        section="Detective · The run that four ranks made worse",
    ),
    Exercise(
        name="parallel.indices",
        lab=LAB,
        evidence=AnsweredCases(questions=indices_questions),
        correct_points=3,
        cases=_what(
            "12 samples, 4 ranks", "10 samples, 4 ranks", "three epochs", "3 samples, 8 ranks", "any"
        ),
        hints=(
            "All ranks need the same permutation, so its seed must not depend on the rank. It must depend on "
            "the epoch.",
            "Append the permutation's own beginning until the length is a multiple of `ranks`. With 3 "
            "samples and 8 ranks, appending it once is not enough.",
            "A rank takes every `ranks`-th index, and starts at its own number: `order[rank::ranks]`.",
        ),
        section="B2 · Who gets which sample",
    ),
    Exercise(
        name="parallel.buckets",
        lab=LAB,
        evidence=AnsweredCases(questions=bucket_questions, measured=True),
        correct_points=2,
        cases=(
            _case("two parameters", layers=0, kind="plain"),
            _case("tied, 4 layers", layers=4, kind="tied"),
            _case("unused, 4 layers", layers=4, kind="unused"),
            _case("12 layers", layers=12, kind="plain"),
        ),
        budgets=(
            Budget(
                "waiting over the least",
                1.6,
                3,
                "waiting",
                naive=3,
                unit="times",
                why="of the least possible after backward",
                advice="A single bucket can start only when backward has ended, and one bucket for each "
                "gradient pays the latency every time. When does your first bucket start, and is the "
                "network ever idle between two buckets? Which gradients must wait for the last bucket, and "
                "which need not?",
                case=EVERY,
            ),
        ),
        hints=(
            "A gradient is ready at its last entry in `log`. One without an entry is ready at time 0. Sort "
            "the names by these times.",
            "Keep a clock that says when the network is free, and start it at 0. While the network is busy, "
            "more gradients become ready. What can it send when it is free again?",
            "When the network becomes free, put all gradients that are ready into the next bucket. If none "
            "is ready, wait for the next one.",
        ),
        section="B3 · When to send",
    ),
    Exercise(
        name="parallel.exchange",
        lab=LAB,
        evidence=Communication(
            arguments=exchange_arguments,
            calls=frozenset({"all_reduce"}),
            counts={"buckets": reduced_buckets},
        ),
        correct_points=2,
        cases=(
            _case("2 ranks, one bucket", ranks=2, width=4, layers=0, rows=3, capacity=1 << 20),
            _case("3 ranks, 5 weights", ranks=3, width=8, layers=2, rows=2, capacity=600),
            _case("4 ranks, 10 weights", ranks=4, width=16, layers=7, rows=2, capacity=3 * 1024),
        ),
        rtol=1e-4,
        atol=1e-6,
        budgets=(
            Budget(
                "buckets",
                lambda sizes: len(buckets(sizes)),
                2,
                "all-reduces",
                sense=">=",
                unit="of a bucket's bytes",
                why="one for each bucket",
                advice="How many bytes does each of these gradients have, and how many of them fit into one "
                "bucket? An all-reduce counts if it has exactly the bytes of one bucket.",
                case=EVERY,
            ),
            Budget(
                "busiest sender",
                exchange_bytes,
                1,
                "busiest sender",
                naive=exchange_naive,
                unit="bytes",
                why="each gradient in one all-reduce",
                advice="Does your code send a gradient twice, or to the ranks one by one?",
                case=EVERY,
            ),
        ),
        hints=(
            "After `loss(weights, x).backward()`, one weight's `.grad` is None on this rank. Other ranks "
            "have this gradient, so this rank must bring zeros to the same all-reduce.",
            "Go through `reversed(weights)`, and start a new bucket when the next gradient would not fit any "
            "more. All ranks get the same buckets, because all have the same weights.",
            "For each bucket, make `flat = torch.cat([g.flatten() for g in …])`, all-reduce it, and divide "
            "by the number of ranks. Then take it apart with `flat.split([w.numel() for w in bucket])` and "
            "`view_as`, and assign the parts to `.grad`.",
        ),
        section="B4 · DDP from scratch",
    ),
    Exercise(
        name="parallel.compress",
        lab=LAB,
        evidence=AnsweredCases(questions=compress_questions, measured=True),
        correct_points=1,
        cases=_what("no memory yet", "room for all", "memory decides", "any"),
        budgets=(
            Budget(
                "lost",
                1e-6,
                2,
                "lost",
                unit="units",
                why="gradient + memory − sent − new memory",
                advice="Add up what you send and what you keep. The sum must be what came in: the gradient "
                "plus the old memory. Is the old memory in it, and is a sent value 0 in the new memory?",
                case=EVERY,
            ),
            Budget(
                "held over the least",
                1 + 1e-6,
                1,
                "still held",
                naive=2,
                unit="times",
                why="of the least norm",
                advice="Which k numbers of gradient + memory make the memory smallest when they leave it? "
                "Look at their magnitudes.",
                case=EVERY,
            ),
        ),
        hints=(
            "First add the gradient and the memory. After that, only this sum matters.",
            "Send the k elements of the sum that have the largest magnitudes. An element that was sent is 0 "
            "in the new memory, and all others stay as they are.",
            "`sorted(range(n), key=lambda i: -abs(total[i]))[:k]` gives the indices of these k elements.",
        ),
        section="B8 · Fewer bits",
    ),
)


_prediction = partial(prediction, "", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "collective.waiting",
        "Ranks of 4 that wait when each first sends to the next, then receives",
        "ranks",
        4,
        "`send` comes back when the other side takes the message, and no rank gets as far as its `recv`.",
    ),
    _prediction(
        "collective.rounds",
        "Rounds of the best broadcast to 64 ranks",
        "rounds",
        6,
        "1, 2, 4, 8, 16, 32, 64: those who have it double in each round.",
    ),
    _prediction(
        "collective.share",
        "Arrays that each of 4 ranks sends in a ring reduce-scatter",
        "arrays",
        0.75,
        "3 steps with a quarter of the array each.",
        0.01,
    ),
    _prediction(
        "collective.busiest",
        "Bytes that the busiest of 4 ranks sends in the best all-reduce of 1,023 numbers of 4 bytes",
        "bytes",
        6140,
        "0.75 arrays in reduce-scatter and 0.75 in all-gather are 6,138 bytes on average. Shares have 256, "
        "256, 256 and 255 numbers, and the busiest rank sends five long ones and the short one: 6,140.",
        0.005,
    ),
    _prediction(
        "collective.in_a_row",
        "Messages one after the other in a ring all-reduce of 64 ranks",
        "messages",
        126,
        "63 in reduce-scatter and 63 in all-gather.",
    ),
    _prediction(
        "parallel.bitwise",
        "Percentage of a gradient's numbers that are the same to the last bit on four ranks and in one "
        "process",
        "%",
        None,
        "Sums in a different order are rounded differently, so most of the numbers differ in their last "
        "bits.",
        0.5,
    ),
    _prediction(
        "parallel.padded",
        "Samples that are used twice in an epoch, if 8 ranks share 1,001 samples",
        "samples",
        7,
        "The order is extended to the next multiple of 8, which is 1,008, and 1,008 − 1,001 = 7.",
    ),
    _prediction(
        "parallel.exposed",
        "Least waiting after backward, if its last gradient is a tenth of all bytes, and all take 40 ms",
        "ms",
        4,
        "Everything else can be sent during backward. The embedding's gradient is complete only when "
        "backward ends, and sending it takes a tenth of 40 ms.",
    ),
    _prediction(
        "parallel.syncs",
        "Factor by which more bytes are sent than needed, with 8 micro-batches and without no_sync",
        "times",
        8,
        "Each of the 8 backwards sends all gradients, but only the last needs to.",
    ),
    _prediction(
        "parallel.rate",
        "Learning rate of SGD for a batch of 128, if 0.05 is right for a batch of 16",
        "",
        0.4,
        "By the linear rule, a batch that is 8 times as large needs a rate that is 8 times as large: 8 · "
        "0.05.",
        0.01,
    ),
    _prediction(
        "parallel.staleness",
        "Mean staleness with 8 equally fast workers",
        "updates",
        7,
        "While a worker computes its gradient, each of the other 7 delivers one.",
    ),
    _prediction(
        "parallel.topk",
        "Bytes of all 1,669 FP32 numbers over bytes of the 17 largest with their indices",
        "times",
        49.1,
        "All numbers take 1,669 · 4 = 6,676 bytes, and 17 numbers with indices take 17 · 8 = 136. An index "
        "is as large as a number, so 1 % of the numbers are 2 % of the bytes.",
        0.02,
    ),
)
