"""Snapshots: the counts of each test's kernels, in a file to commit beside the test's file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpulab.app.programs.ledger import LISTED, Counts
from gpulab.foundation.errors import Message

FOLDER = "gpulab_counts"
FORMAT = 1
UPDATE = "pytest --gpulab-update"

Entry = dict[str, Any]  # of one test on one GPU: "kernels" and "compilers"


class CountsDiffer(Message):
    """A test's kernels do not count what its snapshot says, or it has none; the message says what to do."""


def file_of(test_file: Path) -> Path:
    """Where the snapshots of a file of tests are.

    >>> file_of(Path("tests/test_sums.py")).as_posix()
    'tests/gpulab_counts/test_sums.json'
    """
    return test_file.parent / FOLDER / f"{test_file.stem}.json"


def entry(counts: Counts, compilers: Mapping[str, str]) -> Entry:
    """What is kept of one test on one GPU."""
    return {"kernels": counts, "compilers": {kernel: compilers[kernel] for kernel in counts}}


def read(path: Path) -> dict[str, dict[str, Entry]]:
    """Test → GPU → entry; empty where there is no file. Raises CountsDiffer for a file of another kind."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CountsDiffer(f"{path} has no counts: {error}. Delete it and run {UPDATE}.") from None
    tests = found.get("tests") if isinstance(found, dict) else None
    if not isinstance(tests, dict) or found.get("format") != FORMAT:
        raise CountsDiffer(f"{path} has no `tests` in format {FORMAT}. Delete it and run {UPDATE}.")
    return tests


def write(path: Path, news: Mapping[str, Mapping[str, Entry]]) -> None:
    """Put new entries into a file, beside those of other tests and GPUs."""
    tests = read(path)
    for test, by_gpu in news.items():
        tests[test] = {**tests.get(test, {}), **by_gpu}
    path.parent.mkdir(exist_ok=True)
    text = json.dumps({"format": FORMAT, "tests": tests}, indent=1, sort_keys=True)
    draft = path.with_suffix(".json.new")
    draft.write_text(f"{text}\n", encoding="utf-8")
    os.replace(draft, path)


def compare(path: Path, test: str, gpu: str, now: Entry) -> None:
    """Raise CountsDiffer where a test counts anything else than its snapshot says."""
    kept = read(path).get(test, {}).get(gpu)
    if kept is None:
        raise CountsDiffer(
            f"No snapshot of the counts of {test} on a simulated {gpu}\n"
            f"{path} has none. Run {UPDATE} once and commit that file."
        )
    differences = _differences(kept.get("kernels", {}), now["kernels"])
    if not differences:
        return
    lines = [f"The counts of {test} differ from its snapshot", *(f"    {each}" for each in differences)]
    for kernel, compiler in now["compilers"].items():
        before = kept.get("compilers", {}).get(kernel)
        if before not in (None, compiler):
            lines.append(
                f"The snapshot of {kernel} was made with {before}, and this run uses {compiler}; "
                "another compiler may make other instructions."
            )
    lines.append(f"If the change is intended, run {UPDATE} and commit {path}.")
    raise CountsDiffer("\n".join(lines))


def _differences(before: Counts, now: Counts) -> list[str]:
    found = [f"{kernel} is no longer launched" for kernel in before if kernel not in now]
    found += [f"{kernel} is new" for kernel in now if kernel not in before]
    for kernel in now.keys() & before.keys():
        for metric in LISTED:
            old, new = before[kernel].get(metric, 0), now[kernel][metric]
            if old != new:
                change = f" ({(new - old) / old:+.1%})" if old else ""
                found.append(f"{kernel}: {metric.replace('_', ' ')} {old:,} → {new:,}{change}")
    return sorted(found)
