"""Copies of functions in which gpulab's stand-ins are replaced by what they stand for.

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


def with_real_names(
    fn: FunctionType, cc: Capability, on_copy: Callable[[FunctionType], None] = lambda copy: None
) -> FunctionType:
    """A copy of `fn` whose globals, closure cells and modules hold no stand-ins.

    `on_copy` gets the copy before its names are looked at, so that a function that calls itself can be found.
    """
    names = set(names_in(fn.__code__))
    scope = dict(fn.__globals__)
    cells = tuple(CellType() for _ in fn.__closure__ or ())
    copy = FunctionType(fn.__code__, scope, fn.__name__, fn.__defaults__, cells or None)
    copy.__kwdefaults__ = fn.__kwdefaults__
    copy.__qualname__, copy.__module__, copy.__doc__ = fn.__qualname__, fn.__module__, fn.__doc__
    on_copy(copy)
    find = _Finder(names, cc)
    scope.update({name: find.real(scope[name]) for name in names & scope.keys()})
    for old, new in zip(fn.__closure__ or (), cells, strict=True):
        with suppress(ValueError):  # an empty cell: its name is bound later, or never
            new.cell_contents = find.real(old.cell_contents)
    return copy


def names_in(code: CodeType) -> Iterator[str]:
    """All names that a function and the functions inside it use, attributes included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


class _Finder:
    """Finds what values stand for. Looks into modules only under `names`, those written in the function."""

    def __init__(self, names: set[str], cc: Capability):
        self.names, self.cc = names, cc
        self.modules: dict[ModuleType, ModuleType] = {}

    def real(self, value: Any) -> Any:
        if isinstance(value, ModuleType):
            return self.real_module(value)
        if type(value) is tuple:
            items = tuple(self.real(item) for item in value)
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        stands_for = getattr(type(value), "__stands_for__", None)
        return stands_for(value, self.cc) if stands_for else value

    def real_module(self, module: ModuleType) -> ModuleType:
        """numba.cuda for its face; for a helper module that holds stand-ins, a copy that holds none."""
        if module not in self.modules:
            self.modules[module] = module  # modules may hold each other
            contents = vars(module)
            if "__stands_for__" in contents:
                self.modules[module] = contents["__stands_for__"](self.cc)
            else:
                found = {name: self.real(contents[name]) for name in self.names & contents.keys()}
                if any(new is not contents[name] for name, new in found.items()):
                    copy = ModuleType(module.__name__, module.__doc__)
                    copy.__dict__.update(contents | found)
                    self.modules[module] = copy
        return self.modules[module]
