"""Runs tests of numba-cuda's suite in this process, with `gpulab.cuda` or with numba's own simulator.

``python -m tests.conformance.numba_cuda_worker gpulab|cudasim MODULE [TEST …]`` writes one line of JSON per
event: what the tests are, each one's start, and each one's result. The suite's modules are loaded as they are
installed; for gpulab their imports of numba.cuda are rewritten to the face, and `numba.cuda.testing`, which
wants a driver, is replaced by `SuiteTesting`.
"""

from __future__ import annotations

import ast
import fnmatch
import importlib
import inspect
import json
import os
import sys
import textwrap
import types
import unittest
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from typing import Any

import pytest

from tests.conformance.numba_cuda_rules import COMPARES_WORDS, GPU, LAUNCHES, not_applicable

SUITE = "numba.cuda.tests"
FACE = "gpulab.cuda"


# ---- The suite's modules, with another face


# What modules take from numba's packages → where they get it. The last one is `by_target`, below.
INSTEAD = {
    ("numba", "cuda"): "gpulab",
    ("numba", "vectorize"): "numba_by_target",
    ("numba", "guvectorize"): "numba_by_target",
    ("numba.cuda", "*"): FACE,
    ("numba.cuda.random", "*"): f"{FACE}.random",
    ("numba.cuda.api", "*"): FACE,
    ("numba.cuda.decorators", "*"): FACE,
}


class Rewrite(ast.NodeTransformer):
    """``from numba import cuda`` and ``from numba.cuda import …`` become imports of the face."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if node.level or not node.module:
            return node
        return [ast.ImportFrom(self.home(node.module, name.name), [name], 0) for name in node.names]

    def home(self, module: str, name: str) -> str:
        return INSTEAD.get((module, name)) or INSTEAD.get((module, "*")) or module


def by_target() -> types.ModuleType:
    """numba's `vectorize` and `guvectorize`: the face's for ``target="cuda"``, else its own."""
    import numba

    from gpulab import cuda

    def chosen(name: str) -> Callable[..., Any]:
        def decorator(*args: Any, **options: Any) -> Any:
            if options.get("target") == "cuda":
                return getattr(cuda, name)(*args, **options)
            return getattr(numba, name)(*args, **options)

        return decorator

    module = types.ModuleType("numba_by_target")
    module.__dict__.update({name: chosen(name) for name in ("vectorize", "guvectorize")})
    return module


class RewritingLoader(SourceFileLoader):
    """Loads a module of the suite through `Rewrite`; writes no byte code."""

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        tree = ast.fix_missing_locations(Rewrite().visit(ast.parse(self.get_data(path), path)))
        return compile(tree, path, "exec", dont_inherit=True)


class Finder:
    """Finds the suite's modules as everybody else does, and gives them the rewriting loader."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith(SUITE):
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)) is not None:
                if isinstance(spec.loader, SourceFileLoader):
                    spec.loader = RewritingLoader(name, spec.loader.path)
                return spec
        return None


def suite_testing() -> types.ModuleType:
    """What the suite's modules take from `numba.cuda.testing`, for a simulated device of capability `cc`."""
    import numba.cuda
    from cuda import pathfinder
    from numba.cuda.tests.support import TestCase

    from gpulab.simulator.device import current

    class CUDATestCase(TestCase):
        FLOAT16_RTOL = 2.0**-10

    class ForeignArray:
        """Hides what kind of array it is: only the interface is left."""

        def __init__(self, array: Any):
            self._arr = array
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    def always(reason: str) -> Callable[[Any], Any]:
        return unittest.skip(reason)

    def never(reason: str = "") -> Callable[[Any], Any]:
        return lambda test: test

    module = types.ModuleType("numba.cuda.testing")
    module.__dict__.update(
        unittest=unittest,
        CUDATestCase=CUDATestCase,
        ForeignArray=ForeignArray,
        numba_cuda_dir=os.path.dirname(numba.cuda.__file__),
        skip_unless_cudasim=always,
        skip_on_standalone_numba_cuda=lambda test: test,
        xfail_unless_cudasim=unittest.expectedFailure,
        skip_unless_conda_cudatoolkit=always,
        skip_without_nvdisasm=always,
        skip_if_nvjitlink_missing=always,
        skip_if_cudadevrt_missing=lambda test: test,
        skip_if_cuda_includes_missing=lambda test: test,
        skip_if_curand_kernel_missing=unittest.skipUnless(
            pathfinder.find_nvidia_header_directory("curand"), "curand_kernel.h is not installed"
        ),
        cc_X_or_above=lambda major, minor: current().cc >= (major, minor),
    )
    from pathlib import Path

    module.numba_cuda_dir = Path(module.numba_cuda_dir)
    module.test_data_dir = module.numba_cuda_dir / "tests" / "data"
    for name in (
        "skip_on_cudasim", "skip_if_external_memmgr", "skip_under_cuda_memcheck", "skip_with_nvdisasm",
        "skip_on_arm", "skip_on_wsl2", "skip_on_nvjitlink_13_1_sm_120",
    ):  # fmt: skip
        setattr(module, name, never)
    for cc in ((5, 0), (5, 3), (6, 0), (7, 5), (9, 0)):
        needs = unittest.skipUnless(current().cc >= cc, f"needs compute capability {cc[0]}.{cc[1]}")
        setattr(module, f"skip_unless_cc_{cc[0]}{cc[1]}", needs)
    return module


