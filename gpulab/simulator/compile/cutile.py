"""cuTile, NVIDIA's package: made to hand over PTX where it would hand over machine code.

cuTile writes Tile IR, which NVIDIA's `tileiras` compiles to PTX and gives to the ptxas beside it. It finds
that ptxas by its own real path. So tileiras gets one more name, in a folder of its own, with a ptxas beside
it that passes its input on: what comes back to cuTile is the PTX. Neither needs a driver.

From Hopper on, tiles would be copied by the TMA, through tensor maps that are parameters which no Python code
passes: tileiras puts a program for the host beside the machine code (its section ``.nv.host``), and NVIDIA's
driver runs that program before a launch to write the maps, in the GPU's own format. Here is no such driver,
so the compiler is told not to use the TMA. It then copies tiles by threads, and still multiplies them with
the newest tensor cores.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from gpulab.foundation.cache_folder import cache_folder

from .kernel import Capability, CompiledKernel
from .packages import Internals, MissingCompiler
from .versions import target_of

PACKAGE = Internals(
    name="cuTile",
    distribution="cuda-tile",
    tested=("1.7.0",),
    extra="tile",
    used=(
        "cuda.tile._compile:_find_compiler_bin.cache_clear",
        "cuda.tile._compile:_CompilerBinary",
        "cuda.tile._compile:compile_tile",
        "cuda.tile._compile:format_sm_arch",
        "cuda.tile._cext:default_tile_context.config",
        "cuda.tile._cext:launch",
        "cuda.tile._execution:kernel._compile",
        "cuda.tile._ir2bytecode:BytecodeContext.load_store_hints",
    ),
)
WITH_TMA = (9, 0)  # the first capability whose GPUs copy tiles by themselves
NO_TMA = (
    "cuTile: compiled without the TMA, because the tensor maps for it are written by NVIDIA's driver. "
    "Tiles are copied by threads here; a GPU copies them by its copy engine, with fewer instructions."
)
TILEIRAS = "nvidia-cuda-tileiras"
BESIDE = ("nvvm", "lib", "include")  # what tileiras looks for in the folder above its own
PTXAS = """\
#!/bin/sh
# Stands beside tileiras in ptxas's place: its output is its input, the PTX.
for word; do
  case "$last" in -o) to=$word ;; esac
  case "$word" in *.ptx) from=$word ;; esac
  last=$word
done
exec cp "$from" "$to"
"""


@cache
def _toolchain() -> Path:
    """The tileiras whose machine code is PTX; its folder is made once for each version."""
    try:
        version = metadata.version(TILEIRAS)
        found = next(
            Path(str(f.locate())).resolve() for f in metadata.files(TILEIRAS) or () if f.name == "tileiras"
        )
    except (metadata.PackageNotFoundError, StopIteration):
        raise MissingCompiler(
            f"cuTile's compiler is not installed here. Install it with: pip install {TILEIRAS}"
        ) from None
    for root in _roots():
        folder = root / f"tileiras-{version}"
        try:
            if not _complete(folder, found):
                _make(folder, found)
            return folder / "bin" / "tileiras"
        except OSError:
            continue  # read-only, full, or nothing may be executed there
    raise MissingCompiler(
        f"cuTile's compiler needs a folder for {found.stat().st_size // 10**6} MB, and found none to write "
        "to: set XDG_CACHE_HOME to one."
    )


def _roots() -> tuple[Path, ...]:
    """Where the folder may be: in Python's environment, which a judge's sandbox sees, too; where that is
    read-only, in the user's cache."""
    return Path(sys.prefix) / "var" / "gpulab", cache_folder()


def make_ready() -> None:
    """Make the folder where cuTile is installed, before a process starts that may write nowhere."""
    if PACKAGE.version:
        with suppress(MissingCompiler):
            _toolchain()


def _complete(folder: Path, found: Path) -> bool:
    made, ptxas = folder / "bin" / "tileiras", folder / "bin" / "ptxas"
    return (
        made.is_file()
        and made.stat().st_size == found.stat().st_size
        and ptxas.is_file()
        and ptxas.read_text() == PTXAS
        and all((folder / name).resolve() == (found.parents[1] / name).resolve() for name in BESIDE)
    )


def _make(folder: Path, found: Path) -> None:
    """Made beside its place and then renamed, so that two processes may do it at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    (made / "bin").mkdir()
    try:
        os.link(found, made / "bin" / "tileiras")  # no room taken, on the same file system
    except OSError:
        shutil.copy2(found, made / "bin" / "tileiras")
    ptxas = made / "bin" / "ptxas"
    ptxas.write_text(PTXAS)
    ptxas.chmod(ptxas.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    for name in BESIDE:
        (made / name).symlink_to(found.parents[1] / name)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        made.rename(folder)
    except OSError:
        shutil.rmtree(made)
        if not _complete(folder, found):
            raise


def prepare() -> None:
    """Make the installed package hand over PTX, in this process.

    Raises MissingCompiler where it is absent or built otherwise than those that were tested.
    """
    PACKAGE.check()
    from cuda.tile import _compile
    from cuda.tile._cext import default_tile_context

    default_tile_context.config.cache_dir = None  # others take what is kept there for machine code

    def _find_compiler_bin() -> Any:
        return _compile._CompilerBinary(
            str(_toolchain()), os.environ.get("PATH", ""), os.environ.get("LD_LIBRARY_PATH", ""), False
        )

    _find_compiler_bin.cache_clear = lambda: None  # type: ignore[attr-defined]
    _compile._find_compiler_bin = _find_compiler_bin
    _leave_out_the_tma()


def _leave_out_the_tma() -> None:
    """For GPUs that have it, every load and store says that it may not be used."""
    from cuda.tile._ir2bytecode import BytecodeContext

    hints = BytecodeContext.load_store_hints

    def load_store_hints(self: Any, latency: int | None, allow_tma: bool | None) -> Any:
        if _capability(self.sm_arch) < WITH_TMA:
            return hints(self, latency, allow_tma)
        _say_without_tma()
        return hints(self, latency, False)

    BytecodeContext.load_store_hints = load_store_hints


def _capability(architecture: str) -> Capability:
    """That of ``sm_90``."""
    major, minor = divmod(int("".join(filter(str.isdigit, architecture))), 10)
    return major, minor


@cache
def _say_without_tma() -> None:
    """Once in a process."""
    print(NO_TMA)


def tile_kernel(ptx: str, entry: str, name: str) -> CompiledKernel:
    """A kernel of the PTX that cuTile made, under the name that the learner gave it."""
    return CompiledKernel(name, entry, ptx, target_of(ptx), f"cuTile {PACKAGE.version}")
