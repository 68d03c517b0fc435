"""What this machine has for the labs, what it lacks, and what to do about each "no"."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

    from gpulab.simulator.compile.packages import Internals

OLDEST_PYTHON = (3, 11)
ENOUGH_MEMORY = 1.5e9  # bytes: what a check of an exercise may take, as on Binder
ENOUGH_DISK = 1e9
BWRAP = (
    "bwrap",
    "--unshare-all",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
)

State = Literal["ok", "no", "none"]  # none: absent and not missed
STYLES: dict[State, str] = {"ok": "green", "no": "red", "none": "dim"}

Result = tuple[State, str, str]  # the state, what was found, and what it means or what to do


@dataclass(frozen=True)
class Check:
    """One thing to look at. When it is `needed`, a "no" stops the labs."""

    name: str
    look: Callable[[], Result]
    needed: bool = False


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str
    found: str
    state: State
    note: str
    needed: bool


@dataclass(frozen=True)
class Diagnosis:
    """All findings. Shows itself as a table."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether the labs can be done."""
        return not any(f.needed and f.state == "no" for f in self.findings)

    def to_json(self) -> str:
        from gpulab.foundation.version import VERSION

        findings = [asdict(finding) for finding in self.findings]
        return json.dumps({"gpulab": VERSION, "ok": self.ok, "findings": findings}, indent=2)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2, 0, 0))
        for finding in self.findings:
            title = f"{finding.name} {finding.found}".strip()
            table.add_row(title, Text(finding.state, STYLES[finding.state]), Text(finding.note))
        yield table
        verdict = (
            "The labs can be done here." if self.ok else "The labs cannot be done here yet: see each no."
        )
        yield Text("\n" + verdict, "green" if self.ok else "red")


def diagnose(checks: Iterable[Check] | None = None) -> Diagnosis:
    """Look at everything.

    A check that fails itself is a finding, not a crash; one that fails for the reason of an earlier one
    names that.
    """
    findings: list[Finding] = []
    said: dict[str, str] = {}  # the finding that says it first
    for found in map(_examine, CHECKS if checks is None else checks):
        first = said.setdefault(found.note, found.name) if found.state == "no" else found.name
        findings.append(
            found if first == found.name else replace(found, note=f"for the same reason as {first}")
        )
    return Diagnosis(tuple(findings))


def _examine(check: Check) -> Finding:
    from gpulab.foundation.errors import Message

    try:
        state, found, note = check.look()
    except Exception as error:
        says = str(error).strip().partition("\n")[0]
        speaks = isinstance(error, Message | LookupError)  # ours say what to do; others are named
        cure = ". Run: make setup" if isinstance(error, ImportError) else ""
        state, found, note = "no", "", (says if speaks else f"{type(error).__name__}: {says}") + cure
    return Finding(check.name, found, state, note, check.needed)


