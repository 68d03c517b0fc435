"""The sandbox where bubblewrap cannot work: a container of podman's or Docker's around the same Python.

Everything that a submission sees is mounted, so the image may be empty; `MAKE_IMAGE` says how to make it. A
container inherits no connection to the judge: exercises for several ranks and dialogues need bubblewrap.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ENGINES = ("podman", "docker")
IMAGE = "gpulab-empty"
MAKE_IMAGE = "tar c --files-from /dev/null | {engine} import - " + IMAGE
PATIENCE = 20  # seconds for an engine to say whether it is there
USER = 1000


@dataclass(frozen=True)
class Bounds:
    """What the engine itself limits: bytes of memory, of a memory disk and of a file, processes, seconds."""

    memory: int
    scratch: int
    file: int
    processes: int
    cpu: int


@cache
def engine() -> tuple[str, str]:
    """The first engine that answers and has the image; or nothing, and why."""
    found = [name for name in ENGINES if shutil.which(name)]
    why = "" if found else "neither podman nor docker is installed"
    for name in found:
        if not _answers([name, "info"]):
            why = why or f"{name} does not answer: does its service run, and may you use it?"
        elif not _answers([name, "image", "inspect", IMAGE]):
            why = why or f"{name} has no image yet: {MAKE_IMAGE.format(engine=name)}"
        else:
            return name, ""
    return "", why


def _answers(command: Sequence[str]) -> bool:
    try:
        return not subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False


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


def command(
    engine: str,
    name: str,
    mounts: Iterable[tuple[str, str]],
    hidden: Iterable[str],
    result: Path,
    environment: Mapping[str, str],
    bounds: Bounds,
) -> list[str]:
    """The engine's command line up to the program that runs inside.

    `mounts` are (path here, path inside), read-only; `hidden` paths inside are empty; `result` is the one
    file that can be written, as /out/record.
    """
    disk = f"rw,nosuid,nodev,size={bounds.scratch}"
    return [
        engine, "run", "--rm", "--interactive", "--name", name, "--pull=never",
        "--network=none", "--ipc=private", "--read-only", "--cap-drop=ALL",
        "--security-opt=no-new-privileges", f"--user={USER}:{USER}", "--hostname=sandbox",
        f"--pids-limit={bounds.processes}", f"--memory={bounds.memory}", f"--memory-swap={bounds.memory}",
        f"--shm-size={bounds.scratch}", f"--ulimit=fsize={bounds.file}", f"--ulimit=cpu={bounds.cpu}",
        "--ulimit=core=0", "--log-driver=none", f"--tmpfs=/tmp:{disk},mode=1777",
        f"--tmpfs=/home/learner:{disk},mode=1777", "--workdir=/home/learner",
        *(f"--mount=type=bind,source={here},target={inside},readonly" for here, inside in mounts),
        *(f"--tmpfs={path}:ro,size=4096" for path in hidden),
        f"--mount=type=bind,source={result},target=/out/record",
        *(f"--env={key}={value}" for key, value in environment.items()),
        IMAGE,
    ]  # fmt: skip


def end(engine: str, name: str) -> None:
    """Kill a container: it outlives the command that started it."""
    _answers([engine, "kill", name])
