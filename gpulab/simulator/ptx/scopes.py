"""Names inside a function. A ``{ … }`` may declare a name again; outside the parser every name is unique."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .ir import Operand, Register, Symbol

_TRAILING_DIGITS = re.compile(r"\d+\Z", re.ASCII)


@dataclass(slots=True)
class Registry:
    """What all scopes of one function share; `outside` are the names in use that the module must declare."""

    registers: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)
    scopes: int = 0


@dataclass(slots=True)
class Scope:
    """The names declared between one pair of braces.

    `ranges` holds ``%r<19>`` as prefix → (19, type), `singles` a register → its type; both enter `names` when
    first used. `known` remembers the operands already read in this scope by their text.
    """

    registry: Registry
    parent: Scope | None = None
    number: int = 0
    names: dict[str, Register | Symbol] = field(default_factory=dict)
    ranges: dict[str, tuple[int, str]] = field(default_factory=dict)
    singles: dict[str, str] = field(default_factory=dict)
    known: dict[str, Operand] = field(default_factory=dict)


def open_scope(parent: Scope) -> Scope:
    parent.registry.scopes += 1
    return Scope(parent.registry, parent, parent.registry.scopes)


def declare_symbol(scope: Scope, name: str) -> str | None:
    """Enter a variable, parameter or label; returns its unique name, or None if the scope has the name."""
    if name in scope.names or name in scope.singles:
        return None
    unique = _unique_name(scope, name)
    scope.names[name] = Symbol(unique)
    return unique


def declare_register(scope: Scope, name: str, type_: str) -> bool:
    """Enter one register; False if the scope has the name already."""
    if name in scope.names or name in scope.singles:
        return False
    scope.singles[name] = type_
    return True


def look_up(scope: Scope, name: str) -> Register | Symbol | None:
    """What `name` means in `scope`, or None if nothing inside the function has this name."""
    inner: Scope | None = scope
    while inner is not None:
        found = inner.names.get(name) or _first_use(inner, name)
        if found is not None:
            return found
        inner = inner.parent
    return None


def _first_use(scope: Scope, name: str) -> Register | None:
    type_ = scope.singles.get(name) or _type_from_ranges(scope.ranges, name)
    if type_ is None:
        return None
    register = Register(_unique_name(scope, name))
    scope.registry.registers[register.name] = type_
    scope.names[name] = register
    return register


def _type_from_ranges(ranges: dict[str, tuple[int, str]], name: str) -> str | None:
    digits = _TRAILING_DIGITS.search(name)
    if digits is None or not ranges:
        return None
    # A prefix may itself end in digits (`%r1<10>`), so every split of the digits is tried.
    for split in range(digits.start(), min(len(name), digits.start() + 20)):
        number = name[split:]
        if len(number) <= 10 and (number == "0" or number[0] != "0"):
            count, type_ = ranges.get(name[:split], (0, ""))
            if int(number) < count:
                return type_
    return None


def _unique_name(scope: Scope, name: str) -> str:
    taken = scope.registry.taken
    unique = name
    while unique in taken:
        unique = f"{unique}${scope.number}"
    taken.add(unique)
    return unique
