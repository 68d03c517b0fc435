"""Exercises for several ranks: what the judge's network finds out about honest ranks and about those that cheat."""

from __future__ import annotations

import copy
import inspect
import json
import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from nbgrader.api import Gradebook

from gpulab.checks import Array, Budget, Case, Exercise, registry
from gpulab.checks.evidence import Communication
from gpulab.subjects.distributed import network
from grading.authoring.release import release
from grading.core import ranks, sandbox, seccomp
from grading.core.course import Course
from grading.core.judge import asked_together, exercise_step, job_bytes
from grading.core.notebooks import Question, read_released
from grading.core.ranks import Outcomes
from grading.core.replay import ReplayJob, verdicts
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict, Store
from grading.lms import classroom
from grading.lms.gradebook import register
from tests.checks import all_reduce
from tests.checks.all_reduce import ALL_REDUCE, NAME

pytestmark = pytest.mark.usefixtures("needs_sandbox")
LIMITS = Limits(seconds=300, patience=12)  # four ranks import PyTorch at once, beside other tests
SEED = 77
IMPORTS = "import os, signal, sys, time, threading\nimport torch\nimport torch.distributed as dist"


class Played:
    """Answers to one exercise, each by ranks of its own name in one row of sandboxes."""

    def __init__(self, exercise: Exercise, answers: dict[str, tuple[str, str]], unsafe: bool = False) -> None:
        self.exercise = exercise
        self.asked = {
            name: Question("check", f"{exercise.name}@{name}", function, 0)
            for name, (function, _) in answers.items()
        }
        self.chosen = {q.exercise: exercise.cases for q in self.asked.values()}
        self.seeds = {(q.exercise, c.name): SEED for q in self.asked.values() for c in exercise.cases}
        steps: list[dict[str, Any]] = [{"cell": "imports", "source": IMPORTS}]
        for name, (_, source) in answers.items():
            steps.append({"cell": name, "source": source})
            steps.append(
                exercise_step(self.asked[name], exercise, exercise.cases, [SEED] * len(exercise.cases))
            )
        self.sources = {step["cell"]: step["source"] for step in steps if "source" in step}
        together = asked_together(self.asked.values(), self.chosen, self.seeds, "communication")
        self.outcomes: Outcomes = ranks.outcomes(steps, together, job_bytes, LIMITS, unsafe=unsafe)

    def verdict(self, name: str) -> ExerciseVerdict:
        job = ReplayJob(
            b"", "", (self.asked[name],), self.chosen, self.seeds, self.sources, {}, self.outcomes
        )
        return next(iter(verdicts(job)))

    def trouble(self, name: str) -> str:
        """What the first rank that raised something said."""
        trouble = self.outcomes[self.asked[name].exercise, self.exercise.cases[0].name].trouble
        assert trouble is not None
        return trouble.text


def text(verdict: ExerciseVerdict) -> str:
    return " ".join(" ".join(f"{x.label}: {x.summary} {x.reason}" for x in verdict.lines).split())


# ---------------------------------------------------------------- honest, wrong, and cheating ranks

WIRE = "\n    wire = dist.distributed_c10d._get_default_group().wire"
RING = inspect.getsource(all_reduce.ring)
NAIVE = inspect.getsource(all_reduce.naive)


def cheat(body: str) -> str:
    return (
        f"{RING}\n\n{NAIVE}\n\ndef cheat(x):\n    rank, size = dist.get_rank(), dist.get_world_size(){body}\n"
    )


