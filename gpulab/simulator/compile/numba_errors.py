"""numba's compile errors in a learner's words: which line, why, and what to do.

numba explains a failed kernel by its own machinery, in dozens of lines and often without the place. `RULES`
maps what it says to what it means; the place is where the compiler stood when it gave up.
"""

from __future__ import annotations

import difflib
import dis
import linecache
import os
import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from .kernel import CompileError
from .stand_ins import names_in

Found = dict[str, str]
Words = str | Callable[[Found, FunctionType], str]

OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ifloordiv": "//=", "imod": "%=",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "matmul": "@",
    "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
    "neg": "-", "not_": "not", "invert": "~",
}  # fmt: skip

# numba's names of np.dot: which one it tells depends on whether it has compiled anything for the CPU before.
DOTS = {"dot", "array_dot", "dot_2", "dot_3"}
_ONE_SUM = "Add up single products in a loop, as in total += a[i] * b[i]."
_ONE_OF_THREE = "Take one of them: .x, .y or .z."


@dataclass(frozen=True)
class Rule:
    """What numba says (a regular expression; named groups) → why it fails, and the cure."""

    said: str
    why: Words
    cure: Words = ""


def _called(found: Found, fn: FunctionType) -> str:
    """A call that numba has no implementation for, as the learner wrote it."""
    name, arguments = found["name"], [in_english(a) for a in _split(found["arguments"])]
    if name in DOTS:
        return _numpy_call(found, fn)
    if name in OPERATORS:
        return f"`{OPERATORS[name]}` is not possible with {_listed(arguments)}."
    if name == "getitem":
        return _capital(f"{arguments[0]} cannot be indexed with {_listed(arguments[1:])}.")
    if name == "setitem":
        return _capital(f"{arguments[2]} cannot be stored in an element of {arguments[0]}.")
    return (
        f"`{name}` does not take {_listed(arguments)} in a kernel."
        if arguments
        else f"`{name}` needs arguments."
    )


def _call_cure(found: Found, fn: FunctionType) -> str:
    if found["name"] in DOTS:
        return _ONE_SUM
    if re.search(r"\b(?:Reflected)?[Ll]ist\(", found["arguments"]):
        return _NO_LIST
    if name := re.search(r"Function\([^)]*\b(grid|gridsize)\b", found["arguments"]):
        return f"cuda.{name[1]} is not called here. Write cuda.{name[1]}(1), with the number of dimensions."
    if "Dim3" in found["arguments"]:
        return _ONE_OF_THREE
    if found["name"] in OPERATORS and "UniTuple(int" in found["arguments"]:
        return _take_one(fn)
    last = _split(found["arguments"])[-1:]
    if found["name"] == "setitem" and last and not last[0].startswith("array"):
        return ""
    if "array(" in found["arguments"]:
        return "A thread works on single elements: is an index missing, as in a[i]?"
    return ""


def _take_one(fn: FunctionType) -> str:
    """How to get one number out of a tuple of indices: of `cuda.grid(2)` as a whole, or of a shape."""
    unpacked = any(i.opname == "UNPACK_SEQUENCE" for i in dis.get_instructions(fn.__code__))
    if {"grid", "gridsize"} & set(names_in(fn.__code__)) and "shape" not in names_in(fn.__code__):
        return "" if unpacked else "cuda.grid(2) gives two numbers: write x, y = cuda.grid(2)."
    return "A shape has one number for each axis: take one, as in a.shape[0]."


def _numpy_call(found: Found, fn: FunctionType) -> str:
    """numba names its own helper; the kernel's text says which function of NumPy it stands for."""
    first = fn.__code__.co_firstlineno
    last = max((line for _, _, line in fn.__code__.co_lines() if line), default=first)
    lines = "".join(linecache.getlines(fn.__code__.co_filename)[first - 1 : last])
    name = re.search(r"\b(?:np|numpy)\.[\w.]+(?=\()|\.(dot)(?=\()", lines)
    what = f"`{name[1] or name[0]}`" if name else "This function of NumPy"
    return f"{what} works on whole arrays, which a thread of a GPU cannot do."


