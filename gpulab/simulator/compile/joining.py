"""Puts PTX texts together to one module, as a linker does with machine code.

PTX is read once from top to bottom, so what is used stands above. Names that only one text knows (literals,
lines of inlined code) occur in each of them, and stay apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

NAME = r"(?P<name>[\w$]+)"
EXTERN = rf"\.extern\s+\.func\s+(?:\([^)]*\)\s*)?{NAME}\s*(?:\([^)]*\)\s*)?(?:\.noreturn\s*)?;"
DEFINED = rf"(?m)^(?:\.visible\s+|\.weak\s+)?\.(?:func|entry)\s+(?:\([^)]*\)\s*)?{NAME}\s*\("
FILE = r"(?m)^\s*\.file\s+(\d+)"
FILE_NUMBER = r"(?m)(^\s*\.(?:file|loc)\s+|\binlined_at\s+)(\d+)"
SIGNATURE = rf"{DEFINED}[^)]*\)[^;{{]*"  # with directives such as .noreturn and .maxntid
_DECLARATOR = rf"[^;=\[\n]*?\s{NAME}(?:\[\d*\])?\s*"
VARIABLE = rf"(?m)^(?:\.(?:visible|weak|common)\s+)?\.(?:global|const)\b{_DECLARATOR}(?:=[^;]*)?;"
ELSEWHERE = rf"(?m)^\s*\.extern\s+\.(?:global|const)\b{_DECLARATOR};"
DYNAMIC = rf"(?m)^(?P<start>\s*\.extern\s+\.shared\s+)\.align\s+\d+(?P<end>{_DECLARATOR};)"
WIDEST = 16  # bytes to which dynamic shared memory is aligned, whatever its elements are
OWN = r"(?m)^\.(?:global|const)\b"  # how a variable begins that its text keeps for itself
BRACE = re.compile("[{}]")
LABEL = "$L__info_string"  # of the names of functions that were inlined
HEADER = r"(?ms)\A.*?^\.address_size\s+64\s*$"


def join(ptx: str, others: list[str]) -> str:
    """One module of all functions and variables; its header is that of `ptx`.

    What is there already is left out: compilers write templates into each text that uses them, and numba
    writes what a device function calls and uses beside it, too.
    """
    header = re.match(HEADER, ptx)
    assert header, "PTX without a header"
    texts = list(_apart(_callees_first([*others, ptx])))
    common = _common_variables(texts)
    prototypes = _prototypes(texts, common.values())
    joined = "\n".join([header[0], *prototypes, *common.values()])
    declared, defined = set[str](), set(common)
    for text in texts:
        text = re.sub(DYNAMIC, rf"\g<start>.align {WIDEST}\g<end>", text)
        for pattern, known in ((EXTERN, declared | defined), (DYNAMIC, declared), (ELSEWHERE, defined)):
            text = _without(pattern, known, text)
        text = _without(VARIABLE, defined, _without_bodies(defined, text))
        joined += "\n" + text
        declared |= _names(EXTERN, text) | _names(DYNAMIC, text)
        defined |= _names(DEFINED, text) | _names(VARIABLE, text)
    return joined


def _names(pattern: str, text: str) -> set[str]:
    return {match["name"] for match in re.finditer(pattern, text)}


def _callees_first(texts: list[str]) -> list[str]:
    """The texts, each behind those that define what it declares."""
    rest, ordered = list(texts), []
    while rest:
        defined = [_names(DEFINED, text) for text in rest]
        free = next(
            (
                i
                for i, text in enumerate(rest)
                if not _names(EXTERN, text) & set().union(*defined[:i], *defined[i + 1 :])
            ),
            0,  # texts that call each other
        )
        ordered.append(rest.pop(free))
    return ordered


def _apart(texts: list[str]) -> Iterator[str]:
    """The texts without their headers; what each numbers or names for itself differs from those before."""
    files = 0
    seen: dict[str, str] = {}  # variables, with their definitions
    for number, text in enumerate(texts):
        text = _with_file_numbers_from(files, re.sub(HEADER, "", text, count=1))
        files = max((int(found) for found in re.findall(FILE, text)), default=files)
        text = text.replace(LABEL, f"{LABEL}_{number}_")
        for match in list(re.finditer(VARIABLE, text)):
            name = match["name"]
            if seen.setdefault(name, match[0]) != match[0] and re.match(OWN, match[0]):
                text = re.sub(rf"(?<![\w$]){re.escape(name)}(?![\w$])", f"{name}$in{number}", text)
        yield text


def _common_variables(texts: list[str]) -> dict[str, str]:
    """The definitions of variables that one text has and another uses, and of those that these point to."""
    definitions = {match["name"]: match[0] for text in texts for match in re.finditer(VARIABLE, text)}
    found: dict[str, str] = {}

    def add(name: str) -> None:
        definition = definitions[name]
        for word in _words_behind_the_equals_sign(definition):
            if word in definitions and word != name and word not in found:
                add(word)
        found[name] = definition

    for text in texts:
        for name in sorted(_names(ELSEWHERE, text) & definitions.keys() - found.keys()):
            add(name)
    return found


def _prototypes(texts: list[str], variables: Iterable[str]) -> list[str]:
    """The declarations of functions to which these variables point."""
    used = {word for variable in variables for word in _words_behind_the_equals_sign(variable)}
    signatures = {match["name"]: match[0] for text in texts for match in re.finditer(SIGNATURE, text)}
    return [f"{signatures[name].rstrip()}\n;" for name in sorted(used & signatures.keys())]


def _words_behind_the_equals_sign(definition: str) -> list[str]:
    return re.findall(r"[\w$]+", definition.partition("=")[2])


def _with_file_numbers_from(start: int, ptx: str) -> str:
    """The PTX with other numbers of source files, larger by `start`: each text counts them from 1."""
    if not start:
        return ptx
    return re.sub(FILE_NUMBER, lambda match: f"{match[1]}{int(match[2]) + start}", ptx)


def _without(pattern: str, names: set[str], ptx: str) -> str:
    """PTX without what matches the pattern and has one of these names."""
    return re.sub(pattern, lambda match: "" if match["name"] in names else match[0], ptx)


def _without_bodies(names: set[str], ptx: str) -> str:
    """PTX without the functions of these names. Their bodies have blocks in braces, which nest."""
    kept, at = [], 0
    for match in re.finditer(rf"{SIGNATURE}\{{", ptx):
        if match["name"] in names and match.start() >= at:
            kept.append(ptx[at : match.start()])
            at = _end_of_block(ptx, match.end())
    return "".join([*kept, ptx[at:]])


def _end_of_block(ptx: str, at: int) -> int:
    """Where a block ends that began before `at`."""
    depth = 1
    for brace in BRACE.finditer(ptx, at):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    return len(ptx)
