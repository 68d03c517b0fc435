"""The plugin for pytest: ``pytest --gpulab`` runs tests of CUDA code on the simulated GPU.

`watching` looks at each test's launches, `failures` makes reports that point at a kernel's source line,
`snapshots` keeps counts from run to run, and `github` writes annotations. Every pytest beside an installed
gpulab imports this module, so nothing heavy is imported before an option asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gpulab import habits

MARKERS = (
    "gpulab(gpu=None, sanitize=None, limit=None): how `pytest --gpulab` runs this test, where that differs "
    "from the command line",
    "gpulab_counts: the counts of the test's kernels must be those of the snapshot beside the test's file",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpulab", "kernels on a simulated GPU (each option implies --gpulab)")
    group.addoption("--gpulab", action="store_true", help="run kernels on a simulated GPU")
    group.addoption("--gpulab-gpu", metavar="GPU", default="", help="such as H100; an A100 unless named")
    group.addoption("--gpulab-sanitize", action="store_true", help="look for races and bad memory")
    group.addoption(
        "--gpulab-limit", metavar="N", type=int, default=0, help="stop kernels after N instructions"
    )
    group.addoption(
        "--gpulab-update", action="store_true", help="write the counts of tests marked gpulab_counts"
    )


def _is_wanted(options: Any) -> bool:
    return bool(
        options.gpulab
        or options.gpulab_gpu
        or options.gpulab_sanitize
        or options.gpulab_limit
        or options.gpulab_update
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before any of the user's modules is imported, in each process: imports lead to the faces."""
    options = early_config.known_args_namespace
    if not _is_wanted(options):
        return
    from gpulab.app.programs import simulation
    from gpulab.simulator.hardware import UnknownGPU

    try:
        simulation.install(options.gpulab_gpu)
    except UnknownGPU as error:
        raise pytest.UsageError(f"--gpulab-gpu: {error}") from None
    pytest.importorskip = _importorskip


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if not _is_wanted(config.option):
        return
    from .watching import Watching

    config.pluginmanager.register(Watching(config), "gpulab-watching")


@pytest.fixture
def simulated_gpu(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The simulated GPU, with what kernels have done since the test began.

    `simulated_gpu.device.gpu.name` is its name. `simulated_gpu.counts()` gives launches, instructions,
    sectors, wavefronts and FLOPs by kernel: ``counts()["add"]["global_load_sectors"]``. Without --gpulab the
    test is skipped.
    """
    if not _is_wanted(request.config.option):
        pytest.skip("needs the simulated GPU: pytest --gpulab")
    from gpulab.app.programs.ledger import Ledger
    from gpulab.simulator import device

    ledger = Ledger(device.current())
    with ledger.standing():
        yield ledger


_importorskip_of_pytest = pytest.importorskip


def _importorskip(
    modname: str,
    minversion: str | None = None,
    reason: str | None = None,
    *,
    exc_type: type[ImportError] | None = None,
) -> Any:
    """`pytest.importorskip`, which takes a module from `sys.modules`, where the real ones are."""
    if not habits.has_face(modname):
        return _importorskip_of_pytest(modname, minversion, reason, exc_type=exc_type)
    from packaging.version import Version

    try:
        found = habits.face_of(modname)
    except ImportError as error:
        why = reason or f"could not import {modname!r}: {error}"
        raise pytest.skip.Exception(why, allow_module_level=True) from None
    version = getattr(found, "__version__", None)
    if minversion and (version is None or Version(version) < Version(minversion)):
        why = reason or f"{modname!r} is {version}, and {minversion} is needed"
        raise pytest.skip.Exception(why, allow_module_level=True)
    return found
