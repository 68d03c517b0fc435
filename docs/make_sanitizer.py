"""Writes docs/sanitizer.md: which kinds of wrong kernels gpulab.sanitize finds, beside two other tools.

``python docs/make_sanitizer.py`` runs the wrong half of the corpus in tests/sanitizer under gpulab.sanitize,
the numba half of it under numba's own simulator as well (each kernel and its corrected twin in a process of
their own), and writes the table. What stands there of compute-sanitizer, which needs a GPU, is what its
manual says that it looks for; what ``python -m validation sanitize`` found on a GPU and left in
validation/sanitized gets a table of its own.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = HERE / "sanitizer.md"
SANITIZED = ROOT / "validation" / "sanitized"
PATIENCE = 30  # seconds of the processor for one kernel in numba's simulator …
WAITING = 600  # … and seconds by the clock, for one whose threads all wait
INNER = "--in-numbas-simulator"
ERROR, NO_END = "error", "no end"

# Class of finding and the memory it is in → its name here, and who looks for it by the manual of NVIDIA's
# Compute Sanitizer.
CLASSES = {
    ("race", "shared"): ("data race in shared memory", "racecheck"),
    ("race", "global"): ("data race in global memory", "–"),
    ("memory", ""): ("access outside an array, misaligned, or through nothing", "memcheck"),
    ("uninitialised", "shared"): ("read of shared memory before any write", "–"),
    ("uninitialised", "local"): ("read of local memory before any write", "–"),
    ("uninitialised", "global"): ("read of global memory before any write", "initcheck"),
    ("barrier", ""): (
        "barrier, shuffle or copy that does not wait for all",
        "synccheck: invalid use of barriers and warp operations",
    ),
    ("endless", ""): ("waits forever", "–"),
    ("stopped", ""): ("failed assertion", "memcheck: exceptions of the hardware"),
    ("order", ""): ("result depends on the order of threads", "–"),
}

INTRO = """\
Written by `python docs/make_sanitizer.py` from a run of the corpus in `tests/sanitizer/`.

The corpus holds {total} wrong kernels, each with a corrected twin, and {harmless} kernels that look wrong
but are right. `gpulab.sanitize` reports {found} of the {total} with the expected class and source lines.
The tests in `tests/sanitizer/` check this; they also check that it reports nothing for the corrected
twins, for the kernels that are right, and for the labs' solutions. The table leaves out wrong kernels for
newer GPUs: those with bulk copies, mbarriers, clusters and wgmma are in
`tests/sanitizer/corpus/on_hopper.py`, those with Tensor Memory and tcgen05 in `on_blackwell.py` beside
it, each with a test.

**numba's simulator** (`NUMBA_ENABLE_CUDASIM=1`) ran the half of the corpus that is written in numba. A
wrong kernel can end there in an error, in a result that differs from its twin's, in no end within
{patience} seconds of processor time, or in nothing visible (silent). The simulator lacks some operations,
and it cannot run blocks that wait for each other. Kernels with local arrays that start undefined or with
`cp.async` exist in CUDA C only: in numba local arrays start with zeros, and there is no `cp.async`.

**compute-sanitizer** needs a GPU{run}: its column shows what its manual promises."""

RAN = """
## compute-sanitizer {version} on {gpu}

By `python -m validation sanitize`, {date}: the CUDA C half of the corpus, {count} kernels, each under
memcheck, racecheck, initcheck and synccheck. *Same class*: a tool reports the class that is expected; *and
line*: with a source line that is expected; *any tool*: a tool reports anything; *twin*: a tool reports
something for the corrected twin.

| class | kernels | gpulab.sanitize | compute-sanitizer, same class | and line | any tool | twin |
|---|---|---|---|---|---|---|"""


SEEING = """
## Seeing it

`gpulab.trace(kernel[grid, block], …, threads=[0, 33])` steps through threads. A notebook shows a figure with
the source, the lanes of one or two warps, the named variables, and the elements of arrays as they are read
and written. A terminal shows a table with a row for each source line, the mask of the warp and the variables.
The kernel is compiled again without optimisation, as for a debugger, and the values are where the compiler's
debug information says; a value that the compiler did not keep is not shown. After a failed check
`gpulab.watch()` does the same for the thread at which it failed.

