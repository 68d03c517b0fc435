"""What Triton's compiler refuses, in our words and still an error of Triton's: programs catch those."""

from __future__ import annotations

from typing import Any

from triton.compiler.errors import (
    CompilationError,
    CompileTimeAssertionFailure,
    UnsupportedLanguageConstruct,
)

from gpulab.simulator.compile.kernel import AssertionDoesNotHold, CompileError


class Refusal(CompileError, CompilationError):
    """`ours`, which has the learner's line, with what Triton's own error knows."""

    def __init__(self, ours: CompileError, theirs: CompilationError):
        Exception.__init__(self, str(ours))
        self.__dict__.update(vars(ours))
        self.ours, self.theirs = ours, theirs
        self.src, self.node, self.error_message = theirs.src, theirs.node, theirs.error_message
        self.message = str(ours)

    def __str__(self) -> str:
        return str(self.ours)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.ours, self.theirs)


class FailedAssertion(Refusal, AssertionDoesNotHold, CompileTimeAssertionFailure):
    """``tl.static_assert`` does not hold."""


class UnknownConstruct(Refusal, UnsupportedLanguageConstruct):
    """Python that Triton's language does not have."""


def refusal(error: CompileError) -> CompileError:
    """The error as one of Triton's too, where it comes from there."""
    theirs = error.__cause__
    if not isinstance(theirs, CompilationError):
        return error
    if isinstance(theirs, CompileTimeAssertionFailure):
        return FailedAssertion(error, theirs)
    kind = UnknownConstruct if isinstance(theirs, UnsupportedLanguageConstruct) else Refusal
    return kind(error, theirs)
