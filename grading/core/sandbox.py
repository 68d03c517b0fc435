"""The one place where learners' code runs: a bubblewrap sandbox around a Python of its own.

That is a copy of one that has imported everything, see `template`, or where none can be, and for ranks, a
fresh one. Where bubblewrap cannot work a container takes its place, see `container`. Inside: Python, its
packages, `gpulab` without references, one script, all read-only; a private /tmp and home in memory; no
network, no other process, no capability. What comes out is one file that exists beforehand and is mounted on
its own, so it can be neither a link nor a pipe nor larger than its limit.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal

from gpulab.simulator.compile import cutile
from grading.core import cgroup, container, seccomp
from grading.core.course import ROOT
from grading.core.errors import SandboxError
from grading.core.forked import Fork, Template

RECORDER = Path(__file__).with_name("recorder.py")
TEMPLATE = Path(__file__).with_name("template.py")
# What answers are compared with: no learner's code may see it.
REFERENCES = tuple(
    folder.relative_to(ROOT).as_posix() for folder in sorted((ROOT / "gpulab/content").glob("*/references"))
)
STDERR_KEPT = 4000
AS_ROOT = (
    "root: a submission that got through a fault of the kernel or of bubblewrap would be root, too; "
    "grade as an ordinary user, because nothing here needs root"
)
_running: set[_Whole | Fork] = set()


@dataclass(frozen=True)
class Limits:
    """What one submission may use: its code runs `seconds` at most, its replay so much processor time."""

    seconds: float = 120.0
    patience: float = 20.0  # for one cell or exercise, so that one endless loop leaves time for the others
    cells: float = 60.0  # for all cells together, beyond `seconds`: trying things out costs no answer
    memory: int = 8 << 30
    file: int = 64 << 20
    scratch: int = 256 << 20
    processes: int = 128
    replay_memory: int = 6 << 30  # of the child that replays

    @classmethod
    def of(cls, seconds: float) -> Limits:
        """Those of a submission that may take so long, each in its usual proportion."""
        return cls(seconds=seconds, patience=seconds / 6, cells=seconds / 2)


@dataclass(frozen=True)
class Outcome:
    """How a recording ended, and the bytes of the one file that came out."""

    content: bytes
    end: Literal["done", "stopped", "died", "killed"]  # killed: from outside, which no learner can
    how: str = ""


def obstacle() -> str:
    """Why there is no sandbox here, or nothing."""
    why = no_bubblewrap()
    if not why or not (absent := container.engine()[1]):
        return ""
    return f"{why}\nnor is there a container in its place: {absent}"


@cache
def no_bubblewrap() -> str:
    """Why bubblewrap does not work here, or nothing."""
    if sys.platform != "linux":
        return "bubblewrap runs on Linux only: grade in a Linux container or virtual machine"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed: apt install bubblewrap"
    trial = subprocess.run(
        [*_walls(Limits()), "--", "/usr/bin/true"], capture_output=True, text=True, check=False
    )
    if trial.returncode == 0:
        return _no_python()
    said = trial.stderr.strip().splitlines()[-1:] or ["no reason given"]
    if "mount proc" in said[0]:
        why = (
            "/proc has masks, as in containers without Docker's systempaths=unconfined or podman's unmask=ALL"
        )
    else:
        why = "user namespaces are blocked, as by Docker's default seccomp profile and by Ubuntu's AppArmor"
    return f"bubblewrap cannot make a sandbox here ({said[0]}): {why}; allow it, or grade on another machine"


def _no_python() -> str:
    """Why this Python does not start in a sandbox of bubblewrap's, or nothing."""
    command = [*_walls(Limits()), "--", sys.executable, "-c", "import numpy"]
    trial = subprocess.run(command, capture_output=True, text=True, check=False)
    if trial.returncode == 0:
        return ""
    said = trial.stderr.strip().splitlines()[-1:] or ["no reason given"]
    return (
        f"{sys.executable} does not start inside bubblewrap ({said[0]}): the environment may hold links that "
        "lead out of it; make it anew in a plain folder"
    )


