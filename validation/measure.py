"""Measures the kernels on the GPU of this machine: times by CUDA's events, counters by Nsight Compute.

Kernels are compiled first, or come in a file of launch traces from a machine that could. Times and counters
are taken in processes of their own, of a few kernels each; what breaks in such a batch is tried again kernel
by kernel. What was measured is written after every batch, the most telling first: times before counters, CUDA
C before numba.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from gpulab.foundation.errors import Message

from . import children, measured, ncu, traces
from .case import CUDA_C, Variant, wrong
from .machine import CHILD, PATIENCE, CannotMeasure, child, in_traces, installed, machine
from .metrics import COUNTERS, named
from .table import chosen

TOGETHER = 6  # kernels in one process
COMPILING = 1800.0  # seconds for compiling all
Tell = Callable[[str], None]
say = partial(print, flush=True)


# ---- in the processes of their own ----------------------------------------------------------------


def launch(file: str, keys: Iterable[str], timed: bool) -> dict[str, Any]:
    """Launch all sizes of some kernels of a file of launch traces on the GPU: results by key and size, with
    times if wanted."""
    from .on_gpu import run

    known = traces.load(Path(file))
    found: dict[str, Any] = {}
    for key in keys:
        trace, (variant,) = known["kernels"][key], chosen([key])
        for size in variant.kernel.sizes:
            case, of = variant.kernel.case(size), trace["launches"][str(size)]
            after, times = run(trace["code"], trace["entry"], of, case, known["clock"] if timed else "")
            one = {name: trace[name] for name in ("digest", "compiler")} | {
                "wrong": wrong(case, tuple(after))
            }
            if times is not None:
                one["seconds"] = times.summary()
            found.setdefault(key, {})[str(size)] = one
    return found


def begin(file: str) -> dict[str, Any]:
    """The times of a kernel that does nothing."""
    from .on_gpu import beginning

    return dict(beginning(traces.load(Path(file))["clock"]).summary())


# ---- in the process that the person started -------------------------------------------------------


@dataclass
class _Session:
    """One call of `measure`: what is measured, into what, and until when (None: for as long as it takes)."""

    path: Path
    data: dict[str, Any]
    here: dict[str, Any]
    file: str  # of launch traces
    tell: Tell
    until: float | None
    counters: list[str] = field(default_factory=lambda: list(COUNTERS))
    longest: float = 0.0  # seconds of a batch so far

    @property
    def patience(self) -> float:
        """Seconds that a process may take."""
        return PATIENCE if self.until is None else max(min(PATIENCE, self.until - time.monotonic()), 1.0)

    def ends(self) -> None:
        """Raises OutOfTime where another batch would not end in time."""
        if self.until is not None and time.monotonic() + 1.2 * self.longest > self.until:
            raise OutOfTime

    def has(self, variant: Variant, what: str) -> bool:
        """Whether a kernel's times or counters are there for all sizes."""
        sizes = self.data["kernels"].get(variant.key, {})
        return all(what in sizes.get(str(size), {}) for size in variant.kernel.sizes)

    def save(self) -> None:
        """Write what there is."""
        self.data.update({"machine": self.here, "date": f"{datetime.now(UTC):%Y-%m-%d}"})
        self.data["absent"] = [counter for counter in COUNTERS if counter not in self.counters]
        measured.save(self.path, self.data)

    def phase(self, name: str, todo: Sequence[Variant], ask: Callable[[Sequence[Variant]], Found]) -> None:
        """Ask for kernels in batches; the first of one kernel, which shows whether it works at all.

        Raises CannotMeasure where nothing works for the same reason twice, OutOfTime.
        """
        todo = sorted(todo, key=lambda v: (v.key in self.data["failed"], v.language != CUDA_C))
        before = ""
        for first in (0, *range(1, len(todo), TOGETHER)) if todo else ():
            batch = todo[first : first + (TOGETHER if first else 1)]
            self.ends()
            begun = time.monotonic()
            self.tell(f"{name}, {first + len(batch)} of {len(todo)}: {', '.join(v.key for v in batch)}")
            found = _apart(batch, ask)
            self.longest = max(self.longest, time.monotonic() - begun)
            for key, of in found.items():
                if isinstance(of, Failed):
                    self.tell(f"    {key}: {of}")
                    self.data["failed"][key] = str(of)
                    continue
                self.data["failed"].pop(key, None)
                for size, one in of.items():
                    self.data["kernels"].setdefault(key, {}).setdefault(size, {}).update(one)
            self.save()
            reasons = {
                str(of) if isinstance(of, Failed) and not isinstance(of, Wrong) else ""
                for of in found.values()
            }
            if reasons == {before} != {""}:
                raise CannotMeasure(f"{name} can be taken of no kernel: {before}")
            before = reasons.pop() if len(reasons) == 1 else ""


class OutOfTime(Exception):
    """The time that measuring may take is over."""


def measure(
    names: Iterable[str],
    out: Path | None,
    again: bool = False,
    times_only: bool = False,
    tell: Tell = say,
    launch_traces: Path | None = None,
    minutes: float | None = None,
) -> Path:
    """Measure what is not in the file yet, and say so; gives the file. It ends after so many `minutes`.

    Raises CannotMeasure, measured.OtherMachine, ncu.NcuError, traces.UnreadableTraces, UnknownKernel. An
    interrupt leaves a file that is whole.
    """
    until = None if minutes is None else time.monotonic() + 60 * minutes
    wanted = chosen(names)
    known = traces.load(launch_traces) if launch_traces else None
    here = machine(times_only, in_traces(known) if known else installed)
    path = out or measured.FOLDER / f"{here['sheet'].replace(' ', '_')}.json"
    data = measured.begun(path, here, again)
    with tempfile.TemporaryDirectory() as folder:
        file = launch_traces.resolve() if launch_traces else Path(folder) / "traces.json"
        session = _Session(path, data, here, str(file), tell, until)
        todo = [
            v
            for v in wanted
            if not (session.has(v, "seconds") and (times_only or session.has(v, "counters")))
        ]
        try:
            if todo and not launch_traces:
                session.ends()
                tell(f"compiling {len(todo)} kernels")
                _compiled(here["sheet"], file, todo)
            _both(session, todo, times_only)
        except OutOfTime:
            tell(f"The {minutes:g} minutes are over; the same command goes on from here.")
    left = sum(not (session.has(v, "seconds") and (times_only or session.has(v, "counters"))) for v in wanted)
    tell(f"{len(data['kernels'])} kernels in {path}, {len(data['failed'])} failed, {left} not complete.")
    return path


