"""Programs that nvcc and g++ have built elsewhere: their calls of CUDA's runtime are led to our answers.

The shared runtime is replaced by a library of the same name. The functions of the static one are inside of
the program, so they are led away in a copy of it.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import NoReturn

from gpulab.foundation.version import VERSION

from . import builds
from .cuda_cpp import ANSWERS, called, compile_, compiler, fill, make_answers, started
from .machine_code import Binary

ENTRY = "entry.so"
WRITABLE = 7  # reading, writing and executing, as mprotect has them
PAGE = 4096


def program(path: Path, arguments: list[str], clock: str) -> Callable[[], NoReturn]:
    """What starts a built program, and ends with SystemExit.

    Raises CannotBuild where there is no compiler for the answers, CannotLoad where the file is of no use.
    """
    binary = Binary(path)
    names = binary.called()
    nvcc = compiler()
    recipe = [VERSION, nvcc, str(Path(nvcc).stat().st_mtime_ns), binary.runtime(), *names]
    folder = builds.kept(recipe, lambda empty: _make(nvcc, binary, names, empty))

    def start() -> NoReturn:
        raise SystemExit(_run(binary, folder, [str(path), *arguments], clock))

    return start


def _make(nvcc: str, binary: Binary, names: list[str], folder: Path) -> list[Path]:
    """Build the library of answers under the name of the runtime, and what calls a program's main."""
    own = [Path(str(resources.files("gpulab.frontends.runtime") / name)) for name in ("entry.c", "answers.c")]
    made = ["-shared", "-O1", "-fPIC", str(own[0]), "-Wl,--wrap=exit", "-o", str(folder / ENTRY)]
    compile_(["gcc", *made])
    flags = []
    if runtime := binary.runtime():
        script = folder / "versions"
        script.write_text(f"{runtime} {{ global: *; }};\n")
        flags = ["-Xlinker", f"-soname={runtime}", "-Xlinker", f"--version-script={script}"]
    make_answers(nvcc, names, folder, flags)
    return own


def _run(binary: Binary, folder: Path, arguments: list[str], clock: str) -> int:
    """Load the program and call its main; the exit code."""
    _start_iostreams()
    entry = ctypes.CDLL(str(folder / ENTRY))
    answers = ctypes.CDLL(str(folder / ANSWERS), mode=ctypes.RTLD_GLOBAL)
    runtime = started(answers, "", clock)

    def address(name: str) -> int:
        own = getattr(entry, name, None)  # what only C can answer
        return _address(own) if own is not None else runtime.address(name)

    fill(answers, binary.called(), address)
    with tempfile.NamedTemporaryFile(suffix=".so") as copy:
        copy.write(binary.loadable({name: address(name) for name in binary.inside()}))
        copy.flush()
        loaded = ctypes.CDLL(copy.name)
    start = ctypes.c_size_t.from_address(loaded._handle).value  # a link_map begins with it
    if place := binary.place_of_call("exit"):
        _write(start + place, _address(entry.__wrap_exit))
    runtime.registered()
    end = start + binary.symbols["__dso_handle"].address if "__dso_handle" in binary.symbols else 0

    def finish() -> None:
        if end:
            ctypes.CDLL(None).__cxa_finalize(ctypes.c_void_p(end))

    main = ctypes.c_void_p(start + binary.symbols["main"].address)
    return called(runtime, entry, main, finish, arguments)


def _start_iostreams() -> None:
    """A program has copies of std::cout and its like, made when it is loaded: they must be there by then."""
    try:
        streams = ctypes.CDLL("libstdc++.so.6", mode=ctypes.RTLD_GLOBAL)
    except OSError:  # then no program can need them
        return
    streams._ZNSt8ios_base4InitC1Ev(ctypes.create_string_buffer(1))


def _write(place: int, value: int) -> None:
    """Write an address into the program, where its loader has protected it."""
    first = place - place % PAGE
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(first), ctypes.c_size_t(2 * PAGE), WRITABLE)
    ctypes.c_size_t.from_address(place).value = value


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
