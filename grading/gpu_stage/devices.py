"""The GPUs of this machine, as the coordinator sees them: a disposable process for each program."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, BinaryIO, Protocol, cast

import numpy as np

from grading.core import texts
from grading.core.course import ROOT
from grading.core.errors import GradingError
from grading.gpu_stage.child import hear, say
from grading.gpu_stage.program import Capability, Program
from grading.gpu_stage.protocol import Arrays, Lost, Side, Trouble, Turn

CHILD = "grading.gpu_stage.child"
STARTING = 60.0  # seconds for a child to have its device and the program
_running: set[subprocess.Popen[bytes]] = set()
PASSED_ON = ("PATH", "HOME", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")


class Timer(Protocol):
    """A device that can time programs. `driver` says with what; `cc` is None for one that runs PTX."""

    @property
    def name(self) -> str: ...
    @property
    def driver(self) -> str: ...
    @property
    def cc(self) -> Capability | None: ...

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Nobody else times on the device meanwhile, nor in another run of ours."""
        ...

    def side(self, program: Program, seconds: float) -> contextlib.AbstractContextManager[Side]:
        """The program, on the device; each turn may take so many seconds. Raises Trouble."""
        ...


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU."""

    index: int
    name: str
    driver: str
    cc: Capability
    place: str = ""  # on the bus

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        place = re.sub(r"\W", "-", self.place or str(self.index))
        path = os.path.join(tempfile.gettempdir(), f"gpulab-gpu-{place}.lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def side(self, program: Program, seconds: float) -> Iterator[Side]:
        with Child(str(self.index)) as child:
            child.hear(STARTING)  # about the device
            child.say(program.head, program.codes)
            child.hear(STARTING)
            yield Remote(child, program, seconds)


class Child:
    """The process of `gpu_stage.child`. It dies with the context."""

    def __init__(self, argument: str, command: tuple[str, ...] = (sys.executable, "-m", CHILD)) -> None:
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        environment |= {
            "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1",
            "CUDA_MODULE_LOADING": "EAGER", "CUDA_CACHE_DISABLE": "1",
        }  # fmt: skip
        self.process = subprocess.Popen(
            [*command, argument], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment, start_new_session=True,
        )  # fmt: skip
        self.slow = False
        _running.add(self.process)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        _running.discard(self.process)
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                cast(BinaryIO, stream).close()

    def say(self, head: dict[str, Any], parts: Any = ()) -> None:
        """Raises Trouble where nobody listens."""
        try:
            say(cast(BinaryIO, self.process.stdin), head, parts)
        except OSError:
            raise self._ended(0) from None

    def hear(self, seconds: float, most: int = 0) -> tuple[dict[str, Any], list[bytes]]:
        """The next message, of at most so many bytes. Raises Trouble where there is none in time."""
        watch = threading.Timer(seconds, self._give_up)
        watch.start()
        try:
            head, parts = hear(cast(BinaryIO, self.process.stdout), most)
        except (EOFError, OSError):
            raise self._ended(seconds) from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Trouble(texts.TIMER_ODD) from None
        finally:
            watch.cancel()
        if "failed" in head:
            raise Trouble(texts.clean(head["failed"], 200))
        return head, parts

    def _give_up(self) -> None:
        self.slow = True
        self.process.kill()

    def _ended(self, seconds: float) -> Trouble:
        self.process.kill()
        code = self.process.wait()
        if self.slow:
            return Trouble(texts.TIMER_SLOW.format(seconds=seconds))
        return Lost(texts.TIMER_DIED.format(how=f"exit status {code}"))


class Remote:
    """A program in a child; what the child says is checked before it is used."""

    def __init__(self, child: Child, program: Program, seconds: float) -> None:
        self.child, self.program, self.seconds = child, program, seconds

    def run(self, arrays: Arrays) -> Turn:
        given = [array.tobytes() for array in arrays]
        self.child.say({}, given)
        head, parts = self.child.hear(self.seconds, sum(map(len, given)))
        if list(map(len, parts)) != list(map(len, given)):
            raise Trouble(texts.TIMER_ODD)
        seconds, flush, waited = (_time(head.get(name)) for name in ("seconds", "flush", "waited"))
        left = [
            np.frombuffer(part, array.dtype).reshape(array.shape)
            for part, array in zip(parts, arrays, strict=True)
        ]
        return Turn(seconds, flush, waited, left)


def _time(value: Any) -> float:
    """Raises Trouble for what is no number of seconds."""
    if not isinstance(value, float) or not isfinite(value):
        raise Trouble(texts.TIMER_ODD)
    return value


def stop_all() -> None:
    """End every program that is being timed; the threads that wait for them go on."""
    for process in list(_running):
        process.kill()


def gpus() -> list[Gpu]:
    """All of this machine that CUDA shows. Raises GradingError where there is none."""
    try:
        with Child("count") as child:
            number = child.hear(STARTING)[0].get("count")
        found = []
        for index in range(number if type(number) is int else 0):
            with Child(str(index)) as child:
                about = child.hear(STARTING)[0]
            major, minor = about["cc"]
            found.append(
                Gpu(index, about["name"], f"driver {about['driver']}", (major, minor), about["place"])
            )
    except Trouble as trouble:
        raise GradingError(texts.NO_GPU.format(why=trouble)) from None
    if not found:
        raise GradingError(texts.NO_GPU.format(why="the driver shows none"))
    return found
