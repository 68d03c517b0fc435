"""What an answer uses of a learner's own cells, and what of these can be read without running the rest.

Definitions are read: functions, classes, imports, assignments to names. What tries them out is not. A name
that a loop makes, or that a statement changes which is no definition, would not have the value that it has in
the notebook, so it is not read.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from .global_names import bound_and_used

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
# Of all cells together; what is beyond is not read.
MOST_CHARACTERS = 100_000
MOST_STATEMENTS = 2_000


@dataclass
class Reading:
    """By the number of a cell: what is read of it (with its other lines empty), and the names that this binds
    and uses. `unread` are the names whose cell cannot be read, with its number."""

    sources: dict[int, str] = field(default_factory=dict)
    binds: dict[int, frozenset[str]] = field(default_factory=dict)
    uses: dict[int, frozenset[str]] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Statement:
    cell: int
    lines: range
    defines: bool
    binds: frozenset[str]
    uses: frozenset[str]
    changes: frozenset[str]  # names whose values it changes without binding them


def read(cells: Mapping[int, str], needed: Iterable[str]) -> Reading:
    """Read what gives the `needed` names their values, and what that needs in turn, out of cells by number.

    >>> read({3: "def helper(): pass\nhelper()"}, ["helper"]).sources
    {3: 'def helper(): pass\n'}
    """
    statements, left = list[_Statement](), MOST_CHARACTERS
    for number, source in cells.items():
        left -= len(source)
        if left >= 0:
            with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                statements += _statements(number, source, MOST_STATEMENTS - len(statements))
    spoiled = {n for s in statements for n in (s.changes if s.defines else s.binds | s.changes)}
    makes: dict[str, list[_Statement]] = {}
    for statement in statements:
        for name in statement.binds - spoiled if statement.defines else ():
            makes.setdefault(name, []).append(statement)
    wanted: set[str] = set()
    waiting = set(needed) - set(dir(builtins))
    while waiting:
        name = waiting.pop()
        wanted.add(name)
        waiting.update(*(s.uses - wanted for s in makes.get(name, ())))
    chosen = [s for s in statements if s.defines and s.binds & wanted - spoiled]
    found = Reading()
    for number, source in cells.items():
        if mine := [s for s in chosen if s.cell == number]:
            kept = {line for s in mine for line in s.lines}
            lines = source.split("\n")
            found.sources[number] = "\n".join(x if i in kept else "" for i, x in enumerate(lines, 1))
            found.binds[number] = frozenset().union(*(s.binds for s in mine))
            found.uses[number] = frozenset().union(*(s.uses for s in mine))
    given = frozenset().union(*found.binds.values())
    for s in statements:
        for name in (s.binds & wanted) - given:
            found.unread[name] = s.cell
    return found


def _statements(number: int, source: str, most: int) -> list[_Statement]:
    """The first statements of a cell. Raises SyntaxError and others for what is no Python."""
    if source.lstrip().startswith("%%"):
        return []
    text = re.sub(r"^([ \t]*+)[%!?].*$", r"\1pass", source, flags=re.MULTILINE)
    found = []
    for node in ast.parse(text).body[:most]:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        lines = range(first, (node.end_lineno or node.lineno) + 1)
        binds, uses = bound_and_used(ast.unparse(node))
        found.append(_Statement(number, lines, _defines(node), binds, uses, frozenset(_changed(node))))
    return found


def _defines(node: ast.stmt) -> bool:
    """Whether a statement does nothing but give names their values."""
    match node:
        case ast.Assign(targets=targets):
            return all(_is_name(target) for target in targets)
        case ast.AnnAssign(target=target):
            return _is_name(target)
        case ast.If(body=body, orelse=orelse):
            return all(map(_defines, [*body, *orelse]))
        case ast.Try(body=body, orelse=orelse, finalbody=last, handlers=handlers):
            return all(map(_defines, [*body, *orelse, *last, *(s for h in handlers for s in h.body)]))
    return isinstance(node, (*DEFINITIONS, ast.Pass))


def _is_name(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_is_name, target.elts))
    return isinstance(target, ast.Name)


def _changed(tree: ast.AST) -> Iterator[str]:
    """Names whose value a statement changes where it stands: ``a[0] = …``, ``a += …``, ``a.append(…)``."""
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return
    targets: list[ast.expr] = []
    match tree:
        case ast.Assign(targets=found):
            targets = [target for target in found if not isinstance(target, ast.Name)]
        case ast.AugAssign(target=target):
            targets = [target]
        case ast.Delete(targets=found):
            targets = found
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target))):
            targets = [target]
    for target in targets:
        while isinstance(target, ast.Attribute | ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id
    for node in ast.iter_child_nodes(tree):
        yield from _changed(node)
