"""System calls that code in a sandbox has no use for, refused by the kernel.

Two lists. What no sandbox allows are ways to reach more of the kernel than a notebook needs: other kinds of
sockets than the usual ones (AF_VSOCK reaches the host of a virtual machine), namespaces and mounts, other
processes' memory, keys, modules, tracing, io_uring. Flatpak and nsjail advise to refuse them, too.

Ranks of one exercise are refused more, because two sandboxes could talk through it. Namespaces hide files,
processes and networks, but the same read-only files are in all sandboxes: locks, watches, who wakes whom at
a word of theirs, and the question which of their pages are in memory carry information. So do keys of the
session and what is counted for a user or for the machine as a whole: locked memory, queues, pending signals,
buffers of pipes, descriptors under way, watches of epoll, free space.

Not covered: how long things take. Two ranks on one machine can slow each other down and measure that, with
a few bits a second and many errors.

The filter is a program for the kernel's packet filter, as bubblewrap's ``--seccomp`` and prctl take it
(``linux/filter.h``, ``linux/seccomp.h``; the numbers of calls are from ``asm/unistd.h``).
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
    futex: int
    socket: int
    refused: dict[str, int]
    highest: int = 0  # calls from here on belong to another interface of the same machine


# Refused in every sandbox; the rest of a machine's list only in those of ranks.
EVERYWHERE = {
    "acct", "add_key", "bpf", "delete_module", "fanotify_init", "finit_module", "fsconfig", "fsmount",
    "fsopen", "fspick", "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup",
    "kexec_file_load", "kexec_load", "keyctl", "mount", "mount_setattr", "move_mount", "move_pages",
    "name_to_handle_at", "open_by_handle_at", "open_tree", "perf_event_open", "pivot_root",
    "process_vm_readv", "process_vm_writev", "ptrace", "quotactl", "reboot", "request_key", "setns",
    "swapoff", "swapon", "syslog", "umount2", "unshare", "userfaultfd",
}  # fmt: skip

MACHINES = {
    "x86_64": Machine(
        audit=0xC000003E,
        fcntl=72,
        futex=202,
        socket=41,
        refused={
            "ptrace": 101, "syslog": 103, "pivot_root": 155, "acct": 163, "mount": 165, "umount2": 166,
            "swapon": 167, "swapoff": 168, "reboot": 169, "init_module": 175, "delete_module": 176,
            "quotactl": 179, "kexec_load": 246, "unshare": 272, "move_pages": 279, "name_to_handle_at": 303,
            "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
            "finit_module": 313, "kexec_file_load": 320, "userfaultfd": 323, "open_tree": 428,
            "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
            "mount_setattr": 442,
            "statfs": 137, "fstatfs": 138, "mincore": 27, "pipe": 22, "pipe2": 293, "socketpair": 53,
            "epoll_create": 213, "epoll_create1": 291,
            "flock": 73, "sysinfo": 99, "rt_sigqueueinfo": 129, "mlock": 149, "mlockall": 151,
            "fadvise64": 221, "timer_create": 222, "mq_open": 240, "add_key": 248, "request_key": 249,
            "keyctl": 250, "inotify_init": 253, "inotify_add_watch": 254, "inotify_init1": 294,
            "rt_tgsigqueueinfo": 297, "perf_event_open": 298, "fanotify_init": 300, "bpf": 321, "mlock2": 325,
            "preadv2": 327, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
            "cachestat": 451, "futex_waitv": 449, "futex_wake": 454, "futex_wait": 455, "futex_requeue": 456,
        },
        highest=0x40000000,
    ),
    "aarch64": Machine(
        audit=0xC00000B7,
        fcntl=25,
        futex=98,
        socket=198,
        refused={
            "umount2": 39, "mount": 40, "pivot_root": 41, "quotactl": 60, "acct": 89, "unshare": 97,
            "kexec_load": 104, "init_module": 105, "delete_module": 106, "syslog": 116, "ptrace": 117,
            "reboot": 142, "swapon": 224, "swapoff": 225, "move_pages": 239, "name_to_handle_at": 264,
            "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271,
            "finit_module": 273, "userfaultfd": 282, "kexec_file_load": 294, "open_tree": 428,
            "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
            "mount_setattr": 442,
            "statfs": 43, "fstatfs": 44, "pipe2": 59, "socketpair": 199, "epoll_create1": 20,
            "inotify_init1": 26, "inotify_add_watch": 27,
            "flock": 32, "timer_create": 107,
            "rt_sigqueueinfo": 138, "sysinfo": 179, "mq_open": 180, "add_key": 217, "request_key": 218,
            "keyctl": 219, "fadvise64": 223, "mlock": 228, "mlockall": 230, "mincore": 232,
            "rt_tgsigqueueinfo": 240, "perf_event_open": 241, "fanotify_init": 262, "bpf": 280, "mlock2": 284,
            "preadv2": 286, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
            "cachestat": 451, "futex_waitv": 449, "futex_wake": 454, "futex_wait": 455, "futex_requeue": 456,
        },
    ),
}  # fmt: skip
# fcntl's F_GETLK, F_SETLK, F_SETLKW, the same of open files, F_SETLEASE, F_GETLEASE, F_NOTIFY, F_SETPIPE_SZ.
COMMANDS = (5, 6, 7, 36, 37, 38, 1024, 1025, 1026, 1031)
PRIVATE = 128  # FUTEX_PRIVATE_FLAG
# AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: each has a namespace. How many descriptors are under way in sockets
# of the first kind is counted for a user.
FAMILIES = (1, 2, 10, 16)
FAMILIES_OF_RANKS = (2, 10, 16)

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# SECCOMP_RET_ALLOW, and SECCOMP_RET_ERRNO with EPERM and with EAGAIN
ALLOW, REFUSE, AGAIN = 0x7FFF0000, 0x00050001, 0x0005000B
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24  # where they stand in struct seccomp_data

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


def obstacle() -> str:
    """Why there is no filter here, or nothing."""
    machine = platform.machine()
    return "" if machine in MACHINES else f"the calls of {machine} are not known; see grading/core/seccomp.py"


def program(machine: str | None = None, *, rank: bool) -> bytes:
    """The filter for a machine, by default this one; with `rank` that of a rank, which refuses more.

    Raises KeyError for a machine that is not in `MACHINES`.
    """
    calls = MACHINES[machine or platform.machine()]
    steps: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, calls.audit),
        (RETURN, 0, 0, REFUSE),
        (LOAD, 0, 0, NUMBER),
    ]
    if calls.highest:
        steps += [(AT_LEAST, 0, 1, calls.highest), (RETURN, 0, 0, REFUSE)]
    for name, number in calls.refused.items():
        if rank or name in EVERYWHERE:
            steps += _answer(number, REFUSE)
    if rank:
        commands = [step for command in COMMANDS for step in _answer(command, REFUSE)]
        steps += _where(calls.fcntl, SECOND, commands, ALLOW)
        # Who joins a thread waits without the flag, and looks again where it is told to.
        steps += _where(calls.futex, SECOND, [(ANY_BIT, 0, 1, PRIVATE), (RETURN, 0, 0, ALLOW)], AGAIN)
    allowed = FAMILIES_OF_RANKS if rank else FAMILIES
    families = [step for family in allowed for step in _answer(family, ALLOW)]
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