def _undefined(found: Found, fn: FunctionType) -> str:
    from numba import cuda

    name = found["name"]
    if hasattr(cuda, name) and name not in fn.__globals__:
        return f"Did you mean cuda.{name}?"
    return _did_you_mean(name, [*fn.__code__.co_varnames, *fn.__globals__])


def _no_attribute(found: Found, fn: FunctionType) -> str:
    from importlib import import_module

    try:
        return _did_you_mean(
            found["name"], dir(import_module(found["module"])), found["module"].split(".")[-1] + "."
        )
    except ImportError:
        return ""


def _outside(found: Found, fn: FunctionType) -> str:
    if _is_name_of_cuda(found["name"], fn):
        return f"`{found['name']}` cannot stand alone in a kernel: numba knows it behind a dot only."
    return {
        "function": f"`{found['name']}` is an ordinary Python function, which a GPU cannot call.",
        "builtin_function_or_method": f"Python's `{found['name']}` does not exist on a GPU.",
        "type": f"Python's class `{found['name']}` does not exist on a GPU.",
    }.get(found["type"], f"`{found['name']}` is a {found['type']}, which does not exist on a GPU.")


def _outside_cure(found: Found, fn: FunctionType) -> str:
    if _is_name_of_cuda(found["name"], fn):
        return "Import cuda and write it whole, as in cuda.threadIdx.x or cuda.atomic.add(…)."
    return {
        "function": "Put @cuda.jit(device=True) above it.",
        "builtin_function_or_method": "",
        "type": "",
    }.get(
        found["type"],
        _NUMBERS_ONLY,
    )


def _is_name_of_cuda(name: str, fn: FunctionType) -> bool:
    """Whether the learner's name stands for a class of numba.cuda, such as threadIdx."""
    value = fn.__globals__.get(name)
    return hasattr(type(value), "__stands_for__") or getattr(value, "__module__", "") == "numba.cuda.stubs"


def _frozen_list(found: Found, fn: FunctionType) -> str:
    """numba does not say which list, set or dict it met; the function's globals do."""
    names = [n for n in names_in(fn.__code__) if isinstance(fn.__globals__.get(n), list | set | dict)]
    which = f"`{names[0]}` is" if names else "This uses"
    return f"{which} a {found['type'].lower()}, which does not exist on a GPU."


_NUMBERS_ONLY = "From outside, a kernel can use numbers, tuples of numbers and NumPy arrays (as constants)."

_NO_LIST = "A thread has no list. Scratch space of a fixed size is cuda.local.array(4, numba.float32)."

_CONSTANT = "Write a number, or a name that is set to a number outside the kernel (TILE + 1 needs a name)."


def _stores_slices(fn: FunctionType) -> bool:
    """Whether the kernel assigns to a slice, as in ``b[:] = a``."""
    code = list(dis.get_instructions(fn.__code__))
    slices = any(i.opname == "BUILD_SLICE" or isinstance(i.argval, slice) for i in code)
    names = {i.opname for i in code}
    return "STORE_SLICE" in names or (slices and "STORE_SUBSCR" in names)


def _builds_a_list(fn: FunctionType) -> bool:
    """Whether the kernel makes a list, as in ``ring = [0, 1]``."""
    return any(i.opname == "BUILD_LIST" for i in dis.get_instructions(fn.__code__))


_WHOLE_ARRAY = Rule(
    r"_ol_array_allocate|NRT required|Only accept returning of array|NRT_Allocate",
    lambda found, fn: (
        "This kernel makes a list, which would need memory that grows."
        if _builds_a_list(fn)
        else "An assignment to a slice, as in b[:] = a, is for whole arrays: every thread would do all of it."
        if _stores_slices(fn)
        else "This makes a whole new array, which a thread of a GPU cannot do."
    ),
    lambda found, fn: (
        _NO_LIST
        if _builds_a_list(fn)
        else "Give each thread its own elements, as in b[i] = a[i]."
        if _stores_slices(fn)
        else "Work on single elements, as in c[i] = a[i] + b[i]; for scratch space there are "
        "cuda.local.array and cuda.shared.array."
    ),
)

