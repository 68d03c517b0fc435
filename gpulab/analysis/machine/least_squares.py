"""Least squares with unknowns that are not negative."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

EXCHANGES = 3  # of many unknowns at once that may fail to help, before one at a time changes sides
SMALL = 1e-9
RIDGE = 1e-12  # of the mean square of a column


def nonnegative(rows: Array, wanted: Array) -> Array:
    """The x ≥ 0, shape (n,), that makes ``rows @ x`` nearest to `wanted`; `rows` has shape (m, n), `wanted`
    (m,), both float64.

    Unknowns are split into those that are zero and those that are free, until no free one comes out negative
    and no zero one would help if it were free: block principal pivoting (J. Kim and H. Park, Fast
    Nonnegative Matrix Factorization: An Active-Set-Like Method and Comparisons, SIAM Journal on Scientific
    Computing 33, 2011, section 3.1).

    >>> nonnegative(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, -3.0])).round(6).tolist()
    [2.0, 0.0]
    """
    square, right = rows.T @ rows, rows.T @ wanted
    square += RIDGE * np.trace(square) / len(square) * np.eye(len(square))  # what no row has becomes zero
    small = SMALL * max(float(np.abs(right).max()), 1.0)
    free = np.ones(len(square), np.bool_)
    fewest, left = len(square) + 1, EXCHANGES
    while True:
        x = np.zeros(len(square))
        x[free] = np.linalg.solve(square[np.ix_(free, free)], right[free])
        wrong = np.where(free, x < -SMALL, square @ x - right < -small)
        if not wrong.any():
            return np.maximum(x, 0.0)
        if wrong.sum() < fewest:
            fewest, left = int(wrong.sum()), EXCHANGES
        elif left:
            left -= 1
        else:  # Murty's rule, which ends: only the last one
            wrong[: np.flatnonzero(wrong)[-1]] = False
        free ^= wrong
