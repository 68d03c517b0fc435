"""How many small mistakes the tests notice: a mutant is a module with one, and a test must fail for it.

    python -m tools.mutants --seed 1 --count 60

draws mutants from the modules of `TESTS` and runs the tests that stand beside the module there. What lives is
listed with its line; either a test is missing, or the mutant computes the same as the original.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
OURS = ("gpulab", "grading", "tests")
SECONDS = 120  # of the processor; a mutant that needs more does not end, which is noticed, too

TESTS: dict[str, tuple[str, ...]] = {
    "gpulab.simulator.simt.branching": ("tests/simt/test_scheduling.py",),
    "gpulab.simulator.simt.integers": ("tests/simt/test_integer_operations.py",),
    "gpulab.simulator.observe.patterns": ("tests/observe/test_patterns.py",),
    "gpulab.simulator.observe.counters": tuple(
        f"tests/observe/test_{what}_counts.py"
        for what in ("global", "shared", "instruction", "matrix", "bulk", "warpgroup", "tensor_core")
    ),
    "gpulab.simulator.observe.races": ("tests/observe/test_races.py", "tests/observe/test_bulk_ends.py"),
    "gpulab.analysis.profile.metrics": ("tests/profile/test_metrics.py",),
    "gpulab.analysis.profile.tally": ("tests/profile/test_metrics.py",),
    "gpulab.analysis.machine.caches": ("tests/machine/test_caches.py",),
    "gpulab.subjects.serving.engine": ("tests/serving/test_engine.py",),
    "grading.core.graft": ("tests/grading/test_graft.py",),
    "grading.core.records": ("tests/grading/test_records.py",),
}

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}


@dataclass(frozen=True)
class Mutant:
    """A module with one mistake: `place` is the position of the changed node among all nodes of its tree."""

    module: str
    place: int
    line: int
    change: str


def file_of(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")).with_suffix(".py")


def mutants(module: str) -> Iterator[Mutant]:
    """All mutants of a module's functions, and of names outside them, such as those in a table."""
    tree = ast.parse(file_of(module).read_text(encoding="utf-8"))
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for statement in function.body
        for node in ast.walk(statement)
    }
    for place, node in enumerate(ast.walk(tree)):
        wrong = copy.deepcopy(node) if id(node) in inside or isinstance(node, ast.Name) else node
        if wrong is not node and mistake(wrong):
            change = f"{ast.unparse(node)}  →  {ast.unparse(wrong)}"
            yield Mutant(module, place, getattr(node, "lineno", 0), change)


def mistake(node: ast.AST) -> bool:
    """Change a node into a wrong one of the same kind, if there is one."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        node.ops[0] = _COMPARISONS[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _OPERATORS:
        node.op = _OPERATORS[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.Name) and node.id in _NAMES:
        node.id = _NAMES[node.id]
    elif isinstance(node, ast.Attribute) and node.attr in _NAMES:
        node.attr = _NAMES[node.attr]
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        node.value = not node.value
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += 1
    elif isinstance(node, ast.IfExp):
        node.body, node.orelse = node.orelse, node.body
    else:
        return False
    return True


class _Loader(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Gives the mutant in place of its module."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(file_of(mutant.module)))
        self.mutant = mutant

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.mutant.module:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def get_code(self, fullname: str) -> object:
        tree = ast.parse(Path(self.path).read_text(encoding="utf-8"))
        mistake(list(ast.walk(tree))[self.mutant.place])
        return compile(tree, self.path, "exec")


def lives(mutant: Mutant | None, tests: tuple[str, ...]) -> bool:
    """Whether all tests pass, in a process of their own."""
    child = os.fork()
    if child == 0:
        import pytest

        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        # Where these are loaded already, as in a process that runs other tests, nobody would see the mutant.
        for name in [each for each in sys.modules if each.partition(".")[0] in OURS]:
            del sys.modules[name]
        if mutant:
            sys.meta_path.insert(0, _Loader(mutant))
        with open(os.devnull, "w") as nowhere:
            for stream in (1, 2):
                os.dup2(nowhere.fileno(), stream)
        code = 1
        with contextlib.suppress(BaseException):
            # To rewrite assertions, pytest would load the modules of packages that have a plugin itself.
            options = ("-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "-m", "not slow")
            code = int(pytest.main([*options, *tests]))
        os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--only", default="", help="modules whose names contain this")
    chosen = parser.parse_args()
    for name in ("hypothesis", "matplotlib.pyplot", "numba", "pytest"):
        importlib.import_module(name)  # before the fork: each child has it at once

    every = [m for module in TESTS if chosen.only in module for m in mutants(module)]
    drawn = random.Random(chosen.seed).sample(every, min(chosen.count, len(every)))
    living, sound = 0, set[str]()
    for number, mutant in enumerate(drawn, 1):
        if mutant.module not in sound and not lives(None, TESTS[mutant.module]):
            sys.exit(
                f"{' '.join(TESTS[mutant.module])}: these tests fail without any mutant. Mend them first."
            )
        sound.add(mutant.module)
        alive = lives(mutant, TESTS[mutant.module])
        living += alive
        state = "LIVES" if alive else "dies "
        print(f"{number:3} {state} {mutant.module}:{mutant.line}  {mutant.change}", flush=True)
    print(f"{len(drawn) - living} of {len(drawn)} mutants die; seed {chosen.seed}, drawn from {len(every)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
