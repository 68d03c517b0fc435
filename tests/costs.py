"""What tests cost, in seconds of the processor: `make test ARGS=--costs` lists what costs most.

The clock on the wall says little on a machine that has other work. Processes that tests have started count, too.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

NAME = "cost of the test, in processor seconds"
SHOWN = 40
_at_start = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--costs", action="store_true", help="list what costs most, all of it in build/costs.json"
    )


def spent() -> float:
    """The processor's seconds so far, of this process and all that it and its children have started."""
    used: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            used[int(process.name)] = sum(map(int, fields[11:15]))  # with children that have ended
            children.setdefault(int(fields[1]), []).append(int(process.name))
    ours = [os.getpid()]
    for process_id in ours:
        ours += children.get(process_id, ())
    return sum(used.get(process_id, 0) for process_id in ours) / os.sysconf("SC_CLK_TCK")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if item.config.getoption("--costs"):  # it reads all of /proc
        item.stash[_at_start] = spent()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A test's cost includes its fixtures; what is prepared for many is charged to the first."""
    report = yield
    if call.when == "teardown" and _at_start in item.stash:
        report.user_properties = [*report.user_properties, (NAME, spent() - item.stash[_at_start])]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.getoption("--costs"):
        return
    tests = {
        report.nodeid: value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == NAME
    }
    files: Counter[str] = Counter()
    for test, seconds in tests.items():
        files[test.partition("::")[0]] += seconds
    saved = Path(config.rootpath, "build/costs.json")
    saved.parent.mkdir(exist_ok=True)
    saved.write_text(json.dumps(tests, indent=1))
    terminalreporter.section(f"processor seconds: {sum(files.values()):.0f} in all; {saved} has every test")
    for costs in (files, Counter(tests)):
        for name, seconds in costs.most_common(SHOWN):
            terminalreporter.write_line(f"{seconds:8.1f}  {name}")
