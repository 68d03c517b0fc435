"""Python source to syntax trees, from any thread."""

from __future__ import annotations

import ast
import threading

_PARSING = threading.RLock()  # held again where a collection of garbage in the middle of it parses, too


def parse(source: str, file: str = "<unknown>") -> ast.Module:
    """`ast.parse`, one thread at a time.

    CPython 3.11 keeps the depth of the tree that it builds in one place for all threads. Two that build at
    once may find it changed, and fail with "SystemError: AST constructor recursion depth mismatch" on good
    source.
    Raises what `ast.parse` raises: SyntaxError, ValueError, RecursionError, MemoryError.

    >>> ast.unparse(parse("x  =  1"))
    'x = 1'
    """
    with _PARSING:
        return ast.parse(source, file)