# By name: the function that is asked for, its cell, and words of the verdict.
ANSWERS: dict[str, tuple[str, str, str]] = {
    name: (name, inspect.getsource(getattr(all_reduce, name)), words)
    for name, words in {
        "naive": "12,276 B · budget 6,144",
        "library": "calls all_reduce, which this exercise does not allow",
        "all_send_first": "rank 0 waits in line 2 for rank 1 to receive rank 1 waits in line 2 for rank 0",
        "other_size": "rank 0 sends 20 bytes to rank 1, which waits for 24",
        "never_taken": "rank 0 sent a message to rank 1, which never took it",
        "never_waits": "rank 0 returned while its isend in line 6 was never waited for",
        "waits_late": "the tensor of the isend in line 4 was changed before its wait()",
        "empty": "not answered",
    }.items()
}
ANSWERS |= {
    "off by one": ("off_by_one", RING + inspect.getsource(all_reduce.off_by_one), "rank 1: `out[3]` is "),
    "in place": (
        "in_place",
        RING + inspect.getsource(all_reduce.in_place),
        "rank 0: your function changed the input `x`",
    ),
    "fails": ("fails", inspect.getsource(all_reduce.fails), "line 3: return x[5000]"),
    "missing": ("nothing_of_this_name", "", "`nothing_of_this_name` is not defined"),
    "ends all that it can": ("cheat", cheat("\n    os.kill(-1, signal.SIGKILL)\n    return x"), "No such process"),
    "small pieces": (
        "cheat",
        cheat(
            """
    x = x.clone()
    if rank == 0:
        total = x.clone()
        for other in range(1, size):
            for piece in total.split(33):
                came = torch.empty_like(piece)
                dist.recv(came, other)
                piece += came
        for other in range(1, size):
            for piece in total.split(33):
                dist.send(piece, other)
        return total
    for piece in x.split(33):
        dist.send(piece, 0)
    for piece in x.split(33):
        dist.recv(piece, 0)
    return x"""
        ),
        "12,276 B · budget 6,144",
    ),
    "patches the network": (
        "cheat",
        cheat(
            """
    import gpulab.distributed.network as n, gpulab.checks.scoring as s, gpulab.checks.compare as c
    n.COUNTS = {}; n.Traffic.__getitem__ = lambda *a: 0; n.Network._count = lambda *a: None
    s.share = lambda *a: 1.0; c.mismatch = lambda *a, **k: None
    return naive(x)"""
        ),
        "12,276 B · budget 6,144",
    ),
    "public contents": (
        "cheat",
        cheat(
            """
    import numpy as np
    from gpulab.checks.cases import PUBLIC_SEED
    from zlib import crc32
    case = "2 ranks × 6" if size == 2 else "4 ranks × 1023"
    numbers = np.random.default_rng([PUBLIC_SEED, crc32(f"toy.all_reduce/{case}".encode())])
    return torch.from_numpy(numbers.integers(-2097151, 2097152, (size, len(x))).astype(np.float32).sum(0))"""
        ),
        "It is wrong on every rank",
    ),
    "a message that claims to be small": (
        "cheat",
        cheat(
            """
    wired = dist.distributed_c10d._get_default_group()
    post = wired.wire.post
    wired.wire.post = lambda head, data=b"": post({**head, "bytes": 1 if head["op"] == "send" else head.get("bytes")}, data)
    return naive(x)"""
        ),
        "12,276 B · budget 6,144",
    ),
    "a step that claims to wait for nothing": (
        "cheat",
        cheat(
            """
    wired = dist.distributed_c10d._get_default_group()
    post = wired.wire.post
    wired.wire.post = lambda head, data=b"": post({**head, "clock": 0, "step": 0}, data)
    came = torch.zeros_like(x)
    if rank:
        dist.recv(came, rank - 1)
    total = came + x
    if rank + 1 < size:
        dist.send(total, rank + 1)
        dist.recv(total, rank + 1)
    if rank:
        dist.send(total, rank - 1)
    return total"""
        ),
        "busiest sender: 8,184 B · budget",
    ),
    "a flood": (
        "cheat",
        cheat("\n    for _ in range(20): dist.isend(torch.zeros(400_000), 1 - rank)\n    return x"),
        "at most",
    ),
    "more than one frame may hold": (
        "cheat",
        cheat("\n    dist.isend(torch.zeros(20_000_000), 1 - rank)\n    return x"),
        "BadFrame",
    ),
    "printing": (
        "cheat",
        cheat('\n    os.write(1, b"x" * 100); os.write(2, b"y" * 5_000_000); print("z" * 10**6)\n    return x * size'),
        "It is wrong on",
    ),
}  # fmt: skip

# After these the ranks are started anew.
ENDS: dict[str, tuple[str, str, str]] = {
    "dies": ("dies", inspect.getsource(all_reduce.dies), "rank 1 of 2 ended before it returned anything"),
    "endless": ("cheat", cheat("\n    while rank == 1: pass\n    return x"), "rank 1 computes"),
    "a pickle": (
        "cheat",
        cheat(
            WIRE + "\n    import pickle\n    wire.connection.sendall(pickle.dumps(os.system))\n    return x"
        ),
        "has not the form",
    ),
}


