"""Runs the programs and tests of others, and those of each feature, and writes all pages of docs/conformance.

``python -m tests.conformance --peers FOLDER`` finds checkouts in that folder under the names of their
repositories: triton, HeCBench, cutlass, cutile-python. What has none there is left out, and said. numba-cuda's
tests are in its wheel and CuPy's in its source distribution, which pip downloads. ``--list`` runs nothing.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.features import REPOSITORY


@dataclass(frozen=True)
class Suite:
    """What writes a page: a command of Python, in which {name} is the checkout of that name."""

    page: str
    command: str
    needs: tuple[str, ...] = ()


SUITES = (
    Suite("numba_cuda", "-m tests.conformance.numba_cuda"),
    Suite("cupy", "tests/cupy/conformance/run.py"),
    Suite(
        "tile_languages",
        "-m tests.conformance.tile_languages --cutlass {cutlass} --cutile {cutile-python}",
        ("cutlass", "cutile-python"),
    ),
    Suite("triton_tutorials", "-m tests.conformance.triton_tutorials {triton}", ("triton",)),
    Suite("triton_language", "-m tests.conformance.triton_language {triton}", ("triton",)),
    Suite("hecbench", "-m tests.conformance.hecbench {HeCBench}", ("HeCBench",)),
    Suite("features", "-m tests.conformance.features"),  # the last: it sums up the others in the README
)


def command(suite: Suite, peers: Path | None) -> list[str]:
    """What is run for a suite; empty where a checkout is missing."""
    if missing(suite, peers):
        return []
    words = shlex.split(suite.command)
    for name in suite.needs:
        assert peers is not None
        words = [word.replace(f"{{{name}}}", str((peers / name).resolve())) for word in words]
    return [sys.executable, *words]


def missing(suite: Suite, peers: Path | None) -> list[str]:
    """The checkouts that a suite needs and that are not there."""
    return [name for name in suite.needs if peers is None or not (peers / name).is_dir()]


def main() -> int:
    """The command; 1 if a suite could not be run to its end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peers", type=Path, help="the folder with checkouts")
    parser.add_argument("--only", default="", help="pages with this in their names")
    parser.add_argument("--list", action="store_true", help="say what would be run")
    options = parser.parse_args()
    failed = False
    for suite in SUITES:
        if options.only not in suite.page:
            continue
        if lacking := missing(suite, options.peers):
            print(f"{suite.page}: left out, for there is no checkout of {', '.join(lacking)}.", flush=True)
            continue
        words = command(suite, options.peers)
        print(f"{suite.page}: {shlex.join(words[1:])}", flush=True)
        if not options.list and subprocess.run(words, cwd=REPOSITORY, check=False).returncode:
            print(f"{suite.page}: ended with an error; its page is as it was.", flush=True)
            failed = True
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
