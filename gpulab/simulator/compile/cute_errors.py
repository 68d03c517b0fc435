"""What CuTe DSL refuses: the learner's line, why, and the usual cure.

What its verifier refuses becomes a `CompileError`: the package itself says that it could not build valid IR,
and keeps the reason in the error's cause. Every other error stays what it is, in CuTe DSL's own words, and
gets the text that a notebook and a check show: the learner's line, and no traceback through the package.
"""

from __future__ import annotations

import linecache
import re
import sysconfig
import traceback
from pathlib import Path

from gpulab.foundation.errors import Message, speaking
from gpulab.foundation.strict import uncontrolled

from .kernel import CompileError, cure_of

REFUSED = re.compile(r'error: ".*?"\("(?P<file>[^"]+)":(?P<line>\d+):\d+\): (?P<why>.+)')
LACKING = re.compile(
    r"architecture: (?P<target>\w+)[\s\S]*?(?P<file>[^\s(]+)\((?P<line>\d+)\)\s+Error:\s+unsupported"
)
KERNEL = re.compile(r"in function `(?P<name>\w+)")
POINTS_AT = re.compile(r"--> \S+:\d+")  # the message already shows a line
CURES: tuple[tuple[str, str], ...] = (  # what its reason or the line contains, as a pattern, and what helps
    (
        "alignment",
        "How far is the address known to be aligned? For an array, from_dlpack(x, assumed_align=16) promises "
        "16 bytes, which are 128 bits. A thread's part is aligned to those values that lie side by side.",
    ),
    (
        "cannot vectorize",
        "The values of one thread do not lie side by side, so one instruction cannot copy them. Give the "
        "layout of values the stride 1 along the memory, or take an atom of fewer bits.",
    ),
    (
        "weakly congruent",
        "The index has other parts than the tensor has modes. thread_idx() and block_idx() give three "
        "numbers: take one of them, as in cute.arch.thread_idx()[0].",
    ),
    (
        "Expected Coord",
        "An index is a whole number: / makes a Float32, // a whole number. cute.local_tile takes a part of a "
        "tensor, and None in an index a whole mode.",
    ),
    (
        "dynamic layout is not supported",
        "Shared memory and registers have a size that is known when the kernel is compiled: a number, or a "
        "parameter that is a cutlass.Constexpr.",
    ),
    ("no attribute 'launch'", "Is @cute.kernel in the line above the function that is launched?"),
    (
        "object is not subscriptable",
        "A kernel is launched in a function with @cute.jit, by kernel(...).launch(grid=(...), block=(...)).",
    ),
    (
        r"has no callable \w+ method",
        "NumPy cannot compute with a kernel's values. cute.math has exp, sqrt, sin and others.",
    ),
    (
        r"(?<!cute\.)\bmath\.\w+\([\s\S]*PHASE_DYNAMIC_INDEX",
        "Python's math cannot compute with a kernel's values. cute.math has exp, sqrt, sin and others.",
    ),
    (
        r"ANNOTATION_MISMATCH[\s\S]*typing\.Tensor'>, but got <class '(numpy|torch|gpulab|list)",
        "Where a function asks for a cute.Tensor, give it from_dlpack(x), from cutlass.cute.runtime. What "
        "cute.compile has made takes the array x itself.",
    ),
)
PACKAGES = sysconfig.get_paths()["purelib"], sysconfig.get_paths()["stdlib"]
OURS = str(Path(__file__).parents[2])


def in_words(error: Exception, source: str = "") -> Exception:
    """The error that a learner reads in place of this one: a CompileError, or the same with its line.

    `source` is the file of the function that was compiled.
    """
    if isinstance(error, Message):
        return error
    said = uncontrolled(error)
    file, line, function = _place(error)
    kernel = KERNEL.search(said)
    name = kernel["name"] if kernel else function or "a kernel"
    found = REFUSED.search(f"{uncontrolled(getattr(error, 'cause', None))}\n{said}")
    if found is not None:
        why, text = f"CuTe DSL refuses this: {found['why']}", _text(found["file"], int(found["line"]))
        return CompileError(name, why, cure_of(why, CURES), int(found["line"]), text)
    if (lacking := LACKING.search(said)) is not None:
        return _without_instruction(lacking["target"], lacking["file"], int(lacking["line"]), (file, source))
    shown = said.strip() or type(error).__name__
    text = _text(file, line)
    if line and not POINTS_AT.search(shown):
        shown = f"{type(error).__name__} in {name}, line {line}\n    {line} │ {text}\n{shown}"
    shown = "\n".join(filter(None, [shown, cure_of(f"{text}\n{said}", CURES)]))
    speaking(error, shown)
    return error


def _without_instruction(target: str, name: str, line: int, files: tuple[str, ...]) -> CompileError:
    """An instruction that only newer GPUs have, in this line of that one of the files that has this name."""
    file = next((file for file in files if Path(file).name == Path(name).name), "")
    above = (re.match(r"\s*def (\w+)", linecache.getline(file, number)) for number in range(line, 0, -1))
    kernel = next((found[1] for found in above if found), "a kernel")
    why = f"{target}, the GPU that this is compiled for, has no such instruction."
    cure = 'Newer GPUs may have it: gpulab.start(gpu="H100") simulates an H100, gpu="B200" a B200.'
    return CompileError(kernel, why, cure, line, _text(file, line))


def _place(error: Exception) -> tuple[str, int, str]:
    """File, line and function of the learner's code that the error came through last."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(("<", OURS, *PACKAGES)):
            return frame.filename, frame.lineno or 0, frame.name
    return "", 0, ""


def _text(file: str, line: int) -> str:
    return linecache.getline(file, line).strip() if line else ""
