"""CUDA's error codes: what a call returns, what the program is told of it, and what it never asked about."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from gpulab.foundation.errors import Message
from gpulab.simulator.device import LaunchError
from gpulab.simulator.simt import OutOfBounds, SimulationError

SUCCESS, INVALID_VALUE, INVALID_CONFIGURATION, NOT_READY = 0, 1, 9, 600
ILLEGAL_ADDRESS, LAUNCH_FAILURE, NOT_SUPPORTED, UNKNOWN = 700, 719, 801, 999


class Refused(Message):
    """A call that fails: the error `code` for the program, and in words why."""

    def __init__(self, words: str, code: int = INVALID_VALUE):
        super().__init__(words)
        self.code = code


@dataclass
class Errors:
    """What has gone wrong so far. `sticky` is the error after which CUDA answers no call any more.

    `unread` says why a kernel was not launched, as long as the program has not asked: ``<<<…>>>`` returns
    nothing.
    """

    last: int = SUCCESS
    sticky: int = SUCCESS
    unread: str = ""
    missing: list[str] = field(default_factory=list)  # functions that were called and are not there
    _lock: Any = field(default_factory=threading.RLock)

    def guarded(self, name: str, answer: Callable[..., int | None]) -> Callable[..., int]:
        """The answer as C calls it: it returns a code, raises nothing, and runs in one thread at a time.

        No exception can pass through C. Its words go to stderr, and the program goes on with the code.
        """

        def guarded(*arguments: int | None) -> int:
            with self._lock:
                if self.sticky and name not in ANSWERED_ALWAYS:
                    return self.sticky
                try:
                    return answer(*(0 if each is None else each for each in arguments)) or SUCCESS
                except Refused as error:
                    self.last = error.code
                    say(f"{name} returns {name_of(error.code)}: {error}")
                except LaunchError as error:
                    self.last, self.unread = INVALID_CONFIGURATION, str(error)
                    say(str(error))
                except (Message, SimulationError) as error:
                    found_outside = isinstance(error, OutOfBounds)
                    self.last = self.sticky = ILLEGAL_ADDRESS if found_outside else LAUNCH_FAILURE
                    say(str(error))
                except BaseException:
                    traceback.print_exc()
                    self.last = self.sticky = UNKNOWN
                return self.last

        return guarded

    def get(self) -> int:
        """``cudaGetLastError``: the last error, which is then forgotten unless it is sticky."""
        found, self.last, self.unread = self.sticky or self.last, SUCCESS, ""
        return found

    def peek(self) -> int:
        """``cudaPeekAtLastError``."""
        self.unread = ""
        return self.sticky or self.last

    def refuse_missing(self, name: str) -> Callable[..., int]:
        """What answers a function that the simulated device does not have."""

        def missing(*_: int) -> int:
            if name not in self.missing:
                self.missing.append(name)
            why = next((text for start, text in MISSING.items() if name.startswith(start)), "")
            raise Refused(f"the simulated device does not have this function{why}.", NOT_SUPPORTED)

        return self.guarded(name, missing)


# Why functions are not there, by how their names begin.
MISSING = {
    **dict.fromkeys(
        ("cudaMallocMipmapped", "cudaGetMipmapped", "cudaFreeMipmapped"),
        ": mipmaps are not simulated. Create a texture of one CUDA array (cudaMallocArray) instead",
    ),
    **dict.fromkeys(
        ("cudaGraph", "cudaStreamGetCaptureInfo"),
        ": graphs are captured from a stream here (cudaStreamBeginCapture), not built node by node",
    ),
    **dict.fromkeys(
        ("cublas", "cufft", "curand", "cudnn", "cusparse", "cusolver"),
        ": libraries whose kernels are machine code do not run here",
    ),
    **dict.fromkeys(("cuMem", "cuCtx", "cuModule", "cuLaunch", "cuInit"), ": it is CUDA's driver API"),
}

# They tell of errors, or belong to the program's end.
ANSWERED_ALWAYS = frozenset(
    {"cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorString", "cudaGetErrorName"}
)


def say(words: str) -> None:
    """Tell the person at the terminal, after what the program has printed so far."""
    sys.stdout.flush()
    print(words, file=sys.stderr, flush=True)


@cache
def text_of(code: int) -> bytes:
    """CUDA's own description of an error code."""
    from cuda.bindings import runtime

    try:
        return bytes(runtime.cudaGetErrorString(runtime.cudaError_t(code))[1])
    except ValueError:
        return b"unrecognized error code"


@cache
def name_of(code: int) -> str:
    """CUDA's name of an error code."""
    from cuda.bindings import runtime

    try:
        return str(runtime.cudaError_t(code).name)
    except ValueError:
        return f"error {code}"
