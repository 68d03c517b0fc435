"""Failures of tests that point at the source line of a kernel."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from _pytest._code.code import ExceptionChainRepr, ReprEntry, ReprFileLocation, ReprTraceback

import gpulab
from gpulab.analysis.sanitizer.findings import Finding
from gpulab.foundation.errors import Message
from gpulab.simulator.ptx import Location
from gpulab.simulator.simt import SimulationError

OURS = Path(gpulab.__file__).parent
FIRST_LINE = 0  # pytest counts a test's lines from here


@dataclass(frozen=True)
class Complaint:
    """Something wrong with a kernel: a title of a few words, the whole message, and a line of source.

    `file` is relative to the root of the tests where it lies below it, and empty where no file is known.
    """

    title: str
    message: str
    file: str = ""
    line: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data, which pytest-xdist sends from a worker to the process that reports."""
        return asdict(self)


class KernelFindings(Message):
    """What the sanitizer found in a test that had passed without it."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("\n\n".join(map(str, findings)))
        self.findings = findings


def complaints_of(error: BaseException, root: Path) -> list[Complaint]:
    """What an error says about kernels; empty if it is not about kernels."""
    if isinstance(error, KernelFindings):
        return [of_finding(finding, root) for finding in error.findings]
    if not isinstance(error, Message | SimulationError):
        return []
    return [_complaint(str(error), getattr(error, "location", None), root)]


def of_finding(finding: Finding, root: Path) -> Complaint:
    """A finding of the sanitizer, at the first of its lines."""
    return _complaint(str(finding), finding.places[0] if finding.places else None, root)


def _complaint(message: str, place: Location | None, root: Path) -> Complaint:
    return Complaint(message.partition("\n")[0], message, *_place(place, root))


def _place(location: Location | None, root: Path) -> tuple[str, int]:
    """A file that exists, and a line in it."""
    if location is None:
        return "", 0
    path, line = Path(location.file).resolve(), location.line
    if not path.is_file():
        if (found := _in_a_string(location, root)) is None:
            return "", 0
        path, line = found
    return str(path.relative_to(root) if path.is_relative_to(root) else path), line


def _in_a_string(location: Location, root: Path) -> tuple[Path, int] | None:
    """Where a kernel's line is that was compiled from a string: in a module of the tests with that string."""
    whole = "".join(linecache.getlines(location.file))
    source = whole.strip("\n")
    skipped = len(whole) - len(whole.lstrip("\n"))
    files = {Path(str(getattr(module, "__file__", None))) for module in list(sys.modules.values())}
    for path in (file.resolve() for file in files if file.suffix == ".py" and file.is_file()):
        if source and path.is_relative_to(root) and "site-packages" not in path.parts:
            text = path.read_text(encoding="utf-8", errors="replace")
            if (at := text.find(source)) >= 0:
                return path, text.count("\n", 0, at) + location.line - skipped
    return None


def point(
    report: pytest.TestReport,
    complaints: Sequence[Complaint],
    excinfo: pytest.ExceptionInfo[BaseException],
    item: pytest.Item,
) -> None:
    """Let a failed test's report end with the kernel's line, as one of Python ends with Python's."""
    entries = _of_the_test(excinfo, item)
    entries += [_entry(complaint, item) for complaint in complaints]
    crash = entries[-1].reprfileloc
    assert crash is not None
    traceback = ReprTraceback(entries, None, "long")
    report.longrepr = ExceptionChainRepr([(traceback, crash, None)])


def _of_the_test(excinfo: pytest.ExceptionInfo[BaseException], item: pytest.Item) -> list[ReprEntry]:
    """The frames of the user's code from the test to the launch, without those of ours below."""

    def users(excinfo: pytest.ExceptionInfo[BaseException]) -> Any:
        below = excinfo.traceback.cut(path=item.path)
        return below.filter(lambda frame: not Path(frame.path).is_relative_to(OURS))

    if not any(Path(frame.path) == item.path for frame in excinfo.traceback):
        return []
    shown = excinfo.getrepr(style="short", chain=False, tbfilter=users).reprtraceback.reprentries
    return [
        replace(entry, lines=[line for line in entry.lines if not line.startswith("E")])
        for entry in shown
        if isinstance(entry, ReprEntry)
    ]


def _entry(complaint: Complaint, item: pytest.Item) -> ReprEntry:
    path, line, _ = item.location
    at = (complaint.file, complaint.line) if complaint.file else (path, (line or FIRST_LINE) + 1)
    lines = [f"E   {text}".rstrip() for text in complaint.message.splitlines()]
    return ReprEntry(lines, None, None, ReprFileLocation(*at, complaint.title), "long")