class NoStatistics:
    """Where the suite asks the driver how often NRT has allocated: it is not there, so never."""

    def __getattr__(self, name: str) -> Any:
        never = types.SimpleNamespace(alloc=0, free=0, mi_alloc=0, mi_free=0)
        return lambda *args: never


class Missing(types.ModuleType):
    """An optional package of the suite that is not installed: whatever is taken from it is empty."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return object


# ---- Launches


launches = 0


def counting(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        global launches
        launches += 1
        return function(*args, **kwargs)

    return call


def use_gpulab() -> None:
    """The suite sees gpulab."""
    os.environ |= {"GPULAB_SIMULATE": "1", "GPULAB_GPU": GPU}
    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
    sys.modules["numba.cuda.testing"] = suite_testing()
    from numba.cuda.tests import support

    from gpulab import cuda
    from gpulab.frontends.cuda import kernels

    support.rtsys = NoStatistics()
    sys.modules.setdefault(f"{FACE}.random", importlib.import_module("gpulab.frontends.cuda.random"))
    sys.modules["numba_by_target"] = by_target()
    sys.modules["cupy"] = importlib.import_module("gpulab.cupy")
    assert cuda.implementation == "gpulab"
    kernels.LaunchConfiguration.__call__ = counting(kernels.LaunchConfiguration.__call__)  # type: ignore[method-assign]


def use_cudasim() -> None:
    """The suite sees numba's own simulator."""
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    for name in (
        "filecheck",
        "filecheck.matcher",
        "filecheck.options",
        "filecheck.parser",
        "filecheck.finput",
    ):
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = Missing(name)
    from numba.cuda.simulator import kernel

    kernel.FakeCUDAKernel.__call__ = counting(kernel.FakeCUDAKernel.__call__)


# ---- What a test's text says


def text_of(owner: type | None, test: Any) -> ast.AST | None:
    """The text of a test and of the functions and methods of its module that it names, as one tree."""
    seen: set[Any] = set()
    body: list[ast.stmt] = []

    def add(thing: Any) -> None:
        try:
            function = getattr(thing, "py_func", thing)
        except Exception:  # numba's driver refuses all attributes where there is none
            return
        if not inspect.isfunction(function) or function in seen:
            return
        home = str(function.__globals__.get("__name__"))
        if not home.startswith(SUITE) or home.endswith("support"):
            return
        seen.add(function)
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        except (OSError, SyntaxError):
            return
        body.extend(tree.body)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                add(function.__globals__.get(node.id))
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            ):
                add(getattr(owner, node.attr, None))

    add(test)
    add(getattr(owner, "setUp", None))
    return ast.Module(body, []) if body else None


def launches_by_its_text(tree: ast.AST) -> bool:
    """Whether there is a ``kernel[grid, block](…)`` or a ``.forall(…)``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Subscript) and isinstance(node.func.slice, ast.Tuple):
                return True
            if isinstance(node.func, ast.Attribute) and node.func.attr == "forall":
                return True
    return False


def names_in(tree: ast.AST) -> Iterator[str]:
    """Names, attributes, texts that look like names; `COMPARES_WORDS` if an error's words are compared."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value
        elif isinstance(node, ast.Call) and compares_words(node):
            yield COMPARES_WORDS


