"""NVIDIA's linker for PTX from a record: in a sandbox, because such PTX can crash it, or worse.

The linker is native code that runs inside the process that calls it. For this reason no process of the
coordinator loads it to judge a submission. A sandbox gets those lines of the record that hold kernels, which
nobody has parsed yet. The limited child that replays reads what comes out, strictly, and looks it up instead
of linking.

Results belong to their submission alone. A kernel that takes over the linker can lie about all kernels beside
it, so what one submission's sandbox said is never used for another.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from gpulab.foundation.strict import clean, number, text
from gpulab.simulator.compile import Resources
from gpulab.simulator.compile.ptxas import Result
from grading.core.recorder import LARGEST_LINE
from grading.core.sandbox import Outcome

KERNEL = b'{"line":"kernel",'  # how the recorder begins the line of a kernel
MOST_RESULTS = 20_000
LARGEST_RESOURCE = 1 << 20  # of any kind: ptxas counts registers, barriers, and bytes of a thread or a block
LARGEST_KEY = 64


def linked(
    content: bytes,
    patience: float,
    record: Callable[[bytes], Outcome],
    cc: tuple[int, int] | None = None,
) -> bytes:
    """What the linker says of all kernels of a record, for `results` to read; nothing if it has no kernel.

    With `cc` it makes machine code for that compute capability. `record` runs a job in a sandbox, and
    `patience` is how many seconds of processor time a kernel may take.
    """
    kernels = [line.decode("utf-8", "replace") for line in content.split(b"\n") if line.startswith(KERNEL)]
    if not kernels:
        return b""
    job = {"patience": patience, "link": list(dict.fromkeys(kernels)), "cc": cc}
    return record(json.dumps(job).encode()).content


def results(content: bytes) -> dict[str, Result]:
    """What came out of the linker's sandbox, by `link_key`. Lines that no linker writes are left out."""
    found: dict[str, Result] = {}
    for line in content.split(b"\n")[:MOST_RESULTS]:
        try:
            if len(line) > LARGEST_LINE:
                continue
            facts = json.loads(line)
            found[text(facts["key"], LARGEST_KEY)] = _result(facts)
        except (ValueError, KeyError, TypeError, RecursionError):  # cut off, or forged
            continue
    return found


def _result(facts: dict[str, Any]) -> Result:
    if "why" in facts:
        return clean(text(facts["why"]), 600)
    if "code" in facts:
        return base64.b64decode(facts["code"], validate=True)
    used = facts["resources"]
    return Resources(**{f.name: number(used[f.name], LARGEST_RESOURCE) for f in fields(Resources)})
