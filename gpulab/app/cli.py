"""The command `gpulab`; EXIT_CODES says how it ends."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Never

from gpulab.foundation.version import VERSION

EXIT_CODES = "Exit codes: 0 done, 1 not passed or not possible here, 2 a wrong command line, 130 Ctrl-C."
LEARNERS_SETTINGS = (
    Path(__file__).with_name("course") / "jupyter"
)  # of JupyterLab, when `gpulab lab` opens it


class WrongCommandLine(Exception):
    """What was typed makes no sense; the text is one line that helps."""


class _Help(argparse.HelpFormatter):
    """Lists the commands without a line above them that says COMMAND, so that the help fits a screen."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            self._action_max_length += self._indent_increment  # argparse forgets that commands are indented

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        return text.partition("\n")[2] if isinstance(action, argparse._SubParsersAction) else text


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, without the usage."""

    def error(self, message: str) -> Never:
        raise WrongCommandLine(f"{message}; see {self.prog} --help")


def _doctor(options: argparse.Namespace, rest: list[str]) -> int:
    from rich.console import Console

    from gpulab.app.doctor import diagnose

    diagnosis = diagnose()
    if options.json:
        print(diagnosis.to_json())
    else:
        Console(highlight=False).print(diagnosis)
    return 0 if diagnosis.ok else 1


def _gpus(options: argparse.Namespace, rest: list[str]) -> int:
    from gpulab.simulator.hardware import UnknownGPU, compare

    try:
        table = compare(*options.names)
    except UnknownGPU as error:
        raise WrongCommandLine(str(error)) from None
    _show(table)
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
    index = "--LabApp.default_url=/lab/tree/index.ipynb"  # what opens first, unless the options say otherwise
    look = f"--LabApp.extra_labextensions_path={LEARNERS_SETTINGS / 'labextensions'}"
    command = [sys.executable, "-m", "jupyterlab", *as_root, index, look, *rest, str(folder)]
    # Where nbgrader is installed, too, its menus are the instructor's and stay out of a learner's JupyterLab.
    settings = [str(LEARNERS_SETTINGS), os.environ.get("JUPYTER_CONFIG_PATH", "")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, settings))
    # A cell's `!gpulab doctor` finds the command although nobody activated the environment.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    sys.stdout.flush()
    os.execv(sys.executable, command)  # Ctrl-C and the exit code are Jupyter's own from here


def _check(options: argparse.Namespace, rest: list[str]) -> int:
    from gpulab.app import from_file
    from gpulab.checks.face import check
    from gpulab.checks.registry import UnknownExercise, find

    if not all("::" in place for place in options.places):
        return _check_files(options.places)
    if len(options.places) > 1:
        raise WrongCommandLine("check one exercise at a time, or whole files without ::EXERCISE")
    (options.place,) = options.places
    try:
        path, name = from_file.split(options.place)
        find(name)
        fn = from_file.function(path, name)
    except (from_file.NotInFile, UnknownExercise) as error:
        raise WrongCommandLine(str(error)) from None
    except from_file.Failed as error:
        print(error, file=sys.stderr)
        return 1
    verdict = check(name, fn)
    _show(verdict)
    return 0 if verdict.passed else 1


def _check_files(names: Sequence[str]) -> int:
    from gpulab.app import from_file, whole_file

    found = []
    try:
        for name in names:
            if not (path := Path(name)).is_file():
                raise from_file.NotInFile(f"there is no file {name}")
            points = list(whole_file.points(path))
            for line in whole_file.lines(path, points):
                print(line, flush=True)
            found += points
    except from_file.NotInFile as error:
        raise WrongCommandLine(str(error)) from None
    whole_file.report(found)
    return 0 if all(each.points == each.of for each in found) else 1


def _profile(options: argparse.Namespace, rest: list[str]) -> int:
    os.environ.setdefault("GPULAB_SIMULATE", "1")  # a report is of the simulated device, also beside a GPU
    from gpulab.analysis.profile.watch import Watch
    from gpulab.app import from_file
    from gpulab.simulator import device

    try:
        path, kernel = from_file.split(options.place)
        parts, launching = from_file.launches_of(path, kernel)
    except from_file.NotInFile as error:
        raise WrongCommandLine(str(error)) from None
    watch = Watch(device.current())
    try:
        with watch.standing():
            from_file.run(parts, heard=launching)
    except from_file.Failed as error:
        print(error, file=sys.stderr)
        return 1
    watch.seen[:] = [seen for seen in watch.seen if seen.launch.kernel.name == kernel]
    if not watch.seen:
        print(f"gpulab: {path} ran, and launched no `{kernel}`", file=sys.stderr)
        return 1
    _show(watch.report(kernel if len(watch.seen) > 1 else ""))
    return 0


def _program(options: argparse.Namespace, rest: list[str]) -> int:
    from gpulab.app.programs.cuda_cpp import CannotBuild
    from gpulab.app.programs.ledger import WrongBudget
    from gpulab.app.programs.run import CannotRun, Settings, run
    from gpulab.simulator.hardware import UnknownGPU

    settings = Settings(
        gpu=options.gpu,
        fill=options.fill,
        clock=options.clock,
        limit=options.limit,
        report=options.report,
        sanitize=options.sanitize,
        budget=options.budget,
        write_budget=options.write_budget,
        nvcc=options.nvcc,
    )
    try:
        return run(options.program if options.module is None else ["-m", *options.module], settings)
    except (CannotBuild, CannotRun, UnknownGPU, WrongBudget) as error:
        raise WrongCommandLine(str(error)) from None


def _progress(options: argparse.Namespace, rest: list[str]) -> int:
    from gpulab.app.course.progress import UnknownLab, progress

    try:
        found = progress(options.lab)
    except UnknownLab as error:
        raise WrongCommandLine(str(error)) from None
    if options.json:
        print(json.dumps(found.to_dict(), indent=1))
    else:
        _show(found)
    return 0


def _hint(options: argparse.Namespace, rest: list[str]) -> int:
    from gpulab.checks.hints import hint
    from gpulab.checks.registry import UnknownExercise

    try:
        _show(hint(options.exercise))
    except UnknownExercise as error:
        raise WrongCommandLine(str(error)) from None
    return 0


def _appeal(options: argparse.Namespace, rest: list[str]) -> int:
    from gpulab.app.appeal import CannotAppeal, appeal
    from gpulab.checks.registry import UnknownExercise

    try:
        _show(appeal(options.about, " ".join(options.why), options.who))
    except (CannotAppeal, UnknownExercise) as error:
        raise WrongCommandLine(str(error)) from None
    return 0


def _leaderboard(options: argparse.Namespace, rest: list[str]) -> int:
    from gpulab.app import leaderboard

    try:
        if options.export:
            count = leaderboard.export(Path(options.export), options.who)
            print(f"{options.export}: {count} entr{'y' if count == 1 else 'ies'} of yours")
        elif options.take:
            count = leaderboard.take(Path(options.take))
            print(f"{count} entr{'y' if count == 1 else 'ies'} taken in from {options.take}")
        else:
            for project in [options.project] if options.project else sorted(leaderboard.projects()):
                _show(leaderboard.board(project))
    except (leaderboard.UnknownProject, FileNotFoundError) as error:
        raise WrongCommandLine(str(error)) from None
    except leaderboard.NotALeaderboard as error:
        print(f"gpulab: {error}", file=sys.stderr)
        return 1
    return 0


def _glossary(options: argparse.Namespace, rest: list[str]) -> int:
    from gpulab.app.course import UnknownTerm, glossary

    try:
        _show(glossary(" ".join(options.term)))
    except UnknownTerm as error:
        raise WrongCommandLine(str(error)) from None
    return 0


def _update(options: argparse.Namespace, rest: list[str]) -> int:
    from gpulab.app.update import CannotUpdate, update

    labs = find_labs(Path.cwd())
    if labs is None:
        raise WrongCommandLine("there is no folder labs/ here or above: go to the folder of the course first")
    if options.source and not options.source.exists():
        raise WrongCommandLine(f"there is no {options.source}")
    try:
        _show(update(labs, options.source))
    except CannotUpdate as error:
        print(f"gpulab: {error}", file=sys.stderr)
        return 1
    return 0


def _completion(options: argparse.Namespace, rest: list[str]) -> int:
    import shtab

    from gpulab.app.course import catalogue
    from gpulab.app.leaderboard import projects
    from gpulab.checks.registry import exercises
    from gpulab.simulator.hardware import names

    words: dict[str, list[str]] = {
        "EXERCISE": [exercise.name for exercise in exercises()],
        "GPU": [name.replace(" ", "") for name in names()],
        "LAB": sorted({lab.number for lab in catalogue.labs().values()}),
        "PROJECT": sorted(projects()),
    }

    def completed(argument: argparse.Action) -> None:
        metavar = str(argument.metavar)
        argument.choices = words.get(metavar, argument.choices)
        if metavar.startswith(("FILE", "FROM")):
            argument.complete = shtab.FILE  # type: ignore[attr-defined]

    print(shtab.complete(_parser(completed), options.shell))
    return 0


def _show(thing: object) -> None:
    """In colour where a person reads; as plain text, nothing cut, where a file or another program does."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        console.print(thing)
    else:
        print(thing)


