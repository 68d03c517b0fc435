"""Lab 00: what the three small exercises ask.

| exercise | signature | teaches | counted | budget |
|---|---|---|---|---|
| start.double | kernel double(a, out) | a guard for the last block | bytes stored | right, 4·n |
| start.worst_line | worst_line(lines) | a report read line by line | – | right for every report |
| start.honest_time | honest_time(log) | which timings prove something | – | right for every log |

`double`: blocks of 256 threads, once of 128; of 4 × 256 threads 24 have no element at n = 1000.
Each element is stored once: a kernel in which every thread does the whole array is as right and stores more.
`worst_line`: sectors per request = sectors / requests; a sector is 32 bytes, so the part used is
bytes / (32 · sectors). `honest_time`: drop the first run (it compiles); fewer than 3 others, no
synchronisation, or bytes / median beyond the peak prove nothing.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from gpulab.checks.evidence import AnsweredCases, LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes

LAB = "00"


def _vector(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = int(sizes["n"])
    return (Array("a", (n,)), Array("out", (n,), role="out"))


def _one_thread_each(sizes: Sizes) -> Shape:
    threads = int(sizes["threads"])
    return Shape((max(1, ceil(int(sizes["n"]) / threads)),), (threads,))


def _double_case(n: int, threads: int = 256) -> Case:
    return Case(f"{n}" if threads == 256 else f"{n} in blocks of {threads}", {"n": n, "threads": threads})


def _reports(sizes: Sizes, generator: np.random.Generator) -> list[tuple]:
    """Tables of memory lines: [line, requests, sectors, bytes], with at most 32 sectors a request."""
    tables: list[tuple] = []
    count = int(sizes["lines"])
    while len(tables) < int(sizes["reports"]):
        numbers = np.sort(generator.choice(np.arange(3, 60), count, replace=False))
        requests = generator.integers(8, 5000, count)
        sectors = requests * generator.choice([1, 2, 4, 8, 16, 32], count) + generator.integers(1, 8, count)
        asked = np.minimum(requests * generator.choice([128, 256], count), 32 * sectors)
        if (sectors == sectors.max()).sum() == 1:  # one answer only
            tables.append((np.stack([numbers, requests, sectors, asked], axis=1).tolist(),))
    return tables


def _logs(sizes: Sizes, generator: np.random.Generator) -> list[tuple]:
    """Timings of a kernel: honest ones, and each of the three ways to prove nothing."""
    logs = []
    for i in range(int(sizes["logs"])):
        peak = float(generator.choice([320e9, 2039e9, 3352e9]))
        moved = int(generator.integers(10, 400)) * 1_000_000
        fair = (
            moved / peak * 1e6 * generator.uniform(1.1, 2.0)
        )  # microseconds that the memory system can keep
        runs = int(generator.integers(5, 12))
        times = fair * generator.normal(1.0, 0.02, runs)
        if generator.random() < 0.5:
            times[-1] *= 6.0  # something else used the machine: a median does not mind
        first = fair * 1000.0
        synchronised = True
        if i % 4 == 1:
            times, synchronised = times * 0.5 + fair * 0.6, False
        elif i % 4 == 2:
            times = times[:2]
        elif i % 4 == 3:
            times = times / 40.0
        logs.append(
            (
                {
                    "times_us": [round(float(t), 3) for t in (first, *times)],
                    "synchronised": synchronised,
                    "bytes": moved,
                    "peak_bytes_per_s": peak,
                },
            )
        )
    return logs


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="start.double",
        lab=LAB,
        varies=("n",),
        correct_points=1.5,
        cases=(*(_double_case(n) for n in (256, 1000, 1, 1023)), _double_case(500, 128), _double_case(1025)),
        evidence=LaunchTrace(arguments=_vector, shape=_one_thread_each),
        budgets=(
            Budget(
                metric="global_store_bytes",
                limit=lambda sizes: 4.0 * int(sizes["n"]),
                points=0.5,
                label="bytes stored",
                why="4 for each element, once",
                advice="How many elements does each of your threads write?",
                case=EVERY,
            ),
        ),
        hints=(
            (
                "1,000 elements need 4 blocks of 256 threads. How many threads is that, and what do the "
                "last ones do?"
            ),
            "`a.size` says how many elements there are. Which threads may go on to the next line?",
            "Put `if i < a.size:` in front of the line that reads and writes, and indent that line.",
        ),
        section="1 · Run a kernel, break it, mend it",
    ),
    Exercise(
        name="start.worst_line",
        lab=LAB,
        correct_points=2.0,
        evidence=AnsweredCases(questions=_reports),
        cases=(
            Case("one line", {"reports": 4, "lines": 1}),
            Case("three lines", {"reports": 8, "lines": 3}),
            Case("nine lines", {"reports": 8, "lines": 9}),
        ),
        rtol=1e-6,
        hints=(
            "Which of the four numbers of a line says how much memory traffic that line causes?",
            (
                "`max(lines, key=…)` finds the line. A sector is 32 bytes: how many bytes did its sectors "
                "fetch in all?"
            ),
            "Return the line's number, sectors / requests, and 100 · bytes / (32 · sectors).",
        ),
        section="2 · One finding: the same answer, eight times the traffic",
    ),
    Exercise(
        name="start.honest_time",
        lab=LAB,
        correct_points=3.0,
        evidence=AnsweredCases(questions=_logs),
        cases=(Case("4 logs", {"logs": 4}), Case("40 logs", {"logs": 40})),
        rtol=1e-6,
        hints=(
            (
                "Go through the rules one by one: each is one `if` that returns None, and the order does "
                "not matter."
            ),
            "Drop the first time before you count how many are left and before you take the median.",
            "Bandwidth is bytes / seconds, and the times are in microseconds: bytes / (median · 1e-6).",
        ),
        section="3 · How to measure honestly",
    ),
)

PREDICTIONS: tuple[Prediction, ...] = (
    Prediction(
        name="start.idle",
        lab=LAB,
        question="1,000 elements, 4 blocks of 256 threads: how many threads have no element?",
        unit="threads",
        answer=24,
        reason="4 · 256 = 1,024 threads, and 1,000 of them have an element.",
    ),
    Prediction(
        name="start.sectors_chunks",
        lab=LAB,
        question="`chunks`: how many sectors does one request of a warp move?",
        unit="sectors",
        answer=32,
        reason=(
            "The 32 threads read numbers 64 · 4 = 256 bytes apart, so no two of them share a sector of 32 "
            "bytes."
        ),
    ),
    Prediction(
        name="start.sectors_stripes",
        lab=LAB,
        question="`stripes`: how many sectors does one request of a warp move?",
        unit="sectors",
        answer=4,
        reason="32 neighbours of 4 bytes are 128 bytes, and 128 / 32 = 4.",
    ),
    Prediction(
        name="start.floor",
        lab=LAB,
        question="The least time for 800 MB on an A100, in microseconds?",
        unit="µs",
        tolerance=0.05,
        reason="Bytes over bandwidth: 800,000,000 B / (2,039 · 10⁹ B/s), times 10⁶ for microseconds.",
    ),
)
