"""PTX text → `Module`. A rule takes the text and a position and returns the position after what it read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .declarations import SPACES, parse_parameters, parse_variables, parse_word
from .functions import parse_body
from .ir import Function, Module, Variable
from .literals import starts_number
from .operands import parse_integer
from .text import (
    blank_comments,
    blank_locations_of_assembly,
    error_at,
    found_at,
    parse_name,
    skip_blanks,
    skip_past,
)

_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d{1,9})[ \t]+"([^"\n]*)"', re.ASCII | re.MULTILINE)
_VERSION = re.compile(r"(\d[\d.]*)", re.ASCII)
_TARGET = re.compile(r"(\w+)(?:\s*,\s*\w+)*", re.ASCII)
_REST_OF_LINE = re.compile(r"([^\n]*)")
_SECTION = re.compile(r"\.section\s+[.\w]+\s*\{[^}]*\}", re.ASCII)
# What cuTile compiled on the way, as text, which may hold braces and anything else.
_INTERMEDIATE = re.compile(r"\{(?:[^{}]*\{.*?\.source_end\s*\})*\s*\}", re.DOTALL)
_LINKAGES = frozenset({"visible", "weak", "extern", "common"})
_SKIPPED_TO_SEMICOLON = frozenset({"pragma", "alias"})


@dataclass(slots=True)
class _Parts:
    """A module in the making. `outside` maps a name to the place where a function uses it."""

    files: dict[int, str]
    version: str = ""
    target: str = ""
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    outside: dict[str, tuple[int, int]] = field(default_factory=dict)


def parse(text: str) -> Module:
    """Read the PTX in `text` as a module, as numba, NVRTC and Triton emit it.

    Any ``.version`` is accepted. Raises PtxError, with the line, for anything that cannot be read.

    >>> module = parse(".version 8.0 .target sm_80 .address_size 64 .visible .entry stop() { ret; }")
    >>> module.functions["stop"].blocks[0].instructions[0].opcode
    'ret'
    """
    source = blank_comments(blank_locations_of_assembly(text))
    # A compiler may put `.file` after the functions that name it, so these come first.
    parts = _Parts({int(number): path for number, path in _FILE.findall(source)})
    position = skip_blanks(source, 0)
    while position < len(source):
        position = skip_blanks(source, _directive_rule(source, position, parts))
    _check_outside(source, parts)
    return Module(parts.version, parts.target, parts.files, parts.variables, parts.functions)


def _directive_rule(source: str, position: int, parts: _Parts) -> int:
    start = position
    position, word = parse_word(source, position)
    linkages = set()
    while word in _LINKAGES:
        linkages.add(word)
        position, word = parse_word(source, position)
    if word in ("entry", "func"):
        return _function_rule(source, position, word == "entry", parts)
    if word in SPACES:
        position, variables = parse_variables(source, position, word, "extern" in linkages)
        for variable in variables:
            _add_variable(parts, variable)
            for _, symbol in variable.pointers:
                parts.outside.setdefault(symbol.name, (start, position))
        return position
    if word == "version":
        position, parts.version = _match_rule(_VERSION, source, position)
    elif word == "target":
        position, parts.target = _match_rule(_TARGET, source, position)
    elif word == "address_size":
        position, _ = parse_integer(source, position)
    elif word in ("file", "loc"):
        position = _match_rule(_REST_OF_LINE, source, position)[0]
    elif word in _SKIPPED_TO_SEMICOLON:
        position = skip_past(source, position, ";")
    elif word == "nv_intermediate_source_section":
        match = _INTERMEDIATE.match(source, position)
        if match is None:
            raise error_at(source, start, "expected blocks of code that end with `.source_end`")
        position = match.end()
    elif word == "section":
        match = _SECTION.match(source, start)
        if match is None:
            raise error_at(source, start, "expected a section of the form `.section .name { … }`")
        position = match.end()
    else:
        raise error_at(source, start, f"`.{word}` is not known outside a function")
    return position


def _match_rule(pattern: re.Pattern[str], source: str, position: int) -> tuple[int, str]:
    """What the pattern's group matches at `position`."""
    match = pattern.match(source, position)
    if match is None:
        raise error_at(source, position, f"expected a version or target, found {found_at(source, position)}")
    return match.end(), match.group(1)


def _add_variable(parts: _Parts, variable: Variable) -> None:
    """A variable may be declared ``.extern`` and defined later."""
    known = parts.variables.get(variable.name)
    if known is None or known.extern:
        parts.variables[variable.name] = variable


def _function_rule(source: str, position: int, entry: bool, parts: _Parts) -> int:
    start = position
    returns: tuple[Variable, ...] = ()
    parameters: tuple[Variable, ...] = ()
    if source.startswith("(", position):
        position, returns = parse_parameters(source, position)
    position, name = parse_name(source, skip_blanks(source, position))
    position = skip_blanks(source, position)
    if source.startswith("(", position):
        position, parameters = parse_parameters(source, position)
    position, directives = _parse_directives(source, position)
    signature = Function(name, entry, parameters, returns, directives=directives, extern=True)
    if source.startswith(";", position):
        parts.functions.setdefault(name, signature)
        return position + 1
    if not source.startswith("{", position):
        raise error_at(
            source, position, f"expected the body of `{name}` but found {found_at(source, position)}"
        )
    known = parts.functions.get(name)
    if known is not None and not known.extern:
        raise error_at(source, start, f"the function `{name}` is defined twice")
    end, parts.functions[name], outside = parse_body(source, position, signature, parts.files)
    for used in outside:
        parts.outside.setdefault(used, (position, end))
    return end


def _parse_directives(source: str, position: int) -> tuple[int, dict[str, tuple[int, ...]]]:
    """``.maxntid 128, 1, 1`` and its like between a function's parameters and its body."""
    directives: dict[str, tuple[int, ...]] = {}
    position = skip_blanks(source, position)
    while source.startswith(".", position):
        position, word = parse_word(source, position)
        if word == "pragma":
            position = skip_blanks(source, skip_past(source, position, ";"))
        elif word == "attribute":
            position = skip_blanks(source, skip_past(source, position, ")"))
        else:
            position, directives[word] = _parse_integers(source, position)
    return position, directives


def _parse_integers(source: str, position: int) -> tuple[int, tuple[int, ...]]:
    numbers: list[int] = []
    while starts_number(source, position):
        position, number = parse_integer(source, position)
        numbers.append(number)
        position = skip_blanks(source, position)
        if source.startswith(",", position):
            position = skip_blanks(source, position + 1)
    return position, tuple(numbers)


def _check_outside(source: str, parts: _Parts) -> None:
    """Every name that a function or an initialiser takes from the module must be there."""
    for name, (start, end) in parts.outside.items():
        if name not in parts.variables and name not in parts.functions:
            raise error_at(source, _first_use(source, name, start, end), f"`{name}` is not declared")


def _first_use(source: str, name: str, start: int, end: int) -> int:
    match = re.compile(rf"(?<![\w$%.]){re.escape(name)}(?![\w$])", re.ASCII).search(source, start, end)
    return match.start() if match else start
