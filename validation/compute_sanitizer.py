"""compute-sanitizer's command line: how it is asked, and what its text says.

Formats as in NVIDIA's "Compute Sanitizer" manual: every line of its own begins with ``=========``; a report
has a headline and below it where, by whom, and the place in the source as ``in FILE:LINE``.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob

# The tool → the kind of finding of gpulab.sanitize that it looks for.
TOOLS = {"memcheck": "memory", "racecheck": "race", "initcheck": "uninitialised", "synccheck": "barrier"}
PLACES = ("/usr/local/cuda*/bin/compute-sanitizer", "/usr/local/cuda*/compute-sanitizer/compute-sanitizer")

LINE = re.compile(r"^=========\s?(.*)$")
PLACE = re.compile(r"\bin (\S.*?):(\d+)(?=[:\s]|$)")
HEADLINES = (
    ("race", re.compile(r"Race reported between|Potential \w+ hazard detected")),
    ("uninitialised", re.compile(r"Uninitialized __\w+__ (?:memory )?read")),
    ("barrier", re.compile(r"Barrier error detected|Missing wait|Invalid (?:arguments|use of barrier)")),
    ("stopped", re.compile(r"Program hit .*ASSERT", re.IGNORECASE)),
    ("error", re.compile(r"Program hit |Target application (?:returned|terminated)|Error: process didn't")),
    ("memory", re.compile(r"Invalid __\w+__ \w+ of size|Invalid \S+ (?:read|write|atomic)|Stack overflow")),
)
SUMMARY = re.compile(r"(?:ERROR|RACECHECK|INITCHECK|SYNCCHECK) SUMMARY: (\d+)")


@dataclass(frozen=True)
class Told:
    """One report: the kind of finding that gpulab.sanitize would call it, and the source lines that it names.

    The kind ``error`` is a CUDA call that failed, mostly because of the other findings.
    """

    kind: str
    lines: tuple[int, ...]


class Unfinished(Exception):
    """The text has no summary: the tool did not come to its end."""


def find() -> str:
    """Where compute-sanitizer is; empty if nowhere."""
    if found := shutil.which("compute-sanitizer"):
        return found
    return next(
        (path for place in PLACES for path in sorted(glob(place))[::-1] if os.access(path, os.X_OK)), ""
    )


def command(sanitizer: str, tool: str, log: str, application: Sequence[str]) -> list[str]:
    """The command that runs `application` under one tool, whose text goes to `log`."""
    return [sanitizer, "--tool", tool, "--log-file", log, "--show-backtrace", "no", *application]


def parse(text: str) -> list[Told]:
    """What a tool reported, each once, in order. Raises Unfinished, with its last line, without a summary."""
    found: list[tuple[str, list[int]]] = []
    finished, last = False, "it said nothing"
    for match in filter(None, map(LINE.match, text.splitlines())):
        line = match[1].strip()
        last = line or last
        if SUMMARY.search(line):
            finished = True
            continue
        kind = next((kind for kind, headline in HEADLINES if headline.search(line)), "")
        if kind:
            found.append((kind, []))
        if found:
            found[-1][1].extend(int(number) for _, number in PLACE.findall(line))
    if not finished:
        raise Unfinished(last)
    return list(dict.fromkeys(Told(kind, tuple(dict.fromkeys(lines))) for kind, lines in found))