def _python_binds() -> list[str]:
    """bubblewrap's arguments: this Python and its environment, also where a path to them is a link."""
    binds: list[str] = []
    prefixes = [p for p in dict.fromkeys((sys.base_prefix, sys.prefix)) if not p.startswith("/usr/")]
    real = dict.fromkeys(os.path.realpath(p) for p in prefixes)
    for place in real:
        if not place.startswith("/usr"):
            binds += ["--ro-bind", place, place]
    for prefix in prefixes:
        target = os.path.realpath(prefix)
        if prefix != target and not any(Path(prefix).is_relative_to(place) for place in real):
            binds += ["--symlink", target, prefix]
    return binds


# As root, the user inside is root outside: what the kernel lets root write in /proc/sys is read-only.
ALONE = (
    "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent",
    "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys",
    *(("--ro-bind", "/proc/pressure", "/proc/pressure") if os.path.isdir("/proc/pressure") else ()),
)  # fmt: skip
# A template makes sandboxes by itself; for that bubblewrap needs a /proc without holes.
WITH_SANDBOXES = (
    "--unshare-user", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--bind", "/proc", "/proc",
)  # fmt: skip


def _walls(limits: Limits, namespaces: Sequence[str] = ALONE) -> list[str]:
    """bubblewrap's arguments: what is there, read-only, and what is not."""
    binds = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64"):
        if os.path.islink(f"/{name}"):
            binds += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            binds += ["--ro-bind", f"/{name}", f"/{name}"]
    if os.path.exists("/etc/ld.so.cache"):
        binds += ["--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    memory_disk = ["--size", str(limits.scratch), "--tmpfs"]
    cutile.make_ready()
    binds += _python_binds()
    return [
        "bwrap", *namespaces, "--new-session", "--cap-drop", "ALL",
        "--uid", "1000", "--gid", "1000", "--hostname", "sandbox",
        # Before the binds: an environment that lives below /tmp must not be hidden again.
        "--dev", "/dev", *memory_disk, "/dev/shm", "--remount-ro", "/dev",
        *memory_disk, "/tmp", *memory_disk, "/home/learner",
        *binds, "--chdir", "/home/learner",
    ]  # fmt: skip


def _course() -> list[str]:
    """bubblewrap's arguments: gpulab without references, and the recorder."""
    hidden = [
        argument
        for folder in REFERENCES
        for argument in ("--tmpfs", f"/course/{folder}", "--remount-ro", f"/course/{folder}")
    ]
    return [
        "--ro-bind", str(ROOT / "gpulab"), "/course/gpulab", *hidden,
        "--ro-bind", str(RECORDER), "/course/recorder.py",
    ]  # fmt: skip


def _result(path: str | Path) -> list[str]:
    """bubblewrap's arguments: the one file that comes out, and nothing else to write to."""
    return ["--bind", str(path), "/out/record", "--remount-ro", "/"]


# Nothing in /proc that tells what others on this machine do. Even a process's own files do: how many have
# a page of a shared file mapped.
WITHOUT_THE_MACHINE = (
    "--tmpfs",
    "/proc",
    "--ro-bind",
    "/proc/cpuinfo",
    "/proc/cpuinfo",
    "--remount-ro",
    "/proc",
)


def _sealed(data: bytes) -> IO[bytes]:
    """A file in memory, to be read and never to be changed.

    A file on a disk would tell all who have it open how much room is left there.
    """
    with os.fdopen(os.memfd_create("job", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "wb") as file:
        file.write(data)
        file.flush()
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
        return open(f"/proc/self/fd/{file.fileno()}", "rb")


def _environment(home: str, course: str) -> dict[str, str]:
    return {
        "HOME": home,
        "PATH": f"{sysconfig.get_path('scripts')}:/usr/bin:/bin",
        "PYTHONPATH": course,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "GPULAB_SIMULATE": "1",  # also where there is a GPU: handles have no contents
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


class _Whole(subprocess.Popen[bytes]):
    """A process that is killed with all that it started: the sandbox's namespace dies with its first one."""

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()


@dataclass
class _Process:
    """The recorder as it runs; `said` is the end of what it says on standard error."""

    process: _Whole | Fork
    said: bytearray
    listener: threading.Thread

    def end(self, seconds: float) -> tuple[Literal["done", "stopped", "died", "killed"], str]:
        """Wait for it, but not for ever: how it ended."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return "stopped", ""
        if code == 0:
            return "done", ""
        self.process.kill()
        self.listener.join(5)
        last = bytes(self.said).decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
        if code == -signal.SIGKILL:  # it hit bubblewrap itself; one from inside comes as 128 + number
            return "killed", "SIGKILL"
        number = -code if code < 0 else code - 128
        with contextlib.suppress(ValueError):
            return "died", signal.Signals(number).name
        return "died", last[0] or f"exit status {code}"


def record(
    job: bytes,
    limits: Limits,
    *,
    unsafe: bool = False,
    fresh: bool = False,
    imports: Sequence[str] = (),
) -> Outcome:
    """Run the recorder on `job` and bring back what it wrote, however it ended.

    In a copy of a process that has imported everything, the lab's `imports` too, where that can be, or in a
    `fresh` one.
    """
    template = None
    if not (unsafe or fresh or obstacle() or no_bubblewrap()):
        template = _template(_template_command())
    if template:
        with _forked(template, job, limits, imports) as (recorder, result):
            end, how = recorder.end(limits.seconds)
            with result.open("rb") as file:
                return Outcome(file.read(limits.file), end, how)
    with tempfile.TemporaryDirectory(prefix="gpulab-record-") as folder:
        with _recorder(job, limits, unsafe, folder) as recorder:
            end, how = recorder.end(limits.seconds)
            if unsafe and end == "killed":  # perhaps by itself
                end = "died"
        with Path(folder, "record").open("rb") as file:
            return Outcome(file.read(limits.file), end, how)


def _template_command() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """bubblewrap's arguments for the template, and how it is started."""
    walls = (*_walls(Limits(), WITH_SANDBOXES), *_course(), "--ro-bind", str(TEMPLATE), "/course/template.py")
    return walls, (sys.executable, "/course/template.py")


_templates: dict[Any, Template | str] = {}  # by command: the one in use, or why there is none
_starting = threading.Lock()


def _template(command: tuple[tuple[str, ...], tuple[str, ...]]) -> Template | None:
    """The template of this process, started anew where it died; none where none can be."""
    with _starting:
        known = _templates.get(command)
        if isinstance(known, Template) and not known.alive():
            known.close()
            known = None
        if known is None:
            for other in _templates.values():
                if isinstance(other, Template):
                    other.close()
            _templates.clear()
            _templates[command] = known = _started_template(*command)
        return known if isinstance(known, Template) else None


def _started_template(walls: Sequence[str], command: Sequence[str]) -> Template | str:
    """A template that has shown that it works, or why there is none."""
    trial = Limits(seconds=60)
    try:
        template = Template(walls, command, _environment("/home/learner", "/course"))
        with _forked(template, b'{"patience": 1, "steps": []}', trial) as (recorder, _):
            end, how = recorder.end(trial.seconds)
    except (OSError, SandboxError) as error:
        return f"{error}"
    if end == "done":
        return template
    template.close()
    return how or end


def no_template() -> str:
    """Why each submission needs a Python of its own here, or nothing."""
    command = _template_command()
    _template(command)
    known = _templates[command]
    return known if isinstance(known, str) else ""


@contextlib.contextmanager
def _forked(
    template: Template, job: bytes, limits: Limits, imports: Sequence[str] = ()
) -> Iterator[tuple[_Process, Path]]:
    """The recorder in a copy of the template, in a sandbox of its own, and the file that it writes."""
    result = template.record()
    course = [a for path in ("/course/gpulab", "/course/recorder.py") for a in ("--ro-bind", path, path)]
    walls = [*_walls(limits), *course, *_result(f"/records/{result.name}")]
    bounds = {
        "RLIMIT_AS": limits.memory, "RLIMIT_CPU": _cpu_seconds(limits),
        "RLIMIT_FSIZE": limits.file, "RLIMIT_CORE": 0,
    }  # fmt: skip
    reading, writing = os.pipe()
    with contextlib.ExitStack() as stack:
        stack.callback(result.unlink, missing_ok=True)
        errors = stack.enter_context(os.fdopen(reading, "rb", buffering=0))
        with contextlib.ExitStack() as theirs:
            theirs.callback(os.close, writing)
            stdin = theirs.enter_context(_sealed(job))
            groups = stack.enter_context(cgroup.joined_through(limits.processes, limits.memory))
            joining = [theirs.enter_context(group.open("w")).fileno() for group in groups]
            calls = b"" if seccomp.obstacle() else seccomp.program(rank=False)
            process = template.fork(walls, bounds, writing, stdin.fileno(), joining, imports, calls)
        stack.callback(process.close)
        yield stack.enter_context(_watched(process, errors)), result


@contextlib.contextmanager
def rank(job: bytes, limits: Limits, *, unsafe: bool = False) -> Iterator[socket.socket]:
    """The recorder as one of several ranks, in a sandbox of its own; yields its only connection to others.

    What else could carry something from one sandbox to another is shut, see `seccomp`.
    """
    ours, theirs = socket.socketpair()
    with (
        ours,
        theirs,
        tempfile.TemporaryDirectory(prefix="gpulab-rank-") as folder,
        _recorder(job, limits, unsafe, folder, theirs),
    ):
        theirs.close()  # so that the rank's end is heard
        yield ours


@contextlib.contextmanager
def _recorder(
    job: bytes, limits: Limits, unsafe: bool, folder: str, wire: socket.socket | None = None
) -> Iterator[_Process]:
    """The recorder, which writes `record` in the folder; with a wire as a rank, whose record nobody needs.

    It is killed at the end.
    """
    if not unsafe and (why := obstacle() or (seccomp.obstacle() or no_wire() if wire else "")):
        raise SandboxError(f"{why}\nwithout a sandbox nothing is graded, unless you say --unsafe")
    result = Path(folder, "record")
    result.touch()
    if not unsafe and no_bubblewrap():
        with _contained(job, limits, folder) as started:
            yield started
        return
    numbers = [str(wire.fileno())] if wire else []
    with tempfile.TemporaryFile() as calls:
        if unsafe:
            environment = _environment(folder, str(ROOT))
            command = [sys.executable, str(RECORDER), str(result), *numbers]
        else:
            environment = _environment("/home/learner", "/course")
            command = [*_walls(limits), *_course(), *_result(os.devnull if wire else result)]
            if wire:
                command += WITHOUT_THE_MACHINE
            if not seccomp.obstacle():
                calls.write(seccomp.program(rank=wire is not None))
                calls.seek(0)
                command += ["--seccomp", str(calls.fileno())]
            target = os.devnull if wire else "/out/record"
            command += ["--", sys.executable, "/course/recorder.py", target, *numbers]
        passed = [calls.fileno(), *([wire.fileno()] if wire else [])]
        with _started([*_rlimits(limits), *command], environment, job, limits, folder, passed) as started:
            yield started


def no_wire() -> str:
    """Why nothing can be judged live in the sandbox of this machine, or nothing."""
    why = no_bubblewrap()
    return f"{why}\nand a container inherits no connection to the judge" if why else ""


@contextlib.contextmanager
def _contained(job: bytes, limits: Limits, folder: str) -> Iterator[_Process]:
    """The recorder in a container."""
    container.make_record(Path(folder))
    engine, name = container.engine()[0], f"gpulab-{uuid.uuid4().hex}"
    command = container_command(engine, name, Path(folder), limits)
    try:
        with _started(command, dict(os.environ), job, limits, folder, [], limited=False) as started:
            yield started
    finally:
        container.end(engine, name)


def container_command(engine: str, name: str, folder: Path, limits: Limits) -> list[str]:
    """The whole command of a recording in a container."""
    bounds = container.Bounds(limits.memory, limits.scratch, limits.processes)
    mounts = [
        *container.system(), (str(ROOT / "gpulab"), "/course/gpulab"), (str(RECORDER), "/course/recorder.py"),
    ]  # fmt: skip
    hidden = [f"/course/{references}" for references in REFERENCES]
    walls = container.command(engine, name, mounts, hidden, folder, bounds)
    # An engine adds variables of its own, such as a proxy's address with its password, and makes the folder
    # to start in, which then nobody inside may write to.
    # What a learner starts has a first process above it, as in bubblewrap, and what it prints goes nowhere.
    first = ["/bin/sh", "-c", '"$@" > /dev/null; exit $?', "sh"]
    inside = [*first, "/usr/bin/env", "-i", "-C", "/home/learner"]
    environment = [f"{key}={value}" for key, value in _environment("/home/learner", "/course").items()]
    program = [sys.executable, "/course/recorder.py", "/out/record"]
    return [*walls, *inside, *environment, *_rlimits(limits), *program]


def _cpu_seconds(limits: Limits) -> int:
    return int(limits.seconds * 2) + 5


def _rlimits(limits: Limits) -> list[str]:
    cpu = _cpu_seconds(limits)
    return ["prlimit", f"--as={limits.memory}", f"--cpu={cpu}", f"--fsize={limits.file}", "--core=0", "--"]


@contextlib.contextmanager
def _started(
    command: Sequence[str],
    environment: dict[str, str],
    job: bytes,
    limits: Limits,
    folder: str,
    passed: Sequence[int],
    limited: bool = True,
) -> Iterator[_Process]:
    """A process with its job on standard input; it and all that it started are killed at the end.

    Not `limited` is one that limits what it starts by itself.
    """
    with contextlib.ExitStack() as stack, _sealed(job) as stdin:
        inside = stack.enter_context(cgroup.limited(limits.processes, limits.memory)) if limited else []
        process = _Whole(
            [*inside, *command], stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=environment, cwd=folder, start_new_session=True, pass_fds=passed,
        )  # fmt: skip
        assert process.stderr is not None
        yield stack.enter_context(_watched(process, process.stderr))


@contextlib.contextmanager
def _watched(process: _Whole | Fork, errors: IO[bytes]) -> Iterator[_Process]:
    """Somebody listens to what the process says; in the end it is killed with all that it started."""
    _running.add(process)
    said = bytearray()
    listener = threading.Thread(target=_listen, args=(errors, said), daemon=True)
    listener.start()
    try:
        yield _Process(process, said, listener)
    finally:
        _running.discard(process)
        process.kill()
        listener.join(5)
        errors.close()


def _listen(stream: IO[bytes], kept: bytearray) -> None:
    """Read everything, keep the end: a learner who prints without end fills no disk and blocks nothing."""
    with contextlib.suppress(OSError, ValueError):
        while block := stream.read(65536):
            kept += block
            del kept[:-STDERR_KEPT]


def stop_all() -> None:
    """End every recording that is under way; the threads that wait for them go on."""
    for process in list(_running):
        process.kill()


def describe() -> Iterator[tuple[str, bool, str]]:
    """Rows for `doctor`: what, whether it is well, in words."""
    why = no_bubblewrap()
    engine, absent = container.engine() if why else ("", "")
    if engine:
        yield "sandbox", True, f"{engine}: own network, processes and file system, read-only; because {why}"
    else:
        yield "sandbox", not why, why or "bubblewrap: own network, processes and file system, read-only"
    if why:
        yield "container", bool(engine), engine or absent
    else:
        why = no_template()
        again = f"each imports everything again and takes longer, because {why}"
        copied = "a copy of a process that has imported everything, in a sandbox of its own"
        yield "submission", True, again if why else copied
    if os.getuid() == 0:
        yield "user", True, AS_ROOT
    why = seccomp.obstacle() or no_wire()
    yield (
        "system calls",
        not why,
        why
        or "seccomp: what no notebook needs is refused; in ranks also what could carry something to another",
    )
    why = container.unlimited(engine) if engine else cgroup.obstacle()
    yield "process limit", not why, why or "cgroup: processes and memory of a submission together"
