"""Something to do when a program has imported a package: importing it before would cost seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def once_imported(package: str, then: Callable[[], Any]) -> None:
    """Call `then` when the package has been imported; at once if it has been already."""
    if package in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Waiting(package, then))


class _Waiting(MetaPathFinder):
    """Finds the package as others do, and is gone; its loader does what was wanted, when it has loaded."""

    def __init__(self, package: str, then: Callable[[], Any]):
        self.package, self.then = package, then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.package:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_then(module: ModuleType) -> None:
            load(module)
            self.then()

        spec.loader.exec_module = load_and_then  # type: ignore[method-assign]
        return spec
