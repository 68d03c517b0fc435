"""Measures the kernels on the GPU of this machine: times by CUDA's events, counters by Nsight Compute.

Times and counters are taken in processes of their own, of a few kernels each; what breaks in such a batch is
tried again kernel by kernel. What was measured is written after every batch.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpulab import __version__, hardware
from gpulab.compile import compiler_version, supported_capabilities
from gpulab.device import has_gpu
from gpulab.messages import Message

from . import children, measured, ncu
from .case import Variant, wrong
from .metrics import COUNTERS, named
from .model import compiling_for, digest, sheet_of
from .table import chosen

TOGETHER = 6  # kernels in one process
PATIENCE = 600.0  # seconds for one process
CHILD = {"GPULAB_SIMULATE": "1"}  # compile and record as everywhere; the executor alone goes to the GPU
Tell = Callable[[str], None]


class CannotMeasure(Message):
    """Something that measuring needs is not here: what, and what to do."""


# ---- in the processes of their own ----------------------------------------------------------------


def about() -> dict[str, Any]:
    """What the driver says of the GPU."""
    from .on_gpu import identity

    found = identity()
    return {"gpu": found.name, "cc": list(found.cc), "driver_cuda": found.driver_cuda}


def launch(keys: Iterable[str], sheet: str, timed: bool) -> dict[str, Any]:
    """Launch all sizes of some kernels on the GPU: results by key and size, with times if wanted."""
    from .on_gpu import OnGPU, summary

    gpu = hardware.find(sheet)
    found: dict[str, Any] = {}
    with compiling_for(gpu) as device:
        for variant, size in ((v, size) for key in keys for v in chosen([key]) for size in v.kernel.sizes):
            case = variant.kernel.case(size)
            run, given = variant.prepared(case)
            executor = OnGPU(gpu.cc, timed)
            with device.executed_by(executor):
                run(*given)
            (kernel,) = executor.kernels
            one: dict[str, Any] = {
                "digest": digest(kernel),
                "compiler": kernel.compiler,
                "wrong": wrong(case, given),
            }
            if timed:
                one["seconds"] = summary(executor.times[0])
            found.setdefault(variant.key, {})[str(size)] = one
    return found


# ---- in the process that the person started -------------------------------------------------------


def machine(times_only: bool) -> dict[str, Any]:
    """What measures here and with what. Raises CannotMeasure."""
    if not has_gpu():
        device = Path("/dev/nvidiactl").exists()
        raise CannotMeasure(
            "there is an NVIDIA device here, but its driver does not start: nvidia-smi says why."
            if device
            else "there is no NVIDIA GPU here, so nothing can be measured. `python -m validation model` says "
            "what the simulator gives."
        )
    told = children.run(child("_about"), PATIENCE, CHILD)
    if told.code:
        raise CannotMeasure(f"the GPU does not answer: {told.last}")
    facts = json.loads(told.last)
    try:
        sheet = sheet_of(facts["gpu"])
    except hardware.UnknownGPU as error:
        raise CannotMeasure(
            f"{error}. Without a data sheet nothing can be modelled for it: add one first, as "
            "CONTRIBUTING.md says."
        ) from None
    if sheet.cc not in supported_capabilities():
        raise CannotMeasure(
            f"the compiler here makes no machine code for {facts['gpu']} ({sheet.capability})."
        )
    compiler = compiler_version().split()[-1]
    if int(facts["driver_cuda"].split(".")[0]) < int(compiler.split(".")[0]):
        raise CannotMeasure(
            f"the driver knows CUDA up to {facts['driver_cuda']}, the compiler here is of CUDA {compiler}: "
            f"make setup CUDA={facts['driver_cuda'].split('.')[0]}, or install a newer driver."
        )
    profiler = "" if times_only else ncu.find()
    if not (times_only or profiler):
        raise CannotMeasure(
            "Nsight Compute (ncu) is not here. It comes with the CUDA Toolkit and alone; put it on the PATH. "
            "--times-only measures without counters."
        )
    version = children.run([profiler, "--version"], PATIENCE).output if profiler else ""
    return {
        **facts,
        "sheet": sheet.name,
        "ncu": next((line.split()[1] for line in version.splitlines() if line.startswith("Version")), ""),
        "compilers": compiler_version(),
        "gpulab": __version__,
        **_settings(),
    }


def child(*arguments: str) -> list[str]:
    """The command of a process of our own."""
    return [sys.executable, "-m", "validation", *arguments]


FIELDS = ("driver_version", "clocks.max.sm", "clocks.max.memory", "power.limit", "mig.mode.current")


def _settings() -> dict[str, str]:
    """Driver, clocks (MHz) and power (W) as nvidia-smi has them."""
    names = ("driver", "max_sm_mhz", "max_memory_mhz", "power_limit_w", "mig")
    smi = shutil.which("nvidia-smi")
    if not smi:
        return dict.fromkeys(names, "unknown")
    query = [smi, "-i", "0", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"]
    values = [value.strip() for value in children.run(query, PATIENCE).last.split(",")]
    return (
        dict(zip(names, values, strict=True))
        if len(values) == len(names)
        else dict.fromkeys(names, "unknown")
    )


def measure(
    names: Iterable[str], out: Path | None, again: bool = False, times_only: bool = False, tell: Tell = print
) -> Path:
    """Measure what is not in the file yet, and say so; gives the file.

    Raises CannotMeasure, measured.OtherMachine, ncu.NcuError, UnknownKernel. An interrupt leaves a file that
    is whole.
    """
    wanted = chosen(names)
    here = machine(times_only)
    path = out or measured.FOLDER / f"{here['sheet'].replace(' ', '_')}.json"
    data = measured.begun(path, here, again)
    counters = list(COUNTERS)

    def phase(name: str, todo: Sequence[Variant], ask: Callable[[Sequence[Variant]], Found]) -> None:
        for first in range(0, len(todo), TOGETHER):
            batch = todo[first : first + TOGETHER]
            told = ", ".join(variant.key for variant in batch)
            tell(f"{name}, {first + len(batch)} of {len(todo)}: {told}")
            for key, found in _apart(batch, ask).items():
                if isinstance(found, Failed):
                    tell(f"    {key}: {found}")
                    data["failed"][key] = str(found)
                    continue
                data["failed"].pop(key, None)
                for size, one in found.items():
                    data["kernels"].setdefault(key, {}).setdefault(size, {}).update(one)
            data.update({"machine": here, "date": f"{datetime.now(UTC):%Y-%m-%d}"})
            data["absent"] = [counter for counter in COUNTERS if counter not in counters]
            measured.save(path, data)

    def has(variant: Variant, what: str) -> bool:
        sizes = data["kernels"].get(variant.key, {})
        return all(what in sizes.get(str(size), {}) for size in variant.kernel.sizes)

    sheet = here["sheet"]
    phase("times", [v for v in wanted if not has(v, "seconds")], lambda batch: _times(batch, sheet))
    if not times_only:
        todo = [v for v in wanted if has(v, "seconds") and not has(v, "counters")]
        phase("counters", todo, lambda batch: _counters(batch, sheet, counters))
    tell(f"{len(data['kernels'])} kernels in {path}, {len(data['failed'])} failed.")
    return path


class Failed(Message):
    """A kernel could not be measured."""


Found = dict[str, "dict[str, Any] | Failed"]  # by key: what was found by size, or why nothing


def _apart(batch: Sequence[Variant], ask: Callable[[Sequence[Variant]], Found]) -> Found:
    """What a batch gives; where it breaks as a whole, what each of its kernels gives alone."""
    try:
        return ask(batch)
    except Failed as failed:
        if len(batch) == 1:
            return {batch[0].key: failed}
        return {key: found for variant in batch for key, found in _apart([variant], ask).items()}


def _times(batch: Sequence[Variant], sheet: str) -> Found:
    """The times of all sizes, of kernels whose results are right."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        told = read(children.run(child("_time", sheet, str(result), *_keys(batch)), PATIENCE, CHILD), result)
    found: Found = {}
    for key, sizes in told.items():
        said = next((of["wrong"] for of in sizes.values() if of["wrong"]), "")
        right = {size: {k: v for k, v in of.items() if k != "wrong"} for size, of in sizes.items()}
        found[key] = Failed(f"wrong on the GPU: {said}") if said else right
    return found


def _counters(batch: Sequence[Variant], sheet: str, counters: list[str]) -> Found:
    """The counters of all sizes. Those that the GPU does not have are taken out of `counters`.

    Raises ncu.NcuError where Nsight Compute cannot measure at all.
    """
    with tempfile.TemporaryDirectory() as folder:
        log, result = Path(folder) / "ncu.csv", Path(folder) / "result.json"
        application = child("_launch", sheet, str(result), *_keys(batch))
        while True:
            log.unlink(missing_ok=True)
            ended = children.run(ncu.command(ncu.find(), str(log), counters, application), PATIENCE, CHILD)
            text = ended.output + "\n" + (log.read_text("utf-8", "replace") if log.exists() else "")
            absent = ncu.unknown(text, counters)
            if not absent:
                break
            counters[:] = [name for name in counters if name not in absent]
        if said := ncu.trouble(text):
            raise ncu.NcuError(f"Nsight Compute cannot measure here: {said}.")
        told = read(ended, result)
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