def played(exercise: Exercise, answers: dict[str, tuple[str, str, str]]) -> Iterator[Played]:
    if why := sandbox.obstacle():
        pytest.skip(why)
    registry.add(exercise, all_reduce.expected)
    given = {name: (function, source) for name, (function, source, _) in answers.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "MOST_PENDING", 4 << 20)
        found = Played(exercise, {"ring": ("ring", RING), **given, "ring again": ("ring", RING)})
    yield found
    registry.remove(NAME)


@pytest.fixture(scope="module")
def lasting() -> Iterator[Played]:
    yield from played(ALL_REDUCE, ANSWERS)


@pytest.fixture(scope="module")
def ending() -> Iterator[Played]:
    yield from played(replace(ALL_REDUCE, cases=ALL_REDUCE.cases[:1]), ENDS)


def test_an_honest_ring_passes_also_after_all_others(lasting: Played) -> None:
    for name in ("ring", "ring again"):
        found = lasting.verdict(name)
        assert found.passed, text(found)
        assert "6,140 B · budget 6,144" in text(found) and "6 steps · budget 6" in text(found)
        assert any("PyTorch" in note for note in found.notes)


@pytest.mark.parametrize("name", ANSWERS)
def test_each_gets_what_it_deserves_with_the_reason(lasting: Played, name: str) -> None:
    found = lasting.verdict(name)
    assert ANSWERS[name][2] in text(found), text(found)
    right = " B · budget" in ANSWERS[name][2]
    assert (found.lines[0].points == 2.0) == right
    assert not found.passed and not found.ungraded


def test_ranks_that_end_cost_their_own_exercise_only(ending: Played) -> None:
    for name, (*_, words) in ENDS.items():
        found = ending.verdict(name)
        assert found.points == 0 and words in text(found), text(found)
    assert ending.verdict("ring").passed and ending.verdict("ring again").passed
    assert not sandbox._running


def test_once_a_submissions_time_is_over_no_rank_is_started_and_each_exercise_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox, "rank", lambda *_, **__: pytest.fail("a rank was started"))
    asked = [ranks.Asked(f"{NAME}@{i}", ALL_REDUCE, ALL_REDUCE.cases, (1, 1)) for i in range(40)]
    steps = [{"exercise": each.name, "function": "ring", "cases": []} for each in asked]
    found = ranks.outcomes(steps, asked, job_bytes, LIMITS, time.monotonic())
    assert len(found) == 40
    assert all(
        outcome.trouble and outcome.trouble.text == "stopped after 300 s" for outcome in found.values()
    )


def test_once_the_judge_is_stopped_no_rank_is_started() -> None:
    asked = ranks.Asked(NAME, ALL_REDUCE, ALL_REDUCE.cases, (1, 1))
    step = exercise_step(Question("check", NAME, "ring", 0), ALL_REDUCE, ALL_REDUCE.cases, [1, 1])
    assert ranks.outcomes([step], [asked], job_bytes, LIMITS, stopped=lambda: True) == {}


# ---------------------------------------------------------------- ways past the network

