"""What a public function says of itself: what it takes, and an example that runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from tools.site.interfaces import MODULES


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions that the public packages list in `__all__`, each once."""
    seen: set[Callable[..., Any]] = set()
    for package in MODULES:
        module = importlib.import_module(package)
        for name in module.__all__:
            found = inspect.unwrap(getattr(module, name)) if callable(getattr(module, name)) else None
            if inspect.isfunction(found) and found not in seen:
                seen.add(found)
                yield f"{package}.{name}", found


PUBLIC = dict(functions())


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_function_names_each_of_its_parameters(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    silent = [
        parameter.name
        for parameter in inspect.signature(PUBLIC[name]).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if not re.search(rf"\b{parameter.name}\b", text)
    ]
    assert not silent, f"the docstring of {name} does not say what {', '.join(silent)} is"


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_function_has_an_example_that_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    package = importlib.import_module(name.rpartition(".")[0])
    names = {"gpulab": gpulab, "np": np, "cuda": cuda} | vars(package) | vars(inspect.getmodule(PUBLIC[name]))
    text = inspect.getdoc(PUBLIC[name]) or ""
    example = doctest.DocTestParser().get_doctest(text, dict(names), name, None, None)
    assert example.examples, f"the docstring of {name} has no example"
    said: list[str] = []
    result = doctest.DocTestRunner().run(example, out=said.append)
    assert result.failed == 0, "".join(said)