RULES = (
    _WHOLE_ARRAY,
    Rule(r"OverloadSelector object.*\((?:Reflected)?(?P<type>List|Set|Dict)", _frozen_list, _NUMBERS_ONLY),
    Rule(r"Untyped global name '[^']+':.*?<class '[\w.]*_Intrinsic'>", _numpy_call, _ONE_SUM),
    Rule(
        r"arg mismatch: i8\* != i8 addrspace",
        "`@` and its like work on whole arrays, which a thread of a GPU cannot do.",
        _ONE_SUM,
    ),
    Rule(
        r"Invalid use of array\(.+?\) with parameters",
        "An array is called like a function.",
        "Use square brackets for an element: a[i], not a(i).",
    ),
    Rule(
        r"Untyped global name '(?P<name>[^']+)':.*?<class '(?:[\w.]+\.)?(?P<type>\w+)'>",
        _outside,
        _outside_cure,
    ),
    Rule(r"NameError: name '(?P<name>\w+)' is not defined", "The name `{name}` is not defined.", _undefined),
    Rule(
        r"module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'",
        lambda found, fn: f"`{found['module'].split('.')[-1]}` has no `{found['name']}`.",
        _no_attribute,
    ),
    Rule(r"Variable '(?P<name>\w+)' is not defined", "`{name}` is used before it has a value."),
    Rule(
        r"missing a required argument: 'dtype'",
        "An array in a kernel needs a dtype.",
        "Write for example cuda.shared.array(32, numba.float32).",
    ),
    Rule(
        r"Invalid NumPy dtype specified: (?P<dtype>'[^']*')",
        "{dtype} is no dtype.",
        "Write for example numba.float32 or 'float32'.",
    ),
    Rule(
        r"Function\(<function shared\.array",
        "The shape of cuda.shared.array must be known to the compiler.",
        _CONSTANT + " For a size chosen at the launch: cuda.shared.array(0, dtype) and "
        "kernel[grid, block, stream, bytes].",
    ),
    Rule(
        r"Function\(<function local\.array",
        "The shape of cuda.local.array must be known to the compiler.",
        _CONSTANT,
    ),
    Rule(
        r"kernel must have void return type",
        "A kernel returns nothing: thousands of threads would.",
        "Write the result into an array that is an argument.",
    ),
    Rule(
        r"Cannot unify (?P<one>.+) and (?P<other>.+) for '(?P<name>\w+?)(?:\.\d+)?'",
        "`{name}` is {one} on one path and {other} on another.",
        "Give it one type on all paths, or use two names.",
    ),
    Rule(
        r"cannot index (?P<array>array\(.+?\)) with (?P<count>\d+) indices",
        "The index has {count} numbers, but this is {array}.",
        "One number per dimension: a[i] in one, a[i, j] in two.",
    ),
    Rule(
        r"Unsupported array index type Dim3",
        "`cuda.threadIdx`, `cuda.blockIdx`, `cuda.blockDim` and `cuda.gridDim` are three numbers each.",
        _ONE_OF_THREE,
    ),
    Rule(
        r"Unsupported array index type Function\([^)]*\b(?P<name>grid|gridsize)\b",
        "The index is the function cuda.{name} itself, because it is not called.",
        "Write cuda.{name}(1), with the number of dimensions in parentheses.",
    ),
    Rule(
        r"Unsupported array index type (?P<type>.+?) in \[",
        "An index must be an integer; this one is {type}.",
        "Divide with // instead of /, or convert with int(…).",
    ),
    Rule(r"Unknown attribute '(?P<name>\w+)' of type Dim3", "`{name}` is not there.", "Take .x, .y or .z."),
    Rule(
        r"Unknown attribute '(?P<name>\w+)' of type Module\((?:<module ')?(?P<module>[\w.]+)",
        lambda found, fn: f"`{found['module'].split('.')[-1]}` has no `{found['name']}` in a kernel.",
        _no_attribute,
    ),
    Rule(
        r"Unknown attribute 'append' of type list",
        "A list cannot grow in a kernel.",
        "Use cuda.local.array with a fixed size.",
    ),
    Rule(
        r"Unknown attribute '(?P<name>any|all)' of type (?P<type>bool|u?int\d+|float\d+)",
        "`{name}` is for arrays, but this is a single {type}: a thread works on single elements.",
        "Test the value itself, as in `if not mask:`.",
    ),
    Rule(r"Unknown attribute '(?P<name>\w+)' of type (?P<type>.+)", "In a kernel, {type} has no `{name}`."),
    Rule(
        r"failed to unpack (?P<type>u?int\d+)",
        "One number cannot be unpacked into several names.",
        "cuda.grid(1) gives one number, cuda.grid(2) two, cuda.grid(3) three.",
    ),
    Rule(
        r"argument can only be 1, 2, 3",
        "cuda.grid and cuda.gridsize take 1, 2 or 3: the number of dimensions.",
    ),
    Rule(
        r"Cannot bind 'args=\((?P<arguments>.*)\) kws=.*' to signature '(?P<signature>\(.*?\))'",
        lambda found, fn: (
            f"The function takes {found['signature']}, but gets "
            f"{_counted(_split(found['arguments']), 'argument')}."
        ),
    ),
    Rule(
        r"Invalid use of type\(CUDADispatcher\(<function (?P<name>\w+).*?>\)\) "
        r"with parameters \((?P<given>.*)\)",
        lambda found, fn: (
            f"`{found['name']}` does not take {_listed([in_english(t) for t in _split(found['given'])])}."
        ),
        "Leave out the signature of the device function, or convert the arguments.",
    ),
    Rule(
        r"printing unimplemented for values of type (?P<type>.+)",
        "`print` in a kernel cannot show {type}.",
        "It shows numbers, booleans and text.",
    ),
    Rule(
        r"Cannot modify (?:value of type )?readonly|(?:setitem|store).*readonly",
        "The kernel writes to an array that is read-only.",
        "A NumPy array with writeable=False is read-only on the device too; pass a copy.",
    ),
    Rule(
        r"exception_match|try.{1,20}except",
        "A kernel cannot tell exceptions apart.",
        "Test for the bad case with `if` instead.",
    ),
    Rule(
        r"not enough values to unpack \(expected 3",
        "A function of cuda.atomic gets too few arguments.",
        "It takes the array, the index and the value: cuda.atomic.add(a, i, 1).",
    ),
    Rule(r"(?P<what>The '.+?' construct is not supported)", "{what} in a kernel."),
    Rule(
        r"No implementation of function Function\(<(?:built-in )?(?:function|class|intrinsic|ufunc) '?"
        r"(?P<written>[\w.]+).*?>>> *(?P<name>\w+)\((?P<arguments>[^\n]*)\)",
        _called,
        _call_cure,
    ),
    Rule(
        r"Cannot determine Numba type of <class '(?:[\w.]+\.)?(?P<type>\w+)'>",
        "A {type} does not exist on a GPU.",
    ),
    Rule(r"Use of unsupported NumPy function '(?P<name>[\w.]+)'", "`{name}` does not exist in a kernel."),
)


