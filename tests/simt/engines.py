"""Runs the tests of a module twice: loads, stores and counts by NumPy, and compiled ones from the first lane on.

from .engines import each_engine as each_engine
"""

from __future__ import annotations

import sys

import pytest

from gpulab.simulator.simt import compiled


@pytest.fixture(scope="module", autouse=True, params=["numpy", "compiled"])
def each_engine(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_accesses", sys.maxsize)
        patch.setattr(compiled, "BY_NUMPY", request.param == "numpy")
        yield request.param
