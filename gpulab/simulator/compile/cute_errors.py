"""What CuTe DSL's verifier refuses: the learner's line, why, and the usual cure.

The package itself says that it could not build valid IR, and keeps the reason in the error's cause.
"""

from __future__ import annotations

import linecache
import re

from .kernel import CompileError

REFUSED = re.compile(r'error: ".*?"\("(?P<file>[^"]+)":(?P<line>\d+):\d+\): (?P<why>.+)')
KERNEL = re.compile(r"in function `(?:\x1b\[[0-9;]*m)?(?P<name>\w+)")
CURES: tuple[tuple[str, str], ...] = (  # what its reason contains, and what helps
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
)


def in_words(error: Exception) -> CompileError | None:
    """The error in words, or None if the verifier named no line of the learner's."""
    found = REFUSED.search(str(getattr(error, "cause", None)))
    if found is None:
        return None
    line, why = int(found["line"]), f"CuTe DSL refuses this: {found['why']}"
    kernel = KERNEL.search(str(error))
    cure = next((cure for word, cure in CURES if word in why), "")
    text = linecache.getline(found["file"], line).strip()
    return CompileError(kernel["name"] if kernel else "a kernel", why, cure, line, text)
