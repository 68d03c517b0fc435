"""Budgets on communication are not met by messages with little in them: none, half a batch, short numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from gpulab.checks import cases, registry
from gpulab.checks.evidence import communication
from gpulab.content.lab_15_collectives_and_data_parallel.exercises import buckets, reduced_buckets
from gpulab.content.lab_16_sharded_training.exercises import gathered_layers
from gpulab.content.lab_22_capstones.training import sent_micro_batches, train_case
from gpulab.subjects.distributed.traffic import Traffic
from grading.core.judge import judge_cases


def traffic(*calls: tuple[str, int], messages: tuple[tuple[str, int], ...] = ()) -> Traffic:
    found = Traffic(4, calls=Counter(calls))
    for operation, size in messages:
        found.add(0, 1, size, 1, operation)
    return found


def test_an_all_reduce_counts_as_a_bucket_if_it_has_the_bytes_of_one() -> None:
    sizes = {"width": 16, "layers": 7, "capacity": 3072, "ranks": 4}
    assert buckets(sizes) == [3072, 3072, 3072, 1024]
    reduced = [("all_reduce", size) for size in buckets(sizes)]
    assert reduced_buckets(traffic(*reduced), sizes) == 4
    assert reduced_buckets(traffic(("all_reduce", 10_240), *[("all_reduce", 0)] * 3), sizes) == 0
    assert reduced_buckets(traffic(*[("all_reduce", 3072)] * 9), sizes) == 3


def test_gathered_layers_are_counted_by_their_bytes() -> None:
    sizes = {"ranks": 2, "layers": 3, "width": 8}
    layer = ("all_gather", 4 * 8 * 8 // 2)
    assert gathered_layers(traffic(messages=(layer, layer) * 5), sizes) == 5
    empty = ("all_gather", 1)
    assert gathered_layers(traffic(messages=(layer, layer) * 3 + (empty, empty) * 2), sizes) < 3.1
    assert gathered_layers(Traffic(1), {**sizes, "ranks": 1}) == 0


def test_a_message_counts_as_a_micro_batch_if_it_holds_one_in_float32() -> None:
    sizes = train_case(4, 16, 128, 48, 8, 2).sizes
    whole = 4 * 2 * 128
    assert sent_micro_batches(traffic(messages=(("send", whole),) * 96), sizes) == 96
    assert sent_micro_batches(traffic(messages=(("send", whole + 8),) * 96), sizes) == 96  # with a tag
    for size in (1, whole // 2, whole * 3 // 4):
        assert sent_micro_batches(traffic(messages=(("send", size),) * 96), sizes) == 0


# What would be sent in three bytes, by exercise.
TRAVELS = {"shard.gather_layers": ("parts[",), "parallel.dispatch": ("x",), "parallel.ring": ("k", "v")}


def in_three_bytes(values: np.ndarray) -> np.ndarray:
    """Floats rounded to the upper 24 of their 32 bits."""
    bits = values.astype(np.float32).view(np.int32)
    return ((bits + 128) >> 8 << 8).astype(np.int32).view(np.float32).astype(np.float64)


@pytest.mark.parametrize("name", TRAVELS)
def test_floats_cut_to_three_bytes_miss_the_tolerance(name: str) -> None:
    exercise, reference = registry.find(name), registry.reference(name)
    case = judge_cases(exercise)[-1]
    for seed in range(10):
        made = cases.arguments(communication.whole(exercise), case, seed)
        given = {
            a.name: a.value.astype(np.float64) if a.value.dtype.kind == "f" else a.value
            for a in made
            if a.role == "in"
        }
        cut = {k: in_three_bytes(v) if k.startswith(TRAVELS[name]) else v for k, v in given.items()}
        right, found = reference(given, case.sizes), reference(cut, case.sizes)
        wrong = [
            np.abs(found[key] - right[key]) > exercise.atol + exercise.rtol * np.abs(right[key])
            for key in right
        ]
        assert any(map(np.any, wrong)), seed
