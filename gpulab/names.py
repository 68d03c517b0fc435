"""The short names under which notebooks import parts of gpulab: ``gpulab.plot``, ``gpulab.hardware``, …

Notebooks, answers that were handed in, and learners' scripts import by these names, so they stay when a
module moves inside the package. A short name is the module that it stands for, not a copy of it: both names
give the same objects.

>>> import gpulab.hardware, gpulab.simulator.hardware
>>> gpulab.hardware is gpulab.simulator.hardware
True
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType

# What follows ``gpulab.`` in a notebook → where it is. A name stands for its submodules, too.
SHORT = {
    "bench": "subjects.bench",
    "compile": "simulator.compile",
    "course": "app.course",
    "device": "simulator.device",
    "distributed": "subjects.distributed",
    "doctor": "app.doctor",
    "exercises": "checks",
    "hardware": "simulator.hardware",
    "leaderboard": "app.leaderboard",
    "machine": "analysis.machine",
    "models": "subjects.models",
    "numerics": "subjects.numerics",
    "observe": "simulator.observe",
    "profile": "analysis.profile",
    "serving": "subjects.serving",
    "simulated_cuda": "frontends.cuda",
    "simulated_cupy": "frontends.cupy",
    "simulated_cutlass": "frontends.cutlass",
    "simulated_tile": "frontends.tile",
    "simulated_triton": "frontends.triton",
}
# Modules of labs from which notebooks take a function or a table.
SHORT |= {
    "exercises.lab_08_pytorch_performance": "content.lab_08_pytorch_performance.exercises",
    "exercises.lab_11_triton_and_fusion": "content.lab_11_triton_and_fusion.exercises",
    "exercises.lab_11_recorded": "content.lab_11_triton_and_fusion.recorded",
    "exercises.lab_17_model_parallelism": "content.lab_17_model_parallelism.exercises",
    "exercises.lab_19_kv_cache": "content.lab_19_llm_inference.kv_cache",
}

# Faces that are the real package: their submodules are the package's own, too.
REAL = {"cutlass": "cutlass", "tile": "cuda.tile"}


def module_of(name: str) -> str | None:
    """The full name of the module that ``gpulab.…`` stands for; None where it is not a short name."""
    package, _, rest = name.partition(".")
    parts = rest.split(".")
    if len(parts) > 1 and parts[0] in REAL:
        return ".".join([REAL[parts[0]], *parts[1:]])
    for end in range(len(parts), 0, -1):
        if found := SHORT.get(".".join(parts[:end])):
            return ".".join([package, found, *parts[end:]])
    return None


def _within_another(name: str) -> str | None:
    """The full name of a module whose parent has two names, as `gpulab.triton` has; None for all others."""
    parent, _, last = name.rpartition(".")
    known = sys.modules.get(parent)
    return None if known is None or known.__name__ == parent else f"{known.__name__}.{last}"


class Finder(MetaPathFinder):
    """Finds short names for Python's import system."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a short name's module, or None where another finder is to look."""
        if not fullname.startswith(f"{__package__}."):
            return None
        meant = module_of(fullname) or _within_another(fullname)
        if meant is None or (there := find_spec(meant)) is None:
            return None
        is_package = there.submodule_search_locations is not None
        return ModuleSpec(fullname, _Alias(meant), origin=there.origin, is_package=is_package)


class _Alias(Loader):
    """Loads a module under one more name."""

    def __init__(self, meant: str):
        self.meant = meant

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.meant)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run again; the import system has just overwritten the module's own specification."""
        alias = module.__spec__
        assert alias is not None
        module.__spec__ = alias.loader_state

    def get_code(self, fullname: str) -> CodeType | None:
        """For ``python -m gpulab.hardware``."""
        there = find_spec(self.meant)
        assert there is not None and there.loader is not None
        code: CodeType | None = there.loader.get_code(self.meant)  # type: ignore[attr-defined]
        return code


def install() -> None:
    """Make the short names known to Python's import system, once."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
