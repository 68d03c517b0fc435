"""``python -m validation``: measure a GPU, model the same kernels, set both side by side."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpulab.foundation.errors import Message
from gpulab.simulator import hardware

from . import machine, measure, measured, traces
from .case import Variant
from .table import chosen

STOPPED = 130  # exit code after an interrupt, as shells have it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit codes: 0, 1 a goal is missed, 2 it cannot be done here, 130 stopped."""
    given = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return int(given.do(given) or 0)
    except Message as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "\nStopped. What was finished is in the file; the same command goes on from there.",
            file=sys.stderr,
        )
        return STOPPED


def _interrupt(signum: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m validation", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, do: Callable[[Any], int | None], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.set_defaults(do=do)
        return made

    one = command("list", _list, "list the kernels and their sizes")
    _only(one)
    one = command("measure", _measure, "measure the GPU of this machine: a JSON to commit")
    _only(one)
    _file(one, "validation/measured/GPU.json")
    one.add_argument("--again", action="store_true", help="measure what is in the file already, too")
    one.add_argument("--times-only", action="store_true", help="without Nsight Compute")
    one.add_argument("--minutes", type=float, metavar="N", help="end after N minutes, to go on another time")
    one.add_argument(
        "--traces", type=Path, metavar="FILE", help="what `compile` wrote: nothing is compiled here"
    )
    one = command("compile", _compile, "compile the kernels, to be measured where there is no compiler")
    _only(one)
    one.add_argument("--gpu", default="H200", help="the data sheet (H200)")
    one.add_argument("--out", type=Path, required=True, metavar="FILE", help="the launch traces to write")
    one = command("model", _model, "say what the simulator gives, on any machine")
    _only(one)
    _sizes(one)
    one.add_argument("--gpu", default="H200", help="the data sheet (H200)")
    one.add_argument("--out", type=Path, help="the JSON to write; standard output by default")
    one = command("compare", _compare, "set a measurement and the model side by side")
    _only(one)
    _sizes(one)
    one.add_argument("--measured", type=Path, help="the JSON of a GPU; all of validation/measured by default")
    one.add_argument("--plot", type=Path, help="write a figure of the times, PNG")
    one = command(
        "sanitize",
        _sanitize,
        "run the corpus of tests/sanitizer under compute-sanitizer on this machine's GPU",
    )
    one.add_argument("--only", nargs="+", default=[], metavar="NAME", help="kernels of the corpus")
    _file(one, "validation/sanitized/GPU.json")
    one.add_argument("--again", action="store_true", help="run what is in the file already, too")
    one.add_argument("--minutes", type=float, metavar="N", help="end after N minutes, to go on another time")
    one = command("notebooks", _notebooks, "run the labs' solution notebooks on this machine's GPU")
    one.add_argument("--only", nargs="+", default=[], metavar="LAB", help="labs by number: 03 12")
    _file(one, "build/notebooks.json")
    one.add_argument("--jobs", type=_at_least_1, default=8, metavar="N", help="so many at a time (8)")
    _inner(commands)
    return parser


def _at_least_1(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)


def _only(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="kernels: copy, copy/numba")


def _file(parser: argparse.ArgumentParser, usual: str) -> None:
    parser.add_argument("--out", type=Path, help=f"the JSON to write or to go on with ({usual})")


def _sizes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sizes", type=int, choices=(1, 2, 3), default=3, help="how many, the smallest first (3)"
    )


def _inner(commands: Any) -> None:
    """What `measure` and `sanitize` start themselves."""

    def inner(name: str, do: Callable[..., Any], *arguments: str) -> None:
        made = commands.add_parser(name)
        for argument in arguments:
            made.add_argument(argument, nargs="+" if argument == "keys" else None)
        made.set_defaults(do=lambda given: do(*(getattr(given, a) for a in arguments)))

    inner("_about", lambda: print(json.dumps(machine.about())))

    def launched(timed: bool) -> Callable[..., None]:
        return lambda file, result, keys: measure.write(result, measure.launch(file, keys, timed))

    inner("_begin", lambda file, result: measure.write(result, measure.begin(file)), "file", "result")
    inner("_time", launched(True), "file", "result", "keys")
    inner("_launch", launched(False), "file", "result", "keys")
    inner("_gpulab", _gpulab, "name", "result")
    inner("_corpus", _corpus, "name", "twin", "sheet")
    inner("_notebook", _notebook, "source", "result")


# What only some commands need is imported there: a measurement consists of many short processes.


def _gpulab(name: str, result: str) -> None:
    from . import sanitize

    measure.write(result, sanitize.found_by_gpulab(name))


def _corpus(name: str, twin: str, sheet: str) -> None:
    from . import sanitize

    sanitize.launch(name, twin, sheet)


def _notebook(source: str, result: str) -> None:
    from . import notebooks

    measure.write(result, notebooks.run(Path(source)))


def _list(given: Any) -> None:
    for variant in chosen(given.only):
        sizes = ", ".join(f"{size:,}" for size in variant.kernel.sizes)
        print(f"{variant.key:28}{sizes}")


def _measure(given: Any) -> None:
    path = measure.measure(
        given.only,
        given.out,
        given.again,
        given.times_only,
        launch_traces=given.traces,
        minutes=given.minutes,
    )
    print(f"To keep it: git add {path}. What it says: python -m validation compare")


def _compile(given: Any) -> None:
    wanted = chosen(given.only)
    traces.save(given.out, traces.record(wanted, hardware.find(given.gpu)))
    print(f"{len(wanted)} kernels for {given.gpu} in {given.out}")


def _sanitize(given: Any) -> None:
    from . import sanitize

    path = sanitize.run(given.only, given.out, given.again, minutes=given.minutes)
    print(f"To keep it: git add {path}, and python docs/make_sanitizer.py for the page.")


def _notebooks(given: Any) -> None:
    from . import notebooks

    path = notebooks.run_all(given.only, given.out or notebooks.USUAL, given.jobs, print)
    print(f"What failed and what each check said is in {path}.")


def _launches(variants: list[Variant], sizes: int) -> list[tuple[Variant, int]]:
    return [(variant, size) for variant in variants for size in variant.kernel.sizes[:sizes]]


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def _model(given: Any) -> None:
    from . import model

    gpu = hardware.find(given.gpu)
    kernels = model.model_all(_launches(chosen(given.only), given.sizes), gpu, _tell)
    text = json.dumps({"gpu": gpu.name, "kernels": kernels}, indent=1)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


def _compare(given: Any) -> int:
    from . import model
    from .compare import compare

    files = [given.measured] if given.measured else measured.files()
    if not files:
        print(
            "Nothing has been measured yet: validation/measured/ is empty. On a machine with a GPU, "
            "`make validate` fills it.",
            file=sys.stderr,
        )
        return 2
    missed = False
    for path in files:
        data = measured.load(path)
        gpu = hardware.find(data["machine"]["sheet"])
        there = [v for v in chosen(given.only) if v.key in data["kernels"]]
        modelled = model.model_all(_launches(there, given.sizes), gpu, _tell, data["kernels"])
        found = compare(data["machine"]["gpu"], modelled, data["kernels"], measured.start(data))
        print(found)
        missed = missed or any(goal.met is False for goal in found.goals)
        if given.plot:
            from .plot import predicted

            picture = predicted(found.times["seconds"], data["machine"]["gpu"])
            many = f"-{path.stem}" if len(files) > 1 else ""
            picture.save(given.plot.with_stem(given.plot.stem + many))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
