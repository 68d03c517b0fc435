"""What measures here and with what: the GPU, its driver, the compiler, the profiler; or why nothing can.

Whatever asks the GPU does so in a process of its own.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpulab import __version__
from gpulab.foundation.errors import Message
from gpulab.simulator import hardware
from gpulab.simulator.compile import compiler_version, supported_capabilities
from gpulab.simulator.device import has_gpu

from . import children, ncu, traces

PATIENCE = 300.0  # seconds for one process
CHILD = {"GPULAB_SIMULATE": "1"}  # compile and record as everywhere; the executor alone goes to the GPU


class CannotMeasure(Message):
    """Something that measuring needs is not here: what, and what to do."""


def about() -> dict[str, Any]:
    """What the driver says of the GPU."""
    from .on_gpu import identity

    found = identity()
    return {
        "gpu": found.name,
        "cc": list(found.cc),
        "sms": found.sms,
        "l2_bytes": found.l2_bytes,
        "driver_cuda": found.driver_cuda,
    }


Compilers = Callable[[str, hardware.GPU], str]  # of a GPU by its driver's name and its data sheet


def machine(times_only: bool, compilers_for: Compilers) -> dict[str, Any]:
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
        sheet = hardware.find(facts["gpu"])
    except hardware.UnknownGPU as error:
        raise CannotMeasure(
            f"{error}. Without a data sheet nothing can be modelled for it: add one first, as "
            "CONTRIBUTING.md says."
        ) from None
    compilers = compilers_for(facts["gpu"], sheet)
    newest = compilers.split()[-1]
    if int(facts["driver_cuda"].split(".")[0]) < int(newest.split(".")[0]):
        raise CannotMeasure(
            f"the driver knows CUDA up to {facts['driver_cuda']}, the compiler is of CUDA {newest}: "
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
        "compilers": compilers,
        "gpulab": __version__,
        **_settings(),
    }


def installed(gpu: str, sheet: hardware.GPU) -> str:
    """The compiler here, which must know the GPU. Raises CannotMeasure."""
    elsewhere = (
        f"`python -m validation compile --gpu {sheet.name!r} --out FILE` where gpulab's own environment is "
        "writes launch traces; `measure --traces FILE` here needs no compiler then."
    )
    try:
        if compiler_version() and sheet.cc in supported_capabilities():
            return compiler_version()
    except Exception as error:  # whatever a library that is not there makes of it
        raise CannotMeasure(f"the compiler here does not start ({error}). {elsewhere}") from None
    raise CannotMeasure(
        f"the compiler here ({compiler_version() or 'none'}) makes no machine code for {gpu} "
        f"({sheet.capability}). {elsewhere}"
    )


def in_traces(known: traces.Traces) -> Compilers:
    """The compiler of launch traces, which must be for the GPU here."""

    def compilers(gpu: str, sheet: hardware.GPU) -> str:
        if hardware.find(known["sheet"]).cc != sheet.cc:
            raise CannotMeasure(
                f"the launch traces are for {known['sheet']}, but here is {gpu}, which runs other machine "
                f"code: python -m validation compile --gpu {sheet.name!r}"
            )
        return str(known["compilers"])

    return compilers


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
