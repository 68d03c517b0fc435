"""Which global names a piece of Python binds and uses: what one cell of a notebook needs of others."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator, Sequence

from .syntax_trees import parse

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def bound_and_used(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """The global names that it binds, and those that it uses, in functions too; of what is no Python none."""
    try:
        table = symtable.symtable(source, "cell", "exec")
        used = set(_counted_up(parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset(), frozenset()
    symbols = table.get_symbols()
    bound = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    used |= {s.get_name() for s in symbols if s.is_referenced()}
    inner = list(table.get_children())
    while inner:
        scope = inner.pop()
        used |= {s.get_name() for s in scope.get_symbols() if s.is_global()}
        inner += scope.get_children()
    return frozenset(bound), frozenset(used)


def _counted_up(tree: ast.AST) -> Iterator[str]:
    """The names in ``name += …`` outside of functions, which `symtable` takes for bound alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        if not isinstance(node, SCOPES):
            yield from _counted_up(node)


def used_in_functions(source: str) -> frozenset[str]:
    """The global names that its functions and classes use: not when it runs, but when they are called."""
    return frozenset().union(*(bound_and_used(ast.unparse(node))[1] for node in _outermost(parse(source))))


def _outermost(tree: ast.AST) -> Iterator[ast.AST]:
    """Functions and classes; not those in others, for which the others' names are no global ones."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, SCOPES):
            yield node
        else:
            yield from _outermost(node)


def needed_before(statements: Sequence[ast.stmt], after: Iterable[str]) -> frozenset[str]:
    """The global names that must have a value before statements run, if those of `after` must after them.

    What they are certain to bind is not needed for its own sake. A loop may run not at all, and a handler
    begin anywhere.
    """
    live = frozenset(after)
    for statement in reversed(statements):
        live = _before(statement, live)
    return live


def _before(node: ast.stmt, live: frozenset[str]) -> frozenset[str]:
    match node:
        case ast.If(test=test, body=body, orelse=orelse):
            return _used(test) | needed_before(body, live) | needed_before(orelse, live)
        case ast.For(target=target, iter=over, body=body, orelse=orelse):
            bound, used = _names(target)
            head = live | needed_before(orelse, live) | used
            head |= needed_before(body, head) - bound
            return _used(over) | head | (needed_before(body, head) - bound)
        case ast.While(test=test, body=body, orelse=orelse):
            head = live | needed_before(orelse, live) | _used(test)
            head |= needed_before(body, head)
            return head | needed_before(body, head)
        case ast.With(items=items, body=body):
            inside = needed_before(body, live)
            for item in reversed(items):
                bound, used = _names(item.optional_vars) if item.optional_vars else _NONE
                inside = (inside - bound) | used | _used(item.context_expr)
            return inside
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody):
            end = live | needed_before(finalbody, live)
            caught = [needed_before(h.body, end) - {h.name} for h in handlers]
            types = [_used(h.type) for h in handlers if h.type]
            return end.union(needed_before([*body, *orelse], end), *caught, *types)
        case ast.Match():
            return live | bound_and_used(ast.unparse(node))[1]
    bound, used = bound_and_used(ast.unparse(node))
    if isinstance(node, ast.Delete):
        return live | bound | used
    return (live - bound) | used


_NONE: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())


def _names(target: ast.expr) -> tuple[frozenset[str], frozenset[str]]:
    """What a target binds, and what it uses: an element of an array is no name."""
    return bound_and_used(f"{ast.unparse(target)} = 0")


def _used(expression: ast.expr) -> frozenset[str]:
    return bound_and_used(ast.unparse(expression))[1]
