"""Why an answer is not judged any further."""

from __future__ import annotations

from gpulab.foundation.errors import Message


class Refused(Message):
    """A function, or the record of it, did what the exercise does not allow; the text says what."""


class Broken(BaseException):
    """The simulator or the judge failed, which is no learner's fault: no verdict, and a person looks at it.

    No Exception, so that nothing on the way takes it for a mistake in the submission.
    """
