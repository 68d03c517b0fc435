"""Two errors of Python that mislead a learner get a sentence below them in a notebook.

The names of a cell further up are gone in a new kernel, and a function that asks for its rank runs on no rank
if it is called in the notebook itself.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from gpulab.foundation.display import notebook

from . import messages


def install() -> None:
    """In a notebook, from now on. Outside of one nothing changes."""
    shell = notebook()
    if shell is not None and not getattr(shell, "custom_exceptions", ()):
        shell.set_custom_exc((NameError, ValueError), _shown)


def advice(error: BaseException) -> str:
    """The sentence for an error, or "" if the error says it all."""
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError) and error.name:
        return messages.name_of_another_cell(error.name)
    if "process group has not been initialized" in str(error):
        return messages.called_on_no_rank()
    return ""


def _shown(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """The error as a notebook always shows it, and the sentence."""
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
    if said := advice(error):
        print(said, file=sys.stderr)