def _version(package: str) -> str:
    """The installed version; empty when it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _python() -> Result:
    version = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        return "ok", version, ""
    return "no", version, "3.11 or newer is needed. Run: make clean; make lab PYTHON=/path/to/python3"


def _compiler() -> Result:
    from gpulab.simulator.compile import compiler_version, supported_capabilities

    version = compiler_version()
    if not version:
        return "no", "NVVM", "kernels cannot be compiled. Run: make setup, or pip install 'gpulab[cu13]'"
    lowest, *_, highest = (f"{major}.{minor}" for major, minor in supported_capabilities())
    return "ok", version, f"kernels compile for compute capability {lowest} … {highest}"


def _gpu() -> Result:
    from gpulab.simulator.device import current, has_gpu, uses_gpu

    found, detail = "", ""
    if has_gpu():
        from numba import cuda

        gpu = cuda.get_current_device()
        found = gpu.name.decode() if isinstance(gpu.name, bytes) else gpu.name
        detail = "compute capability {}.{}; ".format(*gpu.compute_capability)
    if uses_gpu():
        return "ok", found, f"{detail}kernels run on it"
    simulated = current().gpu.name
    if found:
        return "none", found, f"{detail}not used: GPULAB_GPU or GPULAB_SIMULATE asks for {simulated}"
    note = f"simulating: {simulated}; set GPULAB_GPU=H100 for another"
    if Path("/dev/nvidiactl").exists():
        note = f"there is an NVIDIA device, but CUDA does not start: see nvidia-smi. Until then {note}"
    return "none", "", note


def _first_kernel() -> Result:
    """The whole way once: compile, launch, compare."""
    import numpy as np

    from gpulab import cuda

    @cuda.jit
    def add(a, b, out):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)  # type: ignore[attr-defined]
        if i < out.size:
            out[i] = a[i] + b[i]

    a = np.arange(1000, dtype=np.float32)
    out = np.zeros_like(a)
    start = time.perf_counter()
    add[4, 256](a, a, out)
    seconds = time.perf_counter() - start
    if np.array_equal(out, a + a):
        return "ok", "", f"1,000 sums, right, compiled and run in {seconds:.1f} s"
    return "no", "", "its sums are wrong: make test says more; then please report it with this table"


def _pytorch() -> Result:
    version = _version("torch")
    if not version:
        return "no", "", "labs 01, 08 and later use it. Run: make setup"
    import torch

    from gpulab.simulator.device import has_gpu

    if torch.cuda.is_available():
        return "ok", version, f"with CUDA {torch.version.cuda}"
    if has_gpu():
        cure = "Run: make setup TORCH_INDEX=URL, with an index of PyTorch's install page for your driver"
        return "no", version, f"does not see the GPU, and so runs on the CPU. {cure}"
    return "ok", version, "on the CPU"


def _cupy() -> Result:
    from gpulab.simulator.device import has_gpu

    version = next(filter(None, map(_version, ("cupy-cuda13x", "cupy-cuda12x", "cupy"))), "")
    if not has_gpu():
        return "none", version, "not needed without a GPU"
    return ("ok", version, "") if version else ("no", "", "the CuPy lab uses it on a GPU. Run: make setup")


def _triton() -> Result:
    version = _version("triton")
    absent = "the labs in Triton compile with it (Linux only). Run: make setup"
    return ("ok", version, "") if version else ("no", "", absent)


def _cute() -> Result:
    from gpulab.simulator.compile import cute_dsl

    return _language(cute_dsl.PACKAGE)


def _cutile() -> Result:
    from gpulab.simulator.compile import cutile

    version = _version(cutile.TILEIRAS)
    if _version(cutile.PACKAGE.distribution) and not version:
        return "no", "", f"its compiler is not installed. Run: pip install {cutile.TILEIRAS}"
    return _language(cutile.PACKAGE)


def _language(package: Internals) -> Result:
    """Whether a kernel language is here, and one that was tested."""
    if not package.version:
        return "none", "", f"not needed by most labs. To get it: pip install 'gpulab[{package.extra}]'"
    if package.version not in package.tested:
        return "none", package.version, f"not tested; tested: {', '.join(package.tested)}"
    return "ok", package.version, ""


def _jupyterlab() -> Result:
    version = _version("jupyterlab")
    return (
        ("ok", version, "run: make lab")
        if version
        else ("no", "", "notebooks cannot be opened. Run: make setup")
    )


def _sandbox() -> Result:
    if not shutil.which(BWRAP[0]):
        return "no", "", "grading needs bubblewrap: apt install bubblewrap"
    tried = subprocess.run([*BWRAP, "--", "true"], capture_output=True, text=True, timeout=30, check=False)
    if tried.returncode == 0:
        return "ok", "bubblewrap", ""
    reason = (tried.stderr.strip() or f"exit code {tried.returncode}").splitlines()[-1]
    cure = (
        "Inside Docker it needs --security-opt seccomp=unconfined; on Ubuntu 24.04 or newer "
        "an AppArmor profile that lets bwrap make user namespaces"
    )
    return "no", "bubblewrap", f"does not start here ({reason}). {cure}"


def _memory() -> Result:
    free = _available_memory()
    found = f"{free / 1e9:.1f} GB free"
    return (
        ("ok", found, "")
        if free >= ENOUGH_MEMORY
        else ("no", found, "a check may take 1.5 GB: close other notebooks")
    )


def _available_memory() -> float:
    """Bytes that a process may still take: what the machine has free, and what a container leaves it."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    free = next(float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and limit.read_text().strip() != "max":
        free = min(free, float(limit.read_text()) - float(used.read_text()))
    return free


def _disk() -> Result:
    free = shutil.disk_usage(Path.cwd()).free
    found = f"{free / 1e9:.1f} GB free"
    return ("ok", found, "") if free >= ENOUGH_DISK else ("no", found, f"free some space in {Path.cwd()}")


CHECKS = (
    Check("Python", _python, needed=True),
    Check("compiler", _compiler, needed=True),
    Check("GPU", _gpu, needed=True),
    Check("first kernel", _first_kernel, needed=True),
    Check("PyTorch", _pytorch),
    Check("CuPy", _cupy),
    Check("Triton", _triton),
    Check("CuTe DSL", _cute),
    Check("cuTile", _cutile),
    Check("JupyterLab", _jupyterlab, needed=True),
    Check("sandbox (instructors)", _sandbox),
    Check("memory", _memory),
    Check("disk", _disk),
)
