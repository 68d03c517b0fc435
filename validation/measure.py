"""Measures the kernels on the GPU of this machine: times by CUDA's events, counters by Nsight Compute.

Each kernel has two processes of its own, one for times, one under Nsight Compute, so that neither disturbs
the other and what one kernel breaks is broken for it alone. What was measured is written after every kernel.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
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

PATIENCE = 300.0  # seconds for all sizes of one kernel, times or counters
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


def launch(key: str, sheet: str, timed: bool) -> dict[str, Any]:
    """Launch all sizes of one kernel on the GPU: results by size, with times if wanted."""
    from .on_gpu import OnGPU, summary

    (variant,) = chosen([key])
    gpu = hardware.find(sheet)
    found = {}
    with compiling_for(gpu) as device:
        for size in variant.kernel.sizes:
            case = variant.kernel.case(size)
            run, given = variant.prepared(case)
            executor = OnGPU(gpu.cc, timed)
            with device.executed_by(executor):
                run(*given)
            (kernel,) = executor.kernels
            found[str(size)] = {
                "digest": digest(kernel),
                "compiler": kernel.compiler,
                "wrong": wrong(case, given),
            } | ({"seconds": summary(executor.times[0])} if timed else {})
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
    for number, variant in enumerate(wanted, 1):
        if _done(data["kernels"].get(variant.key), variant, times_only):
            continue
        tell(f"{number} of {len(wanted)}  {variant.key}")
        try:
            found = _one(variant, here["sheet"], None if times_only else counters)
        except Failed as failed:
            tell(f"    {failed}")
            data["failed"][variant.key] = str(failed)
        else:
            data["kernels"][variant.key] = found
            data["failed"].pop(variant.key, None)
        data |= {"machine": here, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
        data["absent"] = [name for name in COUNTERS if name not in counters]
        measured.save(path, data)
    tell(f"{len(data['kernels'])} kernels in {path}, {len(data['failed'])} failed.")
    return path


def _done(entry: dict[str, Any] | None, variant: Variant, times_only: bool) -> bool:
    sizes = [str(size) for size in variant.kernel.sizes]
    return entry is not None and all(
        size in entry and (times_only or "counters" in entry[size]) for size in sizes
    )


class Failed(Message):
    """One kernel could not be measured."""


def _one(variant: Variant, sheet: str, counters: list[str] | None) -> dict[str, Any]:
    """All sizes of one kernel. Counters that the GPU does not have are taken out of `counters`."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        ended = children.run(child("_time", variant.key, sheet, str(result)), PATIENCE, CHILD)
        found = read(ended, result)
        if said := next((of["wrong"] for of in found.values() if of["wrong"]), ""):
            raise Failed(f"wrong on the GPU: {said}")
        entry = {size: {k: v for k, v in of.items() if k != "wrong"} for size, of in found.items()}
        if counters is None:
            return entry
        for size, values in zip(found, _counted(variant, sheet, counters, Path(folder)), strict=True):
            entry[size]["counters"] = named(values)
        return entry


def read(ended: children.Ended, result: Path) -> dict[str, Any]:
    """What a process of its own wrote. Raises Failed where it did not."""
    if ended.code is None:
        raise Failed(f"did not end within {PATIENCE:.0f} s")
    if ended.code or not result.exists():
        raise Failed(ended.last or f"ended with exit code {ended.code}")
    return dict(json.loads(result.read_text(encoding="utf-8")))


def _counted(variant: Variant, sheet: str, counters: list[str], folder: Path) -> list[dict[str, float]]:
    """The counters of each size, in order."""
    log, result = folder / "ncu.csv", folder / "under_ncu.json"
    while True:
        log.unlink(missing_ok=True)
        application = child("_launch", variant.key, sheet, str(result))
        ended = children.run(ncu.command(ncu.find(), str(log), counters, application), PATIENCE, CHILD)
        text = ended.output + (log.read_text(encoding="utf-8", errors="replace") if log.exists() else "")
        absent = set(ncu.unknown(text)) & set(counters)
        if not absent:
            break
        counters[:] = [name for name in counters if name not in absent]
    if said := ncu.trouble(text):
        raise ncu.NcuError(f"Nsight Compute cannot measure here: {said}.")
    read(ended, result)
    rows = ncu.parse(text, counters)
    if len(rows) != len(variant.kernel.sizes):
        raise Failed(f"Nsight Compute saw {len(rows)} launches where there are {len(variant.kernel.sizes)}")
    return rows


def write(result: str, found: dict[str, Any]) -> None:
    """Write what a process of its own found where its parent looks for it."""
    Path(result).write_text(json.dumps(found), encoding="utf-8")
