"""Copies of functions in which some of the names mean something else.

numba recognises `cuda.shared`, `cuda.grid` … by identity, so a kernel whose global `cuda` is gpulab's face
does not compile. Its copy does, in which that global is numba.cuda. A stand-in is an object or a module
with a function ``__stands_for__(cc)`` that returns the real thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from .kernel import Capability

Replace = Callable[[Any], Any]


def with_real_names(
    fn: FunctionType, cc: Capability, on_copy: Callable[[FunctionType], None] | None = None
) -> FunctionType:
    """A copy of `fn` whose globals, closure cells and modules hold no stand-ins."""

    def replace(value: Any) -> Any:
        holder = value if isinstance(value, ModuleType) else type(value)
        stands_for = vars(holder).get("__stands_for__")
        if stands_for is None:
            return value
        return stands_for(cc) if holder is value else stands_for(value, cc)

    return copy_with(fn, replace, on_copy)


def copy_with(
    fn: FunctionType, replace: Replace, on_copy: Callable[[FunctionType], None] | None = None
) -> FunctionType:
    """A copy of `fn` in which `replace` has been applied to every value that its names lead to.

    `on_copy` is called with the copy before its names are looked up, so that a function that calls itself can
    be found.

    >>> def price():
    ...     return np.pi
    >>> copy_with(price, lambda value: 3 if value == np.pi else value)()
    3
    """
    names = set(names_in(fn.__code__))
    scope = dict(fn.__globals__)
    cells = tuple(CellType() for _ in fn.__closure__ or ())
    copy = FunctionType(fn.__code__, scope, fn.__name__, fn.__defaults__, cells or None)
    copy.__kwdefaults__ = fn.__kwdefaults__
    copy.__qualname__, copy.__module__, copy.__doc__ = fn.__qualname__, fn.__module__, fn.__doc__
    if on_copy is not None:
        on_copy(copy)
    find = _Finder(names, replace)
    scope.update({name: find(scope[name]) for name in names & scope.keys()})
    for old, new in zip(fn.__closure__ or (), cells, strict=True):
        with suppress(ValueError):  # an empty cell: its name is bound later, or never
            new.cell_contents = find(old.cell_contents)
    return copy


def names_in(code: CodeType) -> Iterator[str]:
    """All names that a function and the functions inside it use, attributes included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


class _Finder:
    """Applies `replace` to a value, to what tuples hold, and to what modules hold under `names`.

    Those are the names written in the function, so that no module is searched for what is not used.
    """

    def __init__(self, names: set[str], replace: Replace):
        self.names, self.replace = names, replace
        self.modules: dict[ModuleType, Any] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, ModuleType):
            return self.module(value)
        if type(value) is tuple:
            items = tuple(map(self, value))
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        return self.replace(value)

    def module(self, module: ModuleType) -> Any:
        """The replacement for a module; a helper module that contains something to replace is copied."""
        if module not in self.modules:
            self.modules[module] = module  # modules may hold each other
            new = self.replace(module)
            if new is module:
                contents = vars(module)
                found = {name: self(contents[name]) for name in self.names & contents.keys()}
                if any(value is not contents[name] for name, value in found.items()):
                    new = ModuleType(module.__name__, module.__doc__)
                    new.__dict__.update(contents | found)
            self.modules[module] = new
        return self.modules[module]