_NO_TEXT = (
    "A kernel cannot build a text with an f-string.",
    'Give print the values one by one, as in print("i =", i).',
)

# What no kernel can hold, by the instruction of Python's that makes it: numba fails on it in many ways.
IMPOSSIBLE = {
    "BUILD_MAP": ("A dict cannot be used in a kernel.", "Use arrays."),
    "BUILD_SET": ("A set cannot be used in a kernel.", "Use arrays."),
    **dict.fromkeys(("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC"), _NO_TEXT),  # one of each Python's
    "RETURN_GENERATOR": (
        "A kernel cannot yield or await.",
        "Write the values into an array that is an argument.",
    ),
}


_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator)
_DRAW_HERE = (
    "In a kernel there is cuda.random: make states with create_xoroshiro128p_states(threads, seed), "
    "pass them, and draw with xoroshiro128p_uniform_float32(states, i)."
)


def in_words(error: Exception, fn: FunctionType) -> CompileError:
    """numba's `error` about the kernel `fn` as a CompileError."""
    if isinstance(error, CompileError):
        return error
    said = _stripped(str(error))
    own_file = fn.__code__.co_filename
    found = _impossible(fn)
    if found:
        why, cure, line = found
        file = own_file
    else:
        why, cure = _why(said, error, fn)
        file, line = _told_place(said, fn) or _place(error) or (own_file, _first_line(said, fn))
    text = linecache.getline(file, line).strip()
    return CompileError(fn.__name__, why, cure, line, text, file if file != own_file else "")


