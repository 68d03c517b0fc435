"""A function of a learner's notebook or script, without running the rest of it.

``FILE::NAME`` names it. Of the file only what the function needs is run: cells of a notebook, or statements
of a script, that bind a name which is used, and so on; of several that bind it the last. Reports and figures
bind nothing and stay out.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import re
import traceback
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from gpulab.foundation.errors import Message
from gpulab.foundation.global_names import bound_and_used, needed_before, used_in_functions
from gpulab.simulator.simt import SimulationError


class NotInFile(Message):
    """The file, or what is to be taken from it, is not there; the message says what is."""


class Failed(Message):
    """What was run of the file stopped; the message says what stopped it."""


@dataclass(frozen=True)
class Unit:
    """A cell of a notebook or a statement of a script, parsed."""

    tree: ast.Module
    file: str  # what messages call its source
    may_fail: bool = False  # as Jupyter has it, by a tag of the cell: what comes after it is run all the same

    @cached_property
    def _names(self) -> tuple[frozenset[str], frozenset[str]]:
        return bound_and_used(ast.unparse(self.tree))

    @property
    def binds(self) -> frozenset[str]:
        """The global names that it binds."""
        return self._names[0]

    @property
    def uses(self) -> frozenset[str]:
        """The global names that it uses."""
        return self._names[1]

    @cached_property
    def uses_later(self) -> frozenset[str]:
        """Those that its functions use, whenever they are called."""
        return used_in_functions(ast.unparse(self.tree))

    def needs(self, after: frozenset[str]) -> frozenset[str]:
        """The global names that it needs, if those of `after` are needed when it has run."""
        before = needed_before(self.tree.body, after)
        return before | after if self.may_fail else before

    def checks(self) -> Iterator[tuple[str, str]]:
        """The exercises that it checks, each with the name of the function."""
        for node in ast.walk(self.tree):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="check"), args=[ast.Constant(value=str(name)), ast.Name(id=fn)]
                ):
                    yield name, fn


def split(place: str) -> tuple[Path, str]:
    """The file and the name in ``FILE::NAME``. Raises NotInFile."""
    file, colons, name = place.rpartition("::")
    if not colons or not file or not name:
        raise NotInFile(
            f"'{place}' names nothing in a file: write FILE::NAME, such as my_lab.ipynb::transpose"
        )
    path = Path(file)
    if not path.is_file():
        raise NotInFile(f"there is no file {file}")
    return path, name


def units(path: Path) -> list[Unit]:
    """The parts of a notebook or a script, in order. Raises NotInFile for another file."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".ipynb":
            tree = ast.parse(text, str(path))
            return [Unit(ast.Module([statement], []), str(path)) for statement in tree.body]
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        return [unit for number, cell in enumerate(cells, 1) if (unit := _cell(path, number, cell))]
    except SyntaxError as error:
        raise NotInFile(f"{error.filename}, line {error.lineno}: {error.msg}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotInFile(f"{path} cannot be read: {type(error).__name__}: {error}") from None


def _cell(path: Path, number: int, cell: dict[str, Any]) -> Unit | None:
    """A cell without its magic lines; its lines are kept where messages look for them."""
    source = "".join(cell["source"])
    text = re.sub(r"(?m)^([ \t]*)[%!].*$", r"\1pass", source)
    if text.startswith("pass") and source.startswith("%%"):
        return None  # all of the cell is some other language
    file = f"{path}, code cell {number}"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return Unit(ast.parse(text, file), file, "raises-exception" in cell.get("metadata", {}).get("tags", []))


def needed(parts: Sequence[Unit], names: Iterable[str], always: Sequence[Unit] = ()) -> list[Unit]:
    """Those that give the names, behind all of them, their values; and what these and `always` need.

    From the end to the start: of a name that is needed the last binding counts, and earlier ones only where
    that one may not happen. What functions use is needed when they are called, so at the end, too.
    """
    wanted = frozenset(names)
    while True:
        live, chosen = wanted, []
        for unit in reversed(parts):
            if unit in always or unit.binds & live:
                chosen.append(unit)
                live = unit.needs(live)
        later = wanted.union(*(unit.uses_later for unit in chosen))
        if later == wanted:
            return chosen[::-1]
        wanted = later


def run(parts: Iterable[Unit], heard: Container[Unit] | None = None) -> dict[str, Any]:
    """Run them; the names that they leave behind. Raises Failed, which says what they raised and where.

    Of those that are not among `heard` nothing is printed; None: of all it is.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    for unit in parts:
        code = compile(unit.tree, unit.file, "exec")
        mute = heard is not None and unit not in heard
        try:
            with contextlib.redirect_stdout(io.StringIO()) if mute else contextlib.nullcontext():
                exec(code, names)
        except Exception as error:
            if unit.may_fail:
                continue
            said = str(error)
            if not isinstance(error, Message | SimulationError):
                here = error.__traceback__.tb_next if error.__traceback__ else None
                said = "".join(traceback.format_exception(type(error), error, here)).rstrip()
            raise Failed(said) from error
    return names


def function(path: Path, exercise: str) -> Any:
    """What the file has for an exercise: the function that it checks, else one named like the exercise.

    Raises NotInFile, and Failed.
    """
    parts = units(path)
    asked = {name: fn for unit in parts for name, fn in unit.checks()}
    name = asked.get(exercise, exercise.rpartition(".")[2])
    chosen = needed(parts, [name])
    bound = set().union(*(unit.binds for unit in chosen)) if chosen else set()
    if name not in bound:
        close = get_close_matches(exercise, asked, n=1)
        hint = f"did you mean {close[0]}?" if close else f"it checks {', '.join(asked) or 'nothing'}"
        raise NotInFile(f"{path} has no `{name}` for the exercise {exercise}; {hint}")
    return run(chosen)[name]


def launches_of(path: Path, kernel: str) -> tuple[list[Unit], list[Unit]]:
    """What launches a kernel with what this needs of all before it, in order; and what launches it alone.

    Raises NotInFile.
    """
    parts = units(path)
    launching = [unit for unit in parts if _launches(unit.tree, kernel)]
    if not any(kernel in unit.binds for unit in parts):
        known = sorted(set().union(*(unit.binds for unit in parts)))
        close = get_close_matches(kernel, known, n=1)
        raise NotInFile(f"{path} has no `{kernel}`" + (f"; did you mean {close[0]}?" if close else ""))
    if not launching:
        raise NotInFile(
            f"{path} launches no `{kernel}`: a line such as {kernel}[blocks, threads](…) is missing"
        )
    return needed(parts[: parts.index(launching[-1]) + 1], {kernel}, launching), launching


def _launches(tree: ast.AST, kernel: str) -> bool:
    """Whether ``kernel[…]`` occurs outside of a function."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case ast.Subscript(value=ast.Name(id=name)) if name == kernel:
                return True
        if _launches(node, kernel):
            return True
    return False
