"""What this machine has for the labs, what it lacks, and what to do about each "no"."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

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

State = Literal["ok", "no", "none"]
STYLES: dict[State, str] = {"ok": "green", "no": "red", "none": "dim"}


@dataclass(frozen=True)
class Finding:
    """One line of the report. ``none``: absent, not missed. A ``no`` that is `needed` stops the labs."""

    name: str
    found: str
    state: State
    note: str = ""
    needed: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """All findings. Shows itself as a table."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether the labs can be done."""
        return not any(f.needed and f.state == "no" for f in self.findings)

    def to_json(self) -> str:
        from gpulab import __version__

        findings = [asdict(finding) for finding in self.findings]
        return json.dumps({"gpulab": __version__, "ok": self.ok, "findings": findings}, indent=2)

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


def diagnose(checks: Iterable[Callable[[], Finding]] | None = None) -> Diagnosis:
    """Look at everything. A check that fails itself is a finding, not a crash."""
    return Diagnosis(tuple(_guarded(check) for check in (CHECKS if checks is None else checks)))


def _guarded(check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return Finding(check.__name__.strip("_"), "", "no", f"{reason}. Run: make setup", check in NEEDED)


def _version(package: str) -> str:
    """The installed version; empty when it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _python() -> Finding:
    version = platform.python_version()
    if sys.version_info >= OLDEST_PYTHON:
        return Finding("Python", version, "ok", needed=True)
    return Finding(
        "Python", version, "no", "3.11 or newer is needed: make clean; make PYTHON=/path/to/python3", True
    )


def _compiler() -> Finding:
    from gpulab.compile import compiler_version, supported_capabilities

    version = compiler_version()
    if not version:
        cure = "kernels cannot be compiled. Run: make setup, or pip install 'gpulab[cu13]'"
        return Finding("compiler", "NVVM", "no", cure, True)
    lowest, *_, highest = (f"{major}.{minor}" for major, minor in supported_capabilities())
    note = f"kernels compile for compute capability {lowest} … {highest}"
    return Finding("compiler", version, "ok", note, True)


def _gpu() -> Finding:
    from numba import cuda

    from gpulab.hardware import UnknownGPU, find

    if cuda.is_available():
        device = cuda.get_current_device()
        name = device.name.decode() if isinstance(device.name, bytes) else device.name
        capability = ".".join(map(str, device.compute_capability))
        return Finding("GPU", name, "ok", f"compute capability {capability}; kernels run and are timed on it")
    wanted = os.environ.get("GPULAB_GPU") or "A100"
    try:
        simulated = find(wanted).name
    except UnknownGPU as error:
        return Finding("GPU", "", "no", f"GPULAB_GPU: {error}", True)
    note = f"simulating: {simulated}; set GPULAB_GPU=H100 for another"
    if Path("/dev/nvidiactl").exists():
        note = f"there is an NVIDIA device, but CUDA does not start: look at nvidia-smi. Until then {note}"
    return Finding("GPU", "", "none", note)


def _pytorch() -> Finding:
    return _optional("PyTorch", "torch", "labs 01, 08 and later use it. Run: make setup", _torch_note)


def _torch_note() -> str:
    import torch
    from numba import cuda

    if torch.cuda.is_available():
        return f"with CUDA {torch.version.cuda}"
    if cuda.is_available():
        return (
            "on the CPU only, though there is a GPU: install a build for its driver with "
            "make setup TORCH_INDEX=URL, an index that PyTorch's install page names"
        )
    return "on the CPU"


def _cupy() -> Finding:
    from numba import cuda

    package = next((name for name in ("cupy-cuda13x", "cupy-cuda12x", "cupy") if _version(name)), "cupy")
    if cuda.is_available():
        return _optional("CuPy", package, "the CuPy lab uses it on a GPU. Run: make setup")
    return Finding("CuPy", _version(package), "none", "not needed without a GPU")


def _triton() -> Finding:
    return _optional("Triton", "triton", "the labs in Triton compile with it (Linux only). Run: make setup")


def _optional(name: str, package: str, absent: str, note: Callable[[], str] = lambda: "") -> Finding:
    version = _version(package)
    return Finding(name, version, "ok", note()) if version else Finding(name, "", "no", absent)


def _jupyterlab() -> Finding:
    version = _version("jupyterlab")
    if version:
        return Finding("JupyterLab", version, "ok", "run: make lab", True)
    return Finding("JupyterLab", "", "no", "notebooks cannot be opened. Run: make setup", True)


def _sandbox() -> Finding:
    name = "sandbox (instructors)"
    if not shutil.which(BWRAP[0]):
        return Finding(name, "", "no", "grading needs bubblewrap: apt install bubblewrap")
    tried = subprocess.run([*BWRAP, "--", "true"], capture_output=True, text=True, timeout=30, check=False)
    if tried.returncode == 0:
        return Finding(name, "bubblewrap", "ok")
    reason = (tried.stderr.strip() or f"exit code {tried.returncode}").splitlines()[-1]
    cure = (
        "Inside Docker it needs --security-opt seccomp=unconfined; on Ubuntu 24.04 or newer "
        "an AppArmor profile that lets bwrap make user namespaces"
    )
    return Finding(name, "bubblewrap", "no", f"does not start here ({reason}). {cure}")


def _memory() -> Finding:
    free = _available_memory()
    if free >= ENOUGH_MEMORY:
        return Finding("memory", f"{free / 1e9:.1f} GB free", "ok")
    return Finding(
        "memory", f"{free / 1e9:.1f} GB free", "no", "a check may take 1.5 GB: close other notebooks"
    )


def _available_memory() -> float:
    """Bytes that a process may still take: what the machine has free, and what a container leaves it."""
    kilobytes = next(
        line.split()[1]
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemAvailable:")
    )
    free = float(kilobytes) * 1024
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and limit.read_text().strip() != "max":
        free = min(free, float(limit.read_text()) - float(used.read_text()))
    return free


def _disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free
    if free >= ENOUGH_DISK:
        return Finding("disk", f"{free / 1e9:.0f} GB free", "ok")
    return Finding(
        "disk", f"{free / 1e9:.1f} GB free", "no", f"little is left in {Path.cwd()}: free some space"
    )


CHECKS: tuple[Callable[[], Finding], ...] = (
    _python,
    _compiler,
    _gpu,
    _pytorch,
    _cupy,
    _triton,
    _jupyterlab,
    _sandbox,
    _memory,
    _disk,
)
NEEDED = frozenset({_python, _compiler, _gpu, _jupyterlab})