TELL = Exercise(
    name="toy.tell",
    lab="99",
    correct_points=1.0,
    evidence=Communication(
        arguments=lambda s: (
            Array("x", (1,), "int64", fill="integers:1:255"),
            Array("out", (1,), "int64", role="out"),
        ),
    ),
    cases=(Case("2 ranks", {"ranks": 2}),),
    budgets=(Budget("bytes", 16, 1.0, "bytes", unit="B"),),
)
# Rank 0 puts a number somewhere; when it says so, rank 1 looks for it there.
AROUND = """
import ctypes, fcntl, mmap, socket, time
LIBRARY = sorted(os.path.join(os.path.dirname(os.__file__), f) for f in os.listdir(os.path.dirname(os.__file__)) if f.endswith(".py") and os.stat(os.path.join(os.path.dirname(os.__file__), f)).st_size > 4096)[:8]
libc = ctypes.CDLL(None, use_errno=True)

def mapped(name):
    with open(name, "rb") as file: area = mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
    return area, area[0]

def address(area):
    length = ctypes.c_ssize_t()
    view = (ctypes.c_char * 80)()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(area[0]), view, 0)
    return ctypes.c_void_p.from_buffer(view).value

def futex(place, operation, value):
    return libc.syscall(202, ctypes.c_void_p(place), operation, value, None, None, 0)

def put(v):
{put}

def get():
{get}

def tell(x):
    token, kept = torch.zeros(1), None
    if dist.get_rank() == 0:
        try:
            kept = put(int(x))
        except OSError:
            pass
        dist.send(token, 1)
        dist.recv(token, 1)
        return x
    dist.recv(token, 0)
    try:
        found = int(get())
    except Exception:
        found = -1
    dist.send(token, 0)
    return torch.tensor([found])
"""
SERVE = """
s.listen()
def serve():
    while True: s.accept()[0].sendall(bytes([v]))
threading.Thread(target=serve, daemon=True).start()
return s"""
# By name: how to put, how to get, and whether it works wherever there is no sandbox.
CHANNELS: dict[str, tuple[str, str, bool]] = {
    "a file in /tmp": (
        "open('/tmp/gpulab-leak', 'w').write(str(v))",
        "return int(open('/tmp/gpulab-leak').read())",
        True,
    ),
    "a file in the home folder": (
        "open('leak', 'w').write(str(v))",
        "return int(open('leak').read())",
        False,
    ),
    "shared memory": (
        "open('/dev/shm/gpulab-leak', 'w').write(str(v))",
        "return int(open('/dev/shm/gpulab-leak').read())",
        True,
    ),
    "the file that comes out": (
        "open('/out/record', 'r+').write(str(v))",
        "return int(open('/out/record').read()[:3])",
        False,
    ),
    "System V memory": (
        "libc.shmat.restype = ctypes.c_void_p\n"
        "p = libc.shmat(libc.shmget(0x6c65, 64, 0o1666), None, 0)\nctypes.memset(p, v, 1)",
        "libc.shmat.restype = ctypes.c_void_p\n"
        "n = libc.shmget(0x6c65, 64, 0o666)\n"
        "return ctypes.string_at(libc.shmat(n, None, 0), 1)[0] if n >= 0 else -1",
        True,
    ),
    "an abstract socket": (
        "s = socket.socket(socket.AF_UNIX)\ns.bind('\\0gpulab-leak')" + SERVE,
        "s = socket.socket(socket.AF_UNIX)\ns.connect('\\0gpulab-leak')\nreturn s.recv(1)[0]",
        True,
    ),
    "the loopback": (
        "s = socket.socket()\ns.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "s.bind(('127.0.0.1', 45871))" + SERVE,
        "s = socket.create_connection(('127.0.0.1', 45871), 2)\nreturn s.recv(1)[0]",
        True,
    ),
    "locks on Python's own files": (
        "kept = [open(f) for f in LIBRARY]\n"
        "for i, f in enumerate(kept):\n    if v >> i & 1: fcntl.flock(f, fcntl.LOCK_EX)\nreturn kept",
        "found = 0\n"
        "for i, name in enumerate(LIBRARY):\n"
        "    f = open(name)\n"
        "    try: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); fcntl.flock(f, fcntl.LOCK_UN)\n"
        "    except BlockingIOError: found |= 1 << i\n"
        "return found",
        True,
    ),
    "the place of a lock": (
        "f = open(LIBRARY[0])\n"
        "fcntl.fcntl(f, fcntl.F_SETLK, struct.pack('hhlli', fcntl.F_RDLCK, 0, v, 1, 0))\nreturn f",
        "f = open(LIBRARY[0])\n"
        "return struct.unpack('hhlli', fcntl.fcntl(f, fcntl.F_GETLK, "
        "struct.pack('hhlli', fcntl.F_WRLCK, 0, 0, 0, 0)))[2]",
        True,
    ),
    "a key of the session": (
        "libc.syscall(248, b'user', b'gpulab-leak', bytes([v]), 1, -3)",
        "key = libc.syscall(250, 10, -3, b'user', b'gpulab-leak', 0)\n"
        "data = ctypes.create_string_buffer(1)\nlibc.syscall(250, 11, key, data, 1)\nreturn data.raw[0]",
        False,
    ),
    "how large a new pipe is": (  # a user who has 1,024 of them gets small ones
        "import resource\n"
        "most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))\n"
        "return [os.pipe() for _ in range(1040)] if v else None",
        "size = fcntl.fcntl(os.pipe()[1], 1032)\nreturn 236 if size < 65536 else -1",
        False,  # root may have as many as it likes
    ),
    "how often a page of a file is mapped": (
        "kept = [mapped(f) for i, f in enumerate(LIBRARY) if v >> i & 1]\nreturn kept",
        "found = 0\n"
        "for i, name in enumerate(LIBRARY):\n"
        "    kept = mapped(name)\n"
        "    text = open('/proc/self/smaps').read()\n"
        "    block = text[text.index(name):]\n"
        "    rss, pss = (int(block.split(f'{what}:')[1].split()[0]) for what in ('\\nRss', '\\nPss'))\n"
        "    found |= (pss < rss) << i\n"
        "return found",
        True,
    ),
    "who wakes whom at a page of a file": (
        "def wake(i):\n"
        "    area = mapped(LIBRARY[0])\n"
        "    place, until = address(area) + 4 * i, time.monotonic() + 5\n"
        "    while not futex(place, 1, 1) and time.monotonic() < until: time.sleep(0.01)\n"
        "for i in range(8):\n"
        "    if v >> i & 1: threading.Thread(target=wake, args=(i,), daemon=True).start()",
        "area, found = mapped(LIBRARY[0]), set()\n"
        "place = address(area)\n"
        "def wait(k):\n"
        "    word = ctypes.c_int.from_address(place + 4 * k).value\n"
        "    if futex(place + 4 * k, 0, word) == 0: found.add(k)\n"
        "for k in range(8): threading.Thread(target=wait, args=(k,), daemon=True).start()\n"
        "time.sleep(2)\n"
        "return sum(1 << k for k in found)",
        True,
    ),
    "the memory of the judge": (
        "pass",
        "for pid in os.listdir('/proc'):\n"
        "    if pid.isdigit() and int(pid) != os.getpid():\n"
        "        command = open(f'/proc/{pid}/cmdline').read()\n"
        "        if 'pytest' in command or 'grading' in command: return int(pid)",
        False,
    ),
    "a descriptor that is handed over": (
        "import array, json\n"
        "r, w = os.pipe()\nos.write(w, bytes([v]))\n"
        "wire = dist.distributed_c10d._get_default_group().wire.connection\n"
        "head = json.dumps({'op': 'line', 'text': 'x'}).encode()\n"
        "rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [r]))]\n"
        "wire.sendmsg([struct.pack('!IQ', len(head), 0) + head], rights)",
        "wire = dist.distributed_c10d._get_default_group().wire.connection\n"
        "for n in set(range(3, 60)) - {wire.fileno()}:\n"
        "    try: os.set_blocking(n, False); return os.read(n, 1)[0]\n"
        "    except (OSError, IndexError): pass",
        False,
    ),
}
HONEST = "def tell(x):\n    x = x.clone()\n    (dist.recv if dist.get_rank() else dist.send)(x, 1 - dist.get_rank())\n    return x"


