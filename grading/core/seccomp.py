"""System calls that a rank's sandbox does without, because two sandboxes could talk through them.

Namespaces hide files, processes and networks, but the same read-only files stand in all sandboxes: who locks
one, watches one or asks which of its pages are in memory could tell others something. So could keys of the
session, sockets that know no namespace, and what is counted for a user as a whole (locked memory, queues,
pending signals, buffers of pipes) or for the machine. The filter is a program for the kernel's packet filter,
as bubblewrap's ``--seccomp`` takes it (``linux/filter.h``, ``linux/seccomp.h``; the numbers of calls are from
``asm/unistd.h``).
"""

from __future__ import annotations

import platform
import struct
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """`audit` is the kernel's number of the architecture, the others are numbers of system calls."""

    audit: int
    fcntl: int
    socket: int
    refused: dict[str, int]
    highest: int = 0  # calls from here on belong to another interface of the same machine


MACHINES = {
    "x86_64": Machine(
        audit=0xC000003E,
        fcntl=72,
        socket=41,
        refused={
            "mincore": 27, "flock": 73, "sysinfo": 99, "rt_sigqueueinfo": 129, "mlock": 149, "mlockall": 151,
            "fadvise64": 221, "timer_create": 222, "mq_open": 240, "add_key": 248, "request_key": 249,
            "keyctl": 250, "inotify_init": 253, "inotify_add_watch": 254, "inotify_init1": 294,
            "rt_tgsigqueueinfo": 297, "perf_event_open": 298, "fanotify_init": 300, "bpf": 321, "mlock2": 325,
            "preadv2": 327, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
            "cachestat": 451,
        },
        highest=0x40000000,
    ),
    "aarch64": Machine(
        audit=0xC00000B7,
        fcntl=25,
        socket=198,
        refused={
            "inotify_init1": 26, "inotify_add_watch": 27, "flock": 32, "timer_create": 107,
            "rt_sigqueueinfo": 138, "sysinfo": 179, "mq_open": 180, "add_key": 217, "request_key": 218,
            "keyctl": 219, "fadvise64": 223, "mlock": 228, "mlockall": 230, "mincore": 232,
            "rt_tgsigqueueinfo": 240, "perf_event_open": 241, "fanotify_init": 262, "bpf": 280, "mlock2": 284,
            "preadv2": 286, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
            "cachestat": 451,
        },
    ),
}  # fmt: skip
# fcntl's F_GETLK, F_SETLK, F_SETLKW, the same of open files, F_SETLEASE, F_GETLEASE, F_NOTIFY, F_SETPIPE_SZ.
COMMANDS = (5, 6, 7, 36, 37, 38, 1024, 1025, 1026, 1031)
FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: each has a namespace

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050001  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO with EPERM
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24  # where they stand in struct seccomp_data

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


def obstacle() -> str:
    """Why there is no filter here, or nothing."""
    machine = platform.machine()
    return "" if machine in MACHINES else f"the calls of {machine} are not known; see grading/core/seccomp.py"


def program(machine: str | None = None) -> bytes:
    """The filter for a machine, by default this one. Raises KeyError for one that is not in `MACHINES`."""
    calls = MACHINES[machine or platform.machine()]
    steps: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, calls.audit),
        (RETURN, 0, 0, REFUSE),
        (LOAD, 0, 0, NUMBER),
    ]
    if calls.highest:
        steps += [(AT_LEAST, 0, 1, calls.highest), (RETURN, 0, 0, REFUSE)]
    for number in calls.refused.values():
        steps += _answer(number, REFUSE)
    commands = [step for command in COMMANDS for step in _answer(command, REFUSE)]
    steps += _where(calls.fcntl, SECOND, commands, ALLOW)
    families = [step for family in FAMILIES for step in _answer(family, ALLOW)]
    steps += _where(calls.socket, FIRST, families, REFUSE)
    steps.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _answer(value: int, answer: int) -> list[Instruction]:
    """Where the loaded word is the value, the filter's answer."""
    return [(EQUAL, 0, 1, value), (RETURN, 0, 0, answer)]


def _where(call: int, argument: int, body: list[Instruction], otherwise: int) -> list[Instruction]:
    """For one call: look at an argument; `otherwise` is the answer where the body gives none."""
    whole = [(LOAD, 0, 0, argument), *body, (RETURN, 0, 0, otherwise)]
    return [(EQUAL, 0, len(whole), call), *whole]
