"""`Module` → PTX text that reads back as an equal module."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from .declarations import WIDTHS
from .ir import (
    Address,
    Arguments,
    Function,
    Immediate,
    Instruction,
    Location,
    Module,
    Negated,
    Operand,
    Pair,
    Symbol,
    Variable,
    Vector,
)

_NUMBERED = re.compile(r"(%.*?)(0|[1-9]\d{0,8})", re.ASCII)


def print_module(module: Module) -> str:
    """The PTX text of `module`. Whatever the parser forgets (comments, linkage, inner scopes) is not in it.

    >>> module = parse(".version 8.0 .target sm_80 .address_size 64 .visible .entry stop() { ret; }")
    >>> print_module(module).splitlines()[0]
    '.version 8.0'
    """
    return "\n".join(_module_lines(module)) + "\n"


def print_instruction(instruction: Instruction) -> str:
    """One instruction without its semicolon: ``@!%p1 ld.global.f32 %f1, [%rd4+8]``.

    >>> text = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { .reg .b32 %r<3>; "
    >>> text += "add.u32 %r2, %r1, 1; ret; }"
    >>> print_instruction(parse(text).functions["k"].blocks[0].instructions[0])
    'add.u32 %r2, %r1, 1'
    """
    guard = ""
    if instruction.guard is not None:
        guard = f"@{'!' * instruction.guard_negated}{instruction.guard.name} "
    return f"{guard}{instruction.opcode} {', '.join(map(print_operand, instruction.operands))}".rstrip()


def print_operand(operand: Operand) -> str:
    match operand:
        case Immediate(value, kind, bits):
            return str(value) if bits is None else _print_float(kind, bits)
        case Symbol(name, offset):
            return name + _print_offset(offset)
        case Address(base, offset, coordinates):
            place = str(offset) if base is None else base.name + _print_offset(offset)
            return f"[{', '.join([place, *map(print_operand, coordinates)])}]"
        case Vector(items):
            return f"{{{', '.join(map(print_operand, items))}}}"
        case Arguments(items):
            return f"({', '.join(map(print_operand, items))})"
        case Pair(first, second):
            return f"{print_operand(first)}|{print_operand(second)}"
        case Negated(register):
            return f"!{register.name}"
        case _:
            return operand.name


def _print_offset(offset: int) -> str:
    return f"+{offset}" if offset else ""


def _print_float(kind: str, bits: int) -> str:
    return f"0f{bits:08X}" if kind == "f32" else f"0d{bits:016X}"


def _module_lines(module: Module) -> Iterator[str]:
    if module.version:
        yield f".version {module.version}"
    if module.target:
        yield f".target {module.target}"
    yield ".address_size 64"
    for number, path in module.files.items():
        yield f'.file {number} "{path}"'
    yield ""
    # Declared first, because a function may be called, and its address taken, before the place of its body.
    for function in module.functions.values():
        if not function.entry:
            yield f"{'.extern ' if function.extern else ''}{_print_signature(function)};"
    for variable in module.variables.values():
        linkage = ".extern " if variable.extern else ""
        yield f"{linkage}{_print_variable(variable, module.functions.keys())};"
    numbers = {path: number for number, path in module.files.items()}
    for function in sorted(module.functions.values(), key=lambda function: function.entry):
        if not function.extern:
            yield ""
            yield from _function_lines(function, numbers)


def _print_signature(function: Function) -> str:
    kind = ".visible .entry" if function.entry else ".func"
    returns = f"({', '.join(map(_print_variable, function.returns))}) " if function.returns else ""
    parameters = ",\n\t".join(map(_print_variable, function.parameters))
    directives = "".join(
        f"\n.{name} {', '.join(map(str, numbers))}".rstrip() for name, numbers in function.directives.items()
    )
    listed = f"(\n\t{parameters}\n)" if parameters else "()"
    return f"{kind} {returns}{function.name}{listed}{directives}"


def _function_lines(function: Function, numbers: Mapping[str, int]) -> Iterator[str]:
    yield _print_signature(function)
    yield "{"
    yield from _register_lines(function.registers)
    for variable in function.variables:
        yield f"\t{_print_variable(variable)};"
    for name, prototype in function.prototypes.items():
        yield f"\t{name}: {prototype};"
    for name, labels in function.branch_targets.items():
        yield f"\t{name}: .branchtargets {', '.join(labels)};"
    location: Location | None = None
    for block in function.blocks:
        if block.label:
            yield f"{block.label}:"
        for instruction in block.instructions:
            if instruction.location is not None and instruction.location != location:
                location = instruction.location
                yield f"\t.loc {_file_number(location, numbers)} {location.line} 0"
            yield f"\t{print_instruction(instruction)};"
    yield "}"


def _file_number(location: Location, numbers: Mapping[str, int]) -> int:
    """The number of the location's file; a number without a file for a place in an unknown one."""
    return numbers.get(location.file, max(numbers.values(), default=0) + 1)


def _register_lines(registers: Mapping[str, str]) -> Iterator[str]:
    """``%r0`` … ``%r18`` as ``%r<19>`` where all that share the prefix have one type."""
    ranges: dict[tuple[str, str], int] = {}
    singles: dict[str, str] = {}
    types: dict[str, set[str]] = {}
    for name, type_ in registers.items():
        match = _NUMBERED.fullmatch(name)
        if match:
            types.setdefault(match.group(1), set()).add(type_)
    for name, type_ in registers.items():
        match = _NUMBERED.fullmatch(name)
        if match and len(types[match.group(1)]) == 1:
            key = (match.group(1), type_)
            ranges[key] = max(ranges.get(key, 0), int(match.group(2)) + 1)
        else:
            singles[name] = type_
    for (prefix, type_), count in ranges.items():
        yield f"\t.reg .{type_} {prefix}<{count}>;"
    for name, type_ in singles.items():
        yield f"\t.reg .{type_} {name};"


def _print_variable(variable: Variable, functions: Collection[str] = ()) -> str:
    align = "" if variable.align == WIDTHS[variable.type] else f".align {variable.align} "
    size = f"[{variable.count or ''}]" if variable.is_array else ""
    declared = f".{variable.space} {align}.{variable.type} {variable.name}{size}"
    if variable.initial is None:
        return declared
    return f"{declared} = {_print_initial(variable, variable.initial, functions)}"


def _print_initial(variable: Variable, initial: bytes, functions: Collection[str]) -> str:
    width = WIDTHS[variable.type]
    cells = [_print_cell(variable.type, initial[at : at + width]) for at in range(0, len(initial), width)]
    end = max([width, len(initial.rstrip(b"\0")), *(offset + 8 for offset, _ in variable.pointers)])
    for offset, symbol in variable.pointers:
        name = symbol.name if symbol.name in functions else f"generic({symbol.name})"
        address = name + _print_offset(symbol.offset)
        # An address among elements that are smaller is written part by part, each through its mask.
        parts = [f"0x{mask:X}({address})" for mask in _masks(width)] if width < 8 else [address]
        cells[offset // width : offset // width + len(parts)] = parts
    return f"{{{', '.join(cells[: -(-end // width)])}}}" if variable.is_array else cells[0]


def _masks(width: int) -> Iterator[int]:
    for offset in range(0, 8, width):
        yield ((1 << 8 * width) - 1) << 8 * offset


def _print_cell(type_: str, data: bytes) -> str:
    if type_ in ("f32", "f64"):
        return _print_float(type_, int.from_bytes(data, "little"))
    return str(int.from_bytes(data, "little"))
