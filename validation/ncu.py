"""Nsight Compute's command line: how it is asked, and what its table says.

Formats as in NVIDIA's "Nsight Compute CLI" manual: ``--page raw --csv`` writes one row per launch below a
row of names and a row of units, with lines of its own (``==PROF==``, ``==ERROR==``) before it.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
from collections.abc import Sequence
from glob import glob

from gpulab.foundation.errors import Message

PLACES = ("/usr/local/cuda*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
# Units that a number may come in although base units were asked for, in base units.
SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
UNITS = re.compile(r"([KMGT]?)(byte|hz|cycle/second|inst|sector|request)s?", re.IGNORECASE)
SECONDS = {
    "ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3,
    "s": 1.0, "second": 1.0,
}  # fmt: skip

# What Nsight Compute says when it cannot measure → what to do about it.
TROUBLE = {
    "ERR_NVGPUCTRPERM": (
        "this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM). Run as root, or let the "
        "administrator load the driver with NVreg_RestrictProfilingToAdminUsers=0; a container needs "
        "--cap-add=SYS_ADMIN. Times alone need no permission: --times-only"
    ),
    "LibraryNotLoaded": "this machine (a container, a sandbox?) keeps Nsight Compute from the driver",
    "driver resource was unavailable": (
        "another tool holds the performance counters, such as DCGM: stop it for as long as this runs "
        "(dcgmi profiling pause)"
    ),
    "not supported on device": "this Nsight Compute does not know this GPU: install a newer one",
    "not supported on this device": "this Nsight Compute does not know this GPU: install a newer one",
    "Cuda driver is not compatible": "this Nsight Compute wants a newer driver",
}
# It names the counter, or an expression that it has made of its name: regex:^sm__x\.(sum|max)$
UNKNOWN = re.compile(r"Failed to find metrics?:?\s+(?:regex:)?\^?([\w.\\]+)")


class NcuError(Message):
    """Nsight Compute did not measure, and why."""


def find() -> str:
    """Where Nsight Compute's command is; empty if nowhere."""
    if found := shutil.which("ncu"):
        return found
    return next(
        (path for place in PLACES for path in sorted(glob(place))[::-1] if os.access(path, os.X_OK)), ""
    )


def command(ncu: str, log: str, counters: Sequence[str], application: Sequence[str]) -> list[str]:
    """The command that measures `counters` of all launches of `application` and writes its table to `log`.

    Clocks stay as they are; caches are flushed before each launch, which is its default.
    """
    asked = ["--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
    return [ncu, *asked, "--log-file", log, "--metrics", ",".join(counters), *application]


def parse(text: str, counters: Sequence[str]) -> list[dict[str, float]]:
    """The counters of each launch, in order, in base units (bytes, seconds, Hz); one that Nsight Compute does
    not give is left out. Raises NcuError where the text holds no table."""
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith(('"ID",', "ID,"))), None)
    table = (
        [line for line in lines[start:] if line and not line.startswith("==")] if start is not None else []
    )
    if len(table) < 2:
        raise NcuError(f"Nsight Compute wrote no table: {trouble(text) or _last(lines)}")
    names, units, *rows = csv.reader(table)
    found = []
    for row in rows:
        of = dict(zip(names, zip(units, row, strict=False), strict=False))
        values = {name: _number(*of[name]) for name in counters if name in of}
        found.append({name: value for name, value in values.items() if value is not None})
    return found


def _number(unit: str, text: str) -> float | None:
    """A number in base units; None for ``n/a`` and the like. Thousands may be set apart by commas."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    if unit in SECONDS:
        return value * SECONDS[unit]
    match = UNITS.fullmatch(unit)
    return value * SCALES[match[1].upper()] if match else value


def unknown(text: str, counters: Sequence[str]) -> list[str]:
    """Those of the counters that this GPU does not have."""
    named = [found.replace("\\", "").rstrip(".") for found in UNKNOWN.findall(text)]
    return [c for c in counters if any(c == name or c.startswith(f"{name}.") for name in named)]


def trouble(text: str) -> str:
    """What keeps Nsight Compute from measuring and what to do about it; empty if it says nothing known."""
    return next((cure for needle, cure in TROUBLE.items() if needle.lower() in text.lower()), "")


def _last(lines: Sequence[str]) -> str:
    """What it said last."""
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
