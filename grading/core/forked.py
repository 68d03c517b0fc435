"""The coordinator's side of `template`: sandboxed processes that need not import anything."""

from __future__ import annotations

import json
import resource
import select
import signal
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from grading.core.errors import SandboxError

PATIENCE = 120.0  # seconds for the template to import everything, and for a copy to begin, imports included


class Fork:
    """A recording in a copy of the template. To be waited for and killed like a `subprocess.Popen`."""

    def __init__(self, status: socket.socket):
        self.status = status
        self.code: int | None = None
        self.handle: int | None = None  # of the copy; no number, which another process might get
        status.settimeout(PATIENCE)
        try:
            handles = socket.recv_fds(status, 16, 1)[1]
        except TimeoutError:
            handles = []
        if handles:
            self.handle = handles[0]
        else:
            self.code = -signal.SIGKILL

    def wait(self, seconds: float | None = None) -> int:
        """The exit status, or minus the signal that ended what surrounds the sandbox.

        Raises TimeoutExpired.
        """
        if self.code is None:
            if not readable(self.status.fileno(), seconds):
                raise subprocess.TimeoutExpired("template", seconds or 0)
            said = self.status.recv(16)
            self.code = int(said) if said else -signal.SIGKILL
        return self.code

    def kill(self) -> None:
        """End the copy's manager, and with it the sandbox and everything in it; wait until it is gone."""
        if self.handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.handle, signal.SIGKILL)
            readable(self.handle, PATIENCE)

    def close(self) -> None:
        """Give back the descriptors."""
        self.status.close()
        if self.handle is not None:
            socket.close(self.handle)
            self.handle = None


def readable(descriptor: int, seconds: float | None) -> bool:
    """Wait until there is something to read, or the other side is gone; says whether that came."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(waiting.poll(None if seconds is None else max(0.0, seconds) * 1000))


class Template:
    """A process from which recordings are forked, behind walls of its own. It ends when this object does."""

    def __init__(self, walls: Sequence[str], command: Sequence[str], environment: dict[str, str]):
        """Raises SandboxError where it does not start."""
        self.broken = False
        self.folder = tempfile.TemporaryDirectory(prefix="gpulab-records-")
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [*walls, "--bind", self.folder.name, "/records", "--remount-ro", "/", "--", *command,
                 str(theirs.fileno())],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                env=environment, cwd="/", start_new_session=True, pass_fds=[theirs.fileno()],
            )  # fmt: skip
        self.control.settimeout(PATIENCE)
        try:
            ready = bool(self.control.recv(16))
        except OSError:
            ready = False
        if not ready:
            self.process.kill()
            said = self.process.communicate()[1].decode("utf-8", "replace").strip().splitlines()
            self.close()
            raise SandboxError(said[-1] if said else "the template says nothing")
        assert self.process.stderr is not None
        self.process.stderr.close()

    def alive(self) -> bool:
        return not self.broken and self.process.poll() is None

    def record(self) -> Path:
        """An empty file for what comes out, which bubblewrap finds in /records."""
        path = Path(self.folder.name, uuid.uuid4().hex)
        path.touch()
        return path

    def fork(
        self,
        walls: Sequence[str],
        limits: dict[str, int],
        errors: int,
        job: int,
        groups: Sequence[int],
        imports: Sequence[str] = (),
        calls: bytes = b"",
    ) -> Fork:
        """A copy in the sandbox that bubblewrap makes with these arguments; a killed one if we are dead.

        `imports` are modules that the template imports beforehand, if they are there. `calls` is the filter
        of system calls that the copy works under, see `seccomp`.
        `limits` are those of Python's `resource`, by name; the others are descriptors, the last of the files
        that a process is written into to join a control group.
        """
        numbers = [(getattr(resource, name), value) for name, value in limits.items()]
        request = json.dumps(
            {"imports": imports, "walls": walls, "limits": numbers, "calls": calls.hex()}
        ).encode()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, suppress(OSError):
            socket.send_fds(self.control, [request], [theirs.fileno(), errors, job, *groups])
        fork = Fork(ours)
        self.broken = self.broken or fork.handle is None
        return fork

    def close(self) -> None:
        """End the template, and all that is under way."""
        self.control.close()
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()