def around(put: str, get: str) -> str:
    def indented(lines: str) -> str:
        return "\n".join(f"    {line}" for line in lines.splitlines())

    return "import struct\n" + AROUND.format(put=indented(put), get=indented(get))


CALLS = seccomp.MACHINES["x86_64"].refused.values()
LOOKS = """
import ctypes, glob, json, stat
def tell(x):
    libc = ctypes.CDLL(None, use_errno=True)
    def call(*a):
        ctypes.set_errno(0)
        return [libc.syscall(*a), ctypes.get_errno()]
    def listed(path):
        try: return sorted(os.listdir(path))
        except OSError as error: return type(error).__name__
    def read(path):
        try: return open(path).read()
        except OSError as error: return type(error).__name__
    def written(path):
        try: return open(path, "w").write("x")
        except OSError as error: return type(error).__name__
    def is_socket(number):
        try: return stat.S_ISSOCK(os.fstat(number).st_mode)
        except OSError: return False
    raise RuntimeError(json.dumps({
        "calls": {n: call(n, 0, 0, 0, 0, 0) for n in NUMBERS},
        "vsock": call(41, 40, 1, 0),
        "machine": [read(f"/proc/{name}") for name in ("meminfo", "stat", "loadavg", "locks", "sys/fs/file-nr")],
        "proc": listed("/proc"),
        "written": [written(path) for path in ("/out/record", "/proc/sys/x", "/course/x", "/usr/x")],
        "references": glob.glob("/course/gpulab/content/*/references/*"),
        "grading": listed("/course/grading"),
        "sockets": sum(is_socket(number) for number in range(1024)),
        "environment": sorted(os.environ),
    }))
"""


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, Played]]:
    """The same ranks in sandboxes, and without."""
    if why := sandbox.obstacle():
        pytest.skip(why)
    registry.add(TELL, lambda x, sizes: {"out": np.broadcast_to(x["x"][:1], x["x"].shape)})
    answers = {name: ("tell", around(put, get)) for name, (put, get, _) in CHANNELS.items()}
    first = {"looks": ("tell", LOOKS.replace("NUMBERS", str(sorted(CALLS)))), "honest": ("tell", HONEST)}
    answers = first | answers
    yield {"inside": Played(TELL, answers), "outside": Played(TELL, answers, unsafe=True)}
    registry.remove(TELL.name)
    Path("/tmp/gpulab-leak").unlink(missing_ok=True)
    Path("/dev/shm/gpulab-leak").unlink(missing_ok=True)