`gpulab.show(kernel[grid, block], …, line=12)` draws the accesses of one line; `view=` chooses `accesses`
(sectors), `banks`, `lanes` (of one warp over time), `divergence` (of all warps of a block) or `threads`. Both
work for numba and CUDA C++, in a notebook and in a script; `save` writes PNG or HTML."""


@dataclass(frozen=True)
class Row:
    """How many wrong kernels of one class and language there are, and how each tool fared with them."""

    place: tuple[str, str]
    language: str
    kernels: int
    found: int
    numba: Counter[str]


def ask_gpulab() -> dict[tuple[str, str], tuple[tuple[str, str], bool]]:
    """For each wrong kernel its class and whether sanitize gives it with the expected lines."""
    from gpulab.analysis.sanitizer import sanitize
    from tests.sanitizer.corpus.whole import ALL

    told = {}
    for pair in ALL:
        if pair.kind:
            findings = sanitize(pair.launch(mended=False), *pair.arguments())
            right = [f for f in findings if (f.kind, f.lines) == (pair.kind, pair.lines)]
            place = (
                memory_of(pair.kind, str(right[0]))
                if right
                else next(c for c in CLASSES if c[0] == pair.kind)
            )
            told[pair.language, pair.name] = (place, bool(right))
    return told


def memory_of(kind: str, message: str) -> tuple[str, str]:
    """The class of a finding."""
    if (kind, "") in CLASSES:
        return kind, ""
    word = "shared array" if kind == "race" else "shared memory"
    return kind, "shared" if word in message else "local" if "local memory" in message else "global"


def ask_numba(name: str) -> str:
    """What a learner sees of a wrong kernel in numba's simulator."""
    right, wrong = (_in_a_process(name, twin) for twin in ("mended", "wrong"))
    if right in (ERROR, NO_END):
        return "cannot run the twin either"
    return wrong if wrong in (ERROR, NO_END) else "silent" if wrong == right else "wrong result"


def _in_a_process(name: str, twin: str) -> str:
    """What a kernel leaves behind, as text, or how it ended."""
    command = [sys.executable, str(Path(__file__)), INNER, twin, name]
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=WAITING, preexec_fn=_limited
        )
    except subprocess.TimeoutExpired:
        return NO_END
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return NO_END
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr}")
    return done.stdout.strip()


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))


def in_numbas_simulator(twin: str, name: str) -> str:
    """Run one kernel; the text of all arrays afterwards."""
    import numpy as np
    from numba import cuda

    import gpulab

    sys.modules["gpulab.cuda"] = gpulab.cuda = cuda  # the corpus imports its cuda from gpulab
    from tests.sanitizer.corpus import NUMBA

    pair = next(pair for pair in NUMBA if pair.name == name)
    given = pair.arguments()
    try:
        pair.launch(twin == "mended")(*given)
    except Exception:
        return ERROR
    arrays = [a if isinstance(a, np.ndarray) else a.copy_to_host() for a in given if hasattr(a, "shape")]
    return " ".join(array.tobytes().hex() for array in arrays)


def rows() -> list[Row]:
    sys.path.insert(0, str(ROOT))
    from tests.sanitizer.corpus.whole import ALL

    told = ask_gpulab()
    wrong = [pair for pair in ALL if pair.kind]
    names = [pair.name for pair in wrong if pair.language == "numba"]
    with ThreadPoolExecutor(2) as pool:
        numba = dict(zip(names, pool.map(ask_numba, names), strict=True))
    made = []
    for place in CLASSES:
        for language in ("numba", "CUDA C"):
            mine = [p for p in wrong if p.language == language and told[language, p.name][0] == place]
            if mine:
                found = sum(told[language, pair.name][1] for pair in mine)
                seen = Counter(numba[pair.name] for pair in mine if language == "numba")
                made.append(Row(place, language, len(mine), found, seen))
    return made


def ran(data: dict[str, Any]) -> list[str]:
    """The table of what compute-sanitizer found on one GPU."""
    from gpulab.analysis.sanitizer.findings import KINDS
    from validation.sanitize import rows as agreeing

    machine, kernels = data["machine"], data["kernels"]
    heading = RAN.format(
        version=machine["compute_sanitizer"], gpu=machine["gpu"], date=data["date"], count=len(kernels)
    )
    return [
        *heading.splitlines(),
        *(
            f"| {KINDS.get(row.kind, 'right as it is')} | {row.kernels} | {row.gpulab} | {row.sanitizer} "
            f"| {row.with_line} | {row.any_tool} | {row.alarms} |"
            for row in agreeing(kernels)
        ),
    ]


def page(made: list[Row], harmless: int, on_gpus: Iterable[dict[str, Any]] = ()) -> str:
    on_gpus = list(on_gpus)
    run = ", what it found on one stands below" if on_gpus else " and was not run"
    total, found = sum(row.kernels for row in made), sum(row.found for row in made)
    lines = [
        "# What gpulab.sanitize finds",
        "",
        *INTRO.format(total=total, found=found, harmless=harmless, patience=PATIENCE, run=run).splitlines(),
        "",
        "| class | language | kernels | gpulab.sanitize | numba's simulator "
        "| compute-sanitizer, by its manual, not run here |",
        "|---|---|---|---|---|---|",
    ]
    for row in made:
        seen = ", ".join(f"{count} {what}" for what, count in sorted(row.numba.items())) or "cannot run it"
        name, manual = CLASSES[row.place]
        lines.append(f"| {name} | {row.language} | {row.kernels} | {row.found} | {seen} | {manual} |")
    for data in on_gpus:
        lines += ran(data)
    return "\n".join([*lines, *SEEING.splitlines()]) + "\n"


def main() -> None:
    if INNER in sys.argv:
        print(in_numbas_simulator(*sys.argv[2:]))
        return
    made = rows()
    from tests.sanitizer.corpus.whole import ALL

    on_gpus = [json.loads(path.read_text()) for path in sorted(SANITIZED.glob("*.json"))]
    TARGET.write_text(page(made, sum(not pair.kind for pair in ALL), on_gpus))
    print(TARGET.read_text())


if __name__ == "__main__":
    main()
