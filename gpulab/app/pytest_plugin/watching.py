"""Each test's launches under the options of the command line and of its markers."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gpulab.analysis.sanitizer.findings import Finding
from gpulab.analysis.sanitizer.tools import Tools
from gpulab.app.programs.ledger import Ledger
from gpulab.simulator import device as devices
from gpulab.simulator import hardware

from . import failures, github, snapshots

FINDINGS: pytest.StashKey[list[Finding]] = pytest.StashKey()  # of a test that failed for another reason


@dataclass(frozen=True)
class Settings:
    """How a test runs. `gpu` is a name of the catalogue; `limit` as `simt.launch` has it, 0 for its own."""

    gpu: str
    sanitize: bool
    limit: int


class Watching:
    """The part of the plugin that is there with --gpulab only."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.device = devices.current()
        options = config.option
        self.usual = Settings(self.device.gpu.name, options.gpulab_sanitize, options.gpulab_limit)
        self.updates = bool(options.gpulab_update)
        self._complaints: list[dict[str, Any]] = []
        self._counted: dict[str, dict[str, dict[str, Any]]] = {}  # file → test → GPU → entry

    # ---- in the process that runs a test

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self._watched(item):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self._watched(item):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if item.get_closest_marker("gpulab_counts") is None:
            with self._watched(item):
                return (yield)
        ledger = Ledger(self.device)
        with self._watched(item):
            with ledger.standing():
                result = yield
            self._hold(item, snapshots.entry(ledger.counts(), ledger.compilers()))
        return result

    @contextmanager
    def _watched(self, item: pytest.Item) -> Iterator[None]:
        """One phase of a test. What the sanitizer finds fails it, and is kept where it fails anyway."""
        settings = _settings(item, self.usual)
        with ExitStack() as stack:
            stack.callback(devices.simulate, self.device.gpu.name)
            devices.simulate(settings.gpu)
            if settings.limit:
                stack.enter_context(self.device.using(limit=settings.limit))
            if not settings.sanitize:
                yield
                return
            tools = Tools(self.device)
            try:
                with tools.standing():
                    yield
            except BaseException:
                item.stash[FINDINGS] = tools.findings()
                raise
            if findings := tools.findings():
                raise failures.KernelFindings(findings)

    def _hold(self, item: pytest.Item, counted: snapshots.Entry) -> None:
        """Hold a test's counts against its snapshot, or hand them on to become the new one."""
        for kernel, counts in counted["kernels"].items():
            item.user_properties += [(f"gpulab {kernel} {metric}", n) for metric, n in counts.items()]
        file, test, gpu = snapshots.file_of(item.path), _name(item), self.device.gpu.name
        if self.updates:
            item.stash[COUNTED] = [str(file), test, gpu, counted]
        else:
            snapshots.compare(file, test, gpu, counted)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        root = self.config.rootpath.resolve()
        if report.failed and call.excinfo is not None:
            complaints = failures.complaints_of(call.excinfo.value, root)
            if complaints:
                failures.point(report, complaints, call.excinfo, item)
            for finding in item.stash.get(FINDINGS, []):
                complaints.append(failures.of_finding(finding, root))
                report.sections.append(("gpulab: the sanitizer's findings", str(finding)))
            at = (item.location[0], (item.location[1] or failures.FIRST_LINE) + 1)
            placed = [c if c.file else replace(c, file=at[0], line=at[1]) for c in complaints]
            vars(report)["gpulab_complaints"] = [complaint.to_dict() for complaint in placed]
        elif report.passed and call.when == "call" and COUNTED in item.stash:
            vars(report)["gpulab_counted"] = item.stash[COUNTED]
        return report

    # ---- in the process that reports: with pytest-xdist the one that starts the others

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._complaints += getattr(report, "gpulab_complaints", [])
        if counted := getattr(report, "gpulab_counted", None):
            file, test, gpu, entry = counted
            self._counted.setdefault(file, {}).setdefault(test, {})[gpu] = entry

    def pytest_sessionfinish(self) -> None:
        if hasattr(self.config, "workerinput"):
            return  # two processes must not write one file
        for file, news in self._counted.items():
            snapshots.write(Path(file), news)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._counted:
            count = sum(map(len, self._counted.values()))
            files = ", ".join(_short(Path(file), self.config.invocation_params.dir) for file in self._counted)
            terminalreporter.write_line(
                f"gpulab: wrote the counts of {count} test{'s' if count > 1 else ''} to {files}"
            )
        if github.wanted():
            for complaint in self._complaints:
                terminalreporter.write_line(github.annotation(complaint, self.config.rootpath))


COUNTED: pytest.StashKey[list[Any]] = pytest.StashKey()  # a file, a test in it, a GPU, and the new entry
ARGUMENTS = {"gpu": str, "sanitize": bool, "limit": int}  # of the marker `gpulab`, with their types


def _settings(item: pytest.Item, usual: Settings) -> Settings:
    """Those of the command line, changed by the markers from the module's to the test's own."""
    for marker in reversed(list(item.iter_markers("gpulab"))):
        _check(marker.args, marker.kwargs)
        usual = replace(usual, **{name: value for name, value in marker.kwargs.items() if value is not None})
    try:
        hardware.find(usual.gpu)
    except hardware.UnknownGPU as error:
        pytest.fail(f"@pytest.mark.gpulab: {error}", pytrace=False)
    return usual


def _check(args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Fail the test, in words, where the marker has arguments that mean nothing."""
    known = ", ".join(ARGUMENTS)
    if args:
        pytest.fail(f"@pytest.mark.gpulab takes its arguments by name: {known}", pytrace=False)
    for name, value in named.items():
        if name not in ARGUMENTS:
            pytest.fail(f"@pytest.mark.gpulab has no argument {name!r}; it has {known}", pytrace=False)
        if value is not None and not isinstance(value, ARGUMENTS[name]):
            wanted = ARGUMENTS[name].__name__
            pytest.fail(f"@pytest.mark.gpulab({name}={value!r}): must be a {wanted}", pytrace=False)


def _name(item: pytest.Item) -> str:
    """What a test is called within its file."""
    return item.nodeid.partition("::")[2]


def _short(path: Path, start: Path) -> str:
    return str(path.relative_to(start) if path.is_relative_to(start) else path)