def _both(session: _Session, todo: Sequence[Variant], times_only: bool) -> None:
    """Times, and behind them counters."""
    if todo and "start" not in session.data:
        session.ends()
        session.data["start"] = _result(session, "_begin")
    timed = [v for v in todo if not session.has(v, "seconds")]
    session.phase("times", timed, lambda batch: _times(session, batch))
    if not times_only:
        there = [v for v in todo if session.has(v, "seconds") and not session.has(v, "counters")]
        session.longest = 0.0
        session.phase("counters", there, lambda batch: _counters(session, batch))


def _compiled(sheet: str, file: Path, wanted: Sequence[Variant]) -> None:
    """Compile in a process that simulates. Raises CannotMeasure."""
    ended = children.run(
        child("compile", "--gpu", sheet, "--out", str(file), "--only", *_keys(wanted)), COMPILING, CHILD
    )
    if ended.code or not file.exists():
        raise CannotMeasure(f"the kernels do not compile here: {ended.last}")


class Failed(Message):
    """A kernel could not be measured."""


class Wrong(Failed):
    """A kernel computed something else than NumPy, which says nothing of the others."""


Found = dict[str, "dict[str, Any] | Failed"]  # by key: what was found by size, or why nothing


def _apart(batch: Sequence[Variant], ask: Callable[[Sequence[Variant]], Found]) -> Found:
    """What a batch gives; where it breaks as a whole, what each of its kernels gives alone."""
    try:
        return ask(batch)
    except Failed as failed:
        if len(batch) == 1:
            return {batch[0].key: failed}
        return {key: found for variant in batch for key, found in _apart([variant], ask).items()}


def _result(session: _Session, what: str, *keys: str) -> dict[str, Any]:
    """What a process of its own finds on the GPU. Raises Failed, OutOfTime."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = child(what, session.file, str(result), *keys)
        return _read(session, children.run(command, session.patience, CHILD), result)


def _times(session: _Session, batch: Sequence[Variant]) -> Found:
    """The times of all sizes, of kernels whose results are right."""
    found: Found = {}
    for key, sizes in _result(session, "_time", *_keys(batch)).items():
        said = next((of["wrong"] for of in sizes.values() if of["wrong"]), "")
        right = {size: {k: v for k, v in of.items() if k != "wrong"} for size, of in sizes.items()}
        found[key] = Wrong(f"wrong on the GPU: {said}") if said else right
    return found


def _counters(session: _Session, batch: Sequence[Variant]) -> Found:
    """The counters of all sizes. Those that the GPU does not have are taken out of the session's.

    Raises ncu.NcuError where Nsight Compute cannot measure at all.
    """
    counters = session.counters
    with tempfile.TemporaryDirectory() as folder:
        log, result = Path(folder) / "ncu.csv", Path(folder) / "result.json"
        application = child("_launch", session.file, str(result), *_keys(batch))
        while True:
            log.unlink(missing_ok=True)
            command = ncu.command(ncu.find(), str(log), counters, application)
            ended = children.run(command, session.patience, CHILD)
            text = ended.output + "\n" + (log.read_text("utf-8", "replace") if log.exists() else "")
            absent = ncu.unknown(text, counters)
            if not absent:
                break
            counters[:] = [name for name in counters if name not in absent]
        if said := ncu.trouble(text):
            raise ncu.NcuError(f"Nsight Compute cannot measure here: {said}.")
        told = _read(session, ended, result)
    try:
        rows = ncu.parse(text, counters)
    except ncu.NcuError as error:
        raise Failed(str(error)) from None
    launches = [(key, size) for key, sizes in told.items() for size in sizes]
    if len(rows) != len(launches):
        raise Failed(f"Nsight Compute saw {len(rows)} launches where there are {len(launches)}")
    found: Found = {}
    for (key, size), row in zip(launches, rows, strict=True):
        found.setdefault(key, {})[size] = {"counters": named(row)}  # type: ignore[index]
    return found


def _keys(batch: Sequence[Variant]) -> list[str]:
    return [variant.key for variant in batch]


def _read(session: _Session, ended: children.Ended, result: Path) -> dict[str, Any]:
    """`read`; out of time it is not the kernels' fault."""
    if ended.code is None and session.until is not None and time.monotonic() + 1 >= session.until:
        raise OutOfTime
    return read(ended, result)


def read(ended: children.Ended, result: Path) -> dict[str, Any]:
    """What a process of its own wrote. Raises Failed where it did not."""
    if ended.code is None:
        raise Failed(f"did not end within {PATIENCE:.0f} s")
    if ended.code or not result.exists():
        raise Failed(ended.last or f"ended with exit code {ended.code}")
    return dict(json.loads(result.read_text(encoding="utf-8")))


def write(result: str, found: dict[str, Any]) -> None:
    """Write what a process of its own found where its parent looks for it."""
    Path(result).write_text(json.dumps(found), encoding="utf-8")
