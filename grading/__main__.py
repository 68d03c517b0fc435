"""`python -m grading release | grade | doctor`"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from grading.course import Course
from grading.errors import GradingError

console = Console(highlight=False, soft_wrap=True)


def release(options: argparse.Namespace, course: Course) -> int:
    """Release the named lab, or all; with --check only say what is out of date."""
    from grading import release as release_module

    stale = 0
    for lab in [options.lab] if options.lab else course.lab_names():
        if options.check:
            lines = release_module.differences(course, lab)
            stale += bool(lines)
            state = "out of date, run: python -m grading release " + lab if lines else "in sync"
            for line in lines:
                console.print(line, markup=False)
        else:
            state = "released" if release_module.release(course, lab) else "already up to date"
        console.print(f"{lab:<24} {state}", markup=False)
    return 1 if stale else 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m grading", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    command = commands.add_parser("release", help="solutions/ → labs/, and the proofs of each exercise")
    command.add_argument("lab", nargs="?", help="one lab, such as 04_memory_hierarchy (default: all)")
    command.add_argument("--check", action="store_true", help="change nothing; exit 1 where labs/ is stale")
    command.set_defaults(run=release)
    return top


def main(arguments: Sequence[str] | None = None, course: Course | None = None) -> int:
    """Run one command; every foreseen failure is one message and exit status 1."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options, course or Course()))
    except GradingError as error:
        console.print(f"{error}", style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("stopped; nothing is lost: the same command continues where it was", markup=False)
        return 130


if __name__ == "__main__":
    sys.exit(main())