def compares_words(call: ast.Call) -> bool:
    """Whether this is ``str(….exception)``, ``str(….value)``, assertRaisesRegex(…) or raises(…, match=…)."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "str" and call.args and isinstance(call.args[0], ast.Attribute):
        return call.args[0].attr in ("exception", "value")
    return name == "assertRaisesRegex" or (name == "raises" and any(k.arg == "match" for k in call.keywords))


# ---- Running


class Plugin:
    """Collects one module of the suite by its name, and tells what happens to its tests."""

    def __init__(self, module: str, only: tuple[str, ...], tell: Callable[..., None]):
        self.module, self.only, self.tell = module, only, tell
        self.before = 0
        self.result: dict[str, str] = {}

    def pytest_collect_directory(self, path: Any, parent: Any) -> Any:
        return pytest.Dir.from_parent(
            parent, path=path
        )  # without importing its __init__ by a name of its own

    def pytest_pycollect_makemodule(self, module_path: Any, parent: Any) -> Any:
        name = f"{SUITE}.{self.module}"

        class ByName(pytest.Module):
            def _getobj(self) -> Any:
                return importlib.import_module(name)

        return ByName.from_parent(parent, path=module_path)

    @pytest.fixture
    def initialize_from_pytest_config(self) -> None:
        """Which the suite's CUDATestCase asks for."""

    def pytest_collectreport(self, report: Any) -> None:
        if report.skipped or report.failed:
            self.tell(unloaded=("skipped: " if report.skipped else "") + said(report))

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if not self.only or self.name(item) in self.only]
        trees = {self.name(item): text_of(item.cls, item.function) for item in items}
        tests = {
            name: {
                "launches": bool(tree and launches_by_its_text(tree))
                or any(fnmatch.fnmatchcase(name, pattern) for pattern in LAUNCHES),
                "names": sorted(set(names_in(tree))) if tree else [],
            }
            for name, tree in trees.items()
        }
        self.tell(tests=tests)
        items[:] = [
            item for item in items if not not_applicable(name := self.name(item), tests[name]["names"])
        ]

    def name(self, item: Any) -> str:
        return ".".join([self.module, *([item.cls.__name__] if item.cls else []), item.name])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        self.result, self.before = {"outcome": "passed", "reason": ""}, launches
        self.tell(start=self.name(item))
        yield
        self.tell(end=self.name(item), launched=launches > self.before, **self.result)
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        if (
            self.result["outcome"] == "passed"
            and report.outcome != "passed"
            and not hasattr(report, "wasxfail")
        ):
            self.result = {"outcome": report.outcome, "reason": said(report)}


def said(report: Any) -> str:
    """What a report says, in one line."""
    long = report.longrepr
    crash = getattr(long, "reprcrash", None)
    text = str(long[2] if isinstance(long, tuple) else crash.message if crash else long)
    lines = [line.strip() for line in text.removeprefix("Skipped: ").splitlines() if line.strip()]
    return " / ".join(lines[:3])[:300]


def main(simulator: str, module: str, *only: str) -> None:
    channel = os.fdopen(os.dup(1), "w", buffering=1)

    def tell(**event: Any) -> None:
        channel.write("\x1e" + json.dumps(event) + "\n")

    {"gpulab": use_gpulab, "cudasim": use_cudasim}[simulator]()
    import numba_cuda

    path = os.path.join(os.path.dirname(numba_cuda.__file__), "numba", "cuda", "tests", *module.split("."))
    options = [
        "-p", "no:cacheprovider", "-p", "no:timeout", "-p", "no:xdist", "-p", "no:hypothesispytest",
        "--assert=plain",
        "-c", os.devnull, "--rootdir", os.path.dirname(path), "--tb=short", "-W", "ignore",
    ]  # fmt: skip
    pytest.main([*options, f"{path}.py"], plugins=[Plugin(module, only, tell)])
    os._exit(0)  # without waiting for threads that a test left behind


if __name__ == "__main__":
    main(*sys.argv[1:])
