"""Imports typed out of habit lead to our faces: ``from numba import cuda`` means ``from gpulab import cuda``.

Only in a notebook, at a prompt and in answers that were handed in. All other code, above all our own, which
compiles with numba's real compiler, gets what it asks for. On a machine with a GPU the faces are the real
packages, so nothing changes there.

>>> from numba import cuda  # in a notebook, after `import gpulab`
>>> cuda.jit.__module__
'gpulab.frontends.cuda.kernels'
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

FACES = {"cupy": "gpulab.cupy", "cupyx": "gpulab.cupyx", "triton": "gpulab.triton"}
# Faces that are the real package: it is what the statement gets, tied to the simulated device first.
TIED = {"cutlass": "gpulab.cutlass", "cuda.tile": "gpulab.tile"}
_import = builtins.__import__  # Python's own, or whoever's came before


def typed_by_a_learner(names: Mapping[str, Any] | None) -> bool:
    """Whether code with these global names is of a notebook: of the main module, which is no file."""
    return names is not None and names.get("__name__") == "__main__" and "__file__" not in names


def install() -> None:
    """Redirect the imports of learners' code, once."""
    if builtins.__import__ is not _redirected:
        global _import
        _import = builtins.__import__
        builtins.__import__ = _redirected


def _redirected(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """What an import statement calls. Raises ImportError, as ever."""
    package, _, rest = name.partition(".")
    if not level and typed_by_a_learner(globals):
        asked = {name, *(f"{name}.{part}" for part in fromlist or ())}
        for real, tied in TIED.items():
            if any(f"{one}.".startswith(f"{real}.") for one in asked):
                importlib.import_module(tied)
    if level or not (package == "numba" or package in FACES) or not typed_by_a_learner(globals):
        return _import(name, globals, locals, fromlist or (), level)
    if package in FACES:
        face = importlib.import_module(FACES[package])
        found = _inside(face, rest, name)
        return found if fromlist else face
    if rest.partition(".")[0] == "cuda":
        found = _inside(_numba(), rest, name)
        return found if fromlist else _numba()
    found = _import(name, globals, locals, fromlist or (), level)
    return _numba() if found.__name__ == "numba" else found


def _inside(face: ModuleType, path: str, name: str) -> Any:
    """The submodule of a face at a path with dots. Raises ModuleNotFoundError."""
    found: Any = face
    for part in filter(None, path.split(".")):
        if not hasattr(found, part) and isinstance(found, ModuleType):
            try:
                importlib.import_module(f"{found.__name__}.{part}")
            except ImportError:
                raise ModuleNotFoundError(f"No module named {name!r} in gpulab", name=name) from None
        found = getattr(found, part)
    return found


class _Numba(ModuleType):
    """numba as a learner's code sees it: `cuda` in it is our face, and all else numba's own."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("numba"), name)


_made: list[_Numba] = []


def _numba() -> ModuleType:
    if not _made:
        real = importlib.import_module("numba")
        made = _Numba("numba", real.__doc__)
        made.__dict__.update(
            cuda=importlib.import_module("gpulab.cuda"),
            __path__=real.__path__,
            __spec__=real.__spec__,
            __file__=real.__file__,
            __version__=real.__version__,
            __stands_for__=lambda cc: real,  # in a kernel numba's compiler must meet numba itself
        )
        _made.append(made)
    return _made[0]
