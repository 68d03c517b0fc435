"""Runs the cells of a notebook whose answers are judged; what does not concern an answer costs it nothing.

What a learner tried out beside an answer costs no answer: cells have an allowance of time for all of them
together, and a cell that uses it up still defines what it defines further down. An import that fails here and
did not where the notebook was written, of a progress bar for instance, is left out when nobody uses it. A
cell that fails because it reads a file or the keyboard, which are not here, defines what stands further down.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import re
import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from gpulab.foundation.errors import Message
from gpulab.habits import typed_by_a_learner

from . import messages

MOST_ABSENT = 20  # imports of one cell that are left out
LEAST = 1 / 6  # of the patience with one cell: what each has even when others have used up all the time
DEFINES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
    ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign,
)  # fmt: skip


ELSEWHERE = (OSError, EOFError)  # files, networks and keyboards are where the notebook was written


class Impatient(BaseException):
    """One cell or exercise took longer than its share. No Exception: `except Exception` lets it pass."""


class Absent(Message, ImportError):
    """Something was used that could not be imported here."""


@contextlib.contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Raise `Impatient` in the body when it takes too long."""

    def lose_it(number: int, frame: object) -> None:
        raise Impatient

    signal.signal(signal.SIGALRM, lose_it)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Cells:
    """The cells of one notebook in a shell of IPython: each may take `seconds`, all together `allowance`."""

    def __init__(self, shell: Any, seconds: float, allowance: float):
        self.shell, self.seconds, self.allowance = shell, seconds, allowance
        shell.compile.get_code_name = lambda raw, code, number: f"<cell {shell.gpulab_cell}>"
        shell.register_magic_function(lambda line: None, magic_name="matplotlib")  # figures go nowhere
        self._line_magic = shell.run_line_magic
        shell.run_line_magic = self._magic
        self.notes: list[str] = []  # what was left out of cells, in sentences

    def run(self, cell: str, source: str) -> None:
        """Run one cell, as a notebook would. Raises what the cell raises."""
        self.shell.gpulab_cell = cell  # the file name of the cell's code, in errors and in PTX
        share = min(self.seconds, max(self.allowance, self.seconds * LEAST))
        began = time.monotonic()
        try:
            self._forgiving(cell, source, share)
        except (Impatient, Absent, *ELSEWHERE) as error:
            with contextlib.suppress(Exception, Impatient), patience(self.seconds * LEAST):
                self._definitions_after(error, cell, source)
            if isinstance(error, Impatient):
                raise Impatient(messages.cell_stopped(share)) from None
            raise
        finally:
            self.allowance -= time.monotonic() - began

    def _forgiving(self, cell: str, source: str, seconds: float) -> None:
        """Run the cell; again, without an import of its own that failed, as long as that is why it fails."""
        absent: set[str] = set()
        with patience(seconds):
            while True:
                with _imports(absent) as failed:
                    result = self.shell.run_cell(source, store_history=False)
                error = result.error_before_exec or result.error_in_exec
                if error is None:
                    return
                lacking = failed[-1] if failed and _is_of_an_import(error) else ""
                if not lacking or lacking in absent or len(absent) >= MOST_ABSENT:
                    raise error
                absent.add(lacking)
                self.notes.append(messages.import_left_out(lacking))

    def _definitions_after(self, error: BaseException, cell: str, source: str) -> None:
        """Run what a cell that was stopped or has failed defines below the statement at which it was."""
        name = f"<cell {cell}>"
        lines = [f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if f.filename == name]
        tree = ast.parse(self.shell.transform_cell(source))
        for statement in tree.body:
            if lines and statement.lineno > lines[0] and isinstance(statement, DEFINES):
                with contextlib.suppress(Exception):
                    exec(compile(ast.Module([statement], []), name, "exec"), self.shell.user_ns)

    def _magic(self, name: str, line: str, _stack_depth: int = 1) -> Any:
        """A magic line; one of something that is absent here does nothing."""
        from IPython.core.error import UsageError

        try:
            return self._line_magic(name, line, _stack_depth + 1)  # where it looks for names: one further up
        except (ImportError, UsageError):
            self.notes.append(messages.magic_left_out(re.sub(r"\s+", " ", f"%{name} {line}").strip()[:80]))
            return None


# ---------------------------------------------------------------- what cannot be imported


@contextlib.contextmanager
def _imports(absent: set[str]) -> Iterator[list[str]]:
    """While it is entered, a learner's imports of what is `absent` give stand-ins; yields those that fail.

    What fails is a module, or ``module.name``.
    """
    before, failed = builtins.__import__, list[str]()

    def forgiving(
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level or not typed_by_a_learner(globals):
            return before(name, globals, locals, fromlist or (), level)
        if name in absent:
            return _AbsentModule(name if fromlist else name.partition(".")[0])
        try:
            module = before(name, globals, locals, fromlist or (), level)
        except ImportError:
            failed.append(name)
            raise
        asked = [part for part in fromlist or () if part != "*"]
        lacking = {part: f"{name}.{part}" for part in asked if not _has(module, part)}
        if new := [place for place in lacking.values() if place not in absent]:
            failed.extend(new)
        elif lacking:
            found = {part: getattr(module, part) for part in asked if part not in lacking}
            module = ModuleType(name)
            module.__dict__.update(found, **{part: _Absent(place) for part, place in lacking.items()})
        return module

    builtins.__import__ = forgiving
    try:
        yield failed
    finally:
        builtins.__import__ = before


def _is_of_an_import(error: BaseException) -> bool:
    return isinstance(error, ImportError) and not isinstance(error, Absent)


def _has(module: Any, name: str) -> bool:
    try:
        getattr(module, name)
    except Exception:
        return False
    return True


class _AbsentModule(ModuleType):
    """A placeholder for a missing module: names may be imported from it, and none of them may be used."""

    __all__: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(f"{self.__name__}.{name}")


def _refuse(self: _Absent, *given: Any, **named: Any) -> Any:
    raise Absent(messages.absent_here(self._name))


class _Absent:
    """A placeholder for something that could not be imported: using it in any way raises `Absent`."""

    def __init__(self, name: str):
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(f"{self._name}.{name}")

    def __or__(self, other: Any) -> Any:  # in an annotation
        return self

    __ror__ = __or__
    __call__ = __getitem__ = __iter__ = __len__ = __enter__ = __mro_entries__ = __setattr__ = __bool__ = (
        _refuse
    )
    __add__ = __sub__ = __mul__ = __truediv__ = __matmul__ = __radd__ = __rmul__ = __float__ = __int__ = (
        _refuse
    )
