"""The command `gpulab`.

Exit codes: 0 done, 1 not possible here, 2 a wrong command line, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Never

from gpulab import __version__


class WrongCommandLine(Exception):
    """What was typed makes no sense; the text is one line that helps."""


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, without the usage."""

    def error(self, message: str) -> Never:
        raise WrongCommandLine(f"{message}; see {self.prog} --help")


def _doctor(options: argparse.Namespace, rest: list[str]) -> int:
    from rich.console import Console

    from gpulab.doctor import diagnose

    diagnosis = diagnose()
    if options.json:
        print(diagnosis.to_json())
    else:
        Console(highlight=False).print(diagnosis)
    return 0 if diagnosis.ok else 1


def _gpus(options: argparse.Namespace, rest: list[str]) -> int:
    from rich.console import Console

    from gpulab.hardware import UnknownGPU, compare

    try:
        table = compare(*options.names)
    except UnknownGPU as error:
        raise WrongCommandLine(str(error)) from None
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(table)
    else:  # a file has no width: nothing is cut
        print(table)
    return 0


def _lab(options: argparse.Namespace, rest: list[str]) -> int:
    folder = find_labs(Path.cwd())
    if folder is None:
        print(
            "gpulab: there is no folder labs/ here or above, nor beside the installed package. "
            "Clone the course's repository and run `make lab` in it.",
            file=sys.stderr,
        )
        return 1
    # A container's user is often root, whom Jupyter turns away unless told otherwise.
    as_root = ["--allow-root"] if os.geteuid() == 0 else []
    command = [sys.executable, "-m", "jupyterlab", *as_root, *rest, str(folder)]
    # A cell's `!gpulab doctor` finds the command although nobody activated the environment.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    sys.stdout.flush()
    os.execv(sys.executable, command)  # Ctrl-C and the exit code are Jupyter's own from here


def find_labs(start: Path) -> Path | None:
    """The labs: in `start` or above it, else beside the package in its repository."""
    for folder in (start, *start.parents, Path(__file__).resolve().parent.parent):
        labs = folder / "labs"
        if labs.is_dir() and (folder / "gpulab").is_dir():
            return labs
    return None


@dataclass(frozen=True)
class Command:
    """One word after `gpulab`: what it does, what may follow, and whether the rest is handed on."""

    help: str
    run: Callable[[argparse.Namespace, list[str]], int]
    arguments: tuple[tuple[str, dict], ...] = ()
    hands_on: bool = False


COMMANDS: dict[str, Command] = {
    "doctor": Command(
        "what this machine has for the labs, what is missing, what to do",
        _doctor,
        (("--json", {"action": "store_true", "help": "for programs"}),),
    ),
    "gpus": Command(
        "the known GPUs side by side",
        _gpus,
        (("names", {"nargs": "*", "metavar": "GPU", "help": "such as A100 H100; all when none is named"}),),
    ),
    "lab": Command(
        "open JupyterLab on the labs; options such as --no-browser are Jupyter's", _lab, hands_on=True
    ),
}


def _parser() -> _Parser:
    parser = _Parser(prog="gpulab", description="A course on GPU acceleration that needs no GPU.")
    parser.add_argument("--version", action="version", version=f"gpulab {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(
            name, help=command.help, description=command.help, add_help=not command.hands_on
        )
        for flag, settings in command.arguments:
            sub.add_argument(flag, **settings)
    return parser


def _run(arguments: Sequence[str]) -> int:
    parser = _parser()
    if not arguments:
        parser.print_help()
        return 0
    name = arguments[0]
    if not name.startswith("-") and name not in COMMANDS:
        close = get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(COMMANDS)}."
        raise WrongCommandLine(f"there is no command {name!r}; {hint}")
    options, rest = parser.parse_known_args(arguments)
    if options.command is None:
        raise WrongCommandLine(f"there is no option {name}; see gpulab --help")
    command = COMMANDS[options.command]
    if rest and not command.hands_on:
        raise WrongCommandLine(
            f"{options.command} takes no {' '.join(rest)}; see gpulab {options.command} --help"
        )
    return command.run(options, rest)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except WrongCommandLine as error:
        print(f"gpulab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("gpulab: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
