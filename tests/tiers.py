"""How a long list of cases is divided between `make test` and `make test-all`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import pytest


def first_of_each(
    values: Iterable[Any], kind: Callable[[Any], Hashable], name: Callable[[Any], str], first: int = 1
) -> Iterator[Any]:
    """Parameters of a test: `make test` runs the `first` values of each kind, and `make test-all` runs all.

    `kind` says which values go through the same code, `name` what pytest calls a value. A tuple is the values of
    several parameters.
    """
    seen: Counter[Hashable] = Counter()
    for value in values:
        group = kind(value)
        seen[group] += 1
        marks = [pytest.mark.slow] if seen[group] > first else []
        yield pytest.param(*(value if type(value) is tuple else (value,)), id=name(value), marks=marks)
