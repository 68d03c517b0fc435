"""ptxas as a program, for the one thing that NVIDIA's linker does not do: static shared memory beyond 48 KiB.

cuTile asks for that, and brings the program along.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path

from .kernel import Capability
from .versions import architecture

PACKAGE = "nvidia-cuda-nvcc"
# What ptxas says of one entry → what the linker would.
FOUND = re.compile(
    r"Function properties for (?P<entry>[\w$]+)\n(?P<spills>\s*(?P<stack>\d+) bytes stack frame[^\n]*)\n"
    r"(?:(?!Function properties)[^\n]*\n)*?[^\n]*: Used (?P<used>\d+ registers[^\n]*)"
)


def link_extended(ptx: str, cc: Capability, max_registers: int | None) -> tuple[str, bytes] | str:
    """The log as the linker writes it, and the machine code; or in words why there is none."""
    ptxas = _ptxas()
    if ptxas is None:
        return f"it has more than 48 KiB of static shared memory, and {PACKAGE}, which allows that, is absent"
    with tempfile.TemporaryDirectory(prefix="gpulab-ptxas-") as folder:
        source, made = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx, encoding="utf-8")
        options = [f"-arch=sm_{architecture(cc)}", "-v", "-lineinfo", "--enable-extended-smem=true"]
        if max_registers:
            options.append(f"-maxrregcount={max_registers}")
        done = subprocess.run(
            [ptxas, *options, str(source), "-o", str(made)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            return (done.stderr or done.stdout).strip()
        return "".join(map(_as_linked, FOUND.finditer(done.stderr + done.stdout))), made.read_bytes()


def _as_linked(found: re.Match[str]) -> str:
    entry, used = found["entry"], found["used"]
    # It says nothing of what is not used.
    used += "".join(f", 0 {what}" for what in ("bytes smem", "bytes cmem[0]") if what not in used)
    return (
        f"Function properties for {entry}\n{found['spills']}\n"
        f"Function properties for '{entry}':\nused {used}, {found['stack']} stack\n"
    )


def _ptxas() -> str | None:
    try:
        files = metadata.files(PACKAGE) or ()
    except metadata.PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in files if file.name == "ptxas"), None)
