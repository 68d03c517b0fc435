"""Python functions as functions of C, whose exceptions come out where the launcher was called."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gpulab.foundation.errors import Message, shorten
from gpulab.simulator.simt import SimulationError

SUCCESS = 0
FAILED = 999  # CUDA_ERROR_UNKNOWN and cudaErrorUnknown


class _Pending(threading.local):
    error: BaseException | None = None


_pending = _Pending()


def c_function(answer: Callable[..., int | None], *types: Any) -> Any:
    """A C function that returns a CUDA error code and calls `answer`; keep it as long as C may call it.

    No exception can pass through C. One is kept, the caller gets an error code, every further call in
    the same thread fails at once, and `errors_raised` raises what was kept.
    """

    def guarded(*arguments: Any) -> int:
        if _pending.error is not None:
            return FAILED
        try:
            return answer(*arguments) or SUCCESS
        except BaseException as error:
            _pending.error = error
            return FAILED

    return ctypes.CFUNCTYPE(ctypes.c_int, *types)(guarded)


@contextmanager
def errors_raised() -> Iterator[None]:
    """What a C function kept while this was entered is raised in place of what its caller made of it."""
    outer, _pending.error = _pending.error, None
    try:
        try:
            yield
        finally:
            kept, _pending.error = _pending.error, outer
            if kept is not None:
                raise (shorten(kept) if isinstance(kept, Message | SimulationError) else kept) from None
    except BaseException as error:
        if error is not kept:
            raise
        raise error from None
