"""Races are found whether or not they go wrong, and so are results that depend on luck."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numba import float32

import gpulab
from gpulab import cuda
from gpulab.checks import Array, Case, Exercise, Shape, registry
from gpulab.checks.evidence import LaunchTrace

SUM = Exercise(
    name="toy.sum",
    lab="99",
    correct_points=2.0,
    cases=(Case("128", {"n": 128}),),
    evidence=LaunchTrace(
        arguments=lambda s: (Array("a", (128,), fill="uniform"), Array("out", (1,), role="out")),
        shape=lambda s: Shape((1,), (128,)),
    ),
    rtol=1e-5,
)


@cuda.jit
def with_barriers(a, out):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    s[t] = a[t]
    stride = 64
    while stride:
        cuda.syncthreads()
        if t < stride:
            s[t] += s[t + stride]
        stride //= 2
    if t == 0:
        out[0] = s[0]


@cuda.jit
def without_barriers(a, out):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    s[t] = a[t]
    stride = 64
    while stride:
        if t < stride:
            s[t] += s[t + stride]
        stride //= 2
    if t == 0:
        out[0] = s[0]


@cuda.jit
def waits_for_another_warp(a, out):
    """Right in lockstep: warp 0 sees what warp 3 has written, without a barrier in global memory."""
    t = cuda.threadIdx.x
    if t == 127:
        out[0] = a[0]
    if t == 0:
        total = float32(0)
        for i in range(1, 128):
            total += a[i]
        out[0] += total


def check(kernel: object) -> tuple[bool, str]:
    registry.add(SUM, lambda inputs, sizes: {"out": inputs["a"].sum(keepdims=True)})
    try:
        verdict = gpulab.check("toy.sum", kernel)
    finally:
        registry.remove("toy.sum")
    return verdict.passed, verdict.card().text(200)


def test_a_sum_with_its_barriers_passes() -> None:
    passed, text = check(with_barriers)
    assert passed, text


def test_a_race_is_reported_with_both_lines_both_threads_and_the_cure() -> None:
    passed, text = check(without_barriers)
    assert not passed
    assert "1 of 1 size, but only by the luck of the order in which things happen" in text
    assert "Race in kernel without_barriers, shared array `s`" in text
    assert "s[t] = a[t]" in text
    assert "s[t] += s[t + stride]" in text
    assert "Usual cure: cuda.syncthreads()" in text


def test_a_result_that_depends_on_the_order_of_warps_is_found_without_shared_memory() -> None:
    passed, text = check(waits_for_another_warp)
    assert not passed
    assert "At 128 `out[0]` is" in text
    assert "when they run one after the other. Which threads must wait for which?" in text


@cuda.jit
def adds_without_atomics(a, out):
    t = cuda.threadIdx.x
    if t == 0:
        out[0] = 0
    cuda.syncthreads()
    out[0] += a[t]


def test_a_wrong_result_comes_with_what_the_sanitizer_finds() -> None:
    passed, text = check(adds_without_atomics)
    assert not passed
    assert "Race in kernel adds_without_atomics, global array `out`" in text
    assert "Nothing orders the two accesses of line" in text


@cuda.jit
def leaves_before_the_barrier(a, out):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    s[t] = a[t]
    if t >= 64:
        return
    cuda.syncthreads()
    if t == 0:
        out[0] = s[0]


def test_a_wrong_result_without_a_race_comes_with_wrong_synchronisation() -> None:
    passed, text = check(leaves_before_the_barrier)
    assert not passed
    assert "64 of 128 threads of block (0, 0, 0) came" in text


@cuda.jit
def takes_two_barriers_for_one(a, out):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    s[t] = a[t]
    if t < 64:
        cuda.syncthreads()
    else:
        cuda.syncthreads()
    if t == 0:
        total = float32(0)
        for i in range(cuda.blockDim.x):
            total += s[i]
        out[0] = total


def test_barriers_on_two_lines_are_a_remark_that_costs_nothing() -> None:
    passed, text = check(takes_two_barriers_for_one)
    assert passed, text
    assert "Two barriers taken for one" in text


def sums_nothing(a, out):
    out[0] = 0 * a[0]


def test_nothing_is_added_where_the_sanitizer_finds_nothing() -> None:
    _, text = check(cuda.jit(sums_nothing))
    assert "should be" in text
    assert "Race" not in text


TWO_SIZES = replace(
    SUM,
    name="toy.sums",
    cases=(Case("32", {"n": 32}), Case("128", {"n": 128})),
    evidence=LaunchTrace(
        lambda s: (Array("a", (int(s["n"]),), fill="uniform"), Array("out", (1,), role="out")),
        lambda sizes: Shape((1,), (int(sizes["n"]),)),
    ),
)


@cuda.jit
def waits_for_its_warp_only(a, out):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    s[t] = a[t]
    cuda.syncwarp()
    if t == 0:
        total = float32(0)
        for i in range(cuda.blockDim.x):
            total += s[i]
        out[0] = total


def test_a_race_that_the_first_size_cannot_have_is_found_at_the_last() -> None:
    registry.add(TWO_SIZES, lambda inputs, sizes: {"out": inputs["a"].sum(keepdims=True)})
    try:
        verdict = gpulab.check("toy.sums", waits_for_its_warp_only)
    finally:
        registry.remove("toy.sums")
    text = verdict.card().text(200)
    assert not verdict.passed
    assert "Race in kernel waits_for_its_warp_only, shared array `s`" in text
    assert "Usual cure: cuda.syncthreads()" in text


@cuda.jit
def every_block_stores_its_number(a, out):
    """Right as long as the last block comes last."""
    if cuda.threadIdx.x == 0:
        out[0] = cuda.blockIdx.x


@cuda.jit
def the_first_block_stores_what_others_overwrite(a, out):
    """Right as long as the first block comes first."""
    if cuda.blockIdx.x == 0:
        out[0] = cuda.gridDim.x
    if cuda.threadIdx.x == 0 and cuda.blockIdx.x > 0:
        out[0] = cuda.gridDim.x - 1


@pytest.mark.parametrize("blocks", (2, 3, 4, 5, 32))
@pytest.mark.parametrize(
    "kernel", (every_block_stores_its_number, the_first_block_stores_what_others_overwrite)
)
def test_a_result_that_needs_the_first_block_first_or_the_last_one_last_fails(
    kernel: object, blocks: int
) -> None:
    numbered = replace(
        SUM,
        evidence=LaunchTrace(
            arguments=lambda s: (Array("a", (128,)), Array("out", (1,), role="out")),
            shape=lambda s: Shape((blocks,), (32,)),
        ),
    )
    registry.add(numbered, lambda inputs, sizes: {"out": np.array([blocks - 1], np.float32)})
    try:
        verdict = gpulab.check("toy.sum", kernel)
    finally:
        registry.remove("toy.sum")
    assert not verdict.passed
    assert "one after the other" in verdict.card().text(200)
