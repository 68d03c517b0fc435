"""The sandbox where bubblewrap cannot work: a container of podman's or Docker's around the same Python.

Everything that a submission sees is mounted, so the image may be empty; `MAKE_IMAGE` says how to make it. A
container inherits no connection to the judge: exercises for several ranks and dialogues need bubblewrap.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ENGINES = ("podman", "docker")
IMAGE = "gpulab-empty"
MAKE_IMAGE = "tar c --files-from /dev/null | {engine} import - " + IMAGE
PATIENCE = 60  # seconds for an engine to say whether it is there; on a busy machine it takes long
USER = 1000


@dataclass(frozen=True)
class Bounds:
    """What the engine limits for all processes together: bytes of memory and of a memory disk, processes."""

    memory: int
    scratch: int
    processes: int


TRIAL = Bounds(memory=1 << 30, scratch=1 << 20, processes=61)


@cache
def engine() -> tuple[str, str]:
    """The first engine that can make a container in which this Python starts; or nothing, and why."""
    found = [name for name in ENGINES if shutil.which(name)]
    why = "" if found else "neither podman nor docker is installed"
    for name in found:
        if _answer([name, "info"])[0]:
            why = why or f"{name} does not answer: does its service run, and may you use it?"
        elif _answer([name, "image", "inspect", IMAGE])[0]:
            why = why or f"{name} has no image yet: {MAKE_IMAGE.format(engine=name)}"
        elif said := _obstacle(name):
            why = why or f"{name} cannot make a container here: {said}"
        else:
            return name, ""
    return "", why


def _obstacle(engine: str) -> str:
    """Why this Python does not start in a container of this engine's, or nothing."""
    code, _, said = _inside(engine, [sys.executable, "-c", "import numpy"])
    return (said.strip().splitlines()[-1:] or ["no reason given"])[0] if code else ""


@cache
def unlimited(engine: str) -> str:
    """Why processes and memory of a container are not limited together, or nothing."""
    files = ["/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"]  # version 2 and 1
    if str(TRIAL.processes) in _inside(engine, ["/usr/bin/cat", *files])[1].split():
        return ""
    return (
        f"{engine} makes no control groups for this user, as where they are of version 1: a fork bomb "
        "lasts until the wall limit, and memory is limited for each process alone"
    )


def _inside(engine: str, program: Sequence[str]) -> tuple[int, str, str]:
    """What a program in a container says: exit status, standard output, standard error."""
    name = f"gpulab-{uuid.uuid4().hex}"
    with tempfile.TemporaryDirectory(prefix="gpulab-trial-") as folder:
        make_record(Path(folder))
        answer = _answer([*command(engine, name, system(), [], Path(folder), TRIAL), *program])
        if answer[0]:  # it may have been too slow for us
            end(engine, name)
    return answer


def _answer(command: Sequence[str]) -> tuple[int, str, str]:
    """A command's exit status, standard output, and standard error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, "", str(error)
    return done.returncode, done.stdout, done.stderr


def system() -> list[tuple[str, str]]:
    """What every process needs of this machine, as (where it is, where it is seen): libraries, Python."""
    found = [("/usr", "/usr")]
    found += [(os.path.realpath(f"/{n}"), f"/{n}") for n in ("bin", "lib", "lib64") if os.path.isdir(f"/{n}")]
    if os.path.exists("/etc/ld.so.cache"):
        found.append(("/etc/ld.so.cache", "/etc/ld.so.cache"))
    for prefix in dict.fromkeys((sys.base_prefix, sys.prefix)):
        if not prefix.startswith("/usr"):
            found += [(os.path.realpath(prefix), seen) for seen in {os.path.realpath(prefix), prefix}]
    return found


def make_record(folder: Path) -> None:
    """What a container needs of a folder: a `record` that who is inside can write, and an `empty` folder."""
    (folder / "record").touch()
    (folder / "record").chmod(0o666)
    (folder / "empty").mkdir()


def command(
    engine: str,
    name: str,
    mounts: Iterable[tuple[str, str]],
    hidden: Iterable[str],
    folder: Path,
    bounds: Bounds,
) -> list[str]:
    """The engine's command line up to the program that runs inside.

    `mounts` are (path here, path inside), read-only; `hidden` folders inside are empty; the one file that can
    be written, /out/record, is `record` in the folder, see `make_record`.
    """
    disk = f"rw,nosuid,nodev,size={bounds.scratch}"
    return [
        engine, "run", "--rm", "--interactive", "--name", name, "--pull=never", "--stop-timeout=0",
        "--network=none", "--ipc=private", "--read-only", "--cap-drop=ALL",
        "--security-opt=no-new-privileges", f"--user={USER}:{USER}", "--hostname=sandbox",
        f"--pids-limit={bounds.processes}", f"--memory={bounds.memory}", f"--memory-swap={bounds.memory}",
        f"--shm-size={bounds.scratch}", *_grantable(), "--log-driver=none",
        f"--tmpfs=/tmp:{disk},mode=1777", f"--tmpfs=/home/learner:{disk},mode=1777",
        # Memory disks that podman adds, of any size, and a table of this machine's addresses.
        "--tmpfs=/run:ro,size=65536", "--tmpfs=/var/tmp:ro,size=4096",
        f"--mount=type=bind,source={os.devnull},target=/etc/hosts,readonly",
        *(f"--mount=type=bind,source={here},target={inside},readonly" for here, inside in mounts),
        # Not a memory disk: podman copies into one what lies where it is mounted.
        *(f"--mount=type=bind,source={folder / 'empty'},target={path},readonly" for path in hidden),
        f"--mount=type=bind,source={folder / 'record'},target=/out/record",
        IMAGE,
    ]  # fmt: skip


def _grantable() -> Iterator[str]:
    """Limits of files and processes that whoever asks may set.

    Engines take numbers of their own, which root without its right to raise limits cannot grant.
    """
    for what, number, wanted in (
        ("nofile", resource.RLIMIT_NOFILE, 1024),
        ("nproc", resource.RLIMIT_NPROC, 16384),
    ):
        most = resource.getrlimit(number)[1]
        value = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        yield f"--ulimit={what}={value}:{value}"


def end(engine: str, name: str) -> None:
    """Kill and remove a container: it outlives the command that started it."""
    _answer([engine, "rm", "--force", name])
