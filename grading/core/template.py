"""Runs beside the sandboxes, alone: a Python in which all is imported that a recording needs, to be forked.

For each submission a copy of this process is made and enters a sandbox of its own, which bubblewrap makes as
for a fresh Python; there it does the recorder's work. So nothing is imported twice. This process itself runs
no learner's line and holds nothing of a course: it starts behind walls of its own, without references.

It reads requests from the socket whose descriptor is its argument. A request is JSON with "imports" (modules
that the lab imports), "walls" (bubblewrap's arguments), "limits" (resource limits by number) and "calls" (the
filter of system calls, in hexadecimal). With it come descriptors: for what is told of the copy's end, for
what it says on standard error, its job, and files of control groups to join. It ends when the socket does.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import traceback
from typing import Any

import recorder  # it lies beside this file

SYSTEM = ctypes.CDLL(None, use_errno=True)
# From linux/sched.h: mount, cgroup, UTS, IPC, user, PID and network namespaces.
NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
# From linux/prctl.h and linux/capability.h.
END_WITH_PARENT, SET_DUMPABLE, DROP_FROM_BOUNDS, NO_NEW_PRIVILEGES = 1, 4, 24, 38
AMBIENT, CLEAR_AMBIENT = 47, 4
SET_SECCOMP, FILTER = 22, 2
CAPABILITIES_3 = 0x20080522
READY = b"ready"
IMPORTED = (
    "IPython.core.interactiveshell",
    "matplotlib.figure",
    "gpulab.plot.alt_text",
    "gpulab.checks.start",
    "gpulab.checks.by_hand",
    "gpulab.checks.cells",
    "gpulab.checks.compare",
)
_tried: set[str] = set()  # names of modules that a lab wanted
KERNEL = """
from gpulab import cuda
@cuda.jit
def copy(a, b):
    tile = cuda.shared.array(32, "float32")
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        tile[cuda.threadIdx.x] = a[i]
        cuda.syncthreads()
        b[i] = tile[cuda.threadIdx.x]
"""
LINKED = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry warm()\n{\n\tret;\n}\n"


def warm() -> None:
    """Import what recordings need and compile one kernel, which loads the rest."""
    from gpulab.checks import registry
    from gpulab.checks.evidence import LaunchTrace
    from gpulab.checks.spec import GPU
    from gpulab.simulator.compile import CompileError, ptxas

    for name in IMPORTED:
        importlib.import_module(name)
    recorder.about()
    registry.exercises()
    names: dict[str, Any] = {}
    exec(KERNEL, names)
    arrays = [{"array": name, "shape": [32], "dtype": "float32", "role": "out"} for name in "ab"]
    case = {"name": "", "arguments": arrays, "face": "cuda", "gpu": GPU, "launch": [[1], [32], 0]}
    LaunchTrace.record(names["copy"], recorder.Record(os.devnull), "", case)
    with contextlib.suppress(CompileError, ImportError, OSError):  # NVIDIA's linker, for `recorder.link`
        ptxas.resources(LINKED)
    gc.collect()


def warm_for(names: list[str]) -> None:
    """Import those modules, too; a name may be of none. PyTorch loads what it needs for a first graph."""
    had_torch, environment = "torch" in sys.modules, dict(os.environ)
    new = [name for name in names if name not in _tried]
    if not new:
        return
    for name in new:
        _tried.add(name)
        with contextlib.suppress(Exception):  # where it is imported the learner hears what is wrong
            importlib.import_module(name)
    if "torch" in sys.modules and not had_torch:
        from gpulab.checks.evidence import TensorGraph

        given = [
            {"array": name, "shape": [2], "dtype": "float32", "role": role, "grad": False}
            for name, role in (("a", "in"), ("out", "out"))
        ]
        case = {"name": "", "arguments": given, "operators": ["relu"]}
        with contextlib.suppress(Exception):
            TensorGraph.record(sys.modules["torch"].relu, recorder.Record(os.devnull), "", case)
    for name in os.environ.keys() - environment.keys():  # PyTorch's, which it would give to each copy
        del os.environ[name]
    gc.collect()


def _checked(answer: int) -> None:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _without_privileges() -> None:
    """Drop the capabilities that one gets by entering a user namespace, for good."""
    for capability in range(64):
        if SYSTEM.prctl(DROP_FROM_BOUNDS, capability, 0, 0, 0):
            break
    _checked(SYSTEM.prctl(AMBIENT, CLEAR_AMBIENT, 0, 0, 0))
    header, none = (ctypes.c_uint32 * 2)(CAPABILITIES_3, 0), (ctypes.c_uint32 * 6)()
    _checked(SYSTEM.capset(header, none))
    _checked(SYSTEM.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(SYSTEM.prctl(SET_DUMPABLE, 1, 0, 0, 0))  # as after an exec, else /proc/self is closed to itself


def _filter(calls: bytes) -> None:
    """Have the kernel filter system calls by this program, here and in every process that starts here."""
    size = len(calls) // 8  # of an instruction: 8 bytes, see linux/filter.h

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))

    _checked(SYSTEM.prctl(SET_SECCOMP, FILTER, ctypes.byref(Program(size, calls)), 0, 0))


def _enter(walls: list[str]) -> subprocess.Popen[bytes] | None:
    """Have bubblewrap make a sandbox in which nothing but a shell waits, and enter it. None if it cannot."""
    told, telling = os.pipe()
    command = [*walls, "--info-fd", str(telling), "--", "/bin/sh", "-c", "echo; read nothing"]
    sandbox = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[telling], cwd="/"
    )
    os.close(telling)
    assert sandbox.stdout is not None
    if not sandbox.stdout.read(1):  # bubblewrap has said why
        return None
    inside = os.pidfd_open(json.loads(os.read(told, 4096))["child-pid"])
    _checked(SYSTEM.setns(inside, NAMESPACES))
    _without_privileges()
    return sandbox


def _record(calls: bytes) -> None:
    """The copy's work, in the sandbox: what a fresh Python would do there."""
    if calls:
        _filter(calls)
    with contextlib.suppress(PermissionError):
        os.setsid()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir(os.environ["HOME"])
    sys.argv = ["/course/recorder.py", "/out/record"]
    recorder.main("/out/record")


