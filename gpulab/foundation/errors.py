"""The base of errors that speak to a learner: what, where, why, what to do; and no traceback of ours."""

from __future__ import annotations

SPEECH = "_gpulab_speech"  # the attribute of an error that was made `speaking`


class Message(Exception):
    """An error whose text says everything. A notebook shows the text alone, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def shorten(error: BaseException) -> BaseException:
    """The same error without the frames that it came through, and shown in a notebook by its text alone.

    For errors of other rooms that already speak to a learner. Use as ``raise shorten(error) from None``.
    """
    if not hasattr(error, "_render_traceback_"):
        error._render_traceback_ = lambda: [str(error)]  # type: ignore[attr-defined]
    return error.with_traceback(None)


def speaking(error: BaseException, text: str) -> BaseException:
    """The same error without the frames that it came through; a notebook and a check show `text` alone.

    Use as ``raise speaking(error, text) from None``.
    """
    setattr(error, SPEECH, text)
    error._render_traceback_ = text.splitlines  # type: ignore[attr-defined]
    return error.with_traceback(None)


def speech(error: BaseException) -> str:
    """The text of an error that was made `speaking`; "" of any other."""
    return str(getattr(error, SPEECH, ""))
