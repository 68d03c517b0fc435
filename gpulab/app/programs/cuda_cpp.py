"""Whole programs in CUDA C++: nvcc builds them, and their calls of CUDA's runtime are answered here."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from importlib import metadata, resources
from pathlib import Path
from typing import Any, NoReturn

from gpulab.foundation.errors import Message
from gpulab.foundation.version import VERSION
from gpulab.frontends.runtime import Runtime, structures
from gpulab.frontends.runtime.errors import say
from gpulab.frontends.runtime.kernels import flush
from gpulab.frontends.runtime.memory import ENDS
from gpulab.simulator import device as devices
from gpulab.simulator.compile.versions import architecture
from gpulab.simulator.simt.memory import FIRST_ADDRESS

from . import builds

ENDINGS = (".cu", ".cpp", ".cc", ".cxx")
NVCC_WHEELS = ("nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12")
# Spellings of flags of nvcc: to link device code of several files, and for steps of a build of one's own.
LINKED = ("-rdc=true", "-rdc true", "--relocatable-device-code=true", "--relocatable-device-code true")
STEPS = {"-c", "-dc", "--device-c", "-dlink", "--device-link", "-dlto", "--dlink-time-opt"}
BUILT, ANSWERS, NAMES = "program.so", "answers.so", "names"  # in the folder of a build
# Of the environment, what the compilers listen to.
VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH")
OF_CUDA = ("cuda", "__cuda", "cu", "nv")  # how the names of CUDA's functions begin


class CannotBuild(Message):
    """The program does not become one that can run: no compiler, or what the compiler says."""


def program(source: str, arguments: list[str], flags: str, clock: str) -> Callable[[], NoReturn]:
    """Build a program of CUDA C++; what starts it, and ends with SystemExit.

    `flags` are further ones of nvcc: options, sources, libraries. `clock` is what times events: ``none`` or
    ``wall``. Raises CannotBuild.
    """
    nvcc = compiler()
    words = shlex.split(flags)
    if steps := sorted(STEPS & set(words)):
        raise CannotBuild(
            f"--nvcc={flags}: {steps[0]} is one step of a build, and gpulab run does all of them. "
            "Name all files of the program without it; -rdc=true links the device code of several files."
        )
    folder = builds.kept(_recipe(nvcc, source, words), lambda empty: _make(nvcc, source, words, empty))
    library = ctypes.CDLL(str(folder / ANSWERS), mode=ctypes.RTLD_GLOBAL)

    def start() -> NoReturn:
        text = "\n".join(path.read_text(errors="replace") for path in _sources(source, words))
        runtime, loaded = _load(folder / BUILT, library, text, clock)
        raise SystemExit(_run(runtime, loaded, [source, *arguments]))

    return start


# ---- building ------------------------------------------------------------------------------------


def missing() -> str:
    """Why no program can be built here; empty if one can."""
    try:
        compiler()
    except CannotBuild as error:
        return str(error)
    return ""


def compiler() -> str:
    """Where nvcc is: in its wheel, or on the PATH. Raises CannotBuild without nvcc or without g++."""
    if shutil.which("g++") is None:
        raise CannotBuild(
            "A program in CUDA C++ needs g++ for its host code, and there is none on the PATH. On Debian and "
            "Ubuntu, apt install g++ brings it."
        )
    for wheel in NVCC_WHEELS:
        try:
            files = metadata.files(wheel) or ()
        except metadata.PackageNotFoundError:
            continue
        if found := next((str(file.locate()) for file in files if file.name == "nvcc"), ""):
            return found
    if on_path := shutil.which("nvcc"):
        return on_path
    raise CannotBuild(
        "A program in CUDA C++ needs nvcc, which is not installed here. pip install 'gpulab[nvcc]' brings "
        "it; no GPU and no driver is needed."
    )


def _sources(source: str, flags: list[str]) -> list[Path]:
    """The program's files of C++."""
    return [path for each in (source, *flags) if each.endswith(ENDINGS) and (path := Path(each)).is_file()]


def _recipe(nvcc: str, source: str, flags: list[str]) -> list[str]:
    """All that decides what is built, but for the contents of files."""
    about = Path(nvcc).stat()
    compiler = [nvcc, str(about.st_size), str(about.st_mtime_ns), str(architecture(devices.current().cc))]
    listened_to = [f"{name}={os.environ.get(name, '')}" for name in VARIABLES]
    return [VERSION, *compiler, *listened_to, os.getcwd(), source, *flags]


def _make(nvcc: str, source: str, flags: list[str], folder: Path) -> list[Path]:
    """Build the program and its answers; the files that were read for it."""
    built = _build(nvcc, source, flags, folder)
    make_answers(nvcc, _open_calls(built), folder)
    given = [Path(flag) for flag in flags if Path(flag).is_file()]
    own = [Path(str(resources.files("gpulab.frontends.runtime") / name)) for name in ("entry.c", "answers.c")]
    options = [flag for flag in flags if not Path(flag).is_file()]
    read = [path for each in _sources(source, flags) for path in _included(nvcc, each, options)]
    return list(dict.fromkeys([*given, *own, *read]))


