"""Least squares without negative unknowns, held to the conditions that every solution meets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpulab.analysis.machine.least_squares import nonnegative


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_no_unknown_is_negative_and_none_could_be_better(m, n, seed):
    """Karush, Kuhn and Tucker: where an unknown is positive, the slope is zero; where it is zero, up."""
    rng = np.random.default_rng(seed)
    rows, wanted = rng.standard_normal((m, n)), rng.standard_normal(m)
    x = nonnegative(rows, wanted)
    slope = rows.T @ (rows @ x - wanted)
    assert (x >= 0).all()
    assert (slope >= -1e-6).all()
    assert np.abs(slope[x > 1e-9]).max(initial=0.0) < 1e-6


def test_a_positive_solution_of_equations_is_found():
    rows = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    assert np.allclose(nonnegative(rows, rows @ [1.0, 2.0, 3.0]), [1.0, 2.0, 3.0])


def test_an_unknown_that_no_row_has_is_zero():
    assert np.allclose(nonnegative(np.array([[2.0, 0.0]]), np.array([4.0])), [2.0, 0.0])
