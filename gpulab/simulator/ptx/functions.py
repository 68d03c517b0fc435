"""The body of a function: statements between braces, each read by one rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from .basic_blocks import branch_table, branch_target, ends_control, split_blocks
from .declarations import SPACES, parse_registers, parse_variables, parse_word
from .ir import Function, Instruction, Location, PtxError, Symbol, Variable
from .operands import parse_operands
from .scopes import Registry, Scope, declare_symbol, look_up, open_scope
from .text import NAME, error_at, found_at, skip_blanks, skip_past

_INSTRUCTION = re.compile(
    r"(?:@\s*(!?)\s*([\w$%]+)\s+)?([a-z]\w*(?:\.\w+|::\w+)*)(?![\w.$]|\s*:)\s*([^;]*);", re.ASCII
)
_OPCODE = re.compile(r"@|[a-z]")
_LABEL = re.compile(rf"({NAME})\s*:", re.ASCII)
_LIST_OF_LABELS = re.compile(rf"({NAME})\s*:\s*\.branchtargets\s+([^;]*);", re.ASCII)
_PROTOTYPE = re.compile(rf"({NAME})\s*:\s*(\.(?:callprototype|calltargets)\b[^;]*);", re.ASCII)
_LOCATION = re.compile(r"\.loc\s+(\d{1,9})\s+(\d{1,9})[^\n;]*", re.ASCII)


class _Statement(NamedTuple):
    """An instruction whose names wait until all declarations and labels of its scope are known."""

    scope: Scope
    position: int
    line: int
    location: Location | None
    negated: bool
    guard: str | None
    opcode: str
    operands: str


class _Table(NamedTuple):
    """A ``.branchtargets`` list whose labels wait likewise."""

    scope: Scope
    position: int
    name: str
    labels: tuple[str, ...]


@dataclass(slots=True)
class _Body:
    """What the statements of one function add up to."""

    registry: Registry = field(default_factory=Registry)
    statements: list[_Statement] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    tables: list[_Table] = field(default_factory=list)
    prototypes: dict[str, str] = field(default_factory=dict)
    end_line: int = 0


def parse_body(
    source: str, position: int, signature: Function, files: Mapping[int, str]
) -> tuple[int, Function, frozenset[str]]:
    """`signature` with the body that opens at `position`, and the names in it that the module must hold."""
    body = _Body()
    root = Scope(body.registry)
    for variable in (*signature.returns, *signature.parameters):
        declare_symbol(root, variable.name)
    end = _collect(source, position + 1, body, root, files)
    instructions = [_resolve(source, statement) for statement in body.statements]
    if not instructions or len(instructions) in body.labels.values() or not ends_control(instructions[-1]):
        location = instructions[-1].location if instructions else None
        instructions.append(Instruction("ret", (), line=body.end_line, location=location))
    tables = {table.name: _resolve_table(source, table, body.labels) for table in body.tables}
    for statement, instruction in zip(body.statements, instructions, strict=False):
        complaint = _check_labels(instruction, body.labels, tables)
        if complaint:
            raise error_at(source, statement.position, complaint)
    blocks, tables = split_blocks(instructions, body.labels, tables)
    function = replace(
        signature,
        registers=body.registry.registers,
        variables=tuple(body.variables),
        blocks=blocks,
        branch_targets=tables,
        prototypes=body.prototypes,
        extern=False,
    )
    return end, function, frozenset(body.registry.outside)


def _collect(source: str, position: int, body: _Body, scope: Scope, files: Mapping[int, str]) -> int:
    """Read all statements into `body`; returns the position after the closing brace."""
    start, counted, line = position, position, source.count("\n", 0, position) + 1
    location: Location | None = None
    statements = body.statements
    while True:
        position = skip_blanks(source, position)
        line += source.count("\n", counted, position)
        counted = position
        match = _INSTRUCTION.match(source, position)
        if match:
            negated, guard, opcode, operands = match.groups()
            statements.append(
                _Statement(scope, position, line, location, bool(negated), guard, opcode, operands)
            )
            position = match.end()
        elif source.startswith(".loc", position) and (match := _LOCATION.match(source, position)):
            location = _location(match, files) or location
            position = match.end()
        elif source.startswith("{", position):
            scope = open_scope(scope)
            position += 1
        elif source.startswith("}", position):
            position += 1
            if scope.parent is None:
                body.end_line = line
                return position
            scope = scope.parent
        elif source.startswith(".", position):
            position = _directive_rule(source, position, body, scope)
        elif position == len(source):
            raise error_at(source, start - 1, "this `{` is never closed")
        else:
            position = _label_rule(source, position, body, scope)


def _location(match: re.Match[str], files: Mapping[int, str]) -> Location | None:
    line = int(match.group(2))
    return Location(files.get(int(match.group(1)), ""), line) if line else None


def _directive_rule(source: str, position: int, body: _Body, scope: Scope) -> int:
    start = position
    position, word = parse_word(source, position)
    if word == "reg":
        return parse_registers(source, position, scope)
    if word in SPACES:
        position, variables = parse_variables(source, position, word)
        for variable in variables:
            name = declare_symbol(scope, variable.name)
            if name is None:
                raise error_at(source, start, f"`{variable.name}` is declared twice")
            body.variables.append(replace(variable, name=name))
        return position
    if word == "pragma":
        return skip_past(source, position, ";")
    if word == "loc_intermediate":  # the place in what cuTile compiled on the way; `.loc` has the learner's
        return len(source) if (end := source.find("\n", position)) < 0 else end
    raise error_at(source, start, f"`.{word}` is not known inside a function")


def _label_rule(source: str, position: int, body: _Body, scope: Scope) -> int:
    """A label, or a list of labels or prototype of a call, which is named as if by a label."""
    match = (
        _LIST_OF_LABELS.match(source, position)
        or _PROTOTYPE.match(source, position)
        or _LABEL.match(source, position)
    )
    if match is None and _OPCODE.match(source, position):
        raise error_at(source, position, "this instruction has no `;` at its end")
    if match is None:
        raise error_at(source, position, f"expected an instruction but found {found_at(source, position)}")
    name = declare_symbol(scope, match.group(1))
    if name is None:
        raise error_at(source, position, f"`{match.group(1)}` is declared twice")
    if match.re is _LABEL:
        body.labels[name] = len(body.statements)
    elif match.re is _LIST_OF_LABELS:
        labels = tuple(label.strip() for label in match.group(2).split(","))
        body.tables.append(_Table(scope, position, name, labels))
    else:
        body.prototypes[name] = " ".join(match.group(2).split())
    return match.end()


def _resolve(source: str, statement: _Statement) -> Instruction:
    scope, position, line, location, negated, guard, opcode, text = statement
    register = None if guard is None else look_up(scope, guard)
    if isinstance(register, Symbol) or (register is None and guard is not None):
        raise error_at(source, position, f"`{guard}` is not a declared register")
    try:
        operands = parse_operands(text, scope)
    except PtxError as error:
        raise error_at(source, position, error.message) from None
    return Instruction(opcode, operands, register, negated, line, location)


def _resolve_table(source: str, table: _Table, labels: Mapping[str, int]) -> tuple[str, ...]:
    found = []
    for label in table.labels:
        symbol = look_up(table.scope, label)
        if symbol is None or symbol.name not in labels:
            raise error_at(source, table.position, f"there is no label `{label}` in this function")
        found.append(symbol.name)
    return tuple(found)


def _check_labels(
    instruction: Instruction, labels: Mapping[str, int], tables: Mapping[str, tuple[str, ...]]
) -> str | None:
    """What is wrong: a branch needs a label that exists, and nothing else may name one."""
    kind = instruction.opcode.partition(".")[0]
    if kind == "bra":
        target = branch_target(instruction)
        if target is None:
            return "`bra` needs a label"
        return None if target in labels else f"there is no label `{target}` in this function"
    if kind == "brx":
        table = branch_table(instruction)
        return None if table in tables else f"there is no list of labels `{table}` in this function"
    for operand in instruction.operands:
        if isinstance(operand, Symbol) and operand.name in labels:
            return f"only a branch may name the label `{operand.name}`"
    return None