def _manage(request: dict[str, Any], status: socket.socket, files: list[int]) -> int:
    """Make a sandbox and let a copy of this process work in it; returns its exit status as a shell has it."""
    errors, job, *groups = files
    os.dup2(job, 0)
    os.dup2(errors, 2)
    socket.send_fds(status, [b"started"], [os.pidfd_open(os.getpid())])
    try:
        for group in groups:
            os.write(group, b"0")  # this process
        for number, limit in request["limits"]:
            resource.setrlimit(number, (limit, limit))
        sandbox = _enter(request["walls"])
    except OSError as error:
        os.write(2, f"bwrap: the sandbox could not be entered: {error}\n".encode())
        return 1
    if sandbox is None:
        return 1
    copy = os.fork()
    if copy == 0:
        status.detach()
        try:
            _record(bytes.fromhex(request["calls"]))
            os._exit(0)  # threads and handlers that a learner left behind have no say
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
    sandbox.kill()
    sandbox.wait()
    return code if code >= 0 else 128 - code


def _serve(request: dict[str, Any], files: list[int], template: int) -> None:
    """One request, in a process of its own, which dies with the template."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _checked(SYSTEM.prctl(END_WITH_PARENT, signal.SIGKILL, 0, 0, 0))
    if os.getppid() != template:  # it is dead already
        return
    os.setsid()
    with socket.socket(fileno=files[0]) as status:
        code = _manage(request, status, files[1:])
        status.send(str(code).encode())


def _reap(*_: object) -> None:
    """Wait for those copies that have ended, so that what they used is known."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main(number: str) -> None:
    """Serve requests until nobody can make any."""
    control, template = socket.socket(fileno=int(number)), os.getpid()
    warm()
    signal.signal(signal.SIGCHLD, _reap)
    control.send(READY)
    while True:
        data, files, _, _ = socket.recv_fds(control, 1 << 20, 16)
        if not data:
            return
        request = json.loads(data)
        warm_for(request["imports"])
        if os.fork() == 0:
            try:
                os.close(control.detach())
                _serve(request, files, template)
            finally:
                os._exit(0)
        for file in files:
            os.close(file)


if __name__ == "__main__":
    main(*sys.argv[1:])
