"""Arguments as a learner's code gets them."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.checks import launching


@pytest.mark.parametrize(
    ("value", "type_"), [(np.int64(1), int), (np.float64(0.5), float), (np.bool_(1), bool)]
)
def test_host_code_gets_pythons_own_numbers_which_alone_may_be_a_constexpr(value, type_):
    assert type(launching.scalar(value, "cuda")) is type_


@pytest.mark.parametrize(("value", "face"), [(np.float32(0.5), "cuda"), (np.int64(1), "cupy")])
def test_numbers_whose_type_says_more_keep_it(value, face):
    assert launching.scalar(value, face) is value
