"""A limit on all processes of a submission together, where this machine lets us make control groups.

Without one the resource limits of each single process and the wall limit still hold.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path

BASE = Path("/sys/fs/cgroup")
# controller: (file of version 1, file of version 2)
SETTINGS = {"pids": ("pids.max", "pids.max"), "memory": ("memory.limit_in_bytes", "memory.max")}


@cache
def _homes() -> dict[str, tuple[Path, str]]:
    """For each controller: the directory to make a group in, and the name of the setting."""
    homes: dict[str, tuple[Path, str]] = {}
    for controller, (first, second) in SETTINGS.items():
        if (BASE / controller / "cgroup.procs").exists():
            homes[controller] = (BASE / controller, first)
        elif (BASE / "cgroup.subtree_control").exists():
            with contextlib.suppress(OSError):
                if controller in (BASE / "cgroup.subtree_control").read_text().split():
                    homes[controller] = (BASE, second)
    usable = {}
    for controller, (home, setting) in homes.items():
        trial = home / f"gpulab-trial-{os.getpid()}"
        with contextlib.suppress(OSError):
            trial.mkdir()
            if (trial / setting).exists():
                usable[controller] = (home, setting)
            trial.rmdir()
    return usable


def obstacle() -> str:
    """Why there is no limit on all processes together, or nothing."""
    return (
        ""
        if "pids" in _homes()
        else "this user cannot make control groups: a fork bomb lasts until the wall limit"
    )


@contextlib.contextmanager
def limited(processes: int, memory: int) -> Iterator[list[str]]:
    """A fresh control group; yields what to put before a command so that it starts inside.

    Empty where no group can be made. The command joins by itself: from outside its children might be faster.
    """
    with joined_through(processes, memory) as files:
        joining = "".join(f"echo $$ > {file}; " for file in files)
        yield ["/bin/sh", "-c", f'{joining}exec "$@"', "sh"] if files else []


@contextlib.contextmanager
def joined_through(processes: int, memory: int) -> Iterator[list[Path]]:
    """A fresh control group; yields the files that a process writes its number into to join it."""
    values = {"pids": processes, "memory": memory}
    groups: list[Path] = []
    for home in {path for path, _ in _homes().values()}:
        _sweep(home)
        group = home / f"gpulab-{os.getpid()}-{uuid.uuid4().hex[:12]}"
        with contextlib.suppress(OSError):
            group.mkdir()
            groups.append(group)
            for controller, (place, setting) in _homes().items():
                if place == home:
                    (group / setting).write_text(str(values[controller]))
    try:
        yield [group / "cgroup.procs" for group in groups]
    finally:
        for group in groups:
            _remove(group)


@cache
def _sweep(home: Path) -> None:
    """Remove the groups of coordinators that were killed: nobody else will."""
    for group in home.glob("gpulab-*-*"):
        owner = group.name.split("-")[1]
        if owner.isdigit() and not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):  # something still runs in it
                group.rmdir()


def _remove(group: Path) -> None:
    """The processes of a killed sandbox may take a moment to be gone."""
    for _ in range(50):
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.02)
