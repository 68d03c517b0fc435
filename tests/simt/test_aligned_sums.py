"""Sums of tensor cores: the compiled ones against NumPy's, bit for bit, and each operand by its own type."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator.simt import aligned_sums, compiled
from gpulab.simulator.simt.aligned_sums import fused_sum, powers, rounded_sum
from gpulab.simulator.simt.matrix import ELEMENTS, matrix_product

from .warpgroup_model import one_sum

WORDS = {"f16": np.uint16, "bf16": np.uint16, "tf32": np.uint32, "e4m3": np.uint8, "e5m2": np.uint8}


def operand(rng, type_, shape):
    """Any bits of a type, infinities and NaN among them."""
    words = rng.integers(0, np.iinfo(WORDS[type_]).max, shape, WORDS[type_], endpoint=True)
    return ELEMENTS[type_].decode(words)


@pytest.fixture
def engine(monkeypatch):
    """Chooses who adds, whatever has been added before."""

    def choose(name):
        monkeypatch.setattr(compiled, "_products", compiled.SUMS_WORTH_COMPILING)
        monkeypatch.setattr(compiled, "BY_NUMPY", name == "numpy")

    return choose


@given(
    st.sampled_from(list(WORDS)),
    st.sampled_from(["f16", "f32"]),
    st.sampled_from([13, 23, 24, 25]),
    st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(1, 40)),
    st.integers(0, 2**32),
)
def test_a_compiled_sum_is_numpys_bit_for_bit(type_, d_type, bits, shape, seed):
    rng, (m, n, k) = np.random.default_rng(seed), shape
    a, b = operand(rng, type_, (2, m, k)), operand(rng, type_, (1, n, k))
    c = rng.standard_normal((2, m, n)).astype(np.float32).astype(np.float64)
    if seed % 2:  # without infinities the whole sum counts
        a, b = (np.where(np.isfinite(x), x, 0) for x in (a, b))
    smallest = ELEMENTS[type_].smallest_exponent
    with np.errstate(all="ignore"):
        of = powers(a, smallest), powers(b, smallest)
        top = aligned_sums.sum_powers(c, d_type)
        ours = compiled.aligned_sum()(a, b, c, *of, top, steps=2.0**bits)
        numpys = aligned_sums._sum_by_columns(a, b, c, *of, top, bits)
    finite = np.isfinite(numpys)
    assert finite.all() or not seed % 2
    np.testing.assert_array_equal(ours[finite], numpys[finite])


@pytest.mark.parametrize("name", ["numpy", "compiled"])
def test_infinities_and_nan_go_through_a_sum(engine, name):
    engine(name)
    a = np.array([[1.0, np.inf], [np.nan, 1], [1, 1]])
    b, c = np.array([[1.0, 1]]), np.array([[0.0], [0], [-np.inf]])
    of = powers(a, -14), powers(b, -14)
    found = rounded_sum(fused_sum(a, b, c, *of, "f32", 25), "f32")
    np.testing.assert_array_equal(found[:, 0], np.array([np.inf, np.nan, -np.inf], np.float32))


def test_sums_are_compiled_only_when_many_have_come_and_never_against_the_users_wish(engine, monkeypatch):
    monkeypatch.setattr(compiled, "_products", 0)
    monkeypatch.setattr(compiled, "BY_NUMPY", False)
    assert not compiled.are_sums_worth_compiling(1000)
    assert compiled.are_sums_worth_compiling(compiled.SUMS_WORTH_COMPILING)
    engine("numpy")
    assert not compiled.are_sums_worth_compiling(1)
    assert not compiled.is_worth_compiling(2 * compiled.WORTH_COMPILING)


def test_the_environment_chooses_numpy_for_a_whole_process():
    asks = "from gpulab.simulator.simt import compiled; print(compiled.is_worth_compiling(10**9))"
    for engine, compiles in (("numpy", "False"), ("", "True")):
        command = [sys.executable, "-c", asks]
        environment = {**os.environ, "GPULAB_ENGINE": engine}
        found = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert found.stdout.strip() == compiles


@pytest.mark.parametrize("types", [("e4m3", "e5m2"), ("e5m2", "e4m3")])
def test_each_operand_is_aligned_by_the_smallest_exponent_of_its_own_type(types):
    """Denormals of e5m2 reach further down than those of e4m3: less is cut off what they are added to."""
    rng = np.random.default_rng(1)
    small = [rng.integers(0, 4, (size, 32), np.uint8) for size in (16, 8)]
    a, b = (ELEMENTS[t].decode(w) for t, w in zip(types, small, strict=True))
    c = (rng.random((16, 8), np.float32) * 2.0**-22).astype(np.float32).astype(np.float64)
    of = tuple(ELEMENTS[t] for t in types)
    found = matrix_product(a, b, c, of, np.dtype("f4"), "sm_90a", wide_row=64)
    smallest = (of[0].smallest_exponent, of[1].smallest_exponent, -126)
    for i in range(16):
        for j in range(8):
            exact = one_sum(a[i].tolist(), b[j].tolist(), float(c[i, j]), smallest, "f32", fp8=False)
            assert float(found[i, j]) == exact
