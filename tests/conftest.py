"""What all tests share: tests that need a GPU or a browser are skipped with a reason where there is none, and
counted; libraries are quiet and repeatable."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

# Before NumPy and matplotlib are imported: the tests run side by side, and no test opens a window.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# Cells and scripts find `gpulab` and `jupyter` although nobody activated the environment.
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])

import hypothesis
import pytest

import grading  # noqa: F401  # before nbformat, which would make a grammar that nobody needs; it takes seconds
from tests import costs

# The same examples in every run and no time limit per example: machines differ, and pytest-timeout is there.
hypothesis.settings.register_profile("gpulab", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.load_profile("gpulab")

# What `make test-fast` leaves out: these take longest for what they find while somebody writes code. They start
# real browsers, databases, clusters and classes, kill processes, attack the judge, or go through all labs.
THOROUGH = tuple(
    f"tests/{name}"
    for name in (
        "browser/", "conformance/", "labs/", "site/", "validation/",
        "checks/test_communication.py", "cli/test_every_command.py", "cli/test_pytest_plugin.py",
        "cli/test_run.py", "cli/test_run_cuda_cpp.py",
        "distributed/test_network.py", "distributed/test_run.py",
        "grading/test_bad_input.py", "grading/test_cells.py", "grading/test_class_of_eight.py",
        "grading/test_class_page.py", "grading/test_cluster.py",
        "grading/test_communication.py", "grading/test_deliveries.py", "grading/test_dialogues.py",
        "grading/test_final.py", "grading/test_github.py", "grading/test_gpu_stage.py",
        "grading/test_gradescope.py", "grading/test_groups.py", "grading/test_handback.py",
        "grading/test_judge.py", "grading/test_killed.py", "grading/test_late.py",
        "grading/test_limited.py", "grading/test_linking.py", "grading/test_memory.py",
        "grading/test_mutations.py", "grading/test_nbgrader_stays_stock.py",
        "grading/test_never_weaker.py", "grading/test_newer.py", "grading/test_own_course.py",
        "grading/test_pictures.py", "grading/test_postgresql.py", "grading/test_public_contents.py",
        "grading/test_redteam.py", "grading/test_references_earn_nothing.py", "grading/test_rendering.py",
        "grading/test_rubric_items.py",
        "grading/test_sandbox.py", "grading/test_template.py", "grading/test_warm.py",
        "machine/test_modelled.py",
        "plot/test_moving_in_chromium.py",
        "sanitizer/test_corpus.py", "sanitizer/test_newer_corpus.py", "sanitizer/test_no_false_alarm.py",
        "simt/test_wgmma.py", "tracer/test_stepper.py",
        "update/",
    )
)  # fmt: skip
LONGEST_NAME = 500  # characters of a parameter in the name of a test
NO_GPU = "no NVIDIA GPU here"
NO_BROWSER = "no Chromium here, or no Playwright"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.register(costs)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A text of thousands of characters is named by how it begins; every process sends the names of all tests."""
    if isinstance(val, str | bytes) and len(val) > LONGEST_NAME:
        begins = val[:20] if isinstance(val, str) else val[:20].decode("latin-1")
        return f"{begins}… of {len(val)}"
    return None


@pytest.fixture(autouse=True)
def interrupts_arrive() -> None:
    """Ctrl-C is a KeyboardInterrupt in each test, whatever a library has done with the signal before."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where checks write a learner's progress: in a folder of the test's own."""
    path = tmp_path / "progress.json"
    monkeypatch.setenv("GPULAB_PROGRESS", str(path))
    return path


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Modules and tests stay until the end: to look for garbage among them would take a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()  # nor later
        gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files that are left out are not even imported."""
    if "not thorough" not in config.option.markexpr:
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    return True if is_thorough(f"{path}/" if collection_path.is_dir() else path) else None


def is_thorough(file: str) -> bool:
    """Whether `make test-fast` leaves out a file of tests, by its path from the repository's root."""
    return file.startswith(THOROUGH)


def find_browser() -> str | None:
    """The Chromium of this machine, if Playwright is there to drive it."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None) if find_spec("playwright") else None


def _together(item: pytest.Item) -> str:
    """Which tests run in one process, because what they prepare is prepared once."""
    file = item.nodeid.partition("::")[0]
    if file.startswith("tests/browser/"):  # two JupyterLabs at once are slow to show a page
        return "tests/browser"
    lab = getattr(item, "callspec", None) and item.callspec.params.get("lab")  # type: ignore[attr-defined]
    return f"{file} {lab}" if lab else file


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_together(item)))
        if is_thorough(item.nodeid):
            item.add_marker(pytest.mark.thorough)
    wants_browser = [item for item in items if item.get_closest_marker("browser")]
    if wants_browser and not find_browser():
        for item in wants_browser:
            item.add_marker(pytest.mark.skip(reason=NO_BROWSER))
    wants_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not wants_gpu:
        return
    from gpulab.simulator.device import has_gpu  # only now: a broken room fails its own tests, not all

    if not has_gpu():
        for item in wants_gpu:
            item.add_marker(pytest.mark.skip(reason=NO_GPU))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for what, reason in (("GPU", NO_GPU), ("browser", NO_BROWSER)):
        skipped = [r for r in terminalreporter.stats.get("skipped", []) if reason in str(r.longrepr)]
        if skipped:
            terminalreporter.write_line(f"{len(skipped)} tests need a {what} and were skipped: {reason}")
    ended = [r for state in ("passed", "failed") for r in terminalreporter.stats.get(state, [])]
    for name, value in (saved for report in ended for saved in report.user_properties):
        if name == "screenshot":
            terminalreporter.write_line(f"screenshot: {value}")