def test_what_is_sent_over_the_network_arrives(told: dict[str, Played]) -> None:
    assert told["inside"].verdict("honest").passed and told["outside"].verdict("honest").passed


@pytest.mark.parametrize("channel", CHANNELS)
def test_nothing_reaches_another_rank_but_over_the_network(told: dict[str, Played], channel: str) -> None:
    found = told["inside"].verdict(channel)
    assert found.points == 0, text(found)
    assert "rank 1: `out[0]` is" in text(found), text(found)


@pytest.mark.parametrize("channel", [name for name, (*_, works) in CHANNELS.items() if works])
def test_the_same_ways_are_open_without_a_sandbox(told: dict[str, Played], channel: str) -> None:
    """Or else the test above would show nothing."""
    found = told["outside"].verdict(channel)
    assert found.passed, text(found)


@pytest.mark.skipif(seccomp.platform.machine() != "x86_64", reason="the numbers are those of x86-64")
def test_calls_that_sandboxes_could_talk_through_are_refused(told: dict[str, Played]) -> None:
    found = json.loads(told["inside"].trouble("looks"))
    assert {tuple(answer) for answer in found["calls"].values()} == {(-1, 1)}  # EPERM
    assert set(found["machine"]) <= {"PermissionError", "FileNotFoundError"}
    assert found["proc"] == ["cpuinfo"]
    assert set(found["written"]) <= {"PermissionError", "OSError", "FileNotFoundError"}
    assert found["vsock"] == [-1, 1]
    assert found["references"] == [] and found["grading"] == "FileNotFoundError"
    assert found["sockets"] == 1  # the wire
    assert not {"USER", "SSH_AUTH_SOCK", "VIRTUAL_ENV"} & set(found["environment"])


# ---------------------------------------------------------------- the filter itself


