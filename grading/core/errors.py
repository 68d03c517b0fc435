"""What can go wrong in grading/, as exceptions whose text is the message. Each survives pickling."""

from __future__ import annotations


class GradingError(Exception):
    """Something that an instructor must read: what, where, why, what to do. Never a traceback."""


class ReleaseError(GradingError):
    """A lab cannot be released."""


class NotebookError(GradingError):
    """A submitted file is not a notebook that can be judged."""


class SandboxError(GradingError):
    """The sandbox does not work here."""


class EngineError(GradingError):
    """The workers that judge cannot be reached, or are not the right ones."""


class Unjudged(GradingError):
    """There is no verdict on one notebook, through no fault of its author; the others go on."""


class RecordError(GradingError):
    """What came out of the sandbox is not a launch trace that can be replayed."""
