"""Which global names a piece of Python binds and uses: what one cell of a notebook needs of others."""

from __future__ import annotations

import symtable


def bound_and_used(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """The global names that it binds, and those that it uses, in functions too; of what is no Python none."""
    try:
        table = symtable.symtable(source, "cell", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset(), frozenset()
    symbols = table.get_symbols()
    bound = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    used = {s.get_name() for s in symbols if s.is_referenced()}
    inner = list(table.get_children())
    while inner:
        scope = inner.pop()
        used |= {s.get_name() for s in scope.get_symbols() if s.is_global()}
        inner += scope.get_children()
    return frozenset(bound), frozenset(used)
