"""Names the learner's source lines in PTX, where the compiler names lines of code that was inlined."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from .headers import header_folders

PLACE = r"\d+ \d+ \d+"  # file, line, column
INLINED = (
    rf"(?m)^(?P<indent>\s*\.loc\s+)(?P<place>{PLACE}), function_name [^,]*, inlined_at (?P<caller>{PLACE})"
)


def _is_numbas(file: str) -> bool:
    from numba import cuda

    return os.path.abspath(file).startswith(os.path.dirname(os.path.abspath(cuda.__file__)) + os.sep)


def is_learners(file: str) -> bool:
    """Whether a source file is the learner's, and neither numba's own nor a header that came with CUDA.

    >>> is_learners("my_kernels.py")
    True
    """
    return not (_is_numbas(file) or file.startswith(header_folders()))


def with_learners_lines(ptx: str, foreign: Callable[[str], bool] = _is_numbas) -> str:
    """The PTX in which code inlined from `foreign` files lies on the learner's line that led to it.

    Foreign are numba's own files, or headers. Lines of the learner's own device functions stay as they are.
    """
    others = {
        m[1] for m in re.finditer(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', ptx, re.MULTILINE) if foreign(m[2])
    }
    if not others:
        return ptx
    called_from: dict[str, str] = {}  # place in those files → place that called it

    def put(match: re.Match[str]) -> str:
        place, caller = match["place"], match["caller"]
        if place.split()[0] not in others:  # who called it may be a place that is no longer there
            return match["indent"] + place if caller.split()[0] in others else match[0]
        called_from[place] = caller
        passed = {caller}  # a place is inlined more than once, so that callers may lead around in a circle
        while caller.split()[0] in others and called_from.get(caller, caller) not in passed:
            caller = called_from[caller]
            passed.add(caller)
        return match["indent"] + caller

    return re.sub(INLINED, put, ptx)