def find_labs(start: Path) -> Path | None:
    """The labs: in `start` or above it, else beside the package in its repository."""
    for folder in (start, *start.parents, Path(__file__).resolve().parents[2]):
        labs = folder / "labs"
        if labs.is_dir() and (folder / "gpulab").is_dir():
            return labs
    return None


@dataclass(frozen=True)
class Command:
    """One word after `gpulab`: what it does, what may follow, and whether the rest is handed on."""

    help: str
    run: Callable[[argparse.Namespace, list[str]], int]
    arguments: tuple[tuple[str, dict[str, Any]], ...] = ()
    hands_on: bool = False


COMMANDS: dict[str, Command] = {
    "doctor": Command(
        "what this machine has, what is missing, what to do",
        _doctor,
        (("--json", {"action": "store_true", "help": "for programs"}),),
    ),
    "gpus": Command(
        "the known GPUs side by side",
        _gpus,
        (("names", {"nargs": "*", "metavar": "GPU", "help": "such as A100 H100; all when none is named"}),),
    ),
    "check": Command(
        "check an exercise of a notebook or script, or all in it",
        _check,
        (
            (
                "places",
                {
                    "nargs": "+",
                    "metavar": "FILE[::EXERCISE]",
                    "help": "such as my_lab.ipynb::memory.transpose, or my_lab.ipynb for the points of all",
                },
            ),
        ),
    ),
    "profile": Command(
        "the report of a kernel that a notebook or script launches",
        _profile,
        (("place", {"metavar": "FILE::KERNEL", "help": "such as my_kernels.py::transpose"}),),
    ),
    "run": Command(
        "any program with CUDA kernels, unchanged, on a simulated GPU",
        _program,
        (
            ("--gpu", {"metavar": "GPU", "default": "", "help": "such as H100; an A100 when none is named"}),
            (
                "--clock",
                {
                    "choices": ("none", "wall", "modelled"),
                    "default": "none",
                    "metavar": "CLOCK",
                    "help": "of benchmarks: none, wall, or modelled by the time model",
                },
            ),
            (
                "--fill",
                {
                    "choices": ("nan", "zero", "random"),
                    "default": "nan",
                    "metavar": "BYTES",
                    "help": "what new memory holds: nan, zero or random",
                },
            ),
            (
                "--limit",
                {"type": int, "default": 0, "metavar": "N", "help": "stop kernels after N instructions"},
            ),
            ("--report", {"action": "store_true", "help": "print launches and counts at the end"}),
            ("--sanitize", {"action": "store_true", "help": "look for races and bad memory in every launch"}),
            ("--budget", {"type": Path, "metavar": "FILE", "help": "counts that must not rise"}),
            ("--write-budget", {"type": Path, "metavar": "FILE", "help": "write this run's counts there"}),
            (
                "--nvcc",
                {"metavar": "FLAGS", "default": "", "help": 'for a program.cu, as --nvcc="-DN=4 other.cu"'},
            ),
            (
                "-m",
                {"nargs": argparse.REMAINDER, "dest": "module", "metavar": "MODULE", "help": "as python's"},
            ),
            ("program", {"nargs": argparse.REMAINDER, "metavar": "PROGRAM", "help": "script.py ARGUMENTS"}),
        ),
    ),
    "hint": Command(
        "the next hint of an exercise",
        _hint,
        (("exercise", {"metavar": "EXERCISE", "help": "such as memory.transpose"}),),
    ),
    "appeal": Command(
        "ask for a second look at a grade: writes a file to hand in",
        _appeal,
        (
            ("about", {"metavar": "EXERCISE", "help": "such as memory.transpose, or a lab's number"}),
            ("why", {"nargs": "+", "metavar": "WHY", "help": "what was judged wrongly, in quotation marks"}),
            ("--as", {"metavar": "ID", "dest": "who", "default": "", "help": "as your course knows you"}),
        ),
    ),
    "progress": Command(
        "what you have done, in all labs or in one",
        _progress,
        (
            ("lab", {"nargs": "?", "default": "", "metavar": "LAB", "help": "its number, such as 04"}),
            ("--json", {"action": "store_true", "help": "for programs"}),
        ),
    ),
    "glossary": Command(
        "what a word means; all words when none is given",
        _glossary,
        (("term", {"nargs": "*", "metavar": "TERM", "help": "such as bank conflict"}),),
    ),
    "update": Command(
        "bring the labs up to date; your work in them is kept",
        _update,
        (
            (
                "source",
                {
                    "nargs": "?",
                    "type": Path,
                    "metavar": "FROM",
                    "help": "a folder or zip with the new version; by default where the clone comes from",
                },
            ),
        ),
    ),
    "completion": Command(
        "a script that lets a shell complete with the tab key",
        _completion,
        (("shell", {"choices": ("bash", "zsh", "tcsh"), "help": 'eval "$(gpulab completion bash)"'}),),
    ),
    "lab": Command("open JupyterLab on the labs; all options are Jupyter's", _lab, hands_on=True),
    "leaderboard": Command(
        "your attempts at lab 22's projects, between naive and bound",
        _leaderboard,
        (
            (
                "project",
                {"nargs": "?", "metavar": "PROJECT", "help": "such as attention; all when none is named"},
            ),
            ("--export", {"metavar": "FILE", "help": "write your entries into a file for others"}),
            ("--as", {"metavar": "NAME", "dest": "who", "default": "", "help": "the name on them"}),
            ("--import", {"metavar": "FILE", "dest": "take", "help": "take somebody's entries in"}),
        ),
    ),
}


def _parser(each: Callable[[argparse.Action], None] = lambda argument: None) -> _Parser:
    """The command line; `each` sees every argument of every command."""
    about = f"A course on GPU acceleration that needs no GPU. {EXIT_CODES}"
    parser = _Parser(prog="gpulab", description=about, formatter_class=_Help)
    parser.add_argument("--version", action="version", version=f"gpulab {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(
            name, help=command.help, description=command.help, add_help=not command.hands_on
        )
        for flag, settings in command.arguments:
            each(sub.add_argument(flag, **settings))
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that has no ≤ shows ? in its place
            stream.reconfigure(errors="replace")
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