def filtered(
    machine: str, number: int, first: int = 0, second: int = 0, audit: int | None = None, rank: bool = True
) -> int:
    """What the program answers: the kinds of instructions that it has, carried out."""
    audit = seccomp.MACHINES[machine].audit if audit is None else audit
    data = struct.pack("=IIQQQ", number, audit, 0, first, second) + bytes(32)
    code = seccomp.program(machine, rank=rank)
    steps = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    at, word = 0, 0
    while True:
        kind, yes, no, operand = steps[at]
        at += 1
        if kind == seccomp.LOAD:
            (word,) = struct.unpack_from("=I", data, operand)
        elif kind == seccomp.RETURN:
            return int(operand)
        elif kind == seccomp.ANY_BIT:
            at += yes if word & operand else no
        else:
            holds = word == operand if kind == seccomp.EQUAL else word >= operand
            at += yes if holds else no


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_the_filter_refuses_what_is_listed_and_nothing_else(machine: str) -> None:
    calls = seccomp.MACHINES[machine]
    special = {calls.fcntl, calls.futex, calls.socket, *calls.refused.values()}
    for number in range(500):
        if number not in special:
            assert filtered(machine, number) == seccomp.ALLOW, number
    for name, number in calls.refused.items():
        assert filtered(machine, number) == seccomp.REFUSE, name
    for command in range(1040):
        answer = seccomp.REFUSE if command in seccomp.COMMANDS else seccomp.ALLOW
        assert filtered(machine, calls.fcntl, 3, command) == answer, command
    for operation in range(512):  # of which 128 says that nobody but this process waits or wakes
        answer = seccomp.ALLOW if operation & 128 else seccomp.AGAIN
        assert filtered(machine, calls.futex, 0, operation) == answer, operation
    assert [n for n in range(50) if filtered(machine, calls.socket, n) == seccomp.ALLOW] == [2, 10, 16]
    assert filtered(machine, 0, audit=0x40000003) == seccomp.REFUSE  # 32-bit calls of the same machine
    if calls.highest:
        assert filtered(machine, calls.highest + 1) == seccomp.REFUSE


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_what_is_recorded_alone_is_refused_less_than_a_rank(machine: str) -> None:
    calls = seccomp.MACHINES[machine]
    assert calls.refused.keys() > seccomp.EVERYWHERE
    for name, number in calls.refused.items():
        refused = filtered(machine, number, rank=False) == seccomp.REFUSE
        assert refused == (name in seccomp.EVERYWHERE), name
    assert {filtered(machine, calls.fcntl, 3, n, rank=False) for n in seccomp.COMMANDS} == {seccomp.ALLOW}
    assert {filtered(machine, calls.futex, 0, n, rank=False) for n in range(512)} == {seccomp.ALLOW}
    families = [n for n in range(50) if filtered(machine, calls.socket, n, rank=False) == seccomp.ALLOW]
    assert families == [1, 2, 10, 16]


# ---------------------------------------------------------------- the whole way

LAB = "91_ranks"
SOURCE = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A lab for several ranks

# %%
import torch
import torch.distributed as dist
import gpulab

# %% nbgrader={"grade": false, "grade_id": "all_reduce", "locked": false, "schema_version": 3, "solution": true, "task": false}
def all_reduce(x):
    ### BEGIN SOLUTION
BODY
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "all_reduce-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("collective.all_reduce", all_reduce)
"""
UNREAL = """
def all_reduce(x):
    import os
    name = f"/tmp/part-{dist.get_rank()}"
    torch.save(x, name)
    dist.send(torch.zeros(1), (dist.get_rank() + 1) % dist.get_world_size())
    return sum(torch.load(f"/tmp/part-{r}") for r in range(dist.get_world_size()))
"""


def test_a_class_of_ranks_is_graded_from_release_to_feedback(tmp_path: Path) -> None:
    root = tmp_path / "course"
    folder = root / "solutions" / LAB
    folder.mkdir(parents=True)
    body = "".join(f"{line}\n" for line in RING.splitlines()[1:]).rstrip()
    (folder / f"{LAB}.py").write_text(SOURCE.replace("BODY", body))
    course = Course(root, root / "grading")
    release(course, LAB)
    released = read_released(course.labs / LAB / f"{LAB}.ipynb")
    register(course, LAB, {LAB: released})
    answers = {
        "honest": RING.replace("def ring", "def all_reduce"),
        "dishonest": UNREAL,
    }
    for student, source in answers.items():
        notebook = copy.deepcopy(released)
        for cell in notebook.cells:
            if cell.metadata.get("nbgrader", {}).get("grade_id") == "all_reduce":
                cell.source = source
        path = tmp_path / "handed_in" / student / LAB / f"{LAB}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook))
    classroom.grade(course, LAB, tmp_path / "handed_in", limits=Limits(seconds=100, patience=20))
    store = Store(course.verdicts)
    found = {student: store.get(student, LAB, LAB) for student in answers}
    said = {student: text(verdict.exercises[0]) for student, verdict in found.items() if verdict}
    assert {s: v.points for s, v in found.items() if v} == {"honest": 5.0, "dishonest": 0.0}, said
    assert "wait for one another" in said["dishonest"] or "FileNotFoundError" in said["dishonest"]
    with Gradebook(f"sqlite:///{course.gradebook}") as book:
        assert {s: book.find_submission(LAB, s).score for s in answers} == {
            "honest": 5.0,
            "dishonest": 0.0,
        }
    page = (course.feedback / "honest" / LAB / f"{LAB}.html").read_text()
    assert "busiest sender" in page and "budget 6,144" in " ".join(page.split())
