"""Every error of grading/ crosses processes whole."""

from __future__ import annotations

import pickle

import pytest

from gpulab.checks.refusals import Refused
from grading.core import errors

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]


@pytest.mark.parametrize("kind", [*KINDS, Refused])
def test_an_error_survives_pickling_with_its_text(kind: type[Exception]) -> None:
    error = pickle.loads(pickle.dumps(kind("what, where, why, what to do")))
    assert type(error) is kind and str(error) == "what, where, why, what to do"
