"""A register that a kernel reads before it writes it holds anything, as on a GPU, and not a convenient zero."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.simulator import ptx, simt

from .launching import element, kernel

BODY = f"""
    {element("out", size=16)}
    setp.eq.f32 %p1, %f1, 0f00000000;
    selp.b32 %r1, 1, 0, %p1;
    selp.b32 %r2, 1, 0, %p2;
    st.global.v4.u32 [%rd31], {{%r5, %f1, %r1, %r2}};
"""


def held(garbage: np.random.Generator | None) -> np.ndarray:
    memory = simt.Memory()
    out = memory.allocate(32 * 16)
    program = simt.load(ptx.parse(kernel(BODY)))
    simt.launch(program, (1, 1, 1), (32, 1, 1), out.address.to_bytes(8, "little"), memory, garbage=garbage)
    return out.data.view(np.uint32).reshape(32, 4)


def test_an_integer_is_minus_one_a_float_is_nan_and_a_predicate_is_true() -> None:
    integer, float_bits, is_zero, predicate = held(None)[0]
    assert integer == 0xFFFFFFFF
    assert np.isnan(np.uint32(float_bits).view(np.float32))
    assert (is_zero, predicate) == (0, 1)


@pytest.mark.parametrize("seed", range(4))
def test_a_judge_draws_what_it_is(seed: int) -> None:
    first, again, other = (held(np.random.default_rng(s))[0] for s in (seed, seed, seed + 100))
    assert np.array_equal(first, again)
    assert (first[:2] != other[:2]).all()