def _impossible(fn: FunctionType) -> tuple[str, str, int] | None:
    """Why, cure and line of the first thing in the kernel that no kernel can hold."""
    for instruction in dis.get_instructions(fn.__code__):
        if instruction.opname in IMPOSSIBLE:
            return *IMPOSSIBLE[instruction.opname], _line(instruction, fn)
    for instruction, name, value in _used(fn):
        if value is random or value is np.random or isinstance(_owner(value), _GENERATORS):
            return f"`{name}` draws random numbers on the CPU only.", _DRAW_HERE, _line(instruction, fn)
    return None


def _used(fn: FunctionType) -> Iterator[tuple[dis.Instruction, str, object]]:
    """What the kernel names from outside and takes from modules: first ``np``, then ``np.random``."""
    name, value = "", None
    for instruction in dis.get_instructions(fn.__code__):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_DEREF"):
            name, value = instruction.argval, _outer(fn, instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(value, ModuleType):
            name, value = f"{name}.{instruction.argval}", getattr(value, instruction.argval, None)
        else:
            value = None
        if value is not None:
            yield instruction, name, value


def _outer(fn: FunctionType, name: str) -> object:
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    with suppress(ValueError):  # an empty cell
        return cells[name].cell_contents if name in cells else fn.__globals__.get(name)
    return None


def _owner(value: object) -> object:
    return getattr(value, "__self__", None)


def _line(instruction: dis.Instruction, fn: FunctionType) -> int:
    line = instruction.positions.lineno if instruction.positions else None
    return line or fn.__code__.co_firstlineno


def _why(said: str, error: Exception, fn: FunctionType) -> tuple[str, str]:
    for rule in RULES:
        match = re.search(rule.said, said, re.DOTALL if ">>>" in rule.said else 0)
        if match:
            found = {name: text or "" for name, text in match.groupdict().items()}
            return _filled(rule.why, found, fn), _filled(rule.cure, found, fn)
    return f"numba cannot compile it ({type(error).__name__}): {_first_sentence(said)}", ""


def _filled(words: Words, found: Found, fn: FunctionType) -> str:
    if callable(words):
        return words(found, fn)
    types = {
        name: in_english(text) for name, text in found.items() if name in ("type", "array", "one", "other")
    }
    return _capital(words.format(**(found | types)))


# ---- where


def _told_place(said: str, fn: FunctionType) -> tuple[str, int] | None:
    """The place that numba's text names: of a variable, else of what it was doing first of all."""
    told = re.findall(r"(?:for '[^']+', defined|During: .*?) at (.+?) \((\d+)\)", said)
    for file, line in told:
        if not _is_numbas(file):
            return file, int(line)
    # Some errors have a short file name only.
    short = re.search(r'^File "(.+?)", line (\d+):', said, re.MULTILINE)
    if short and os.path.basename(short[1]) == os.path.basename(fn.__code__.co_filename):
        return fn.__code__.co_filename, int(short[2])
    return None


def _place(error: BaseException) -> tuple[str, int] | None:
    """The last line of the learner's that the compiler looked at: its frames hold numba's locations."""
    last = None
    for frame in _frames(error):
        for value in list(frame.values()):
            loc: Any = value if _is_location(value) else getattr(value, "__dict__", {}).get("loc")
            if _is_location(loc) and not _is_numbas(loc.filename) and loc.line:
                last = (loc.filename, loc.line)
    return last


def _frames(error: BaseException | None) -> Iterator[dict[str, Any]]:
    """The local variables of all frames that the error and its causes came through, outermost first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        trace = error.__traceback__
        while trace:
            yield trace.tb_frame.f_locals
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


def _is_location(value: object) -> bool:
    return type(value).__name__ == "Loc" and hasattr(value, "filename") and hasattr(value, "line")


def _is_numbas(file: str) -> bool:
    import numba
    from numba import cuda

    return any(
        file.startswith(os.path.dirname(package.__file__)) for package in (numba, cuda) if package.__file__
    )


def _first_line(said: str, fn: FunctionType) -> int:
    """The best guess without a location: a `return` with a value if that is the trouble, else the ``def``."""
    first = fn.__code__.co_firstlineno
    if "void return type" in said:
        for _, _, line in fn.__code__.co_lines():
            if line and re.match(r"\s*return\b\s*[^\s#]", linecache.getline(fn.__code__.co_filename, line)):
                return line
    for line in range(first, first + 20):
        if re.match(r"\s*(async\s+)?def\s", linecache.getline(fn.__code__.co_filename, line)):
            return line
    return first


# ---- words


def in_english(numba_type: str) -> str:
    """numba's name of a type as a learner says it: ``array(float32, 1d, C)`` → a 1-D array of float32."""
    text = numba_type.strip()
    if m := re.fullmatch(r"array\((.+), (\d+)d, \w(?:, .*)?\)", text) or re.fullmatch(
        r"Array\((.+), (\d+),.*\)", text
    ):
        return f"a {m[2]}-D array of {in_english(m[1])}"
    if m := re.fullmatch(r"Literal\[(\w+)\]\((.*)\)", text, re.DOTALL):
        return {"int": f"the number {m[2]}", "str": "text", "bool": m[2]}.get(m[1], m[2])
    if m := re.fullmatch(r"UniTuple\((.+) x (\d+)\)", text):
        return f"a tuple of {m[2]} {in_english(m[1])}"
    if text.startswith("Tuple("):
        return "a tuple"
    if text == "Dim3":
        return "three numbers (x, y, z)"
    if text == "unicode_type":
        return "text"
    if text == "none":
        return "None"
    if text.startswith(("list(", "reflected list(")):
        return "a list"
    if text.startswith(("DictType", "dict(")):
        return "a dict"
    if m := re.fullmatch(r"class\((\w+)\)", text):
        return m[1]
    if m := re.fullmatch(r"Function\(<\w+(?: \w+)? '?([\w.]+).*>\)", text):
        return f"the function {m[1]}"
    return text


def _split(arguments: str) -> list[str]:
    """The arguments of a signature: split at the commas outside brackets."""
    parts, depth = [""], 0
    for character in arguments:
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _listed(items: list[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def _counted(items: list[str], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _capital(text: str) -> str:
    """The first word with a capital, unless it is a name."""
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+ ", text) else text


def _did_you_mean(name: str, candidates: list[str], prefix: str = "") -> str:
    close = difflib.get_close_matches(name, candidates, n=1)
    return f"Did you mean {prefix}{close[0]}?" if close and close[0] != name else ""


def _stripped(text: str) -> str:
    """Without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _first_sentence(said: str) -> str:
    """The first line that says something about the kernel and not about the compiler."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    useful = [
        line for line in lines if not line.startswith(("Failed in", "During:", "File ", "- Resolution"))
    ]
    return (useful or lines or ["it does not say why"])[0]
