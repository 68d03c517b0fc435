"""``gpulab run``: a program as its author wrote it, on the simulated GPU."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpulab import habits
from gpulab.foundation.errors import Message
from gpulab.simulator import device as devices
from gpulab.simulator import hardware
from gpulab.simulator.simt import SimulationError

from . import binaries, cuda_cpp, ledger, machine_code, simulation

USAGE = (
    "gpulab run [OPTIONS] script.py [ARGUMENTS], gpulab run [OPTIONS] program.cu [ARGUMENTS], "
    "gpulab run [OPTIONS] ./program [ARGUMENTS], or gpulab run [OPTIONS] -m module [ARGUMENTS]"
)
ENDINGS = ", ".join(cuda_cpp.ENDINGS)
OURS = (__file__, habits.__file__, "<frozen runpy>")  # files whose frames tell nothing of a program's error
STOPPED = 130  # the exit code after Ctrl-C, as a shell has it


class CannotRun(Message):
    """There is nothing to run; the message says what was looked for."""


@dataclass(frozen=True)
class Settings:
    """What a run is asked for, beside the program.

    `gpu` is a name of the catalogue, or empty for the default. `fill` is what new memory holds: nan, zero or
    random. `limit` is how many instructions a chunk of blocks may take before it counts as endless, or 0 for
    the simulator's own limit. `nvcc` are flags for building a program in CUDA C++.
    """

    gpu: str = ""
    fill: str = "nan"
    clock: str = "none"
    limit: int = 0
    report: bool = False
    sanitize: bool = False
    budget: Path | None = None
    write_budget: Path | None = None
    nvcc: str = ""


def run(program: list[str], settings: Settings) -> int:
    """Run a script or module with its arguments; the exit code.

    It is the program's own, or 1 where that is 0 and a count is over budget or the sanitizer found something.
    Whatever is wrong with the command is said before the program starts: raises CannotRun,
    hardware.UnknownGPU, ledger.WrongBudget.
    """
    _check(program, settings)
    gpu = hardware.find(settings.gpu) if settings.gpu else devices.current().gpu
    limits = ledger.read_budget(settings.budget, gpu.name) if settings.budget else None
    if settings.limit < 0:
        raise CannotRun(f"--limit {settings.limit}: a kernel cannot stop after fewer than 0 instructions")
    if settings.write_budget and not settings.write_budget.parent.is_dir():
        raise CannotRun(f"--write-budget {settings.write_budget}: there is no folder for it")
    device = simulation.install(gpu.name)
    simulation.fill_new_memory(device, settings.fill)
    start = _program(program, settings)
    counted = ledger.Ledger(device)
    with ExitStack() as stack:
        stack.enter_context(simulation.timed_by(settings.clock))
        if settings.limit:
            stack.enter_context(device.using(limit=settings.limit))
        if settings.report or settings.budget or settings.write_budget:
            stack.enter_context(counted.standing())
        findings = stack.enter_context(_sanitized(settings.sanitize))
        code = _exit_code(start)
    counts = counted.counts()
    if settings.report:
        print(ledger.table(counts, gpu.name), file=sys.stderr)
    if settings.write_budget and code:
        print(
            f"gpulab run: {settings.write_budget} was not written, because the program ended with {code}.",
            file=sys.stderr,
        )
    elif settings.write_budget:
        ledger.write_budget(settings.write_budget, counts, gpu.name)
    blocks, nbytes = device.heap_left() if settings.sanitize else (0, 0)
    if blocks:  # no finding: memory may be kept on purpose until the program ends
        said = f"{blocks:,} block{'s' if blocks > 1 else ''} of malloc() or new in kernels, {nbytes:,} bytes"
        print(f"gpulab run: {said}, were never freed.", file=sys.stderr)
    complaints = findings()
    if limits is not None:
        complaints += ledger.over_budget(limits, counts)
    for complaint in complaints:
        print(f"gpulab run: {complaint}", file=sys.stderr)
    return code or int(bool(complaints))


def _check(program: list[str], settings: Settings) -> None:
    """Raise CannotRun for what cannot be a program."""
    if not program:
        raise CannotRun(f"nothing to run: {USAGE}")
    first, *rest = program
    if first == "-m":
        if not rest:
            raise CannotRun(f"-m names no module: {USAGE}")
        return
    path = Path(first)
    if not path.is_file():
        raise CannotRun(f"there is no file {first}: {USAGE}")
    in_cpp = first.endswith(cuda_cpp.ENDINGS)
    if settings.nvcc and not in_cpp:
        raise CannotRun(f"--nvcc has flags for programs in CUDA C++ ({ENDINGS}), and {first} is none")
    if (in_cpp or machine_code.is_machine_code(path)) and settings.clock not in cuda_cpp.CLOCKS:
        known = " or ".join(cuda_cpp.CLOCKS)
        raise CannotRun(
            f"--clock {settings.clock} times Triton's benchmarks; events of CUDA C++ take {known}"
        )


def _program(program: list[str], settings: Settings) -> Callable[[], Any]:
    """What starts the program: as Python would, its arguments and its folder in place; or main of C++."""
    first, *rest = program
    if first.endswith(cuda_cpp.ENDINGS):
        return cuda_cpp.program(first, rest, settings.nvcc, settings.clock)
    if first == "-m":
        module, *arguments = rest

        def start_module() -> Any:
            sys.argv = [module, *arguments]
            sys.path.insert(0, os.getcwd())
            return runpy.run_module(module, run_name="__main__", alter_sys=True)

        return start_module
    path = Path(first)
    if machine_code.is_machine_code(path):
        try:
            return binaries.program(path, rest, settings.clock)
        except machine_code.CannotLoad as error:
            raise CannotRun(str(error)) from None

    def start_script() -> Any:
        sys.argv = [first, *rest]
        sys.path.insert(0, str(path.resolve().parent))
        return runpy.run_path(first, run_name="__main__")

    return start_script


def _exit_code(start: Callable[[], Any]) -> int:
    """Run the program to its end; as Python does, an error that nobody catches is shown and means 1."""
    try:
        start()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except (Message, SimulationError) as error:  # its text says where, and frames of ours say nothing
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt as stopped:  # its text says which kernel was under way
        print(f"gpulab run: {str(stopped) or 'The program was stopped.'}", file=sys.stderr)
        return STOPPED
    except Exception as error:
        traceback.print_exception(_without_our_frames(error))
        return 1
    return 0


def _without_our_frames(error: BaseException) -> BaseException:
    """The error with the traceback that Python would show: the program's own frames."""
    kept = []
    frame = error.__traceback__
    while frame:
        if not frame.tb_frame.f_code.co_filename.startswith(OURS):
            kept.append(frame)
        frame = frame.tb_next
    for each, following in zip(kept, [*kept[1:], None], strict=False):
        each.tb_next = following
    return error.with_traceback(kept[0] if kept else None)


@contextmanager
def _sanitized(wanted: bool) -> Iterator[Callable[[], list[str]]]:
    """While it is entered, the sanitizer's tools watch every launch; what is yielded tells their findings."""
    if not wanted:
        yield list
        return
    from gpulab.analysis.sanitizer.tools import Tools

    tools = Tools(devices.current())
    with tools.standing():
        yield lambda: list(dict.fromkeys(str(finding) for finding in tools.findings()))