def _included(nvcc: str, source: Path, options: list[str]) -> list[Path]:
    """A file of C++ and all that it includes."""
    rule = compile_([nvcc, *options, "-M", str(source)], str(source))
    words = shlex.split(rule.partition(":")[2].replace("\\\n", " "))
    return [Path(word) for word in words]


def _build(nvcc: str, source: str, flags: list[str], folder: Path) -> Path:
    """The program as a shared library, whose calls of CUDA are left open."""
    built = folder / BUILT
    entry = folder / "entry.o"
    own = resources.files("gpulab.frontends.runtime")
    compile_(["gcc", "-O1", "-fPIC", "-c", str(own / "entry.c"), "-o", str(entry)])
    compile_(
        [
            nvcc,
            f"-arch=compute_{architecture(devices.current().cc)}",
            *("-lineinfo", "--no-compress", "-shared", "-cudart", "none"),
            *("-Xcompiler", "-fPIC", "-Xlinker", "--wrap=exit", "-Xlinker", "-Bsymbolic"),
            *(() if any(flag.startswith("-O") for flag in flags) else ("-O2",)),
            # The device's linker takes machine code; the runtime joins the PTX of all files.
            *(("-nodlink", "-cudadevrt", "none") if any(each in " ".join(flags) for each in LINKED) else ()),
            *(source, str(entry), *flags, "-o", str(built)),
        ],
        source,
    )
    return built


def _open_calls(built: Path) -> list[str]:
    """The functions of CUDA that a shared library calls."""
    listed = subprocess.run(
        ["nm", "-D", "--undefined-only", "-P", str(built)], capture_output=True, text=True, check=True
    ).stdout
    called = [line.split()[0] for line in listed.splitlines()]
    return [name for name in called if name.startswith(OF_CUDA) and "@" not in name]


def make_answers(nvcc: str, names: list[str], folder: Path, flags: Iterable[str] = ()) -> None:
    """A library with these functions of CUDA; `flags` are further ones of the linker."""
    (folder / NAMES).write_text("\n".join(names))
    text = "".join(f"NAME({number}, {name})\n" for number, name in enumerate(names))
    (folder / "names.h").write_text(text)
    own = resources.files("gpulab.frontends.runtime")
    made = folder / ANSWERS
    compile_(
        [
            *(nvcc, "-shared", "-cudart", "none", "-Xcompiler", "-fPIC,-w", *flags),
            *("-I", str(folder), str(own / "answers.c"), "-o", str(made)),
        ]
    )


def compile_(command: list[str], source: str = "") -> str:
    """Run a compiler; what it prints. Raises CannotBuild with what it says."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr + done.stdout).strip()
        raise CannotBuild(f"{source or shlex.join(command)} does not compile:\n{said}")
    return done.stdout


# ---- running -------------------------------------------------------------------------------------

CLOCKS: dict[str, Callable[[], float]] = {
    "none": lambda: float("nan"),
    "wall": lambda: 1e3 * time.perf_counter(),
}


def _load(built: Path, answers: ctypes.CDLL, text: str, clock: str) -> tuple[Runtime, ctypes.CDLL]:
    """The runtime that answers the program, and the program in memory. `text` is all of its source."""
    runtime = started(answers, text, clock)
    fill(answers, (built.parent / NAMES).read_text().split(), runtime.address)
    loaded = ctypes.CDLL(str(built))
    runtime.registered()
    return runtime, loaded


def started(answers: ctypes.CDLL, text: str, clock: str) -> Runtime:
    """The runtime of a program with this source, whose structures are laid out as `answers` says."""
    return Runtime(devices.current(), structures.Layouts.of(answers), text, CLOCKS[clock])


def fill(answers: ctypes.CDLL, names: list[str], address: Callable[[str], int]) -> None:
    """Let the functions of a library of answers be those at these addresses."""
    table = (ctypes.c_void_p * len(names)).in_dll(answers, "gpulab_answers")
    table[:] = [address(name) for name in names]


def _run(runtime: Runtime, library: ctypes.CDLL, arguments: list[str]) -> int:
    """Call the main of a program that was built here; its exit code."""
    return called(runtime, library, library.main, library.gpulab_finish, arguments)


def called(
    runtime: Runtime, entry: ctypes.CDLL, main: Any, finish: Callable[[], Any], arguments: list[str]
) -> int:
    """Call a program's main; the exit code, 1 at least where a kernel failed or was never launched.

    `entry` has what entry.c is compiled to; `finish` does what the program has registered for its end.
    """
    code = entry.gpulab_run(
        main,
        len(arguments),
        _strings(arguments),
        _strings([f"{name}={value}" for name, value in os.environ.items()]),
        ctypes.c_size_t(FIRST_ADDRESS),
        ctypes.c_size_t(ENDS),
    )
    finish()
    flush()
    errors = runtime.errors
    if errors.unread:
        say(
            "gpulab run: the program did not ask whether its last kernel was launched, and it was not. Call "
            "cudaGetLastError() after each launch."
        )
    if errors.sticky or errors.unread:
        return (code & 0xFF) or 1
    return code & 0xFF


def _strings(texts: list[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(texts) + 1))(*map(os.fsencode, texts), None)
