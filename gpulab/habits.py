"""Imports typed out of habit lead to our faces: ``from numba import cuda`` means ``from gpulab import cuda``.

Only in a notebook, at a prompt and in answers that were handed in; under ``gpulab run`` in the whole program.
All other code, above all our own, which compiles with numba's real compiler, gets what it asks for. On a
machine with a GPU the faces are the real packages, so nothing changes there.

>>> from numba import cuda  # in a notebook, after `import gpulab`
>>> cuda.jit.__module__
'gpulab.frontends.cuda.kernels'
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

FACES = {"cupy": "gpulab.cupy", "cupyx": "gpulab.cupyx", "triton": "gpulab.triton"}
# Faces that are the real package: it is what the statement gets, tied to the simulated device first.
TIED = {"cutlass": "gpulab.cutlass", "cuda.tile": "gpulab.tile"}
TIED_PACKAGES = {name.partition(".")[0] for name in TIED}
LED = frozenset({"numba", *FACES, *TIED_PACKAGES})  # packages of which we lead an import to something else
_import = builtins.__import__  # Python's own, or whoever's came before


def typed_by_a_learner(names: Mapping[str, Any] | None) -> bool:
    """Whether code with these global names is of a notebook: of the main module, which is no file."""
    return names is not None and names.get("__name__") == "__main__" and "__file__" not in names


_whose: Callable[[Mapping[str, Any] | None], bool] = typed_by_a_learner


def install(whose: Callable[[Mapping[str, Any] | None], bool] = typed_by_a_learner) -> None:
    """Redirect the imports of that code for whose global names `whose` is true."""
    global _import, _whose
    _whose = whose
    if builtins.__import__ is not _redirected:
        _import = builtins.__import__
        builtins.__import__ = _redirected


def has_face(name: str) -> bool:
    """Whether the module of that name, such as ``triton.language``, belongs to a package that has a face."""
    package, _, rest = name.partition(".")
    return package in FACES or (package == "numba" and rest.partition(".")[0] in ("", "cuda"))


def face_of(name: str) -> Any:
    """The module that a name with a face leads to. Raises ModuleNotFoundError."""
    package, _, rest = name.partition(".")
    face = _numba() if package == "numba" else importlib.import_module(FACES[package])
    return _inside(face, rest, name)


def _redirected(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """What an import statement calls. Raises ImportError, as ever."""
    package, _, rest = name.partition(".")
    if level or package not in LED or not _whose(globals):  # nearly all imports
        return _import(name, globals, locals, fromlist or (), level)
    if package in TIED_PACKAGES:
        asked = {name, *(f"{name}.{part}" for part in fromlist or ())}
        for real, tied in TIED.items():
            if any(f"{one}.".startswith(f"{real}.") for one in asked):
                importlib.import_module(tied)
    if package == "cuda":
        return _bindings(name, rest, _import(name, globals, locals, fromlist or (), level), fromlist)
    if package in FACES or (package == "numba" and rest.partition(".")[0] == "cuda"):
        found = face_of(name)
        _import_parts(found, name, fromlist or ())
        return found if fromlist else face_of(package)
    found = _import(name, globals, locals, fromlist or (), level)
    return _numba() if found.__name__ == "numba" else found


def _import_parts(found: Any, name: str, parts: Sequence[str]) -> None:
    """As Python does for ``from name import part``: a part that is no attribute may be a module."""
    for part in parts:
        if part != "*" and isinstance(found, ModuleType) and not hasattr(found, part):
            with suppress(ModuleNotFoundError):
                face_of(f"{name}.{part}")


def _bindings(name: str, rest: str, found: Any, fromlist: Sequence[str] | None) -> Any:
    """What an import from the package ``cuda`` gives, `found` by Python: tensor maps are ours to make where
    there is no driver."""
    from gpulab.simulator.device import uses_gpu

    if uses_gpu() or rest.partition(".")[0] not in ("bindings", ""):
        return found
    ours = importlib.import_module("gpulab.frontends.cupy.tensor_maps")
    if not fromlist:
        return _Package(found, bindings=ours.bindings)
    if rest == "bindings":
        return ours.bindings
    if rest == "bindings.driver":
        return ours.driver
    return _Package(found, bindings=ours.bindings) if not rest else found


class _Package(ModuleType):
    """A package as a learner's code sees it: some of its modules are ours."""

    def __init__(self, real: Any, **ours: Any) -> None:
        super().__init__(real.__name__, real.__doc__)
        self.__dict__.update(ours, _real=real)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


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
